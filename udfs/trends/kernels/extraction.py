"""Trends listed, from the i-th on, in batches (SPEC section 5, `cet_trends`).

Trends have an order: by cell, then by their positions, one after the other. Because the sweep knows how many trends
lead through each event, the i-th is found without those before it, so an answer falls into equal shares [lo, hi) that
are extracted apart from each other, even where all trends start at one event.

Source: Mei et al. 2021, section 5.2 (depth-first search) and SPEC. What may follow an event is worked out when the
search first comes to it, sorted, and kept; when too much is kept, what the search does not stand on is thrown away. So
memory is bounded by `memory` entries and what follows the events of one path, and never grows with the trends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.trends.kernels.followers import followers_of, most_followers
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.role_sweep import following, most_following
from patternlake.udfs.trends.kernels.roles import Automaton

MEMORY = 1 << 25
"""Entries of followers that are kept, unless told."""

_LEAST_ROOM = 1 << 18
"""Positions that a batch has room for, at least."""

_DONE, _FULL, _ROOM = range(3)
_NEXT, _DEPTH, _SKIP, _USED, _TRENDS, _POSITIONS, _NEEDED = range(7)


@dataclass(frozen=True)
class Batch:
    """Some trends, in order.

    Attributes
    ----------
    cell
        int64[t]: the cell of each.
    offsets, row
        int64[t + 1], int32[p]: trend j has the rows ``row[offsets[j]:offsets[j + 1]]`` of `Cells`.
    """

    cell: IntArray
    offsets: IntArray
    row: SmallArray

    def __len__(self) -> int:
        return len(self.cell)


@dataclass(frozen=True)
class Followers:
    """Where a search finds what may follow.

    Attributes
    ----------
    graph
        Asked for what is not listed.
    automaton
        With states: these are walked, not rows.
    offsets, targets
        int64[n + 1] and int32[e]: listed followers of rows, only such as can be completed, so that no path is longer
        than the longest trend; empty where the graph is asked, or the automaton.
    """

    graph: Graph
    automaton: Automaton
    offsets: IntArray
    targets: SmallArray


def extract(
    followers: Followers,
    row: IntArray,
    cell: IntArray,
    starts: BoolArray,
    ends: BoolArray,
    capped: IntArray,
    length: SmallArray,
    low: int,
    high: int,
    *,
    batch: int = 1 << 16,
    memory: int = MEMORY,
) -> Iterator[Batch]:
    """The trends from number `low` (from 0) to `high` (exclusive).

    Parameters
    ----------
    followers
        The graph.
    row, cell
        int64[s]: row of `Cells` and cell of each of its rows (or states).
    starts, ends
        bool[s].
    capped, length
        Of the first sweep.
    low, high
        Numbers in the order of all cells; `high` may be greater than the number of trends.
    batch
        About how many trends a batch has; one whose trends are long has fewer.
    memory
        Entries of followers to keep.
    """
    begins = np.flatnonzero(starts & (length > 0))
    deepest = int(length.max(initial=0)) + 1
    room = max(4 * batch, deepest, _LEAST_ROOM)
    listed = len(followers.offsets) > 0
    begin = followers.offsets[:-1].copy() if listed else np.full(len(row), -1, np.int64)
    count = np.diff(followers.offsets).astype(np.int64) if listed else np.zeros(len(row), np.int64)
    kept = followers.targets if listed else np.empty(1 << 12, np.int32)
    stack, cursor = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64)
    state = np.zeros(7, np.int64)
    state[_NEXT], state[_SKIP] = _first_start(capped[begins], low)
    left = high - low
    while left > 0:
        offsets, rows = np.zeros(batch + 1, np.int64), np.empty(room, np.int32)
        cells = np.empty(batch, np.int64)
        state[_TRENDS] = state[_POSITIONS] = 0
        reason = _ROOM
        while reason == _ROOM:
            reason = _search(
                followers.graph, followers.automaton, begins, row, cell, ends, capped, length, begin, count, kept,
                stack, cursor, state, min(left, batch), offsets, rows, cells,
            )  # fmt: skip
            if reason == _ROOM:
                kept = _make_room(kept, begin, count, stack, state, memory)
        trends = int(state[_TRENDS])
        if trends:
            yield Batch(cells[:trends], offsets[: trends + 1], rows[: state[_POSITIONS]])
        left -= trends
        if reason == _DONE:
            return


def _first_start(capped: IntArray, low: int) -> tuple[int, int]:
    """The start that trend number `low` is of, and how many of its trends come before that one."""
    if low == 0:
        return 0, 0
    # Sums stop at the cap, so that they do not wrap.
    before = np.minimum(np.cumsum(capped.astype(np.float64)), 2.0**62)
    first = int(np.searchsorted(before, low * (1 - 1e-9), "left"))
    passed = sum(capped[:first].tolist())
    while first < len(capped) and passed + int(capped[first]) <= low:
        passed += int(capped[first])
        first += 1
    while first > 0 and passed > low:
        first -= 1
        passed -= int(capped[first])
    return first, low - passed


def _make_room(
    kept: SmallArray, begin: IntArray, count: IntArray, stack: IntArray, state: IntArray, memory: int
) -> SmallArray:
    """Keep more followers, or, where there are `memory` already, only those of the path."""
    used, needed, depth = int(state[_USED]), int(state[_NEEDED]), int(state[_DEPTH])
    if used + needed <= memory:
        larger = np.empty(min(max(2 * len(kept), used + needed), max(memory, used + needed)), np.int32)
        larger[:used] = kept[:used]
        return larger
    path = [node for node in stack[:depth].tolist() if begin[node] >= 0]
    size = int(count[path].sum())
    # With half of it to spare, so that a long path is not copied again at each step.
    fresh = np.empty(max(memory, size + needed + size // 2), np.int32)
    places, at = [], 0
    for node in path:
        fresh[at : at + count[node]] = kept[begin[node] : begin[node] + count[node]]
        places.append(at)
        at += int(count[node])
    begin[:] = -1
    begin[path] = places
    state[_USED] = size
    return fresh


@njit(cache=True)
def _search(
    graph: Graph, automaton: Automaton, begins: IntArray, row: IntArray, cell: IntArray, ends: BoolArray,
    capped: IntArray, length: SmallArray, begin: IntArray, count: IntArray, kept: SmallArray, stack: IntArray,
    cursor: IntArray, state: IntArray, most: int, offsets: IntArray, rows: SmallArray, cells: IntArray,
) -> int:  # fmt: skip
    """Go on with the search until `most` trends are written, the buffers are full, or more room is needed."""
    depth, skip, trends, written = state[_DEPTH], state[_SKIP], state[_TRENDS], state[_POSITIONS]
    reason, of_states = _FULL, len(automaton.of) > 0
    while trends < most:
        if depth == 0:
            if state[_NEXT] == len(begins):
                reason = _DONE
                break
            node = begins[state[_NEXT]]
            state[_NEXT] += 1
            if skip >= capped[node]:
                skip -= capped[node]
                continue
            stack[0], cursor[0], depth = node, -1, 1
        node = stack[depth - 1]
        if cursor[depth - 1] < 0:
            if ends[node]:
                if skip > 0:
                    skip -= 1
                else:
                    if written + depth > len(rows):
                        break
                    for at in range(depth):
                        rows[written + at] = row[stack[at]]
                    written += depth
                    cells[trends] = cell[node]
                    trends += 1
                    offsets[trends] = written
            cursor[depth - 1] = 0
        if begin[node] < 0:
            needed = most_following(graph, automaton, node) if of_states else most_followers(graph, node)
            if state[_USED] + needed > len(kept):
                state[_NEEDED] = needed
                reason = _ROOM
                break
            begin[node] = state[_USED]
            # Not one function: handing a second tuple of arrays on takes longer than most rows' followers.
            if of_states:
                count[node] = following(graph, automaton, node, length, kept, state[_USED])
            else:
                count[node] = followers_of(graph, node, length, kept, state[_USED])
            state[_USED] += count[node]
        at = cursor[depth - 1]
        while skip > 0 and at < count[node] and skip >= capped[kept[begin[node] + at]]:
            skip -= capped[kept[begin[node] + at]]
            at += 1
        # Most followers of many graphs end a trend and lead nowhere else: these need no place on the stack.
        while skip == 0 and at < count[node] and trends < most and written + depth < len(rows):
            follower = kept[begin[node] + at]
            if length[follower] > 1:
                break
            for place in range(depth):
                rows[written + place] = row[stack[place]]
            rows[written + depth] = row[follower]
            written += depth + 1
            cells[trends] = cell[node]
            trends += 1
            offsets[trends] = written
            at += 1
        if at < count[node]:
            cursor[depth - 1] = at + 1
            stack[depth], cursor[depth] = kept[begin[node] + at], -1
            depth += 1
        else:
            depth -= 1
    state[_DEPTH], state[_SKIP], state[_TRENDS], state[_POSITIONS] = depth, skip, trends, written
    return reason
