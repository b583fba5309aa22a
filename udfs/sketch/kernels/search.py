"""What the kernels of matching share: the searched rows, and tables of the next row that holds something.

A **row** is a node of the sketch or an event. The kernels don't tell them apart, but for two flags: on events a row
serves one slot only, and the search after a match goes on behind its last row instead of at it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.sketch.query import Layout
from patternlake.udfs.subkernels import subkernel


class Rows(NamedTuple):
    """Rows of one or many keys, in position order inside each key.

    Attributes
    ----------
    offsets
        int64[keys + 1]: key k has the rows ``offsets[k]:offsets[k + 1]``.
    lo, hi
        int64[n]: i and i + 1 are adjacent iff ``hi[i] + 1 == lo[i + 1]``.
    span_lo, span_hi
        int64[n]: what a row says of time, or place, at least and at most; equal on events. The least span of a match is
        the greatest `span_lo` of its rows less the least `span_hi` of them.
    within
        The span must be below it; -1 for no window.
    flags
        bool[n, c]: what each row holds.
    slot
        int64[slots]: the column of `flags` of each slot.
    gap
        int64[terms - 1]: the column of `flags` with what a gap forbids, -1 for nothing.
    exclusive
        True where a row serves one slot only (events).
    """

    offsets: IntArray
    lo: IntArray
    hi: IntArray
    span_lo: IntArray
    span_hi: IntArray
    within: np.int64
    flags: BoolArray
    slot: IntArray
    gap: IntArray
    exclusive: bool


def least(rows: IntArray) -> IntArray:
    """The least of each line: int64[r]."""
    return np.asarray(rows.min(axis=1, initial=np.iinfo(np.int64).max), np.int64)


def greatest(rows: IntArray) -> IntArray:
    """The greatest of each line: int64[r]."""
    return np.asarray(rows.max(axis=1, initial=-1), np.int64)


@njit(cache=True)
def next_table(flags: BoolArray, offsets: IntArray) -> IntArray:
    """For each row and flag, the first row of the same key at or after it that has the flag, else the key's end.

    Returns
    -------
    int64[n, c]
    """
    n, columns = flags.shape
    table = np.empty((n, columns), np.int64)
    for key in range(len(offsets) - 1):
        begin, end = offsets[key], offsets[key + 1]
        for row in range(end - 1, begin - 1, -1):
            for column in range(columns):
                if flags[row, column]:
                    table[row, column] = row
                elif row + 1 < end:
                    table[row, column] = table[row + 1, column]
                else:
                    table[row, column] = end
    return table


@njit(cache=True)
def least_after(values: IntArray, offsets: IntArray) -> IntArray:
    """The least value at or after each row of the same key: int64[n]."""
    result = values.copy()
    for key in range(len(offsets) - 1):
        for row in range(offsets[key + 1] - 2, offsets[key] - 1, -1):
            result[row] = min(result[row], result[row + 1])
    return result


@subkernel
def next_row(table: IntArray, row: int, column: int, end: int) -> int:
    """The first row at or after `row` that has the flag, `end` where there is none."""
    return table[row, column] if row < end else end


@subkernel
def in_span(rows: Rows, taken: IntArray) -> bool:
    """True where the least span of the rows of a match is inside the window."""
    if rows.within < 0:
        return True
    high, low = rows.span_lo[taken[0]], rows.span_hi[taken[0]]
    for row in taken[1:]:
        high, low = max(high, rows.span_lo[row]), min(low, rows.span_hi[row])
    return bool(high - low < rows.within)


@njit(cache=True)
def held(rows: Rows, layout: Layout, block: int, row: int) -> int:
    """The slots of a block that a row could fill, as a mask."""
    mask = 0
    base = layout.block[block]
    for slot in range(base, layout.block[block + 1]):
        if rows.flags[row, rows.slot[slot]]:
            mask |= 1 << (slot - base)
    return mask


@njit(cache=True)
def single(mask: int) -> bool:
    """True where exactly one bit is set."""
    return mask & (mask - 1) == 0


@subkernel
def blocks_of_states(layout: Layout) -> IntArray:
    """For each state but the accepting one, its block."""
    result = np.empty(layout.state[-1], np.int64)
    for block in range(len(layout.state) - 1):
        result[layout.state[block] : layout.state[block + 1]] = block
    return result


@njit(cache=True)
def held_any(rows: Rows, layout: Layout) -> BoolArray:
    """The rows at which a match could begin: bool[n]."""
    result = np.zeros(len(rows.lo), np.bool_)
    for row in range(len(rows.lo)):
        result[row] = held(rows, layout, 0, row) != 0
    return result
