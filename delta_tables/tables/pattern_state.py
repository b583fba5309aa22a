"""Table `pattern_state`: events that may still take part in a match, of kept patterns whose windows count them.

Only of patterns with PARTITION BY: a partition may be quiet for years, and its last events count all the same. What
other patterns need of former events lies behind one moment of the stream, which their publications hold.

A batch of few events closes the rows that it replaces. To close rows is to write their files anew, so a batch that
brings a quarter as many events as are kept, or more, writes all that is kept instead, and earlier rows count no longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.visibility import Batches, visible
from patternlake.delta_tables.schema.table import DIRECT_CHECKPOINT_INTERVAL, Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database


TABLE: Table = Table(
    name="pattern_state",
    comment="Events that may still take part in a match of a kept pattern whose windows count the events of a key.",
    columns=(
        Column("pattern_id", "INT", "number of the pattern, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the rows of the partition; NULL: none did"),
        Column("position", "BIGINT", "arrival rank in the stream"),
        Column("time", "TIMESTAMP", "event time"),
        Column("step", "BIGINT", "where the pattern reads it"),
        Column("key", "STRING", "where the pattern reads it"),
        Column("name", "STRING", "event name"),
        Column("probability", "DOUBLE", "where the pattern reads it"),
        Column("attributes", "MAP<STRING, STRING>", "those that the pattern reads"),
    ),
    keys=("pattern_id", "position", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream pattern=publications.object partition:STRING position time name from_batch",
    job="patterns",
    object_column="pattern_id",
    partitions=("pattern_id",),
    properties={
        "delta.checkpointInterval": str(DIRECT_CHECKPOINT_INTERVAL),
        "delta.dataSkippingStatsColumns": "from_batch,to_batch,position,time",
    },
    counted_from="kept_from",
)


def keeps_anew(batch: Batches) -> bool:
    """Whether a batch writes anew all that is kept."""
    return batch.source.get(TABLE.counted_from) == batch.batch_id


class PatternStateReader:
    """Reads kept events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, batches: Batches) -> DataFrame:
        """Return the events that a publication makes visible, or a batch that is going to be one."""
        return self._database.table(TABLE.name).where(visible(TABLE, batches))
