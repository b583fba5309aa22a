"""Types of the arrays that kernels take and give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
SmallArray = NDArray[np.int32]
LaneArray = NDArray[np.uint64]


def repeat_between(first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Repeat rows, each once for every number in its bounds, both included.

    Examples
    --------
    >>> [found.tolist() for found in repeat_between(np.array([4, 7]), np.array([5, 7]))]
    [[0, 0, 1], [4, 5, 7]]
    """
    count = last - first + 1
    row = np.repeat(np.arange(len(first)), count)
    return row, np.arange(len(row)) - (np.cumsum(count) - count - first)[row]
