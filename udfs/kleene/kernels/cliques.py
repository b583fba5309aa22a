"""What ``+`` and ``*`` operands collect where a condition holds between all events of two of them, or UNTIL between all
of one.

Source: SPEC section 3 (all pairs; rule M). The candidates of one row are nodes; two nodes fit together if order, window
and conditions say so; a match is a set of nodes that all fit together and that no other node fits. Such sets may be
many, and each is a row of the answer; they are searched node by node in order, and a branch ends where a node that was
left out could be added whatever comes. Sets of nodes are bits of Python integers. This serves windows of some hundred
candidates: the search runs in Python, and its work grows with the square of the candidates of a row and with the number
of matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray

Group = tuple[int, int, IntArray, IntArray]
"""(slot, least number of events, offsets by row, events)."""
Pairs = tuple[IntArray, BoolArray]
"""Offsets by row, and a truth for each pair of candidates."""


@dataclass(frozen=True)
class _Row:
    """The nodes of one row, in order.

    Attributes
    ----------
    events, groups
        Event and number of the group of each node.
    fits
        For each node the set of nodes that it fits together with.
    follows
        For each node the set of nodes of its group that it may directly follow; None where no condition says.
    """

    events: list[int]
    groups: list[int]
    fits: list[int]
    follows: list[int | None]


def collect(
    groups: Sequence[Group],
    conditions: Sequence[tuple[int, int, Pairs]],
    chained: Mapping[int, Pairs | None],
    reach: IntArray,
    anchors: IntArray | None,
    endings: Mapping[int, IntArray],
    source: IntArray,
    *,
    bare: bool,
    most: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """The matches of all rows, `most` of each at most.

    Parameters
    ----------
    groups
        The groups of the linearization in order, with their candidates.
    conditions
        Two slots, in order, and whether each pair of their candidates fits.
    chained
        For each slot whether each candidate (second) may directly follow each other one (first).
    reach
        `Stream.reach`.
    anchors
        int64[r]: the event that the matches of each row begin with; None where nothing says.
    endings
        For slots with UNTIL the rows of `Events` of which none lies behind the first one that they take, up to the
        last one.
    source
        `Stream.source`.
    bare
        True where the linearization has no plain operand.
    most
        Greatest number of matches of one row.

    Returns
    -------
    (int64[k], int64[k·g + 1], int64[e])
        The row of each match; offsets of the events of each match and group; the events.
    """
    row_of: list[int] = []
    sizes: list[int] = [0]
    kept: list[int] = []
    for row in range(len(groups[0][2]) - 1):
        nodes = _nodes(groups, conditions, chained, reach, endings, source, row)
        needed = [number for number, group in enumerate(groups) if group[1] > 0]
        anchor = None if anchors is None else int(anchors[row])
        before = len(row_of)
        for chosen in _maximal(nodes, anchor):
            lists: list[list[int]] = [[] for _ in groups]
            for node in chosen:
                lists[nodes.groups[node]].append(nodes.events[node])
            if all(lists[number] for number in needed) and (chosen or not bare):
                row_of.append(row)
                for events in lists:
                    kept += events
                    sizes.append(len(events))
                if len(row_of) - before == most:
                    break
    return np.array(row_of, np.int64), np.cumsum(sizes, dtype=np.int64), np.array(kept, np.int64)


def _nodes(
    groups: Sequence[Group],
    conditions: Sequence[tuple[int, int, Pairs]],
    chained: Mapping[int, Pairs | None],
    reach: IntArray,
    endings: Mapping[int, IntArray],
    source: IntArray,
    row: int,
) -> _Row:
    found = [
        (int(event), number, place)
        for number, (_, _, offsets, events) in enumerate(groups)
        for place, event in enumerate(events[offsets[row] : offsets[row + 1]])
    ]
    found.sort()
    size = len(found)
    event = np.array([node[0] for node in found], np.int64)
    group = np.array([node[1] for node in found], np.int64)
    place = np.array([node[2] for node in found], np.int64)
    ordered = (event[:, None] < event[None, :]) & (group[:, None] <= group[None, :])
    ordered &= event[None, :] < reach[event][:, None]
    counts = [int(offsets[row + 1] - offsets[row]) for _, _, offsets, _ in groups]
    number_of = {slot: number for number, (slot, _, _, _) in enumerate(groups)}
    for first, second, (offsets, truth) in conditions:
        one, other = number_of[first], number_of[second]
        table = truth[offsets[row] : offsets[row + 1]].reshape(counts[one], counts[other])
        mine, theirs = np.flatnonzero(group == one), np.flatnonzero(group == other)
        holds = table[place[mine][:, None], place[theirs][None, :]]
        ordered[np.ix_(mine, theirs)] &= holds
        ordered[np.ix_(theirs, mine)] &= holds.T
    for slot, ends in endings.items():
        mine = np.flatnonzero(group == number_of[slot])
        rows = source[event[mine]]
        # What ends a group can only be its first event.
        before = np.searchsorted(ends, rows, side="right")
        ordered[np.ix_(mine, mine)] &= before[:, None] >= before[None, :]
    fit = ordered | ordered.T
    follows: list[int | None] = [None] * size
    for slot, pairs in chained.items():
        if pairs is None:
            continue
        own = number_of[slot]
        table = pairs[1][pairs[0][row] : pairs[0][row + 1]].reshape(counts[own], counts[own])
        mine = np.flatnonzero(group == own)
        for node in mine.tolist():
            follows[node] = _bits(mine[table[place[mine], place[node]]])
    return _Row(
        [node[0] for node in found],
        [node[1] for node in found],
        [_bits(np.flatnonzero(line)) for line in fit],
        follows,
    )


def _bits(numbers: IntArray) -> int:
    result = 0
    for number in numbers.tolist():
        result |= 1 << number
    return result


def _maximal(nodes: _Row, anchor: int | None) -> Iterator[list[int]]:
    """The maximal sets of nodes; with an anchor those that begin with that event."""
    size = len(nodes.events)
    every = (1 << size) - 1
    members: dict[int, int] = {}
    for node, group in enumerate(nodes.groups):
        members[group] = members.get(group, 0) | 1 << node
    # What was left out although it fits all that is kept so far: something later has to rule it out. What is kept only
    # grows, so a node that it has ruled out stays so, and need not be looked at again.
    stack: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, every, ())]
    while stack:
        at, kept, fitting, left_out = stack.pop()
        to_come = fitting >> at << at
        if any(not to_come & ~nodes.fits[node] for node in left_out):
            continue
        if at == size:
            if anchor is None or (kept and nodes.events[_numbers(kept & -kept)[0]] == anchor):
                yield _numbers(kept)
            continue
        follows = nodes.follows[at]
        last = (kept & members[nodes.groups[at]]).bit_length() - 1
        may = last < 0 or follows is None or bool(follows >> last & 1)
        if not (fitting >> at & 1 and may):
            stack.append((at + 1, kept, fitting, left_out))
            continue
        stack.append((at + 1, kept, fitting, (*left_out, at)))
        if anchor is None or kept or nodes.events[at] == anchor:
            waiting = tuple(node for node in left_out if nodes.fits[node] >> at & 1)
            stack.append((at + 1, kept | 1 << at, fitting & nodes.fits[at], waiting))


def _numbers(nodes: int) -> list[int]:
    """The numbers of the nodes of a set, in order."""
    return [node for node in range(nodes.bit_length()) if nodes >> node & 1]
