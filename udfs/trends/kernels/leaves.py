"""Kernels that sort later events into blocks, find the runs of earlier ones, and cut the runs into leaves.

Source: Mei et al. 2021, sections 4.3 and 4.4; see `graph`. A **rank** is a place in the order of (block, left value).
Blocks are sorted one by one, so that the time per event does not grow with the number of windows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.ordering import by_number
from patternlake.udfs.subkernels import subkernel

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(1, 6)
EVERY = len(OPERATORS)
"""Stands for a step without a comparison: every event of the block is relevant."""

_SHORT = 24


@njit(cache=True)
def by_block(block: IntArray, blocks: int, keys: IntArray, ordered: bool) -> tuple[IntArray, IntArray]:
    """Sort rows by block and, where `ordered`, by key inside each.

    Parameters
    ----------
    block, keys
        int64[n]: block (from 0) and key of each row.
    blocks
        Number of blocks.
    ordered
        False: rows keep their order inside a block.

    Returns
    -------
    (int64[n], int64[blocks + 1])
        Rows in order, and where each block begins.
    """
    order, offsets = by_number(block, blocks)
    if ordered:
        for at in range(blocks):
            begin, end = offsets[at], offsets[at + 1]
            if end - begin <= _SHORT:
                for i in range(begin + 1, end):
                    row, j = order[i], i
                    while j > begin and keys[order[j - 1]] > keys[row]:
                        order[j] = order[j - 1]
                        j -= 1
                    order[j] = row
            else:
                rows = order[begin:end].copy()
                order[begin:end] = rows[np.argsort(keys[rows])]
    return order, offsets


@njit(cache=True)
def latest_first(time: IntArray, cell_offsets: IntArray) -> IntArray:
    """Rows of each cell, the latest first: int64[n]; cells in their order."""
    order = np.empty(len(time), np.int64)
    for cell in range(len(cell_offsets) - 1):
        begin, end = cell_offsets[cell], cell_offsets[cell + 1]
        rising = True
        for row in range(begin + 1, end):
            if time[row] < time[row - 1]:
                rising = False
                break
        if rising:
            for row in range(begin, end):
                order[begin + end - 1 - row] = row
        else:
            order[begin:end] = begin + np.argsort(-time[begin:end])
    return order


@subkernel
def _bound(keys: IntArray, low: int, high: int, value: int, after: bool) -> int:
    """The first place in ``low:high`` whose key is at least (after: greater than) `value`."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < value or (after and keys[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def places(keys: IntArray, begin: IntArray, end: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Where values lie among keys that ascend in ranges.

    Parameters
    ----------
    keys
        int64[k].
    begin, end, value
        int64[n]: for each value the range of keys that it is looked up in.

    Returns
    -------
    (int64[n], int64[n])
        How many keys of its range are less than each value, and how many are at most as great.
    """
    below = np.empty(len(value), np.int64)
    upto = np.empty(len(value), np.int64)
    for row in range(len(value)):
        low = _bound(keys, begin[row], end[row], value[row], False)
        below[row] = low - begin[row]
        upto[row] = _bound(keys, low, end[row], value[row], True) - begin[row]
    return below, upto


@njit(cache=True)
def reachable(
    blocks: int, block: IntArray, key: IntArray, source: IntArray, value: IntArray, operator: int
) -> BoolArray:
    """The later rows that an earlier one of their block may point to: bool[t].

    Most comparisons leave few, and to sort the others would take most of the time of a graph.

    Parameters
    ----------
    blocks
        Number of blocks.
    block, key
        int64[t]: block and left key of each later row.
    source, value
        int64[s]: block and right key of each earlier row.
    operator
        Index into `OPERATORS`, or `EVERY`.
    """
    least, greatest = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    points = np.zeros(blocks, np.bool_)
    for row in range(len(source)):
        at = source[row]
        least[at] = min(least[at], value[row]) if points[at] else value[row]
        greatest[at] = max(greatest[at], value[row]) if points[at] else value[row]
        points[at] = True
    found = np.empty(len(block), np.bool_)
    for row in range(len(block)):
        at = block[row]
        found[row] = points[at] and _may_hold(operator, key[row], key[row], least[at], greatest[at])
    return found


@subkernel
def _may_hold(operator: int, least: int, greatest: int, least_right: int, greatest_right: int) -> bool:
    """Whether a comparison may hold for a left and a right key, each within bounds."""
    if operator == LESS:
        return least < greatest_right
    if operator == AT_MOST:
        return least <= greatest_right
    if operator == GREATER:
        return greatest > least_right
    if operator == AT_LEAST:
        return greatest >= least_right
    return True


@njit(cache=True)
def runs(offsets: IntArray, keys: IntArray, block: IntArray, value: IntArray, operator: int) -> IntArray:
    """The ranks that are relevant to each earlier event.

    Parameters
    ----------
    offsets, keys
        int64[blocks + 1], int64[n]: where blocks begin, and the keys by rank.
    block, value
        int64[s]: block and right key of each earlier event.
    operator
        Index into `OPERATORS`, or `EVERY`.

    Returns
    -------
    int64[s, 4]
        Two runs, each from and to (exclusive); zeros for an empty one.
    """
    found = np.zeros((len(block), 4), np.int64)
    for row in range(len(block)):
        first, last = offsets[block[row]], offsets[block[row] + 1]
        if first == last or not _may_hold(operator, keys[first], keys[last - 1], value[row], value[row]):
            continue
        low, high, second = first, last, last
        if operator in (UNEQUAL, LESS, AT_LEAST):
            at = _bound(keys, first, last, value[row], False)
            if operator == AT_LEAST:
                low = at
            else:
                high = at
        if operator in (AT_MOST, GREATER):
            at = _bound(keys, first, last, value[row], True)
            if operator == GREATER:
                low = at
            else:
                high = at
        if operator == UNEQUAL:
            second = _bound(keys, high, last, value[row], True)
        if low < high:
            found[row, 0], found[row, 1] = low, high
        if second < last:
            found[row, 2], found[row, 3] = second, last
    return found


@njit(cache=True)
def cut(
    order: IntArray, offsets: IntArray, ranks: IntArray, single: bool, targets: IntArray, first_leaf: int,
    leaf: SmallArray,
) -> tuple[SmallArray, IntArray, SmallArray, SmallArray]:  # fmt: skip
    """Cut the ranks at the ends of all runs; ranks outside of all runs get no leaf.

    Parameters
    ----------
    order, offsets
        As `by_block` gives them.
    ranks
        As `runs` gives them; become runs of leaves.
    single
        Every rank gets a leaf of its own, so that it can be taken out again.
    targets
        int64[n]: what the rows of `order` are called outside.
    first_leaf
        Number of the first leaf.
    leaf
        int32[…]: the leaf of each of `targets` is written here.

    Returns
    -------
    (int32[…], int64[m], int32[m], int32[m])
        Targets in the order of leaves, how many each leaf has, and the block of leaves around each.
    """
    n = len(order)
    edge = np.zeros(n + 1, np.bool_)
    cover = np.zeros(n + 1, np.int32)
    for row in range(len(ranks)):
        for at in (0, 2):
            low, high = ranks[row, at], ranks[row, at + 1]
            if low < high:
                edge[low] = edge[high] = True
                cover[low] += 1
                cover[high] -= 1
    number = np.full(n, -1, np.int32)
    leaves, held, depth = 0, 0, 0
    for rank in range(n):
        covered = depth > 0
        depth += cover[rank]
        if depth > 0:
            if single or edge[rank] or not covered:
                leaves += 1
            number[rank] = first_leaf + leaves - 1
            held += 1
    member = np.empty(held, np.int32)
    count = np.zeros(leaves, np.int64)
    block_from, block_to = np.empty(leaves, np.int32), np.empty(leaves, np.int32)
    held, begin = 0, 0
    for block in range(len(offsets) - 1):
        end = begin
        for rank in range(offsets[block], offsets[block + 1]):
            if number[rank] >= 0:
                row = targets[order[rank]]
                leaf[row] = number[rank]
                member[held] = row
                held += 1
                end = number[rank] - first_leaf + 1
                count[end - 1] += 1
        block_from[begin:end] = begin + first_leaf
        block_to[begin:end] = end + first_leaf
        begin = end
    for row in range(len(ranks)):
        for at in (0, 2):
            if ranks[row, at] < ranks[row, at + 1]:
                ranks[row, at] = number[ranks[row, at]]
                ranks[row, at + 1] = number[ranks[row, at + 1] - 1] + 1
    return member, count, block_from, block_to
