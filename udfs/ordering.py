"""The order in which kernels take events: by partition, and inside each by time and position."""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import order_of


def order_in_partitions(partitions: IntArray, times: IntArray, positions: IntArray) -> tuple[IntArray, IntArray]:
    """Order events by (partition, time, position).

    Parameters
    ----------
    partitions
        int64[n]: number of the partition of each, from 0 to p - 1; there are hardly more numbers than events.
    times, positions
        int64[n].

    Returns
    -------
    order
        int64[n]: their rows.
    offsets
        int64[p + 1]: partition i has the rows ``order[offsets[i]:offsets[i + 1]]``.
    """
    # Events lie in order, by batch or by key: sorted by time for nothing, they would take several times as long.
    count = int(partitions.max(initial=-1)) + 1
    order, offsets = by_number(partitions, count)
    if _ascend(order, offsets, times, positions):
        return order, offsets
    # Of files by key several partitions' events come one key after the other, in order by their positions alone.
    placed = np.argsort(positions)
    order = placed[by_number(partitions[placed], count)[0]]
    if not _ascend(order, offsets, times, positions):
        order = order_of(partitions, times, positions)
    return order, offsets


@njit(cache=True)
def by_number(numbers: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Order rows by their numbers, below `count`, those of one as they are: each number is counted, then each row put
    in its place. Also gives where each number begins, and where the last one ends.
    """
    # Rows of one number often lie side by side: a run of them is counted, and put in its place, as one.
    offsets = np.zeros(count + 1, np.int64)
    begin = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[begin]:
            offsets[numbers[begin] + 1] += end - begin
            begin = end
    offsets = np.cumsum(offsets)
    place = offsets[:-1].copy()
    order = np.empty(len(numbers), np.int64)
    begin = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[begin]:
            first = place[numbers[begin]]
            for row in range(begin, end):
                order[first + row - begin] = row
            place[numbers[begin]] = first + end - begin
            begin = end
    return order, offsets


@njit(cache=True)
def _ascend(order: IntArray, offsets: IntArray, times: IntArray, positions: IntArray) -> bool:
    """Whether in an order by partition each event is behind the one before it."""
    for partition in range(len(offsets) - 1):
        for place in range(offsets[partition] + 1, offsets[partition + 1]):
            before, row = order[place - 1], order[place]
            if times[before] > times[row] or (times[before] == times[row] and positions[before] >= positions[row]):
                return False
    return True
