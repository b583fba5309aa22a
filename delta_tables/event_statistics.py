"""Table `event_statistics`: how often each event name occurs, by batch; the planner of exact patterns reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.publications import current
from patternlake.delta_tables.table import Column, LogName, Table
from patternlake.delta_tables.visibility import visible, visible_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.publications import Publication


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, s.name, sum(s.events) AS events,
  min(s.first_time) AS first_time, max(s.last_time) AS last_time
FROM {log("event_statistics")} s JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "s", "p")}
GROUP BY p.stream, s.name"""


TABLE = Table(
    name="event_statistics",
    comment="Number and span of the events of each name, one row per batch.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("batch_id", "BIGINT", "the batch that was counted"),
        Column("name", "STRING", "event name"),
        Column("events", "BIGINT", "events of this name in the batch"),
        Column("first_time", "TIMESTAMP", "least event time"),
        Column("last_time", "TIMESTAMP", "greatest event time"),
    ),
    keys=("stream_id", "batch_id", "name"),
    view=_view,
    job="ingest",
    partitions=("stream_id",),
)


class EventStatisticsReader:
    """Reads the counts of event names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def totals(self, publication: Publication) -> DataFrame:
        """Return name, events, first_time, last_time over all batches that an ingest publication makes visible."""
        rows = self._database.table(TABLE.name).where(visible(TABLE, publication))
        return rows.groupBy("name").agg(
            F.sum("events").alias("events"),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
        )
