"""Every tuple of rows: the policy ``skip_till_any``.

Source: thesis 4.3.3 and SPEC section 2. The thesis searches a list of leaves exhaustively. Here the ways to go on from
each row are counted first, backwards, by dynamic programming; so the number of matches is known before any of them is
written, and the search enters only branches that end in a match.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.sketch.pattern import IntArray, Layout
from patternlake.udfs.sketch.search import (
    Rows,
    blocks_of_states,
    held,
    in_span,
    least_after,
    next_row,
    next_table,
    single,
)

MOST = 1 << 62
"""Counts stop here; a count of `MOST` means that many or more."""


@njit(cache=True)
def all_matches(rows: Rows, layout: Layout, limit: int, truncate: bool) -> tuple[int, IntArray, IntArray]:
    """Count the matches, then write them.

    Parameters
    ----------
    rows, layout
        What is searched, and the pattern.
    limit
        At most so many matches are written.
    truncate
        False: nothing is written where there are more than `limit`.

    Returns
    -------
    (total, int64[r], int64[r, slots])
        Exact total (capped at 2**62), then key and row of each slot, in the order of (key, rows in stream order).
    """
    slots, keys = layout.block[-1], len(rows.offsets) - 1
    least = least_after(rows.span_lo, rows.offsets)
    block_of = blocks_of_states(layout)
    linked, gap = _links(rows, layout, block_of)
    longest = 0
    for key in range(keys):
        longest = max(longest, rows.offsets[key + 1] - rows.offsets[key])
    ways = np.zeros((longest + 1, layout.state[-1]), np.int64)
    total = 0
    for key in range(keys):
        begin, end = rows.offsets[key], rows.offsets[key + 1]
        if rows.within < 0 and end > begin:
            _count_ways(rows, layout, block_of, linked, gap, begin, begin, end, ways)
        for start in range(begin, end):
            if held(rows, layout, 0, start) == 0:
                continue
            total = _add(total, _ways_of_start(rows, layout, block_of, linked, gap, least, begin, end, start, ways))
    written = min(total, limit) if truncate or total <= limit else 0
    key_of = np.empty(written, np.int64)
    found = np.empty((written, slots), np.int64)
    count = 0
    if written:
        table = next_table(rows.flags, rows.offsets)
        for key in range(keys):
            begin, end = rows.offsets[key], rows.offsets[key + 1]
            if rows.within < 0 and end > begin:
                _count_ways(rows, layout, block_of, linked, gap, begin, begin, end, ways)
            for start in range(begin, end):
                if count == written:
                    break
                if held(rows, layout, 0, start) == 0:
                    continue
                origin = start if rows.within >= 0 else begin
                stop = _stop(rows, least, start, end)
                if _ways_of_start(rows, layout, block_of, linked, gap, least, begin, end, start, ways) == 0:
                    continue
                before = count
                count = _write(rows, layout, block_of, linked, gap, table, origin, start, stop, end, ways, found, count)
                key_of[before:count] = key
    return total, key_of, found


@njit(cache=True)
def stops(rows: Rows) -> IntArray:
    """For each row, one behind the last row at which a match that begins there may end: int64[n]."""
    least = least_after(rows.span_lo, rows.offsets)
    result = np.empty(len(rows.lo), np.int64)
    for key in range(len(rows.offsets) - 1):
        end = rows.offsets[key + 1]
        for row in range(rows.offsets[key], end):
            result[row] = max(row + 1, _stop(rows, least, row, end))
    return result


@njit(cache=True)
def _add(left: int, right: int) -> int:
    return MOST if left >= MOST - right else left + right


@njit(cache=True)
def _links(rows: Rows, layout: Layout, block_of: IntArray) -> tuple[IntArray, IntArray]:
    """For each state: 1 where the next row must be adjacent; the column of what must not lie before it, else -1."""
    linked = np.zeros(len(block_of), np.int64)
    gap = np.full(len(block_of), -1, np.int64)
    for term in range(len(layout.term) - 1):
        block, after = layout.term[term], layout.term[term + 1]
        begin = layout.state[block]
        if layout.run[term]:
            linked[begin + 1 : layout.state[after]] = 1
        if term:
            gap[begin] = rows.gap[term - 1]
    return linked, gap


@njit(cache=True)
def _stop(rows: Rows, least: IntArray, start: int, end: int) -> int:
    """One behind the last row at which a match from `start` may end."""
    if rows.within < 0:
        return end
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if least[middle] - rows.span_hi[start] < rows.within:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _step(
    rows: Rows, layout: Layout, block_of: IntArray, origin: int, start: int, row: int, state: int, ways: IntArray
) -> int:
    """Ways to finish by taking `row` next in `state`."""
    block = block_of[state]
    open_bits = held(rows, layout, block, row) & ~(state - layout.state[block])
    total = 0
    chosen = open_bits
    while chosen:
        if not rows.exclusive or single(chosen):
            total = _add(total, _after(rows, layout, origin, start, row, state + chosen, ways))
        chosen = (chosen - 1) & open_bits
    return total


@njit(cache=True)
def _after(rows: Rows, layout: Layout, origin: int, start: int, row: int, state: int, ways: IntArray) -> int:
    """Ways to finish from `state`, reached by taking `row`."""
    if state == layout.state[-1]:
        return 1 if rows.within < 0 or in_span(rows, start, row) else 0
    return int(ways[row - origin, state])


@njit(cache=True)
def _count_ways(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    linked: IntArray,
    gap: IntArray,
    origin: int,
    start: int,
    stop: int,
    ways: IntArray,
) -> None:
    """Fill ``ways[row - origin, state]``: how many ways there are to finish with rows behind `row`, before `stop`."""
    states = len(block_of)
    ways[stop - 1 - origin, :] = 0
    for row in range(stop - 2, origin - 1, -1):
        following = row + 1
        for state in range(states):
            taken = _step(rows, layout, block_of, origin, start, following, state, ways)
            if linked[state]:
                ways[row - origin, state] = taken if rows.hi[row] + 1 == rows.lo[following] else 0
            elif gap[state] >= 0 and rows.flags[following, gap[state]]:
                ways[row - origin, state] = taken
            else:
                ways[row - origin, state] = _add(taken, ways[following - origin, state])


@njit(cache=True)
def _ways_of_start(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    linked: IntArray,
    gap: IntArray,
    least: IntArray,
    begin: int,
    end: int,
    start: int,
    ways: IntArray,
) -> int:
    """Matches that begin at `start`; with a window, `ways` is filled for it, counted from `start`."""
    if rows.within < 0:
        return _step(rows, layout, block_of, begin, start, start, 0, ways)
    stop = _stop(rows, least, start, end)
    if stop <= start:
        return 0
    _count_ways(rows, layout, block_of, linked, gap, start, start, stop, ways)
    return _step(rows, layout, block_of, start, start, start, 0, ways)


@njit(cache=True)
def _write(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    linked: IntArray,
    gap: IntArray,
    table: IntArray,
    origin: int,
    start: int,
    stop: int,
    end: int,
    ways: IntArray,
    found: IntArray,
    count: int,
) -> int:
    """Write the matches of one start, depth first, until `found` is full; the new count."""
    slots, accept = layout.block[-1], layout.state[-1]
    state = np.empty(slots + 1, np.int64)
    row = np.empty(slots + 1, np.int64)
    chosen = np.empty(slots + 1, np.int64)
    last = np.empty(slots + 1, np.int64)
    current = np.empty(slots, np.int64)
    depth = 0
    state[0], row[0], chosen[0], last[0] = 0, start, 0, start
    while depth >= 0:
        # The next subset of the row that is tried at this depth, then the next row.
        block = block_of[state[depth]]
        mask = state[depth] - layout.state[block]
        at = row[depth]
        if at > last[depth]:
            depth -= 1
            continue
        open_bits = held(rows, layout, block, at) & ~mask
        chosen[depth] = (chosen[depth] - open_bits) & open_bits
        bits = chosen[depth]
        if bits == 0:
            if depth == 0:
                break
            if ways[at - origin, state[depth]] == 0 and not linked[state[depth]]:
                depth -= 1
                continue
            row[depth] = _next_of_block(rows, layout, table, block, mask, at + 1, end)
            continue
        if rows.exclusive and not single(bits):
            continue
        reached = state[depth] + bits
        if _after(rows, layout, origin, start, at, reached, ways) == 0:
            continue
        base = layout.block[block]
        for slot in range(base, layout.block[block + 1]):
            if bits >> (slot - base) & 1:
                current[slot] = at
        if reached == accept:
            found[count] = current
            count += 1
            if count == len(found):
                return count
            continue
        depth += 1
        inner = block_of[reached]
        state[depth], chosen[depth] = reached, 0
        if linked[reached]:
            row[depth], last[depth] = at + 1, at + 1
        else:
            row[depth] = _next_of_block(rows, layout, table, inner, reached - layout.state[inner], at + 1, end)
            last[depth] = stop - 1
            if gap[reached] >= 0:
                last[depth] = min(last[depth], next_row(table, at + 1, gap[reached], end))
    return count


@njit(cache=True)
def _next_of_block(rows: Rows, layout: Layout, table: IntArray, block: int, mask: int, row: int, end: int) -> int:
    """The first row at or after `row` that holds a slot of the block that `mask` leaves open."""
    base = layout.block[block]
    result = end
    for slot in range(base, layout.block[block + 1]):
        if not mask >> (slot - base) & 1:
            result = min(result, next_row(table, row, rows.slot[slot], end))
    return result
