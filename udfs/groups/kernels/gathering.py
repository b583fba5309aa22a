"""New rows put behind what is remembered of their keys: the steps that a run goes through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import FloatArray, IntArray, SmallArray
from patternlake.udfs.groups.kernels.steps import TOLERANCE, Rows, Steps, arrange, merge, total_of
from patternlake.udfs.groups.state import CLASSES, FIXED, KNOWN, LAST, STEPS, WAITING, WAITING_STEP


class Held(NamedTuple):
    """What is remembered, for each key of a run.

    Attributes
    ----------
    integers_at, floats_at
        int64[keys]: where the key's numbers begin; -1: nothing is known of the key.
    integers, floats
        As in `state.GroupState`.
    """

    integers_at: IntArray
    integers: IntArray
    floats_at: IntArray
    floats: FloatArray


class Gathered(NamedTuple):
    """The steps of a run.

    Attributes
    ----------
    steps
        Of each key those that are remembered, then those that close with this run.
    fresh
        int64[keys]: the first step of each key that closes with this run.
    waiting
        The rows that wait for more of their step, in the order of (class, probability).
    """

    steps: Steps
    fresh: IntArray
    waiting: Rows


class TooEarly(NamedTuple):
    """A row whose step comes after a later one: place of the key, both steps."""

    key: int
    step: int
    after: int


def gather(rows: Rows, held: Held, to_the_end: bool, bridged: int) -> Gathered | TooEarly:
    """The steps of a run.

    Parameters
    ----------
    rows
        New rows by key, steps ascending.
    held
        What is remembered of the same keys.
    to_the_end
        False: the last step of each key waits for more rows. True: it closes if its probabilities reach 1, or cannot
        be; otherwise it is left out, and nothing waits.
    bridged
        So many missing steps between two, at most, are put in as steps of which nothing is known; 0 where no letter
        takes what is not stored.
    """
    offset = rows.offset
    waiting, steps, classes = _sizes(held)
    most = steps + len(rows.step) + len(offset)
    if bridged:
        most += _missing(offset, rows.step, held.integers_at, held.integers, bridged)
    parts = _gather(*rows, *held, to_the_end, bridged, most, classes + waiting + len(rows.step))
    keys, step, step_offset, class_, probability, fresh, wait_offset, wait_step, wait_class, wait_chance, error = parts
    if error[0] >= 0:
        return TooEarly(int(error[0]), int(error[1]), int(error[2]))
    return Gathered(
        Steps(keys, step, step_offset, class_, probability),
        fresh,
        Rows(wait_offset, wait_step, wait_class, wait_chance),
    )


def _sizes(held: Held) -> tuple[int, int, int]:
    """Waiting rows, steps and classes of steps that are remembered of all keys."""
    at = held.integers_at[held.integers_at >= 0]
    return tuple(int(held.integers[at + place].sum()) for place in (WAITING, STEPS, CLASSES))  # type: ignore[return-value]


@njit(cache=True)
def _missing(offset: IntArray, row_step: IntArray, integers_at: IntArray, integers: IntArray, bridged: int) -> int:
    """How many missing steps are put in, at most."""
    found = 0
    for key in range(len(offset) - 1):
        at = integers_at[key]
        known, last = at >= 0 and integers[at + KNOWN] == 1, np.int64(0)
        if known:
            last = integers[at + LAST]
        if at >= 0 and integers[at + WAITING] > 0:
            # Between steps that lie far enough apart the difference overflows, and is negative.
            if known and 0 < integers[at + WAITING_STEP] - last - 1 <= bridged:
                found += integers[at + WAITING_STEP] - last - 1
            last, known = integers[at + WAITING_STEP], True
        for row in range(offset[key], offset[key + 1]):
            if known and 0 < row_step[row] - last - 1 <= bridged:
                found += row_step[row] - last - 1
            last, known = row_step[row], True
    return found


@njit(cache=True)
def _gather(  # type: ignore[no-untyped-def]
    offset: IntArray, row_step: IntArray, row_class: SmallArray, row_chance: FloatArray, integers_at: IntArray,
    integers: IntArray, floats_at: IntArray, floats: FloatArray, to_the_end: bool, bridged: int,
    most_steps: int, most_classes: int,
):  # fmt: skip
    keys = len(offset) - 1
    key_offset, fresh = np.zeros(keys + 1, np.int64), np.zeros(keys, np.int64)
    step, step_offset = np.empty(most_steps, np.int64), np.zeros(most_steps + 1, np.int64)
    class_, chance = np.empty(most_classes, np.int32), np.empty(most_classes, np.float64)
    wait_offset, wait_step = np.zeros(keys + 1, np.int64), np.zeros(keys, np.int64)
    wait_class, wait_chance = np.empty(most_classes, np.int32), np.empty(most_classes, np.float64)
    work_class, work_chance = np.empty(64, np.int32), np.empty(64, np.float64)
    error = np.full(3, -1, np.int64)
    count = used = waits = 0
    for key in range(keys):
        at, float_at = integers_at[key], floats_at[key]
        left = 0
        last, known = np.int64(0), False
        waiting_step = np.int64(0)
        if at >= 0:
            last, known = integers[at + LAST], integers[at + KNOWN] == 1
            steps, classes = integers[at + STEPS], integers[at + CLASSES]
            left, waiting_step = integers[at + WAITING], integers[at + WAITING_STEP]
            for number in range(steps):
                step[count] = last - steps + 1 + number
                used += integers[at + FIXED + number]
                count += 1
                step_offset[count] = used
            begin = used - classes
            for number in range(classes):
                class_[begin + number] = integers[at + FIXED + steps + number]
                chance[begin + number] = floats[float_at + number]
            at += FIXED + steps + classes
            float_at += classes
        fresh[key] = count
        row, end = offset[key], offset[key + 1]
        while left > 0 or row < end:
            now = waiting_step if left > 0 else row_step[row]
            if row < end and (row_step[row] < now or (known and row_step[row] <= last)):
                error[0], error[1] = key, row_step[row]
                error[2] = max(now, last) if known else now
                return (
                    key_offset, step, step_offset, class_, chance, fresh, wait_offset, wait_step, wait_class,
                    wait_chance, error,
                )  # fmt: skip
            begin = row
            while row < end and row_step[row] == now:
                row += 1
            size = left + row - begin
            if size > len(work_class):
                work_class, work_chance = np.empty(2 * size, np.int32), np.empty(2 * size, np.float64)
            for number in range(left):
                work_class[number] = integers[at + number]
                work_chance[number] = floats[float_at + number]
            for number in range(row - begin):
                work_class[left + number] = row_class[begin + number]
                work_chance[left + number] = row_chance[begin + number]
            left = 0
            arrange(work_class, work_chance, 0, size)
            if row == end:
                if not to_the_end:
                    for number in range(size):
                        wait_class[waits + number], wait_chance[waits + number] = (
                            work_class[number],
                            work_chance[number],
                        )
                    wait_step[key] = now
                    waits += size
                    break
                if total_of(work_chance, 0, size) < 1.0 - TOLERANCE:
                    break
            if known and 0 < now - last - 1 <= bridged:
                for missing in range(last + 1, now):
                    step[count] = missing
                    count += 1
                    step_offset[count] = used
            used = merge(work_class, work_chance, 0, size, class_, chance, used, bridged > 0)
            step[count] = last = now
            known = True
            count += 1
            step_offset[count] = used
        key_offset[key + 1] = count
        wait_offset[key + 1] = waits
    return (
        key_offset, step[:count], step_offset[: count + 1], class_[:used], chance[:used], fresh, wait_offset,
        wait_step, wait_class[:waits], wait_chance[:waits], error,
    )  # fmt: skip
