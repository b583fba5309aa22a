"""Positions: the order of a batch by (time, name, key, hash of the row), found without a single-partition sort.

The rows are cut into ranges at bounds taken from a sample, counted by range, and sorted inside each range; a row's
position is the count of all ranges before it plus its index in its own. The order is total up to equal rows, so the
positions do not depend on the sample, the number of ranges or the partitions of the input.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

logger = logging.getLogger(__name__)

ORDER = ("time", "name", "key", "hash")

# A range of this many rows sorts in memory and makes one file of a good size; a tree of more bounds than that would
# be slower to compile than larger ranges are to sort.
RANGE_ROWS = 500_000
MOST_RANGES = 256
# Per range, so that the largest is rarely more than a third above the mean.
SAMPLE_ROWS = 100

_INDEX_BITS = 33


def number(rows: DataFrame, count: int, first: int, *, parallelism: int = 1) -> DataFrame:
    """Give every row its position.

    Parameters
    ----------
    rows
        With the columns of `ORDER`; read up to three times, so better cached.
    count
        How many rows there are.
    first
        Position of the first, 1-based.
    parallelism
        Tasks that run at once; a batch that is worth it is cut into at least that many ranges.

    Returns
    -------
    DataFrame
        The rows with a column ``position``; sorted inside partitions, partitions in order of their ranges.
    """
    bounds = _bounds(rows, count, parallelism)
    if not bounds:
        return _indexed(rows.repartition(1), F.lit(first))
    ranged = rows.withColumn("range", _range(bounds))
    counts = {row["range"]: row["count"] for row in ranged.groupBy("range").count().collect()}
    offsets = [first]
    for index in range(len(bounds)):
        offsets.append(offsets[-1] + counts.get(index, 0))
    offset = F.element_at(F.array(*[F.lit(value) for value in offsets]), F.col("range") + 1)
    logger.debug("%d rows in %d ranges, the largest of %d", count, len(offsets), max(counts.values(), default=0))
    return _indexed(ranged.repartitionById(len(offsets), "range"), offset).drop("range")


def _indexed(partitioned: DataFrame, offset: Column) -> DataFrame:
    index = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _INDEX_BITS) - 1))
    ordered = partitioned.sortWithinPartitions(*ORDER)
    return ordered.withColumn("position", offset.cast("bigint") + index)


def _bounds(rows: DataFrame, count: int, parallelism: int) -> list[Row]:
    """First rows of all ranges but the first, ascending."""
    ranges = min(MOST_RANGES, max(-(-count // RANGE_ROWS), parallelism if count >= RANGE_ROWS // 5 else 1))
    if ranges == 1:
        return []
    wanted = ranges * SAMPLE_ROWS
    keys = rows.select(F.unix_micros("time").alias("time"), "name", "key", "hash")
    # Sorted here: Spark would read the rows once more to find out how to spread a hundred of them.
    sample = sorted(keys.sample(min(1.0, wanted / count), seed=0).collect(), key=_sort_key)
    picked = [sample[len(sample) * index // ranges] for index in range(1, ranges)] if sample else []
    return [row for index, row in enumerate(picked) if index == 0 or row != picked[index - 1]]


def _sort_key(row: Row) -> tuple[int, str, bool, str, int]:
    """Spark's order of `ORDER`: text by code point as by UTF-8 byte, NULL first."""
    return row["time"], row["name"], row["key"] is not None, row["key"] or "", row["hash"]


def _range(bounds: Sequence[Row]) -> Column:
    """Number of bounds at or before a row, as a balanced tree of comparisons."""

    def tree(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        return f"CASE WHEN {_before(bounds[middle])} THEN {tree(low, middle)} ELSE {tree(middle + 1, high)} END"

    return F.expr(tree(0, len(bounds)))


def _before(bound: Row) -> str:
    """SQL: the row comes before the bound; NULL first, as in Spark's ascending order."""
    time = f"timestamp_micros({bound['time']}L)"
    key = _literal(bound["key"])
    ties = f"struct(name, key, hash) < struct({_literal(bound['name'])}, {key}, {bound['hash']}L)"
    return f"(time < {time} OR (time = {time} AND {ties}))"


def _literal(text: str | None) -> str:
    """A string as SQL, in hexadecimal, so that nothing in it can be read as SQL."""
    return "CAST(NULL AS STRING)" if text is None else f"CAST(X'{text.encode().hex()}' AS STRING)"
