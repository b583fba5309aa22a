"""Trends listed by anchors: parts of paths are worked out once and then put together.

Source: Mei et al. 2021, section 5.2. Some events are **anchors**: all starts, and each event from which more than
`limit` parts would lead on. A **part** leads from an anchor to the next one, or to an end. All parts are listed first,
in the order of positions; then a depth-first search walks among anchors only and copies whole parts. No part is the
beginning of another (but where a trend ends at an event that others go on from, and then the shorter comes first), so
trends come in the same order as from `extraction.extract`, and by the same numbers.

Departure from the paper: its anchors are attribute vertices chosen by hand, ours are events chosen by how many parts
they save; and where the parts would take more than the memory given, there are none, and the plain search is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.trends.kernels.extraction import LEAST_ROOM, Batch, Followers, first_start
from patternlake.udfs.trends.kernels.followers import followers_of, most_followers
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.role_sweep import following, most_following
from patternlake.udfs.trends.kernels.roles import Automaton

SmallArray = NDArray[np.int32]

LIMIT = 64
"""Parts that lead on from an event that is no anchor, at most."""

_NEXT, _DEPTH, _SKIP = range(3)


class Parts(NamedTuple):
    """The parts between anchors.

    Attributes
    ----------
    offsets
        int64[s + 1]: anchor u has the parts ``offsets[u]:offsets[u + 1]``; other events have none.
    row_offsets, rows
        int64[p + 1], int32[…]: the events of each part, without the anchor that it leads from.
    last
        int64[p]: the anchor that it leads to; -1: trends end with it.
    """

    offsets: IntArray
    row_offsets: IntArray
    rows: SmallArray
    last: IntArray


def parts_of(
    followers: Followers, order: IntArray, starts: BoolArray, ends: BoolArray, length: SmallArray, memory: int
) -> Parts | None:
    """List the parts between anchors.

    Parameters
    ----------
    followers
        The graph.
    order
        Rows (or states), each after all that may follow it.
    starts, ends, length
        As for `extraction.extract`.
    memory
        Entries that followers and parts may take, each.

    Returns
    -------
    Parts or None
        None where they take more.
    """
    if len(followers.offsets):
        offsets, targets = followers.offsets, followers.targets
    else:
        offsets, targets = _list(followers.graph, followers.automaton, length, memory)
        if len(offsets) == 0:
            return None
    anchor, parts, entries = _choose(order, offsets, targets, starts, ends, length)
    if entries.sum(where=anchor) > memory:
        return None
    counts = np.where(anchor, parts, 0).astype(np.int64)
    part_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    entries_of = np.concatenate([[0], np.cumsum(np.where(anchor, entries, 0))]).astype(np.int64)
    deepest = int(length.max(initial=0)) + 1
    return Parts(part_offsets, *_fill(part_offsets, entries_of, offsets, targets, anchor, ends, length, deepest))


def extract_by_anchors(
    parts: Parts,
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
) -> Iterator[Batch]:
    """The trends from number `low` (from 0) to `high` (exclusive); parameters as of `extraction.extract`."""
    begins = np.flatnonzero(starts & (length > 0))
    deepest = int(length.max(initial=0)) + 1
    room = max(4 * batch, deepest, LEAST_ROOM)
    stack, cursor, depths = (np.zeros(deepest, np.int64) for _ in range(3))
    path = np.zeros(deepest, np.int32)
    state = np.zeros(3, np.int64)
    state[_NEXT], state[_SKIP] = first_start(capped[begins], low)
    left = high - low
    while left > 0:
        offsets, rows, cells = np.zeros(batch + 1, np.int64), np.empty(room, np.int32), np.empty(batch, np.int64)
        trends, more = _walk(
            parts, begins, row, cell, ends, capped, stack, cursor, depths, path, state, min(left, batch), offsets, rows,
            cells,
        )  # fmt: skip
        if trends:
            yield Batch(cells[:trends], offsets[: trends + 1], rows[: offsets[trends]])
        left -= trends
        if not more:
            return


@njit(cache=True)
def _list(graph: Graph, automaton: Automaton, length: SmallArray, memory: int) -> tuple[IntArray, SmallArray]:
    """All followers of all rows that can be completed; nothing where they are more than `memory`."""
    n, of_states = len(length), len(automaton.of) > 0
    offsets = np.zeros(n + 1, np.int64)
    targets = np.empty(1024, np.int32)
    for u in range(n):
        used = offsets[u]
        if length[u] > 0:
            needed = used + (most_following(graph, automaton, u) if of_states else most_followers(graph, u))
            if needed > len(targets):
                larger = np.empty(max(2 * len(targets), needed), np.int32)
                larger[:used] = targets[:used]
                targets = larger
            if of_states:
                used += following(graph, automaton, u, length, targets, used)
            else:
                used += followers_of(graph, u, length, targets, used)
        if used > memory:
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        offsets[u + 1] = used
    return offsets, targets[: offsets[n]].copy()


@njit(cache=True)
def _choose(
    order: IntArray, offsets: IntArray, targets: SmallArray, starts: BoolArray, ends: BoolArray, length: SmallArray
) -> tuple[BoolArray, IntArray, NDArray[np.float64]]:
    """Which rows are anchors, and of each row how many parts lead on from it and how many entries these have."""
    n = len(starts)
    anchor = np.zeros(n, np.bool_)
    parts = np.zeros(n, np.int64)
    # A float, because it is only compared with a limit and must not wrap.
    entries = np.zeros(n, np.float64)
    for u in order:
        for at in range(offsets[u], offsets[u + 1]):
            v = targets[at]
            if length[v] == 0:
                continue
            own = np.int64(ends[v])
            beyond = 1 if anchor[v] else parts[v]
            inner = 0.0 if anchor[v] else entries[v]
            parts[u] += own + beyond
            entries[u] += own + beyond + inner
        anchor[u] = (starts[u] or parts[u] > LIMIT) and parts[u] > 0
    return anchor, parts, entries


@njit(cache=True)
def _fill(
    part_offsets: IntArray, entries_of: IntArray, offsets: IntArray, targets: SmallArray, anchor: BoolArray,
    ends: BoolArray, length: SmallArray, deepest: int,
) -> tuple[IntArray, SmallArray, IntArray]:  # fmt: skip
    """Write the parts of all anchors."""
    total = part_offsets[-1]
    row_offsets = np.zeros(total + 1, np.int64)
    rows = np.empty(entries_of[-1], np.int32)
    last = np.empty(total, np.int64)
    stack, cursor = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    part, written = 0, 0
    for u in range(len(anchor)):
        if not anchor[u]:
            continue
        stack[0], cursor[0], depth = u, offsets[u], 1
        while depth > 0:
            node = stack[depth - 1]
            if cursor[depth - 1] == offsets[node + 1]:
                depth -= 1
                continue
            v = targets[cursor[depth - 1]]
            cursor[depth - 1] += 1
            if length[v] == 0:
                continue
            for ending in (True, False):
                if (ending and not ends[v]) or (not ending and not anchor[v]):
                    continue
                for at in range(1, depth):
                    rows[written] = stack[at]
                    written += 1
                rows[written] = v
                written += 1
                last[part] = -1 if ending else v
                part += 1
                row_offsets[part] = written
            if not anchor[v]:
                stack[depth], cursor[depth] = v, offsets[v]
                depth += 1
    return row_offsets, rows, last


@njit(cache=True)
def _walk(
    parts: Parts, begins: IntArray, row: IntArray, cell: IntArray, ends: BoolArray, capped: IntArray, stack: IntArray,
    cursor: IntArray, depths: IntArray, path: SmallArray, state: IntArray, most: int, offsets: IntArray,
    rows: SmallArray, cells: IntArray,
) -> tuple[int, bool]:  # fmt: skip
    """Go on among the anchors until `most` trends are written or the buffer is full; False: all are written."""
    depth, skip, trends, written, more = state[_DEPTH], state[_SKIP], 0, 0, True
    while trends < most:
        if depth == 0:
            if state[_NEXT] == len(begins):
                more = False
                break
            u = begins[state[_NEXT]]
            if skip >= capped[u]:
                skip -= capped[u]
                state[_NEXT] += 1
                continue
            if ends[u] and skip == 0 and written + 1 > len(rows):
                break
            state[_NEXT] += 1
            path[0] = row[u]
            if ends[u]:
                if skip > 0:
                    skip -= 1
                else:
                    rows[written] = path[0]
                    written += 1
                    cells[trends] = cell[u]
                    trends += 1
                    offsets[trends] = written
            stack[0], cursor[0], depths[0], depth = u, parts.offsets[u], 1, 1
            continue
        u, part, held = stack[depth - 1], cursor[depth - 1], depths[depth - 1]
        if part == parts.offsets[u + 1]:
            depth -= 1
            continue
        v = parts.last[part]
        behind = 1 if v < 0 else capped[v] - np.int64(ends[v])
        if skip >= behind:
            skip -= behind
            cursor[depth - 1] += 1
            continue
        begin, end = parts.row_offsets[part], parts.row_offsets[part + 1]
        if v < 0:
            if written + held + end - begin > len(rows):
                break
            for at in range(held):
                rows[written + at] = path[at]
            written += held
            for at in range(begin, end):
                rows[written] = row[parts.rows[at]]
                written += 1
            cells[trends] = cell[u]
            trends += 1
            offsets[trends] = written
            cursor[depth - 1] += 1
        else:
            cursor[depth - 1] += 1
            for at in range(begin, end):
                path[held] = row[parts.rows[at]]
                held += 1
            stack[depth], cursor[depth], depths[depth] = v, parts.offsets[v], held
            depth += 1
    state[_DEPTH], state[_SKIP] = depth, skip
    return trends, more
