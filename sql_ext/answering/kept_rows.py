"""Rows that a job keeps by partition, as functions give them: with the key that a partition is shown as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.quoting import shown_text
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.partitions import PART, partition_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_kept_rows(
    lake: Lake, table: str, columns: Sequence[str], where: Sequence[Condition], key: str | None
) -> DataFrame | pa.Table:
    """Rows of a table that has a column ``part``: `key`, and the columns; of all keys, or of one."""
    if lake.small(table, where):
        stored = lake.reader.rows(table, (PART, *columns), where)
        found = stored.drop_columns([PART]).add_column(0, "key", partition_texts(stored[PART].combine_chunks()))
        return found if key is None else found.filter(pc.equal(found["key"], key))
    rows = lake.frame(table, where).select(F.expr(shown_text(PART)).alias("key"), *columns)
    return rows if key is None else rows.where(F.col("key") == F.lit(key))
