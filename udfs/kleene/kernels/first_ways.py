"""The first ways to fill the groups of a row, in the order of the answer: events first, then operands.

The ways are walked by what they bind, not by who binds it: a step stands at all nodes of the graph (`ways`) that one
sequence of events may have led to, and goes on with the least next event. So each sequence comes once, and in order: a
run before a plain event ends later in the order than it goes on, one at the end of the linearization ends first. The
labels of a sequence, who binds each of its events, are then listed in the order of operands. No step leads where no
match is.

Where both ends of a linearization are groups and there is a window, a match whose first event is taken by some group
**needs** a last event at which, or behind which, nothing earlier fits into the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.runs import CUT, FULL, NEVER, WHOLE, Candidates, Chains, starts_of
from patternlake.udfs.kleene.kernels.ways import (
    UNKNOWN,
    Ways,
    enter_row,
    explore,
    forget,
    last_event,
    node_at,
    ways_for,
)
from patternlake.udfs.subkernels import subkernel


class Steps(NamedTuple):
    """The sequence of events that the walk stands at, step by step.

    Attributes
    ----------
    nodes
        int64[s, w]: the nodes that it may have led to, each at the number of its group in its run; a gate, and the node
        behind the last run, at 0; -1 for none.
    needs
        int64[s, w]: the least that a way to each node needs.
    head
        int64[s]: one of the nodes; -1 where there is none.
    alone
        bool[s]: there is one node at this step and at each one before.
    next
        int64[s]: the event gone on with.
    labelled
        bool[s, w]: a way through the node takes the whole sequence.
    choice, chosen
        int64[s]: the place in the order of operands of the group that takes each event, and its node.
    """

    nodes: IntArray
    needs: IntArray
    head: IntArray
    alone: BoolArray
    next: IntArray
    labelled: BoolArray
    choice: IntArray
    chosen: IntArray


class Found(NamedTuple):
    """Matches, as `runs.collect` gives them; with room for more."""

    row_of: IntArray
    offsets: IntArray
    kept: IntArray


@njit(cache=True)
def collect(
    given: Candidates, chains: Chains, reach: IntArray, from_row: int, most: int, capacity: int, at_once: int
) -> tuple[IntArray, IntArray, IntArray, int, int]:
    """The first matches of some rows, those of one row in the order of the answer.

    Parameters and what is returned are those of `runs.collect`. Where positions do not rise with events, the order is
    that of events.
    """
    groups, rows = given.offsets.shape[0], given.offsets.shape[1] - 1
    ways = ways_for(given)
    steps = _steps(len(ways.best) + 1, ways.inside.shape[1])
    ranked = _ranked(given)
    found = Found(np.empty(1024, np.int64), np.zeros(1024 + groups, np.int64), np.empty(1024, np.int64))
    count, row, cut = 0, from_row, WHOLE
    while row < rows and cut != FULL and found.offsets[count * groups] < at_once:
        before = count
        enter_row(ways, given, row)
        starts = starts_of(given, row) if given.coupled else np.full(1, -1, np.int64)
        for start in starts:
            if count - before == most or cut == FULL:
                cut = max(cut, CUT)
                break
            steps.nodes[0, :] = -1
            steps.needs[0, :] = 0
            stop, asked = NEVER, 0
            if not given.coupled:
                steps.nodes[0, 0] = 0
            else:
                stop = reach[start]
                asked = _begin(steps, ways, given, reach, row, start)
            for node in steps.nodes[0]:
                if node >= 0:
                    explore(ways, given, chains, row, node, stop, asked)
            steps.head[0] = steps.nodes[0].max()
            steps.alone[0] = (steps.nodes[0] >= 0).sum() == 1
            steps.next[0] = -2
            last = _advance(steps, ways, given, chains, row, 0, stop, asked)
            while last >= 0:
                found, count, end = _labels(steps, ways, given, row, last, ranked, found, count, before, most, capacity)
                cut = max(cut, end)
                if end != WHOLE:
                    break
                last = _advance(steps, ways, given, chains, row, last, stop, asked)
            forget(ways)
        row += 1
    size = found.offsets[count * groups]
    return found.row_of[:count].copy(), found.offsets[: count * groups + 1].copy(), found.kept[:size].copy(), row, cut


@subkernel
def _steps(most: int, width: int) -> Steps:
    return Steps(
        nodes=np.empty((most, width), np.int64),
        needs=np.empty((most, width), np.int64),
        head=np.empty(most, np.int64),
        alone=np.empty(most, np.bool_),
        next=np.empty(most, np.int64),
        labelled=np.empty((most, width), np.bool_),
        choice=np.empty(most, np.int64),
        chosen=np.empty(most, np.int64),
    )


@subkernel
def _ranked(given: Candidates) -> IntArray:
    """int64[g]: the groups of each run in the order of their operands, each by its number in the run."""
    ranked = np.empty(given.offsets.shape[0], np.int64)
    for run in range(len(given.runs)):
        first, end = given.runs[run, 0], given.runs[run, 1]
        ranked[first:end] = np.argsort(given.operands[first:end])
    return ranked


@subkernel
def _begin(steps: Steps, ways: Ways, given: Candidates, reach: IntArray, row: int, start: int) -> int:
    """Stand where a match begins with an event, where both ends are groups; the most that is needed there."""
    need = 0
    empty_front = not given.bare and start == given.low[row]
    for group in range(given.runs[0, 0], given.runs[0, 1]):
        low, high = given.offsets[group, row], given.offsets[group, row + 1]
        place = low + np.searchsorted(given.events[low:high], start)
        if place > low:
            need = max(need, reach[given.events[place - 1]])
        if not empty_front:
            if place < high and given.events[place] == start:
                steps.nodes[0, group] = node_at(ways, given, row, group, place)
                steps.needs[0, group] = need
            if given.least[group] > 0:
                break
    if empty_front:
        steps.nodes[0, 0], steps.needs[0, 0] = 1, need
    return int(need)


@subkernel
def _advance(
    steps: Steps, ways: Ways, given: Candidates, chains: Chains, row: int, last: int, stop: int, asked: int
) -> int:
    """Go on from step `last` to the next whole sequence in order; its last step, or -1 where there is none."""
    runs, width = len(given.runs), ways.inside.shape[1]
    nodes, needs, inside, out, event = steps.nodes, steps.needs, ways.inside, ways.out, ways.event
    while last >= 0:
        before, least = steps.next[last], NEVER + 1
        size, head = 0, -1
        for number in range(width):
            node = nodes[last, number]
            if node < 0:
                continue
            for way in range(width + 1):
                behind = inside[node, way] if way < width else out[node]
                if behind < 0 or event[behind] <= before or event[behind] > least:
                    continue
                if behind == runs:
                    best = last_event(ways, given, row, node)
                else:
                    if ways.best[behind] == UNKNOWN:
                        explore(ways, given, chains, row, behind, stop, asked)
                    best = ways.best[behind]
                if best < needs[last, number]:
                    continue
                if event[behind] < least:
                    least, size = event[behind], 0
                    for other in range(width):
                        nodes[last + 1, other] = -1
                at = way if way < width else 0
                if nodes[last + 1, at] < 0:
                    nodes[last + 1, at], needs[last + 1, at] = behind, needs[last, number]
                    head, size = behind, size + 1
                else:
                    needs[last + 1, at] = min(needs[last, number], needs[last + 1, at])
        steps.next[last] = least
        if size == 0:
            last -= 1
        elif head == runs:
            return last
        else:
            steps.head[last + 1], steps.alone[last + 1] = head, steps.alone[last] and size == 1
            last += 1
            steps.next[last] = -2
    return last


@subkernel
def _labels(
    steps: Steps,
    ways: Ways,
    given: Candidates,
    row: int,
    last: int,
    ranked: IntArray,
    found: Found,
    count: int,
    before: int,
    most: int,
    capacity: int,
) -> tuple[Found, int, int]:
    """Add the matches that bind the sequence of steps 0 to `last`; how many there are then, and what has cut them."""
    if steps.alone[last]:
        for step in range(last + 1):
            steps.chosen[step] = steps.head[step]
        return _added(steps, ways, given, row, last, found, count, before, most, capacity)
    _label(steps, ways, given, row, last)
    step, end = 0, WHOLE
    steps.choice[0] = -1
    while step >= 0 and end == WHOLE:
        head = steps.head[step]
        run = ways.run_of[ways.group[head]] if head > len(given.runs) else 0
        first = given.runs[run, 0]
        choices = given.runs[run, 1] - first if head > len(given.runs) else 1
        choice = steps.choice[step] + 1
        while choice < choices:
            number = ranked[first + choice] if head > len(given.runs) else 0
            if steps.labelled[step, number] and (
                step == 0 or _leads(steps, ways, step, steps.chosen[step - 1], number)
            ):
                break
            choice += 1
        if choice == choices:
            step -= 1
            continue
        steps.choice[step], steps.chosen[step] = choice, steps.nodes[step, number]
        if step < last:
            step += 1
            steps.choice[step] = -1
        else:
            found, count, end = _added(steps, ways, given, row, last, found, count, before, most, capacity)
    return found, count, end


@subkernel
def _label(steps: Steps, ways: Ways, given: Candidates, row: int, last: int) -> None:
    """Find the nodes of each step through which a way takes the whole sequence."""
    width = ways.inside.shape[1]
    # The matches of a sequence all end with one event.
    end = last_event(ways, given, row, steps.head[last])
    for step in range(last, -1, -1):
        for number in range(width):
            node = steps.nodes[step, number]
            fits = node >= 0 and step == last and ways.out[node] == len(given.runs)
            if node >= 0 and step < last:
                for other in range(width):
                    fits = fits or (steps.labelled[step + 1, other] and _leads(steps, ways, step + 1, node, other))
            steps.labelled[step, number] = fits and (step > 0 or steps.needs[0, number] <= end)


@subkernel
def _leads(steps: Steps, ways: Ways, step: int, node: int, number: int) -> bool:
    """Whether a node of the step before leads to a node of a step."""
    behind = steps.nodes[step, number]
    return bool(ways.inside[node, number] == behind or ways.out[node] == behind)


@subkernel
def _added(
    steps: Steps,
    ways: Ways,
    given: Candidates,
    row: int,
    last: int,
    found: Found,
    count: int,
    before: int,
    most: int,
    capacity: int,
) -> tuple[Found, int, int]:
    """Add the match of the chosen nodes; how many matches there are then, and what has kept it out."""
    groups, runs = given.offsets.shape[0], len(given.runs)
    row_of, offsets, kept = found
    used = offsets[count * groups]
    if count - before == most:
        return found, count, CUT
    if count == len(row_of):
        row_of = np.concatenate((row_of, np.empty(count, np.int64)))
    while (count + 1) * groups + 1 > len(offsets):
        offsets = np.concatenate((offsets, np.empty(len(offsets), np.int64)))
    while used + last + 1 > len(kept):
        kept = np.concatenate((kept, np.empty(len(kept), np.int64)))
    group = 0
    for step in range(last + 1):
        node = steps.chosen[step]
        if node > runs:
            while group < ways.group[node]:
                group += 1
                offsets[count * groups + group] = used
            kept[used] = ways.event[node]
            used += 1
    if used - offsets[before * groups] > capacity:
        return found, count, FULL
    while group < groups:
        group += 1
        offsets[count * groups + group] = used
    row_of[count] = row
    return Found(row_of, offsets, kept), count + 1, WHOLE
