"""At most one match per start: the policies ``strict`` and ``skip_till_next``.

Source: thesis 4.3.1, 4.3.2 and SPEC section 2. Each next term takes its nearest place, without looking back: for an
operand the next row that holds it, for an AND the nearest row of each of its names, for a ``,`` run the place with the
earliest end (then the earliest start). Under ``strict`` the whole pattern is one run, fixed at the start.

The thesis answers an AND by all permutations; here nearest rows give its earliest end directly. Only where one row may
serve no two names (events), or rows must be adjacent, is there anything to try back.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.sketch.kernels.search import Rows, blocks_of_states, held, in_span, next_row, next_table, single
from patternlake.udfs.sketch.query import Layout
from patternlake.udfs.subkernels import subkernel


@njit(cache=True)
def matches_per_start(rows: Rows, layout: Layout, past_last: bool) -> tuple[IntArray, IntArray]:
    """The match of each start.

    Parameters
    ----------
    rows, layout
        What is searched, and the pattern.
    past_last
        True: the search goes on from the last row of a match (events: behind it); False: every start is tried.

    Returns
    -------
    (int64[r], int64[r, slots])
        Key and row of each slot, in the order of (key, start).
    """
    n, slots, terms = len(rows.lo), layout.block[-1], len(layout.term) - 1
    table = next_table(rows.flags, rows.offsets)
    run_last, run_from = _runs(rows, layout)
    starts = 0
    for row in range(n):
        starts += held(rows, layout, 0, row) != 0
    keys = np.empty(starts, np.int64)
    found = np.empty((starts, slots), np.int64)
    count = 0
    for key in range(len(rows.offsets) - 1):
        begin, end = rows.offsets[key], rows.offsets[key + 1]
        resume = begin
        for start in range(begin, end):
            if start < resume or held(rows, layout, 0, start) == 0:
                continue
            last = start - 1
            for term in range(terms):
                before = last
                first, last = _place(
                    rows, layout, table, run_last, run_from, term, before + 1, end, term == 0, found[count]
                )
                column = rows.gap[term - 1] if term else -1
                if last < end and column >= 0 and next_row(table, before + 1, column, end) < first:
                    last = end
                if last >= end:
                    break
            if last < end and in_span(rows, found[count]):
                keys[count] = key
                count += 1
                resume = last + 1 if rows.exclusive else max(last, start + 1)
                if not past_last:
                    resume = start + 1
    return keys[:count].copy(), found[:count].copy()


@subkernel
def _place(
    rows: Rows,
    layout: Layout,
    table: IntArray,
    run_last: IntArray,
    run_from: IntArray,
    term: int,
    row: int,
    end: int,
    fixed: bool,
    found: IntArray,
) -> tuple[int, int]:
    """First and last row of a term's nearest place from `row` on (`fixed`: beginning at `row`); `end` for none."""
    block, after = layout.term[term], layout.term[term + 1]
    if row >= end:
        return end, end
    if layout.run[term]:
        first = row if fixed else run_from[row, term]
        if first < 0 or run_last[first, term] < 0:
            return end, end
        last = run_last[first, term]
        _fill_run(rows, layout, block, after, first, last, found)
        return first, last
    base, top = layout.block[block], layout.block[block + 1]
    first, last, twice = end, -1, False
    for slot in range(base, top):
        at = next_row(table, row, rows.slot[slot], end)
        found[slot] = at
        first, last = min(first, at), max(last, at)
        for other in range(base, slot):
            twice = twice or found[other] == at
    if last >= end or (fixed and first != row):
        return end, end
    if rows.exclusive and twice:
        return _assign(rows, layout, table, block, row, end, fixed, found)
    return first, last


@subkernel
def _assign(
    rows: Rows, layout: Layout, table: IntArray, block: int, row: int, end: int, fixed: bool, found: IntArray
) -> tuple[int, int]:
    """Different rows for the slots of an AND: the earliest end, then the least rows in text order."""
    base, top = layout.block[block], layout.block[block + 1]
    size = top - base
    full = (1 << size) - 1
    reached = np.zeros(full + 1, np.bool_)
    reached[0] = True
    last, at = end, row
    while at < end:
        bits = held(rows, layout, block, at)
        for mask in range(full, -1, -1):
            if reached[mask]:
                for bit in range(size):
                    if bits >> bit & 1 and not mask >> bit & 1:
                        reached[mask | 1 << bit] = True
        if fixed and at == row:
            reached[0] = False
        if reached[full]:
            last = at
            break
        following = end
        for slot in range(base, top):
            following = min(following, next_row(table, at + 1, rows.slot[slot], end))
        at = following
    if last >= end:
        return end, end
    # Depth first over the slots in text order; the first complete choice is the least one.
    slot = base
    found[base] = row - 1
    while slot >= base:
        at = next_row(table, found[slot] + 1, rows.slot[slot], end)
        taken = True
        while taken and at <= last:
            taken = False
            for other in range(base, slot):
                taken = taken or found[other] == at
            if taken:
                at = next_row(table, at + 1, rows.slot[slot], end)
        if at > last:
            slot -= 1
            continue
        found[slot] = at
        if slot + 1 < top:
            slot += 1
            found[slot] = row - 1
            continue
        first = end
        for other in range(base, top):
            first = min(first, found[other])
        if not fixed or first == row:
            return first, last
    return end, end


