"""Table `events`: the accepted events of every stream, written once by `ingest`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.visibility import visible, visible_text
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.schema.timestamps import ISO
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.writing import writes
from patternlake.udfs.attributes import column_of, stored_type, type_of
from patternlake.udfs.blocks import BLOCK_BITS

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication


def view_text(log: LogName, known: Collection[tuple[str, str]] = ()) -> str:
    """Write the query of the view.

    Parameters
    ----------
    log
        Maps a table's plain name to the quoted name of its Delta table.
    known
        Attributes and their Spark types whose columns the table has. The view has others that come later as well, but
        takes ten times as long to read them, and their decimals as doubles.
    """
    columns: dict[str, list[str]] = {}
    for attribute, kind in sorted(known):
        columns.setdefault(attribute, []).append(column_of(attribute, kind))
    others = ", ".join(map(identifier, [*TABLE.column_names, *chain.from_iterable(columns.values())]))
    # Where there are no others, Spark's optimizer takes this for {}, and leaves out what is done with it.
    texts = f"to_json(struct(e.* EXCEPT ({others})), map('timestampFormat', {literal(ISO)}))"
    names = "(column, value) -> url_decode(split_part(column, ':', 1))"
    attributes = f"transform_keys(from_json({texts}, 'MAP<STRING, STRING>'), {names})"
    if columns:
        # A row has one of the columns of a name, that of its stream's type.
        values = [
            f"{literal(attribute)}, coalesce({', '.join(_text_of(column) for column in each)})"
            for attribute, each in columns.items()
        ]
        mine = f"map_filter(map({', '.join(values)}), (name, value) -> value IS NOT NULL)"
        attributes = f"IF({texts} = '{{}}', {mine}, map_concat({mine}, {attributes}))"
    return f"""SELECT p.stream, e.position, e.time, e.step, e.key, e.name, e.probability,
  {attributes} AS attributes, e.tokens, e.batch_id, e.event_id
FROM {log("events")} e JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "e", "p")}"""


def _text_of(column: str) -> str:
    """SQL text of an attribute's value as text."""
    value = f"e.{identifier(column)}"
    return f"date_format({value}, {literal(ISO)})" if type_of(column) == "timestamp" else f"CAST({value} AS STRING)"


TABLE = Table(
    name="events",
    comment="The accepted events of every stream, by position.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("block", "INT", f"the first block of 2^{BLOCK_BITS} positions that the row's file holds"),
        Column("position", "BIGINT", "arrival rank in the stream, from 1"),
        Column("time", "TIMESTAMP", "event time"),
        Column("step", "BIGINT", "integer step of a probabilistic stream"),
        Column("batch_id", "BIGINT", "the batch that wrote the row"),
        Column("key", "STRING", "partition of the stream: a user, a trace; NULL is one of its own"),
        Column("name", "STRING", "event name"),
        Column("probability", "DOUBLE", "probability of an uncertain event, in [0, 1]"),
        Column("tokens", "ARRAY<STRING>", "tokens of a sketch; NULL: the name alone"),
        Column("event_id", "STRING", "what repeats are known by; NULL where the stream has none"),
    ),
    keys=("stream_id", "position"),
    view=view_text,
    seen="stream position time step key name probability attributes:MAP<STRING,STRING> tokens batch_id event_id",
    job="ingest",
    partitions=("stream_id", "block"),
    properties={"delta.dataSkippingStatsColumns": "position,time,step,batch_id,key,name"},
    layout=Layout.BY_KEY,
)


def add_attributes(database: Database, types: Mapping[str, str]) -> None:
    """Add the columns of some attributes, by their Spark types, that the table does not have yet."""
    columns = {column_of(name, type_): type_ for name, type_ in types.items()}

    def missing() -> dict[str, str]:
        there = database.columns(TABLE.name)
        return {column: type_ for column, type_ in columns.items() if column not in there}

    added = [f"{identifier(column)} {stored_type(type_)}" for column, type_ in missing().items()]
    try:
        if added:
            writes.add_columns(database.spark, database.log(TABLE.name), added, commits=database.commits(TABLE))
    except PySparkException:
        # Another run may have added them in the meantime.
        if missing():
            raise


class EventsReader:
    """Reads published events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def published(self, publication: Publication) -> DataFrame:
        """Return all events that an ingest publication makes visible."""
        return self._database.table(TABLE.name).where(visible(TABLE, publication))

    def between(self, publication: Publication, first: int, last: int) -> DataFrame:
        """Return the events at positions first to last, both included; files of others are not read."""
        return self.published(publication).where(F.col("position").between(first, last))
