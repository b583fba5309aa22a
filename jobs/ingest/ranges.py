"""A batch's rows that lie in columns on disk, cut into ranges that threads of the driver order and write.

Ordering them there range by range and writing each range's files from its columns takes a third of what Spark takes to
do the same row by row, and no more memory than a few ranges.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.jobs.ingest.ordering import order_of

MOST_ROWS = 50_000_000
"""Rows of a batch, at most: some numbers of each are held in memory."""
RANGE_ROWS = 500_000
"""Rows of a range, at most."""
RANGE_BYTES = 128 << 20
"""Bytes of a range: each thread holds one, and the rows of the table that are made of it."""
_SAMPLE = 100
"""Rows for each range, of which the bounds are chosen."""
_MOST_RANGES = 30_000


def ranges(rows: pa.Table) -> list[NDArray[np.int64]]:
    """Cut the accepted rows of a batch into ranges, each before the next one in the order of a batch.

    Parameters
    ----------
    rows
        With the columns of `ordering.order_of`, and ``reason``.

    Returns
    -------
    list of int64 arrays
        The places of each range's rows, ascending; no range is empty.
    """
    places = np.flatnonzero(pc.is_null(rows["reason"]).to_numpy())
    return _cut(rows, places, rows_of_range(rows), order_of(rows.column_names)) if len(places) else []


def find_refused(rows: pa.Table) -> list[NDArray[np.int64]]:
    """The places of the rows that are refused, ascending, in portions for threads."""
    places = np.flatnonzero(pc.is_valid(rows["reason"]).to_numpy())
    return np.array_split(places, -(-len(places) // rows_of_range(rows))) if len(places) else []


def rows_of_range(rows: pa.Table) -> int:
    """Rows that a thread takes in at once, by what they take."""
    row_bytes: int = rows.nbytes // max(1, rows.num_rows)
    return max(1, min(RANGE_ROWS, RANGE_BYTES // max(1, row_bytes)))


def _cut(rows: pa.Table, places: NDArray[np.int64], most: int, by: tuple[str, ...]) -> list[NDArray[np.int64]]:
    """Ranges of some of the rows, which are equal in the columns of the order before these."""
    if len(places) <= most:
        return [places]
    wanted = min(_MOST_RANGES, -(-len(places) // most))
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
