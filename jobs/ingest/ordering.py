"""Positions: the order of a batch, found without a single-partition sort.

Rows are ordered by (time, the stream's `order:` expressions, place in the source, name, key, hash of the row).

The rows are cut into ranges, counted by range, and sorted inside each range; a row's position is the count of all
ranges before it plus its index in its own. The order is total up to equal rows, so the positions do not depend on
where the ranges are cut, on their number or on the partitions of the input.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from patternlake.jobs.sources.expressions import deciding

logger = logging.getLogger(__name__)


def order_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that order prepared rows, the first one first; each ascending, NULL first."""
    return ("time", *deciding(columns), "name", "key", "hash")


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
        First rows of all ranges but the first, ascending by `order_of` their columns, times in microseconds. A name of
        None stands for no row: the range begins with the first row of that time.
    types
        SQL types of the columns that order rows, where there are whole bounds.
    """

    bounds: tuple[Row, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bounds) + 1

    @property
    def number(self) -> Column:
        """Number of a row's range, from 0: of the bounds at or before it, as a balanced tree of comparisons."""

        def tree(low: int, high: int) -> str:
            if low == high:
                return str(low)
            middle = (low + high) // 2
            before = _before(self.bounds[middle], self.types)
            return f"CASE WHEN {before} THEN {tree(low, middle)} ELSE {tree(middle + 1, high)} END"

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
        With the columns of `order_of`; read only where many rows share one time.
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
        return _sample(rows, count, wanted)
    picked = [quantiles[MOST_RANGES * index // wanted - 1] for index in range(1, wanted)]
    return Ranges(tuple(Row(time=time, name=None, key=None, hash=None) for time in picked))


def number(rows: DataFrame, cut: Ranges, counts: Mapping[int, int], first: int) -> DataFrame:
    """Give every row its position.

    Parameters
    ----------
    rows
        With the columns of `order_of`.
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
        return _add_index(rows.repartition(1), F.lit(first))
    offsets = [first]
    for index in range(len(cut) - 1):
        offsets.append(offsets[-1] + counts.get(index, 0))
    offset = F.element_at(F.array(*[F.lit(value) for value in offsets]), F.col("range") + 1)
    logger.debug("%d ranges, the largest of %d rows", len(cut), max(counts.values(), default=0))
    ranged = rows.withColumn("range", cut.number).repartitionById(len(cut), "range")
    return _add_index(ranged, offset).drop("range")


def _add_index(partitioned: DataFrame, offset: Column) -> DataFrame:
    index = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _INDEX_BITS) - 1))
    ordered = partitioned.sortWithinPartitions(*order_of(partitioned.columns))
    return ordered.withColumn("position", offset.cast("bigint") + index)


def _sample(rows: DataFrame, count: int, wanted: int) -> Ranges:
    """Ranges that may begin in the middle of the rows of one time."""
    _, *ties = order_of(rows.columns)
    keys = rows.select(F.unix_micros("time").alias("time"), *ties)
    # Sorted here: Spark would read the rows once more to find out how to spread a hundred of them.
    sample = sorted(keys.sample(min(1.0, wanted * SAMPLE_ROWS / count), seed=0).collect(), key=_sort_key)
    picked = [sample[len(sample) * index // wanted] for index in range(1, wanted)] if sample else []
    types = {field.name: field.dataType.simpleString() for field in keys.schema.fields}
    return Ranges(tuple(row for index, row in enumerate(picked) if index == 0 or row != picked[index - 1]), types)


def _sort_key(row: Row) -> list[tuple[Any, ...]]:
    """Spark's order of the columns: text by code point as by UTF-8 byte, NULL first, NaN last."""
    values: list[Any] = list(row)
    return [
        (0,) if value is None else (2,) if isinstance(value, float) and math.isnan(value) else (1, value)
        for value in values
    ]


def _before(bound: Row, types: Mapping[str, str]) -> str:
    """SQL: the row comes before the bound; NULL first, as in Spark's ascending order."""
    time = f"timestamp_micros({bound['time']}L)"
    if bound["name"] is None:
        return f"time < {time}"
    _, *ties = types
    literals = ", ".join(_literal(bound[name], types[name]) for name in ties)
    return f"(time < {time} OR (time = {time} AND struct({', '.join(ties)}) < struct({literals})))"


def _literal(value: Any, kind: str) -> str:
    """A value as SQL, in hexadecimal, so that nothing in it can be read as SQL."""
    text = "NULL" if value is None else f"CAST(X'{str(value).encode().hex()}' AS STRING)"
    return f"CAST({text} AS {kind})"