@subkernel
def _runs(rows: Rows, layout: Layout) -> tuple[IntArray, IntArray]:
    """For each row and ``,`` run: the earliest end of a run that begins there (-1: none), and the start of the nearest
    run from there on (earliest end, then earliest start; -1: none).
    """
    n, terms = len(rows.lo), len(layout.term) - 1
    run_last = np.full((n, terms), -1, np.int64)
    run_from = np.full((n, terms), -1, np.int64)
    block_of = blocks_of_states(layout)
    for term in range(terms):
        if not layout.run[term]:
            continue
        for key in range(len(rows.offsets) - 1):
            begin, end = rows.offsets[key], rows.offsets[key + 1]
            for row in range(end - 1, begin - 1, -1):
                last = _run_end(rows, layout, block_of, layout.term[term], layout.term[term + 1], row, end)
                run_last[row, term] = last
                best = run_from[row + 1, term] if row + 1 < end else -1
                if last >= 0 and (best < 0 or last <= run_last[best, term]):
                    best = row
                run_from[row, term] = best
    return run_last, run_from


@subkernel
def _run_end(rows: Rows, layout: Layout, block_of: IntArray, block: int, after: int, row: int, end: int) -> int:
    """The earliest last row of adjacent rows, from `row` on, that fill the blocks ``block:after``; -1 for none."""
    if held(rows, layout, block, row) == 0:
        return -1
    begin, accept = layout.state[block], layout.state[after]
    if accept - begin == after - block:
        for offset in range(1, after - block):
            at = row + offset
            if at >= end or rows.hi[at - 1] + 1 != rows.lo[at] or held(rows, layout, block + offset, at) == 0:
                return -1
        return row + after - block - 1
    reached = np.zeros(accept - begin, np.bool_)
    reached[0] = True
    for at in range(row, end):
        if at > row and rows.hi[at - 1] + 1 != rows.lo[at]:
            return -1
        following = np.zeros(accept - begin, np.bool_)
        alive = False
        for state in range(begin, accept):
            if not reached[state - begin]:
                continue
            mask = state - layout.state[block_of[state]]
            open_bits = held(rows, layout, block_of[state], at) & ~mask
            chosen = open_bits
            while chosen:
                if not rows.exclusive or single(chosen):
                    if state + chosen == accept:
                        return at
                    following[state + chosen - begin] = True
                    alive = True
                chosen = (chosen - 1) & open_bits
        if not alive:
            return -1
        reached = following
    return -1


@subkernel
def _fill_run(rows: Rows, layout: Layout, block: int, after: int, first: int, last: int, found: IntArray) -> None:
    """The least rows, in text order, by which a run goes exactly from `first` to `last`."""
    begin, accept = layout.state[block], layout.state[after]
    length = last - first + 1
    if after - block == length and layout.block[after] - layout.block[block] == length:
        for slot in range(layout.block[block], layout.block[after]):
            found[slot] = first + slot - layout.block[block]
        return
    # possible[d, s]: from state s, with d rows taken, the rest of the rows can fill the rest of the run.
    possible = np.zeros((length + 1, accept - begin + 1), np.bool_)
    possible[length, accept - begin] = True
    for taken in range(length - 1, -1, -1):
        for inner in range(block, after):
            bits = held(rows, layout, inner, first + taken)
            for state in range(layout.state[inner], layout.state[inner + 1]):
                open_bits = bits & ~(state - layout.state[inner])
                chosen = open_bits
                while chosen:
                    if (not rows.exclusive or single(chosen)) and possible[taken + 1, state + chosen - begin]:
                        possible[taken, state - begin] = True
                    chosen = (chosen - 1) & open_bits
    taken = 0
    for inner in range(block, after):
        taken = _fill_block(
            rows, layout, inner, first, taken, length, possible[:, layout.state[inner + 1] - begin], found
        )


@subkernel
def _fill_block(
    rows: Rows, layout: Layout, block: int, first: int, taken: int, length: int, possible: IntArray, found: IntArray
) -> int:
    """Choose rows for a block of a run, the first `taken` rows of which are gone; how many rows are taken after it."""
    base, top = layout.block[block], layout.block[block + 1]
    limit = min(length, taken + top - base)
    slot = base
    found[base] = first + taken - 1
    while slot >= base:
        found[slot] += 1
        if found[slot] >= first + limit:
            slot -= 1
            continue
        if not rows.flags[found[slot], rows.slot[slot]]:
            continue
        if slot + 1 < top:
            slot += 1
            found[slot] = first + taken - 1
            continue
        used, most = 0, taken
        for other in range(base, top):
            offset = found[other] - first
            used |= 1 << (offset - taken)
            most = max(most, offset + 1)
        whole = used == (1 << (most - taken)) - 1
        if whole and possible[most] and (not rows.exclusive or most - taken == top - base):
            return most
    return -1
