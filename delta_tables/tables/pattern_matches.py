"""Table `pattern_matches`: the final matches of every kept pattern, each written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.partition_values import shown_text
from patternlake.delta_tables.table import DIRECT_CHECKPOINT_INTERVAL, Column, LogName, Table
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.timestamps import timestamp_literal
from patternlake.delta_tables.visibility import visible, visible_text

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.tables.publications import Publication


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, p.object AS pattern, {shown_text("m.part")} AS partition, m.first_position,
  m.last_position, m.first_time, m.last_time, m.bindings, m.values, m.batch_id
FROM {log("pattern_matches")} m JOIN ({current(log, "patterns")}) p ON {visible_text(TABLE, "m", "p")}"""


TABLE = Table(
    name="pattern_matches",
    comment="Final matches of every kept pattern.",
    columns=(
        Column("pattern_id", "INT", "number of the pattern, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; empty without"),
        Column("batch_id", "BIGINT", "the batch that wrote the row: the first at which the match was final"),
        Column("first_position", "BIGINT", "position of the first event, by time"),
        Column("last_position", "BIGINT", "position of the last event"),
        Column("first_time", "TIMESTAMP", "time of the first event"),
        Column("last_time", "TIMESTAMP", "time of the last event"),
        Column("positions", "ARRAY<BIGINT>", "positions of all events, in the order of events"),
        Column("operands", "ARRAY<INT>", "number of the operand that binds each of them, from 0 in text order"),
        Column("bindings", "MAP<STRING,ARRAY<BIGINT>>", "operand to the positions of its events; empty: has none"),
        Column("values", "MAP<STRING,STRING>", "aggregate of the query to its value, as text"),
    ),
    keys=("pattern_id", "part", "positions", "operands"),
    view=_view,
    job="patterns",
    object_column="pattern_id",
    partitions=("pattern_id",),
    properties={
        "delta.checkpointInterval": str(DIRECT_CHECKPOINT_INTERVAL),
        "delta.dataSkippingStatsColumns": "batch_id,first_position,last_position,first_time,last_time",
    },
)


class PatternMatchesReader:
    """Reads kept matches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ends(self, publication: Publication, since: datetime | None) -> DataFrame:
        """Return of each partition where its last match ends, of those that end at a moment or later.

        Returns
        -------
        DataFrame
            ``part``, ``time`` and ``position``.
        """
        rows = self._database.table(TABLE.name).where(visible(TABLE, publication))
        if since is not None:
            rows = rows.where(F.col("last_time") >= timestamp_literal(since))
        last = F.max(F.struct(F.col("last_time").alias("time"), F.col("last_position").alias("position")))
        return rows.groupBy("part").agg(last.alias("last")).select("part", "last.time", "last.position")
