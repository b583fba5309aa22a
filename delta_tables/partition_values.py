"""The values that partition events, as Spark computes them; `udfs.partitions` does the same of rows in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.udfs.partitions import CAST, PART, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import Column


def partition_column(columns: Sequence[str]) -> Column:
    """Build `PART` of rows of `events`, by these columns of PARTITION BY."""

    def text(column: str) -> Column:
        if column in TEXTS or column in CAST:
            return F.col(column).cast("string")
        return F.try_element_at("attributes", F.lit(column))

    return F.array(*map(text, columns)).cast("array<string>").alias(PART)


def shown_text(part: str) -> str:
    """Write SQL for what is shown of a partition: its value, several values joined by a comma, NULL for none."""
    return f"CASE WHEN size({part}) = 1 THEN {part}[0] WHEN size({part}) > 1 THEN array_join({part}, ',', 'NULL') END"
