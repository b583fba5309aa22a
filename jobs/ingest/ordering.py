"""Positions: the order of a batch by (time, name, key, hash of the row), found without a single-partition sort.

The rows are cut into ranges, counted by range, and sorted inside each range; a row's position is the count of all
ranges before it plus its index in its own. The order is total up to equal rows, so the positions do not depend on
where the ranges are cut, on their number or on the partitions of the input.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

_LOOKED_AT = 16
"""One row in so many counts for the quantiles: where ranges are cut changes no position."""
_QUANTILES = [index / MOST_RANGES for index in range(1, MOST_RANGES)]
# Each quantile is off by at most this share of the rows: a tenth of the smallest range.
_ACCURACY = 10 * MOST_RANGES
_INDEX_BITS = 33


@dataclass(frozen=True)
class Ranges:
    """Where a batch is cut.

    Parameters
    ----------
    bounds
        First rows of all ranges but the first, ascending by `ORDER`, times in microseconds. A name of None stands
        for no row: the range begins with the first row of that time.
    """

    bounds: tuple[Row, ...] = ()

    def __len__(self) -> int:
        return len(self.bounds) + 1

    @property
    def number(self) -> Column:
        """Number of a row's range, from 0: of the bounds at or before it, as a balanced tree of comparisons."""

        def tree(low: int, high: int) -> str:
            if low == high:
                return str(low)
            middle = (low + high) // 2
            return (
                f"CASE WHEN {_before(self.bounds[middle])} THEN {tree(low, middle)} ELSE {tree(middle + 1, high)} END"
            )

        return F.expr(tree(0, len(self.bounds)))


def times() -> Column:
    """An aggregate over the rows of a batch that `ranges` can cut it by: quantiles of the times, in microseconds."""
    # Chosen by their hash, so that replays cut alike.
    looked_at = F.pmod("hash", F.lit(_LOOKED_AT)) == 0
    return F.percentile_approx(F.when(looked_at, F.unix_micros("time")), _QUANTILES, _ACCURACY)


def ranges(rows: DataFrame, count: int, quantiles: Sequence[int], *, parallelism: int = 1) -> Ranges:
    """Cut a batch into ranges of much the same size.

    Parameters
    ----------
    rows
        With the columns of `ORDER`; read only where many rows share one time.
    count
        How many rows there are.
    quantiles
        Of their times, by `times`.
    parallelism
        Tasks that run at once; a batch that is worth it is cut into at least that many ranges.

    Returns
    -------
    Ranges
        A single one for few rows.
    """
    wanted = min(MOST_RANGES, max(-(-count // RANGE_ROWS), parallelism if count >= RANGE_ROWS // 5 else 1))
    if wanted == 1:
        return Ranges()
    commonest = max(Counter(quantiles).values(), default=0)
    if not commonest or (commonest - 1) * wanted > MOST_RANGES // 2:  # one time may hold more than half a range
        return _sampled(rows, count, wanted)
    picked = [quantiles[MOST_RANGES * index // wanted - 1] for index in range(1, wanted)]
    return Ranges(tuple(Row(time=time, name=None, key=None, hash=None) for time in picked))


def number(rows: DataFrame, cut: Ranges, counts: Mapping[int, int], first: int) -> DataFrame:
    """Give every row its position.

    Parameters
    ----------
    rows
        With the columns of `ORDER`.
    cut
        Their ranges.
    counts
        Rows by number of the range; none where there is one range.
    first
        Position of the first, 1-based.

    Returns
    -------
    DataFrame
        The rows with a column ``position``; sorted inside partitions, partitions in order of their ranges.
    """
    if len(cut) == 1:
        return _indexed(rows.repartition(1), F.lit(first))
    offsets = [first]
    for index in range(len(cut) - 1):
        offsets.append(offsets[-1] + counts.get(index, 0))
    offset = F.element_at(F.array(*[F.lit(value) for value in offsets]), F.col("range") + 1)
    logger.debug("%d ranges, the largest of %d rows", len(cut), max(counts.values(), default=0))
    ranged = rows.withColumn("range", cut.number).repartitionById(len(cut), "range")
    return _indexed(ranged, offset).drop("range")


def _indexed(partitioned: DataFrame, offset: Column) -> DataFrame:
    index = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _INDEX_BITS) - 1))
    ordered = partitioned.sortWithinPartitions(*ORDER)
    return ordered.withColumn("position", offset.cast("bigint") + index)


def _sampled(rows: DataFrame, count: int, wanted: int) -> Ranges:
    """Ranges that may begin in the middle of the rows of one time."""
    keys = rows.select(F.unix_micros("time").alias("time"), "name", "key", "hash")
    # Sorted here: Spark would read the rows once more to find out how to spread a hundred of them.
    sample = sorted(keys.sample(min(1.0, wanted * SAMPLE_ROWS / count), seed=0).collect(), key=_sort_key)
    picked = [sample[len(sample) * index // wanted] for index in range(1, wanted)] if sample else []
    return Ranges(tuple(row for index, row in enumerate(picked) if index == 0 or row != picked[index - 1]))


def _sort_key(row: Row) -> tuple[int, str, bool, str, int]:
    """Spark's order of `ORDER`: text by code point as by UTF-8 byte, NULL first."""
    return row["time"], row["name"], row["key"] is not None, row["key"] or "", row["hash"]


def _before(bound: Row) -> str:
    """SQL: the row comes before the bound; NULL first, as in Spark's ascending order."""
    time = f"timestamp_micros({bound['time']}L)"
    if bound["name"] is None:
        return f"time < {time}"
    key = _literal(bound["key"])
    ties = f"struct(name, key, hash) < struct({_literal(bound['name'])}, {key}, {bound['hash']}L)"
    return f"(time < {time} OR (time = {time} AND {ties}))"


def _literal(text: str | None) -> str:
    """A string as SQL, in hexadecimal, so that nothing in it can be read as SQL."""
    return "CAST(NULL AS STRING)" if text is None else f"CAST(X'{text.encode().hex()}' AS STRING)"
