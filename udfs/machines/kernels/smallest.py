"""Of the instances that a row of `predict_match` stands for, the one that shows it."""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray


@njit(cache=True)
def smallest_of_groups(group: IntArray, time: IntArray, position: IntArray, groups: int) -> IntArray:
    """The smallest instance of each group: operands in text order by (time, position); of equal ones the first.

    Parameters
    ----------
    group
        int64[n]: from 0 on, each at least once.
    time, position
        int64[n, operands].
    groups
        How many there are.

    Returns
    -------
    int64[groups]
        Numbers of instances.
    """
    found = np.full(groups, -1, np.int64)
    for row in range(len(group)):
        best = found[group[row]]
        if best < 0:
            found[group[row]] = row
            continue
        for operand in range(time.shape[1]):
            if time[row, operand] != time[best, operand]:
                if time[row, operand] < time[best, operand]:
                    found[group[row]] = row
                break
            if position[row, operand] != position[best, operand]:
                if position[row, operand] < position[best, operand]:
                    found[group[row]] = row
                break
    return found
