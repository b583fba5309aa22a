"""Types of the arrays that kernels take and give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
SmallArray = NDArray[np.int32]
LaneArray = NDArray[np.uint64]


def expanded(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """All (row, number) with ``low[row] <= number < high[row]``, by row.

    Examples
    --------
    >>> [found.tolist() for found in expanded(np.array([4, 7]), np.array([6, 8]))]
    [[0, 0, 1], [4, 5, 7]]
    """
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(low)), counts).astype(np.int64)
    begins = np.cumsum(counts) - counts
    return rows, np.arange(len(rows), dtype=np.int64) - np.repeat(begins - low, counts)
