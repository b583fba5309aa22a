"""Running aggregates over values that stand group by group."""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import FloatArray, IntArray


@njit(cache=True)
def running_sums(values: FloatArray, groups: IntArray) -> FloatArray:
    """float64[n]: for each value the sum of those of its group up to it, added one after another."""
    sums = np.empty(len(values))
    total = 0.0
    for at in range(len(values)):
        # Not the difference of two sums of all: one infinite value or NaN would reach all that follow.
        total = values[at] if at == 0 or groups[at] != groups[at - 1] else total + values[at]
        sums[at] = total
    return sums


@njit(cache=True)
def running_least(keys: IntArray, groups: IntArray) -> IntArray:
    """int64[n]: for each key the place of the least one of its group up to it, the first of equal ones."""
    places = np.empty(len(keys), np.int64)
    least = 0
    for at in range(len(keys)):
        if at == 0 or groups[at] != groups[at - 1] or keys[at] < keys[least]:
            least = at
        places[at] = least
    return places
