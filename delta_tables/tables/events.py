"""Table `events`: the accepted events of every stream, written once by `ingest`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.layout import Layout
from patternlake.delta_tables.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.visibility import visible, visible_text
from patternlake.udfs.blocks import BLOCK_BITS, block_of
from patternlake.udfs.equal_shares import equal_shares

if TYPE_CHECKING:
    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.tables.publications import Publication


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, e.position, e.time, e.step, e.key, e.name, e.probability, e.attributes, e.tokens,
  e.batch_id, e.event_id
FROM {log("events")} e JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "e", "p")}"""


TABLE = Table(
    name="events",
    comment="The accepted events of every stream, by position.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("block", "INT", f"(position - 1) >> {BLOCK_BITS}"),
        Column("position", "BIGINT", "arrival rank in the stream, from 1"),
        Column("time", "TIMESTAMP", "event time"),
        Column("step", "BIGINT", "integer step of a probabilistic stream"),
        Column("batch_id", "BIGINT", "the batch that wrote the row"),
        Column("key", "STRING", "partition of the stream: a user, a trace; NULL is one of its own"),
        Column("name", "STRING", "event name"),
        Column("probability", "DOUBLE", "probability of an uncertain event, in [0, 1]"),
        Column("attributes", "MAP<STRING, STRING>", "attributes as text; types stand in streams"),
        Column("tokens", "ARRAY<STRING>", "tokens of a sketch; NULL: the name alone"),
        Column("event_id", "STRING", "what repeats are known by; NULL where the stream has none"),
    ),
    keys=("stream_id", "position"),
    view=_view,
    job="ingest",
    partitions=("stream_id", "block"),
    properties={"delta.dataSkippingStatsColumns": "position,time,step,batch_id,key,name"},
    layout=Layout.BY_KEY,
)


_MOST_RUNS = 32


class EventsReader:
    """Reads published events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def published(self, publication: Publication) -> DataFrame:
        """Return all events that an ingest publication makes visible."""
        return self._database.table(TABLE.name).where(visible(TABLE, publication))

    def between(self, publication: Publication, first: int, last: int) -> DataFrame:
        """Return the events at positions first to last, both included; other blocks are not read."""
        blocks = F.col("block").between(block_of(first), block_of(last))
        return self.published(publication).where(blocks & F.col("position").between(first, last))

    def in_runs(self, publication: Publication, first: int, last: int, events: int) -> DataFrame:
        """Return the events at positions first to last so that each of Spark's tasks reads neighbours.

        Spark alone packs files into tasks by their sizes, and what tasks make of them lies mixed.

        Parameters
        ----------
        publication
            Of ingest.
        first, last
            Both included.
        events
            Of one run, at least; fewer where there would be too many runs.
        """
        low, high = block_of(first), block_of(max(first, last))
        most = max(1, min(_MOST_RUNS, (last - first + 1) // events))
        blocks = [(low + begin, low + end) for begin, end in equal_shares(high + 1 - low, most) if begin < end]
        runs = [
            self.between(publication, max(first, (begin << BLOCK_BITS) + 1), min(last, end << BLOCK_BITS))
            for begin, end in blocks
        ]
        return reduce(DataFrame.unionAll, runs)
