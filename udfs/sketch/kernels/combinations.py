"""Every tuple of rows: the policy ``skip_till_any``.

Source: thesis 4.3.3 and SPEC section 2. The thesis searches a list of leaves exhaustively. Here the ways to go on from
each row are counted first, backwards, by dynamic programming; so the number of matches is known before any of them is
written, and the search enters only branches that end in a match.

A window bounds the greatest less the least of what all rows allow, so a search is about one **floor**, the least upper
end of its rows: a row may be taken where it reaches the floor and begins less than a window above it, and the ways are
counted apart for those that have met the floor and those that have yet to. Every match has one floor, so none is
counted twice. Where times rise with positions, the floor is the upper end of the first row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.sketch.kernels.search import (
    Rows,
    blocks_of_states,
    held,
    least_after,
    next_row,
    next_table,
    single,
)
from patternlake.udfs.sketch.query import MOST_NAMES_OF_AND, Layout
from patternlake.udfs.subkernels import subkernel

MOST = 1 << 62
"""Counts stop here; a count of `MOST` means that many or more."""


class Jobs(NamedTuple):
    """The searches that have matches, in the order of their starts.

    Attributes
    ----------
    start
        int64[j]: the row at which the matches begin.
    floor
        int64[j]: the least `Rows.span_hi` that each of their rows has, and one of them reaches. Without a window, and
        where `span_hi` never falls, a start has one floor: its own.
    ways
        int64[j]: how many there are, capped at `MOST`.
    """

    start: IntArray
    floor: IntArray
    ways: IntArray


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
    total, jobs = _jobs(rows, layout)
    written = min(total, limit) if truncate or total <= limit else 0
    if not written:
        return total, np.empty(0, np.int64), np.empty((0, layout.block[-1]), np.int64)
    ways = np.minimum(jobs.ways, written)
    first_of_start = np.searchsorted(jobs.start, jobs.start)
    capacity = np.minimum(ways, written - (np.cumsum(ways) - ways)[first_of_start])
    wanted = np.flatnonzero(capacity > 0)
    several = bool((np.diff(jobs.start[wanted]) == 0).any())
    found = path = np.empty((0, layout.block[-1]), np.int64)
    # The rows of a start with several floors lie mixed: each floor gives as many as are wanted of all.
    pieces = (np.cumsum(capacity[wanted]) - capacity[wanted]) // written
    for piece in np.split(wanted, np.flatnonzero(np.diff(pieces)) + 1):
        made, taken = _written(rows, layout, Jobs(*(array[piece] for array in jobs)), capacity[piece], several)
        found, path = np.concatenate([found, made]), np.concatenate([path, taken])
        if several:
            order = np.lexsort(path.T[::-1])[:written]
            found, path = found[order], path[order]
    key = np.searchsorted(rows.offsets, found[:, 0], side="right").astype(np.int64) - 1
    return total, key, found


@njit(cache=True)
def _jobs(rows: Rows, layout: Layout) -> tuple[int, Jobs]:
    """The total, and every search that has matches."""
    least = least_after(rows.span_lo, rows.offsets)
    block_of = blocks_of_states(layout)
    linked, gap = _links(rows, layout, block_of)
    falling = _falling(rows)
    ways = _table(rows, layout, falling)
    starts, floors, counts = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16, np.int64)
    total = count = 0
    for key in range(len(rows.offsets) - 1):
        begin, end = rows.offsets[key], rows.offsets[key + 1]
        if rows.within < 0 and end > begin:
            _count_ways(rows, layout, block_of, linked, gap, 0, 1, begin, end, ways)
        for start in range(begin, end):
            if held(rows, layout, 0, start) == 0:
                continue
            for floor in _floors(rows, least, start, end, falling):
                origin = begin if rows.within < 0 else start
                if rows.within >= 0:
                    met = 1 if floor == rows.span_hi[start] else 0
                    stop = _stop(rows, least, floor, start, end)
                    if stop <= start:
                        continue
                    _count_ways(rows, layout, block_of, linked, gap, floor, met, start, stop, ways)
                here = _step(rows, layout, block_of, floor, origin, start, 0, 0, ways)
                if here == 0:
                    continue
                if count == len(starts):
                    starts, floors, counts = _doubled(starts), _doubled(floors), _doubled(counts)
                starts[count], floors[count], counts[count] = start, floor, here
                count += 1
                total = _add(total, here)
    return total, Jobs(starts[:count].copy(), floors[:count].copy(), counts[:count].copy())


@njit(cache=True)
def _written(rows: Rows, layout: Layout, jobs: Jobs, capacity: IntArray, several: bool) -> tuple[IntArray, IntArray]:
    """The first matches of each search, and (where `several`) what orders them.

    Returns
    -------
    (int64[r, slots], int64[r, slots])
        Row of each slot; of each step in the order of the stream, its row and the slots that it fills, as one number.
    """
    least = least_after(rows.span_lo, rows.offsets)
    block_of = blocks_of_states(layout)
    linked, gap = _links(rows, layout, block_of)
    falling = _falling(rows)
    ways = _table(rows, layout, falling)
    table = next_table(rows.flags, rows.offsets)
    slots = layout.block[-1]
    found = np.empty((capacity.sum(), slots), np.int64)
    path = np.zeros((len(found) if several else 0, slots), np.int64)
    count, key, begin, end = 0, -1, 0, 0
    for job in range(len(capacity)):
        start, floor = jobs.start[job], jobs.floor[job]
        if start >= end:
            while start >= rows.offsets[key + 1]:
                key += 1
            begin, end = rows.offsets[key], rows.offsets[key + 1]
            if rows.within < 0:
                _count_ways(rows, layout, block_of, linked, gap, 0, 1, begin, end, ways)
        origin, stop = begin, end
        if rows.within >= 0:
            origin, stop = start, _stop(rows, least, floor, start, end)
            met = 1 if floor == rows.span_hi[start] else 0
            _count_ways(rows, layout, block_of, linked, gap, floor, met, start, stop, ways)
        until = count + capacity[job]
        _write(
            rows,
            layout,
            block_of,
            linked,
            gap,
            table,
            floor,
            origin,
            start,
            stop,
            end,
            ways,
            found[count:until],
            path[count:until],
        )
        count = until
    return found, path


@subkernel
def _falling(rows: Rows) -> bool:
    """Whether `span_hi` falls somewhere inside a key."""
    if rows.within < 0:
        return False
    for key in range(len(rows.offsets) - 1):
        for row in range(rows.offsets[key] + 1, rows.offsets[key + 1]):
            if rows.span_hi[row] < rows.span_hi[row - 1]:
                return True
    return False


@subkernel
def _table(rows: Rows, layout: Layout, falling: bool) -> IntArray:
    """Workspace for the ways of one search: int64[rows, states], twice the states where a floor may yet be unmet."""
    longest = 0
    for key in range(len(rows.offsets) - 1):
        longest = max(longest, rows.offsets[key + 1] - rows.offsets[key])
    return np.zeros((longest + 1, layout.state[-1] * (2 if falling else 1)), np.int64)


@subkernel
def _doubled(array: IntArray) -> IntArray:
    result = np.empty(2 * len(array), np.int64)
    result[: len(array)] = array
    return result


@subkernel
def _floors(rows: Rows, least: IntArray, start: int, end: int, falling: bool) -> IntArray:
    """The least `span_hi` that a match from `start` may have, each once: its own, and lesser ones behind it."""
    own = rows.span_hi[start]
    if not falling:
        return np.full(1, own, np.int64)
    stop = _stop(rows, least, own, start, end)
    found = np.empty(max(1, stop - start), np.int64)
    found[0], count = own, 1
    for row in range(start + 1, stop):
        if rows.span_hi[row] < own and rows.span_lo[start] - rows.span_hi[row] < rows.within:
            found[count] = rows.span_hi[row]
            count += 1
    return np.unique(found[:count])


@njit(cache=True)
def stops(rows: Rows) -> IntArray:
    """For each row, one behind the last row at which a match that begins there may end: int64[n]."""
    least = least_after(rows.span_lo, rows.offsets)
    result = np.empty(len(rows.lo), np.int64)
    for key in range(len(rows.offsets) - 1):
        end = rows.offsets[key + 1]
        for row in range(rows.offsets[key], end):
            result[row] = max(row + 1, _stop(rows, least, rows.span_hi[row], row, end))
    return result


@subkernel
def _add(left: int, right: int) -> int:
    return MOST if left >= MOST - right else left + right


@subkernel
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


@subkernel
def _stop(rows: Rows, least: IntArray, floor: int, start: int, end: int) -> int:
    """One behind the last row at which a match from `start`, of which some row has a `span_hi` of `floor`, may end."""
    if rows.within < 0:
        return end
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if least[middle] - floor < rows.within:
            low = middle + 1
        else:
            high = middle
    return low


@subkernel
def _inside(rows: Rows, row: int, floor: int) -> bool:
    """True where a match with this floor may have the row."""
    return bool(rows.within < 0 or (rows.span_hi[row] >= floor and rows.span_lo[row] - floor < rows.within))


@subkernel
def _met(rows: Rows, row: int, floor: int, met: int) -> int:
    """1 where one of the rows taken, `row` the last of them, reaches the floor."""
    return 1 if met or rows.within < 0 or rows.span_hi[row] == floor else 0


@subkernel
def _step(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    floor: int,
    origin: int,
    row: int,
    state: int,
    met: int,
    ways: IntArray,
) -> int:
    """Ways to finish by taking `row` next in `state`."""
    if not _inside(rows, row, floor):
        return 0
    block = block_of[state]
    open_bits = held(rows, layout, block, row) & ~(state - layout.state[block])
    reached = _met(rows, row, floor, met)
    total = 0
    chosen = open_bits
    while chosen:
        if not rows.exclusive or single(chosen):
            total = _add(total, _after(layout, origin, row, state + chosen, reached, ways))
        chosen = (chosen - 1) & open_bits
    return total


@subkernel
def _after(layout: Layout, origin: int, row: int, state: int, met: int, ways: IntArray) -> int:
    """Ways to finish from `state`, reached by taking `row`."""
    states = layout.state[-1]
    if state == states:
        return met
    return int(ways[row - origin, state + states * (1 - met)])


@subkernel
def _count_ways(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    linked: IntArray,
    gap: IntArray,
    floor: int,
    met: int,
    origin: int,
    stop: int,
    ways: IntArray,
) -> None:
    """Fill ``ways[row - origin, state]``: how many ways there are to finish with rows behind `row`, before `stop`.

    The second half of the states is that of an unmet floor; with `met` it is not needed.
    """
    states = len(block_of)
    ways[stop - 1 - origin, :] = 0
    for row in range(stop - 2, origin - 1, -1):
        following = row + 1
        for place in range(states * (2 - met)):
            state, already = place % states, 1 - place // states
            taken = _step(rows, layout, block_of, floor, origin, following, state, already, ways)
            if linked[state]:
                ways[row - origin, place] = taken if rows.hi[row] + 1 == rows.lo[following] else 0
            elif gap[state] >= 0 and rows.flags[following, gap[state]]:
                ways[row - origin, place] = taken
            else:
                ways[row - origin, place] = _add(taken, ways[following - origin, place])


@subkernel
def _write(
    rows: Rows,
    layout: Layout,
    block_of: IntArray,
    linked: IntArray,
    gap: IntArray,
    table: IntArray,
    floor: int,
    origin: int,
    start: int,
    stop: int,
    end: int,
    ways: IntArray,
    found: IntArray,
    path: IntArray,
) -> None:
    """Write the matches of one search, depth first, until `found` is full."""
    slots, accept = layout.block[-1], layout.state[-1]
    state = np.empty(slots + 1, np.int64)
    row = np.empty(slots + 1, np.int64)
    chosen = np.empty(slots + 1, np.int64)
    last = np.empty(slots + 1, np.int64)
    met = np.zeros(slots + 1, np.int64)
    current = np.empty(slots, np.int64)
    count = depth = 0
    state[0], row[0], chosen[0], last[0] = 0, start, 0, start
    while depth >= 0:
        # The next subset of the row that is tried at this depth, then the next row.
        block = block_of[state[depth]]
        mask = state[depth] - layout.state[block]
        at = row[depth]
        if at > last[depth]:
            depth -= 1
            continue
        open_bits = held(rows, layout, block, at) & ~mask if _inside(rows, at, floor) else 0
        chosen[depth] = (chosen[depth] - open_bits) & open_bits
        bits = chosen[depth]
        if bits == 0:
            if depth == 0:
                break
            left = ways[at - origin, state[depth] + accept * (1 - met[depth])]
            if left == 0 and not linked[state[depth]]:
                depth -= 1
                continue
            row[depth] = _next_of_block(rows, layout, table, block, mask, at + 1, end)
            continue
        if rows.exclusive and not single(bits):
            continue
        reached, reaches = state[depth] + bits, _met(rows, at, floor, met[depth])
        if _after(layout, origin, at, reached, reaches, ways) == 0:
            continue
        base = layout.block[block]
        for slot in range(base, layout.block[block + 1]):
            if bits >> (slot - base) & 1:
                current[slot] = at
        if reached == accept:
            found[count] = current
            if len(path):
                for step in range(depth + 1):
                    path[count, step] = row[step] << MOST_NAMES_OF_AND | chosen[step]
            count += 1
            if count == len(found):
                return
            continue
        depth += 1
        inner = block_of[reached]
        state[depth], chosen[depth], met[depth] = reached, 0, reaches
        if linked[reached]:
            row[depth], last[depth] = at + 1, at + 1
        else:
            row[depth] = _next_of_block(rows, layout, table, inner, reached - layout.state[inner], at + 1, end)
            last[depth] = stop - 1
            if gap[reached] >= 0:
                last[depth] = min(last[depth], next_row(table, at + 1, gap[reached], end))


@subkernel
def _next_of_block(rows: Rows, layout: Layout, table: IntArray, block: int, mask: int, row: int, end: int) -> int:
    """The first row at or after `row` that holds a slot of the block that `mask` leaves open."""
    base = layout.block[block]
    result = end
    for slot in range(base, layout.block[block + 1]):
        if not mask >> (slot - base) & 1:
            result = min(result, next_row(table, row, rows.slot[slot], end))
    return result
