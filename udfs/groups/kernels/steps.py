"""From rows to steps: the rows of one (key, step) checked, added up by class, and held back while more may come.

Source: SPEC section 4, input. The rows of a step are summed in an order of their own (class, probability), so that a
step is the same however its rows arrived.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, SmallArray
from patternlake.udfs.subkernels import subkernel

TOLERANCE = 1e-6
"""By how much the probabilities of a step may miss 1: up to here over it, and from here under it they reach it."""


class Rows(NamedTuple):
    """Events as the kernels take them.

    Attributes
    ----------
    offset
        int64[keys + 1]: where the rows of each key begin.
    step
        int64[n]: ascending within a key.
    class_
        int32[n]: class of the event in the query's alphabet.
    probability
        float64[n].
    """

    offset: IntArray
    step: IntArray
    class_: SmallArray
    probability: FloatArray


class Steps(NamedTuple):
    """Steps of many keys, one after another.

    Attributes
    ----------
    key_offset
        int64[keys + 1]: where the steps of each key begin.
    step
        int64[s]: ascending within a key.
    offset
        int64[s + 1]: where the classes of each step begin.
    class_, probability
        int32[p], float64[p]: what is known of the step. What is missing to a sum of 1 is of class 0, too; stored events
        of class 0 are only among them where a letter takes these.
    """

    key_offset: IntArray
    step: IntArray
    offset: IntArray
    class_: SmallArray
    probability: FloatArray


def bad_steps(keys: IntArray, steps: IntArray, probabilities: FloatArray) -> BoolArray:
    """Which rows belong to a (key, step) that cannot be.

    Parameters
    ----------
    keys
        int64[n]: codes, in any order.
    steps
        int64[n].
    probabilities
        float64[n]; NaN for none.

    Returns
    -------
    bool[n]
        True for every row of a (key, step) of which one has a probability outside [0, 1] or NaN, or whose sum exceeds
        1 by more than `TOLERANCE`: SPEC section 4 takes such steps out whole.
    """
    order = np.lexsort((probabilities, steps, keys))
    keys, steps, sorted_ = keys[order], steps[order], probabilities[order]
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (steps[1:] != steps[:-1])
    place = np.cumsum(fresh) - 1
    wrong = ~((sorted_ >= 0) & (sorted_ <= 1))
    bad = np.bincount(place, wrong) > 0
    bad |= np.bincount(place, np.where(wrong, 0.0, sorted_)) > 1 + TOLERANCE
    found = np.empty(len(keys), np.bool_)
    found[order] = bad[place]
    return found


@subkernel
def arrange(class_: SmallArray, probability: FloatArray, begin: int, end: int) -> None:
    """Order the rows of one step by (class, probability), in place."""
    # Shell's sort: steps have a few rows, and one with many still takes no square of them.
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            one, chance = class_[at], probability[at]
            place = at
            while place >= begin + gap and (
                class_[place - gap] > one or (class_[place - gap] == one and probability[place - gap] > chance)
            ):
                class_[place], probability[place] = class_[place - gap], probability[place - gap]
                place -= gap
            class_[place], probability[place] = one, chance
        gap //= 3


@subkernel
def total_of(probability: FloatArray, begin: int, end: int) -> float:
    """The sum of one step's rows, in their order; NaN where one of them cannot be."""
    total = 0.0
    for at in range(begin, end):
        if not 0.0 <= probability[at] <= 1.0:
            return np.nan
        total += probability[at]
    return total


@njit(cache=True, inline="always")
def rest_of(steps: Steps, at: int) -> float:
    """What is not known of a step, which is of class 0; 0 where what is known reaches 1, but for `TOLERANCE`."""
    rest = 1.0
    for choice in range(steps.offset[at], steps.offset[at + 1]):
        rest -= steps.probability[choice]
    return rest if rest > TOLERANCE else 0.0


@subkernel
def merge(
    class_: SmallArray, probability: FloatArray, begin: int, end: int, to_class: SmallArray,
    to_probability: FloatArray, used: int, others: bool,
) -> int:  # fmt: skip
    """Write one step's rows, summed by class, at `used`; how far the target is used then.

    A step that cannot be is written as one of which nothing is known. A sum above 1 is scaled to 1. `others`: class 0
    is written as well; what is missing to 1 could not tell a small probability from rounding.
    """
    total = total_of(probability, begin, end)
    if not total <= 1.0 + TOLERANCE:
        return used
    scale = total if total > 1.0 else 1.0
    at = begin
    while at < end:
        one, chance = class_[at], 0.0
        while at < end and class_[at] == one:
            chance += probability[at]
            at += 1
        if (others or one != 0) and chance > 0.0:
            to_class[used], to_probability[used] = one, chance / scale
            used += 1
    return used
