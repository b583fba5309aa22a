"""Many keys at once: what is remembered is read, swept through the new steps, and written back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.groups.kernels.gathering import Gathered, Held
from patternlake.udfs.groups.kernels.steps import Rows, Steps
from patternlake.udfs.groups.kernels.sweep import SIZE, START, Found, Open, Tools, sweep, write
from patternlake.udfs.groups.state import (
    CLASSES,
    FIXED,
    GROUP_SIZE,
    GROUPS,
    KNOWN,
    LAST,
    LIVE,
    NEVER,
    PREVIOUS_END,
    STEPS,
    TRAIL,
    TRAIL_STEP,
    WAITING,
    WAITING_STEP,
)
from patternlake.udfs.subkernels import resized, subkernel


class Kept(NamedTuple):
    """What is remembered behind a run, as in `state.GroupState`."""

    integer_offset: IntArray
    integers: IntArray
    float_offset: IntArray
    floats: FloatArray


def run(tools: Tools, groups: Open, found: Found, gathered: Gathered, held: Held, to_the_end: bool) -> Kept:
    """Sweep all keys.

    Parameters
    ----------
    tools, groups, found
        Workspace; `found` takes the rows, by key and t_first.
    gathered, held
        The steps of each key, and what is remembered of it.
    to_the_end
        True: groups that are still open are written as well, not final, and nothing is remembered.
    """
    offset = np.zeros((2, len(gathered.fresh) + 1), np.int64)
    integers, floats = _run(
        tools, groups, found, gathered.steps, gathered.fresh, gathered.waiting, held, to_the_end, offset
    )  # fmt: skip
    return Kept(offset[0], integers, offset[1], floats)


@njit(cache=True)
def _run(
    tools: Tools, groups: Open, found: Found, steps: Steps, fresh: IntArray, waiting: Rows, held: Held,
    to_the_end: bool, offset: IntArray,
) -> tuple[IntArray, FloatArray]:  # fmt: skip
    integers, floats = np.empty(1024, np.int64), np.empty(1024, np.float64)
    for key in range(len(fresh)):
        whole, real = offset[0, key], offset[1, key]
        live, groups = load(tools, groups, held, key)
        previous_end = NEVER
        if held.integers_at[key] >= 0:
            previous_end = held.integers[held.integers_at[key] + PREVIOUS_END]
        groups, live, previous_end = sweep(tools, groups, found, steps, key, fresh[key], live, previous_end)
        if to_the_end:
            for place in range(groups.bounds[0], groups.bounds[1]):
                write(tools, groups, place, found, steps, key, steps.key_offset[key + 1] - 1, False)
        else:
            whole_size, real_size = capacity_needed(tools, groups, steps, waiting, key, live)
            if whole + whole_size > len(integers):
                integers = resized(integers, 2 * (whole + whole_size))
            if real + real_size > len(floats):
                floats = resized(floats, 2 * (real + real_size))
            whole, real = save(
                tools, groups, steps, waiting, held, key, live, previous_end, integers, whole, floats, real
            )  # fmt: skip
        offset[0, key + 1], offset[1, key + 1] = whole, real
    return integers[: offset[0, -1]].copy(), floats[: offset[1, -1]].copy()


@subkernel
def load(tools: Tools, groups: Open, held: Held, key: int) -> tuple[int, Open]:
    """Read the live starts and the open groups of a key; how many starts there are."""
    trail = tools.complete.trail
    trail.at[0] = groups.bounds[0] = groups.bounds[1] = 0
    if held.integers_at[key] < 0:
        return 0, groups
    integers, at = held.integers, held.integers_at[key]
    floats, real = held.floats, held.floats_at[key]
    live, count = integers[at + LIVE], integers[at + GROUPS]
    trail.at[0], trail.at[1] = integers[at + TRAIL], integers[at + TRAIL_STEP]
    real += integers[at + CLASSES] + integers[at + WAITING]
    at += FIXED + integers[at + STEPS] + integers[at + CLASSES] + integers[at + WAITING]
    for one in range(live):
        tools.live.start[one] = integers[at]
        at += 1
        for position in range(tools.live.best.shape[1]):
            tools.live.best[one, position] = floats[real]
            real += 1
    low = 0
    for one in range(count):
        for number in range(GROUP_SIZE):
            groups.numbers[one, number] = integers[at + number]
        groups.accepted[one] = floats[real]
        groups.at[one] = low
        low += groups.numbers[one, SIZE]
        at += GROUP_SIZE
        real += 1
    if low > len(groups.state):
        groups = Open(
            groups.numbers, groups.accepted, groups.at, np.empty(low, np.int32), np.empty(low), groups.bounds
        )  # fmt: skip
    for one in range(low):
        groups.state[one] = integers[at + one]
        groups.value[one] = floats[real + one]
    groups.bounds[1] = count
    at, real = at + low, real + low
    for one in range(trail.at[0]):
        trail.vector.state[one] = integers[at + one]
        trail.vector.value[one] = floats[real + one]
    return live, groups


@subkernel
def reach(tools: Tools, groups: Open, live: int) -> int:
    """The first step that a live start or an open group of a key needs; there is a live start."""
    first: int = tools.live.start[0]
    if not tools.plan.single:
        for place in range(groups.bounds[0], groups.bounds[1]):
            first = min(first, groups.numbers[place, START])
    return first


@subkernel
def kept_steps(tools: Tools, groups: Open, steps: Steps, key: int, live: int) -> tuple[int, int]:
    """Which steps of a key are to be remembered; a group is open only where there is a live start."""
    end = steps.key_offset[key + 1]
    if live == 0:
        return end, end
    return end - (steps.step[end - 1] - reach(tools, groups, live) + 1), end


@subkernel
def trail_size(tools: Tools, groups: Open, live: int) -> int:
    """How much of the trail is to be remembered: nothing of one that ended before all that is open."""
    trail = tools.complete.trail
    if live == 0 or trail.at[0] == 0 or trail.at[1] < reach(tools, groups, live):
        return 0
    size: int = trail.at[0]
    return size


@subkernel
def capacity_needed(tools: Tools, groups: Open, steps: Steps, waiting: Rows, key: int, live: int) -> tuple[int, int]:
    """How many integers and floats a key takes."""
    low, high = kept_steps(tools, groups, steps, key, live)
    classes = steps.offset[high] - steps.offset[low]
    waits = waiting.offset[key + 1] - waiting.offset[key]
    count = groups.bounds[1] - groups.bounds[0]
    vectors = trail_size(tools, groups, live)
    for place in range(groups.bounds[0], groups.bounds[1]):
        vectors += groups.numbers[place, SIZE]
    whole = FIXED + (high - low) + classes + waits + live + count * GROUP_SIZE + vectors
    return whole, classes + waits + live * tools.live.best.shape[1] + count + vectors


@subkernel
def save(
    tools: Tools, groups: Open, steps: Steps, waiting: Rows, held: Held, key: int, live: int, previous_end: int,
    integers: IntArray, at: int, floats: FloatArray, real: int,
) -> tuple[int, int]:  # fmt: skip
    """Write what is remembered of a key; where the next one begins."""
    low, high = kept_steps(tools, groups, steps, key, live)
    first, last = steps.offset[low], steps.offset[high]
    wait, waits = waiting.offset[key], waiting.offset[key + 1]
    for place in range(at, at + FIXED):
        integers[place] = 0
    if high > steps.key_offset[key]:
        integers[at + LAST], integers[at + KNOWN] = steps.step[high - 1], 1
    elif held.integers_at[key] >= 0:
        before = held.integers_at[key]
        integers[at + LAST], integers[at + KNOWN] = held.integers[before + LAST], held.integers[before + KNOWN]
    integers[at + PREVIOUS_END] = previous_end
    integers[at + STEPS], integers[at + CLASSES] = high - low, last - first
    integers[at + WAITING], integers[at + WAITING_STEP] = waits - wait, waiting.step[key] if waits > wait else 0
    integers[at + LIVE], integers[at + GROUPS] = live, groups.bounds[1] - groups.bounds[0]
    trail, trailing = tools.complete.trail, trail_size(tools, groups, live)
    integers[at + TRAIL], integers[at + TRAIL_STEP] = trailing, trail.at[1] if trailing > 0 else 0
    at += FIXED
    for step in range(low, high):
        integers[at] = steps.offset[step + 1] - steps.offset[step]
        at += 1
    for place in range(first, last):
        integers[at], floats[real] = steps.class_[place], steps.probability[place]
        at, real = at + 1, real + 1
    for place in range(wait, waits):
        integers[at], floats[real] = waiting.class_[place], waiting.probability[place]
        at, real = at + 1, real + 1
    for one in range(live):
        integers[at + one] = tools.live.start[one]
    at += live
    for one in range(live):
        for position in range(tools.live.best.shape[1]):
            floats[real] = tools.live.best[one, position]
            real += 1
    for place in range(groups.bounds[0], groups.bounds[1]):
        for number in range(GROUP_SIZE):
            integers[at + number] = groups.numbers[place, number]
        floats[real] = groups.accepted[place]
        at, real = at + GROUP_SIZE, real + 1
    for place in range(groups.bounds[0], groups.bounds[1]):
        for one in range(groups.at[place], groups.at[place] + groups.numbers[place, SIZE]):
            integers[at], floats[real] = groups.state[one], groups.value[one]
            at, real = at + 1, real + 1
    for one in range(trailing):
        integers[at], floats[real] = trail.vector.state[one], trail.vector.value[one]
        at, real = at + 1, real + 1
    return at, real
