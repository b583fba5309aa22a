"""Positions: the order of a batch, found range by range.

Rows are ordered by (time, the stream's `order:` expressions, place in the source, name, key, hash of the row). The
order is total up to equal rows, so the positions do not depend on where a batch is cut, nor on who orders its ranges.

Tasks take ranges of times. Whoever has the rows of some times orders them in ranges that may begin in the middle of a
time: ordered range by range, and each range's files written from its columns, they take a third of what Spark takes to
do the same row by row, and no more memory than a range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.jobs.sources.expressions import deciding
from patternlake.udfs.arrays import IntArray

RANGE_ROWS = 500_000
"""Rows of a range, about: they are ordered in memory, and make a file of a good size."""
MOST_RANGES = 256
"""Of times, at most: each chunk is dealt out to all of them."""
SAMPLED = 1000
"""One time in so many is looked at to cut a batch."""
RANGE_BYTES = 128 << 20
"""Bytes of a range: whoever orders it holds it, and the rows of the table that are made of it."""
_SAMPLE = 100
"""Rows for each range, of which the bounds are chosen."""
_MOST_PARTS = 30_000


def order_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that order prepared rows, the first one first; each ascending, NULL first."""
    return ("time", *deciding(columns), "name", "key", "hash")


def sample_times(rows: pa.Table, one_in: int) -> pa.Table:
    """The times of one in so many rows; which ones, their hashes say, so that no order of theirs is a pattern."""
    return rows.select(["time"]).filter(pa.array(rows["hash"].to_numpy() % one_in == 0))


def cut_times(sample: pa.Table, rows: int, *, parallelism: int) -> IntArray:
    """Cut a batch into ranges of times of much the same size.

    Parameters
    ----------
    sample
        Of `sample_times`, of all rows.
    rows
        How many there are.
    parallelism
        Tasks that run at once; a batch that is worth it is cut into at least that many ranges.

    Returns
    -------
    int64[n]
        The first times, in microseconds, of all ranges but the first; none for few rows.
    """
    wanted = min(MOST_RANGES, max(-(-rows // RANGE_ROWS), parallelism if rows >= RANGE_ROWS // 5 else 1))
    times = np.sort(micros(sample["time"]))
    return np.unique(times[len(times) * np.arange(1, wanted) // wanted]) if len(times) else times


def number_ranges(rows: pa.Table, cut: IntArray) -> IntArray:
    """int64[n]: the number of each row's range, from 0, given what `cut_times` gives."""
    found: IntArray = np.searchsorted(cut, micros(rows["time"]), "right")
    return found


def ranges(rows: pa.Table) -> list[NDArray[np.int64]]:
    """Cut accepted rows into ranges, each before the next one in the order of a batch.

    Parameters
    ----------
    rows
        With the columns of `order_of`.

    Returns
    -------
    list of int64 arrays
        The places of each range's rows, ascending; no range is empty.
    """
    places = np.arange(rows.num_rows)
    return _cut(rows, places, _rows_of_range(rows), order_of(rows.column_names)) if len(places) else []


def _rows_of_range(rows: pa.Table) -> int:
    """Rows that are taken in at once, by what they take."""
    row_bytes: int = rows.nbytes // max(1, rows.num_rows)
    return max(1, min(RANGE_ROWS, RANGE_BYTES // max(1, row_bytes)))


def _cut(rows: pa.Table, places: NDArray[np.int64], most: int, by: tuple[str, ...]) -> list[NDArray[np.int64]]:
    """Ranges of some of the rows, which are equal in the columns of the order before these."""
    if len(places) <= most:
        return [places]
    wanted = min(_MOST_PARTS, -(-len(places) // most))
    if not by:  # equal rows, in any order
        return np.array_split(places, wanted)
    numbers = ranks(rows[by[0]], places)
    sample = np.sort(np.random.default_rng(0).choice(numbers, _SAMPLE * wanted))
    bounds = np.unique(sample[_SAMPLE::_SAMPLE])
    # What is equal to a bound, with odd numbers, is apart: it may be more than a range takes.
    number = np.searchsorted(bounds, numbers, "left") + np.searchsorted(bounds, numbers, "right")
    order = np.argsort(number.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=2 * len(bounds) + 1))
    found: list[NDArray[np.int64]] = []
    small: list[NDArray[np.int64]] = []
    for index, chosen in enumerate(np.split(places[order], ends[:-1])):
        if sum(map(len, small)) + len(chosen) > most:
            found += _join(small)
            small = []
        if len(chosen) > most:
            found += _cut(rows, chosen, most, by[1:] if index % 2 else by)
        else:
            small.append(chosen)
    return [*found, *_join(small)]


def _join(small: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Neighbouring ranges as one."""
    joined = np.sort(np.concatenate(small)) if small else np.empty(0, np.int64)
    return [joined] if len(joined) else []


def ranks(column: pa.ChunkedArray, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in the order of some values of a column: themselves where all are whole, or their ranks, NULL first."""
    whole = pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)
    if whole and (not column.null_count or column.type != pa.int64()):
        numbers: NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        return numbers[places]
    words = column.take(pa.array(places)).combine_chunks().dictionary_encode()
    order = pc.sort_indices(words.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    ranks[-1] = 0
    found: NDArray[np.int64] = ranks[words.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)]
    return found


def micros(times: pa.ChunkedArray) -> IntArray:
    """Moments, none of them NULL, as microseconds since the epoch."""
    return times.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]
