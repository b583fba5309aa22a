"""The ways to fill the groups of one row, as a graph that is laid out only as far as it is walked.

Source: rule M (SPEC section 3), as in `runs`. A **node** is an event as the last one that a group has kept. From it the
run goes on with the next event that the group would keep, or with the first event behind it of a later group, if
nothing that could be added comes before that one; where nothing could be added at all, the run may end. So each node
leads to one node of each group at most, and there are as many nodes as candidates, however many ways lead through them.
Before its first event a run stands at a node of its own, its **gate**; behind the last run all ways meet in one node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.runs import NEVER, Candidates, Chains, follows
from patternlake.udfs.subkernels import subkernel

UNKNOWN = -2
"""Stands for "not looked at yet"."""


class Ways(NamedTuple):
    """The graph of one row: first the gates of r runs, then the node behind the last run, then candidates.

    Attributes
    ----------
    base
        int64[g]: the node of the first candidate of each group.
    run_of
        int64[g]: the run of each group.
    group, place, event
        int64[n]: of a candidate its group, its place in `Candidates.events`, and its event. A gate and the last node
        have the event that says where they stand in the order of what may come next.
    inside
        int64[n, w]: the node that each group of the run goes on with, counted from the run's first one; -1 for none.
    out
        int64[n]: the gate, or the last node, that the run ends in; -1 where it may not end.
    best
        int64[n]: the greatest last event of the matches that go on from here, exact below what is asked for; -1 where
        none does; `UNKNOWN`.
    stack, tried
        int64[n]: where a search stands.
    touched
        int64[n + 1]: how many nodes are known, and which.
    """

    base: IntArray
    run_of: IntArray
    group: IntArray
    place: IntArray
    event: IntArray
    inside: IntArray
    out: IntArray
    best: IntArray
    stack: IntArray
    tried: IntArray
    touched: IntArray


@subkernel
def ways_for(given: Candidates) -> Ways:
    """Workspace for the graph of any of some rows."""
    groups, rows, runs = given.offsets.shape[0], given.offsets.shape[1] - 1, len(given.runs)
    most, width = 0, 1
    for row in range(rows):
        most = max(most, (given.offsets[:, row + 1] - given.offsets[:, row]).sum())
    run_of = np.empty(groups, np.int64)
    for run in range(runs):
        run_of[given.runs[run, 0] : given.runs[run, 1]] = run
        width = max(width, given.runs[run, 1] - given.runs[run, 0])
    size = runs + 1 + most
    event = np.empty(size, np.int64)
    event[:runs] = NEVER
    event[runs] = -1 if given.open_end else NEVER
    return Ways(
        base=np.empty(groups, np.int64),
        run_of=run_of,
        group=np.empty(size, np.int64),
        place=np.empty(size, np.int64),
        event=event,
        inside=np.empty((size, width), np.int64),
        out=np.empty(size, np.int64),
        best=np.full(size, UNKNOWN, np.int64),
        stack=np.empty(size, np.int64),
        tried=np.empty(size, np.int64),
        touched=np.zeros(size + 1, np.int64),
    )


@subkernel
def enter_row(ways: Ways, given: Candidates, row: int) -> None:
    """Say which nodes the candidates of a row are."""
    node = len(given.runs) + 1
    for group in range(len(ways.base)):
        ways.base[group] = node
        node += given.offsets[group, row + 1] - given.offsets[group, row]


@subkernel
def forget(ways: Ways) -> None:
    """Make all nodes unknown again."""
    for number in range(1, ways.touched[0] + 1):
        ways.best[ways.touched[number]] = UNKNOWN
    ways.touched[0] = 0


@subkernel
def node_at(ways: Ways, given: Candidates, row: int, group: int, place: int) -> int:
    """The node of a candidate, by its place in `Candidates.events`."""
    node = ways.base[group] + place - given.offsets[group, row]
    ways.group[node], ways.place[node], ways.event[node] = group, place, given.events[place]
    return int(node)


@subkernel
def last_event(ways: Ways, given: Candidates, row: int, node: int) -> int:
    """The last event of a match whose last run ends at a node."""
    return int(ways.event[node] if node > len(given.runs) else given.high[row])


@subkernel
def explore(ways: Ways, given: Candidates, chains: Chains, row: int, node: int, stop: int, asked: int) -> None:
    """Find the `best` of a node, and of what it takes to know it.

    Parameters
    ----------
    ways, given, chains, row, node
        As above.
    stop
        The last run ends before this event.
    asked
        No more is asked for than that a match ends with this event, or a later one.
    """
    runs, width = len(given.runs), ways.inside.shape[1]
    if ways.best[node] != UNKNOWN:
        return
    top = 0
    ways.stack[0] = node
    _touch(ways, given, chains, row, node, stop)
    while top >= 0:
        node = ways.stack[top]
        deeper = False
        while ways.best[node] < asked and ways.tried[node] <= width:
            number = ways.tried[node]
            # Of later groups first: the last one ends soonest.
            behind = ways.inside[node, width - 1 - number] if number < width else ways.out[node]
            if behind >= 0 and behind != runs and ways.best[behind] == UNKNOWN:
                top += 1
                ways.stack[top] = behind
                _touch(ways, given, chains, row, behind, stop)
                deeper = True
                break
            ways.tried[node] += 1
            if behind >= 0:
                found = last_event(ways, given, row, node) if behind == runs else ways.best[behind]
                ways.best[node] = max(ways.best[node], found)
        if not deeper:
            top -= 1


@subkernel
def _touch(ways: Ways, given: Candidates, chains: Chains, row: int, node: int, stop: int) -> None:
    """Lay out what a node leads to."""
    runs = len(given.runs)
    ways.touched[0] += 1
    ways.touched[ways.touched[0]] = node
    ways.best[node], ways.tried[node] = -1, 0
    ways.inside[node, :] = -1
    run = node if node < runs else ways.run_of[ways.group[node]]
    first, end = given.runs[run, 0], given.runs[run, 1]
    limit = stop if run == runs - 1 else NEVER
    group, last = first - 1, -1
    # The first event that could still be added: what comes next comes no later.
    addable = NEVER
    if node > runs:
        group, last = ways.group[node], ways.event[node]
        low, high, at = given.offsets[group, row], given.offsets[group, row + 1], ways.place[node]
        for later in range(at + 1, high):
            if given.events[later] >= limit:
                break
            if follows(chains, group, row, low, high - low, at, later, given.events):
                ways.inside[node, group - first] = node_at(ways, given, row, group, later)
                addable = given.events[later]
                break
    may_end = True
    for other in range(group + 1, end):
        low, high = given.offsets[other, row], given.offsets[other, row + 1]
        place = low + np.searchsorted(given.events[low:high], last + 1)
        if place < high and given.events[place] < limit and given.events[place] <= addable:
            ways.inside[node, other - first] = node_at(ways, given, row, other, place)
            addable = given.events[place]
        if given.least[other] > 0:
            may_end = False
            break
    nothing = given.bare and node < runs
    ways.out[node] = run + 1 if may_end and addable == NEVER and not nothing else -1
