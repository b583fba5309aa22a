"""Groups found and weighed, step by step, for many keys.

Source: Sugiura et al. 2015, section 4 (Figs. 5 and 7), by intervals in place of runs: a group is what its matches'
intervals make of it. Open groups of a key stand in the order of their earliest ends, and those close first that came
first, because a group can change only as long as a live start lies at or before its end (``single``) or its earliest
end (``complete``). A vector is pushed only as far as a match reaches (``single``), or once, when its group is written
(``complete``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, SmallArray
from patternlake.udfs.groups.automaton.subsets import Moves
from patternlake.udfs.groups.kernels.complete import Complete, complete_probability
from patternlake.udfs.groups.kernels.live import Live, Plan, grow, weigh
from patternlake.udfs.groups.kernels.steps import Steps
from patternlake.udfs.groups.kernels.vectors import Vector, begin, push, put, take
from patternlake.udfs.groups.state import GROUP_SIZE, NEVER
from patternlake.udfs.subkernels import subkernel

START, FIRST, END, LOW, SURE, SIZE = range(GROUP_SIZE)
"""Numbers of an open group: t_start, t_first, t_end, the end before t_first, whether a match starts behind that, and
the size of the vector at t_end (``single``)."""


class Tools(NamedTuple):
    """What a sweep works with.

    Attributes
    ----------
    plan, inject
        The query and its automaton.
    live, vector, complete
        Workspace, for the key at hand.
    """

    plan: Plan
    inject: Moves
    live: Live
    vector: Vector
    complete: Complete


class Open(NamedTuple):
    """Open groups of the key at hand, from `bounds[0]` to `bounds[1]`.

    Attributes
    ----------
    numbers
        int64[m, GROUP_SIZE].
    accepted
        float64[m]: probability of the group so far.
    at
        int64[m]: where its vector lies.
    state, value
        int32[p], float64[p]: the vectors, in the order of the groups.
    bounds
        int64[2]: first open group, and the one behind the last.
    """

    numbers: IntArray
    accepted: FloatArray
    at: IntArray
    state: SmallArray
    value: FloatArray
    bounds: IntArray


class Found(NamedTuple):
    """Rows of the answer.

    Attributes
    ----------
    key
        int64[r]: place of the key.
    t_start, t_first, t_end
        int64[r].
    probability
        float64[r].
    final
        bool[r].
    used
        int64[1]: how many there are.
    """

    key: IntArray
    t_start: IntArray
    t_first: IntArray
    t_end: IntArray
    probability: FloatArray
    final: BoolArray
    used: IntArray


def found_workspace(most: int) -> Found:
    """Workspace for rows."""
    key, start, first, end = (np.empty(most, np.int64) for _ in range(4))
    return Found(key, start, first, end, np.empty(most), np.empty(most, np.bool_), np.zeros(1, np.int64))


def open_workspace(most: int) -> Open:
    """Workspace for the open groups of a key, of which there are never more than half as many at once."""
    return Open(
        np.zeros((most, GROUP_SIZE), np.int64),
        np.zeros(most),
        np.zeros(most, np.int64),
        np.empty(64, np.int32),
        np.empty(64),
        np.zeros(2, np.int64),
    )


@subkernel
def sweep(
    tools: Tools, groups: Open, found: Found, steps: Steps, key: int, fresh: int, live: int, previous_end: int
) -> tuple[Open, int, int]:
    """Take one key through its fresh steps.

    Parameters
    ----------
    tools, groups, found
        Workspace; the live starts and open groups of the key before its fresh steps.
    steps
        All steps.
    key, fresh
        The key's place, and its first fresh step.
    live
        How many live starts there are.
    previous_end
        The last end of a match, or `NEVER`.

    Returns
    -------
    (Open, int, int)
        The open groups, as their workspace may have grown; the live starts; the last end of a match.
    """
    plan, starts, bounds = tools.plan, tools.live, groups.bounds
    for at in range(fresh, steps.key_offset[key + 1]):
        step = steps.step[at]
        if at == steps.key_offset[key]:
            live = 0
        elif steps.step[at - 1] != step - 1:
            live = 0
            # Before the step, because the places of what is still open are counted back from here without gaps.
            close(tools, groups, found, steps, key, at - 1, live)
        weigh(plan, starts, steps, at)
        live, ended = grow(plan, starts, live, step)
        if ended > 0:
            if plan.single:
                groups = join(starts.ended[0], tools.inject, tools.vector, groups, steps, at)
            else:
                newest = tools.live.start[live - 1] if live > 0 else NEVER
                groups = extend(tools.live, groups, step, ended, previous_end, newest)
            previous_end = step
        if bounds[0] < bounds[1]:
            close(tools, groups, found, steps, key, at, live)
    return groups, live, previous_end


@subkernel
def join(start: int, inject: Moves, vector: Vector, groups: Open, steps: Steps, at: int) -> Open:
    """Put the matches that end with a step into one group with all that they overlap (``single``).

    `start` is the earliest of their starts.
    """
    numbers, bounds = groups.numbers, groups.bounds
    step = steps.step[at]
    place = bounds[1]
    while place > bounds[0] and numbers[place - 1, END] >= start:
        place -= 1
    merged = place < bounds[1]
    if not merged and place == len(numbers):
        place -= bounds[0]
        shift(groups)
    accepted = 0.0
    if merged and numbers[place, START] <= start:
        reached = numbers[place, END]
        size = numbers[place, SIZE]
        accepted = groups.accepted[place]
        take(vector, groups.state, groups.value, groups.at[place], size)
    else:
        reached = start - 1
        size = begin(vector)
        numbers[place, START] = start
        if not merged:
            numbers[place, FIRST] = step
            groups.at[place] = 0
            if place > bounds[0]:
                groups.at[place] = groups.at[place - 1] + numbers[place - 1, SIZE]
    for onward in range(at - (step - reached) + 1, at + 1):
        size, taken = push(vector, size, inject, True, True, steps, onward)
        accepted += taken
    numbers[place, END] = step
    numbers[place, SIZE] = size
    groups.accepted[place] = accepted
    bounds[1] = place + 1
    groups = with_capacity(groups, groups.at[place] + size)
    put(groups.state, groups.value, groups.at[place], vector, size)
    return groups


@subkernel
def extend(live: Live, groups: Open, step: int, ended: int, previous_end: int, newest: int) -> Open:
    """Put the matches that end with a step into every group whose earliest end they hold (``complete``)."""
    numbers, bounds = groups.numbers, groups.bounds
    place = 0
    for one in range(bounds[0], bounds[1]):
        first = numbers[one, FIRST]
        if live.ended[0] > first:
            continue
        while place + 1 < ended and live.ended[place + 1] <= first:
            place += 1
        numbers[one, START] = min(numbers[one, START], live.ended[0])
        numbers[one, END] = step
        if live.ended[place] > numbers[one, LOW]:
            numbers[one, SURE] = 1
    sure = live.ended[ended - 1] > previous_end
    # Without a match or a live start behind the end before, the matches all belong to the group of that end.
    if sure or newest > previous_end:
        if bounds[1] == len(numbers):
            shift(groups)
        one = bounds[1]
        numbers[one, START], numbers[one, FIRST], numbers[one, END] = live.ended[0], step, step
        numbers[one, LOW], numbers[one, SURE], numbers[one, SIZE] = previous_end, sure, 0
        bounds[1] += 1
    return groups


@subkernel
def close(tools: Tools, groups: Open, found: Found, steps: Steps, key: int, at: int, live: int) -> None:
    """Write the groups that no live start can change any more."""
    numbers, bounds = groups.numbers, groups.bounds
    decisive = END if tools.plan.single else FIRST
    while bounds[0] < bounds[1] and (live == 0 or numbers[bounds[0], decisive] < tools.live.start[0]):
        write(tools, groups, bounds[0], found, steps, key, at, True)
        bounds[0] += 1
    if bounds[0] == bounds[1]:
        bounds[0] = bounds[1] = 0


@subkernel
def write(
    tools: Tools, groups: Open, place: int, found: Found, steps: Steps, key: int, at: int, final: bool
) -> None:  # fmt: skip
    """Write one group, `at` being the last step; a candidate that no match makes a group of its own is left out."""
    numbers = groups.numbers[place]
    if tools.plan.single:
        probability = min(groups.accepted[place], 1.0)
    elif numbers[SURE] == 1:
        now = steps.step[at]
        probability = complete_probability(
            tools.complete, steps, at - (now - numbers[START]), at - (now - numbers[FIRST]), at - (now - numbers[END])
        )
    else:
        return
    row = found.used[0]
    found.key[row] = key
    found.t_start[row], found.t_first[row], found.t_end[row] = numbers[START], numbers[FIRST], numbers[END]
    found.probability[row] = probability
    found.final[row] = final
    found.used[0] = row + 1


@subkernel
def shift(groups: Open) -> None:
    """Move the open groups to the beginning of their workspace."""
    low, high = groups.bounds[0], groups.bounds[1]
    if low == 0:
        return
    count = high - low
    floor, end = groups.at[low], groups.at[high - 1] + groups.numbers[high - 1, SIZE]
    for one in range(count):
        for number in range(GROUP_SIZE):
            groups.numbers[one, number] = groups.numbers[low + one, number]
        groups.accepted[one] = groups.accepted[low + one]
        groups.at[one] = groups.at[low + one] - floor
    for one in range(end - floor):
        groups.state[one] = groups.state[floor + one]
        groups.value[one] = groups.value[floor + one]
    groups.bounds[0], groups.bounds[1] = 0, count


@subkernel
def with_capacity(groups: Open, size: int) -> Open:
    """The open groups with capacity for vectors of this size altogether."""
    if size <= len(groups.state):
        return groups
    state, value = np.empty(2 * size, np.int32), np.empty(2 * size, np.float64)
    for one in range(len(groups.state)):
        state[one], value[one] = groups.state[one], groups.value[one]
    return Open(groups.numbers, groups.accepted, groups.at, state, value, groups.bounds)
