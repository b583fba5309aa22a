"""The order in which kernels take events: by partition, and inside each by time and position."""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import order_of


def order_in_partitions(partitions: IntArray, times: IntArray, positions: IntArray) -> IntArray:
    """int64[n]: rows of events in the order of (partition, time, position).

    Parameters
    ----------
    partitions
        int64[n]: number of the partition of each, from 0 on; there are hardly more numbers than events.
    times, positions
        int64[n].
    """
    # Events lie in order, by batch or by key: sorted by time for nothing, they would take several times as long.
    count = int(partitions.max(initial=-1)) + 1
    order, _ = by_number(partitions, count)
    if _ascend(order, partitions, times, positions):
        return order
    # Of files by key several partitions' events come one key after the other, in order by their positions alone.
    placed = np.argsort(positions)
    order = placed[by_number(partitions[placed], count)[0]]
    return order if _ascend(order, partitions, times, positions) else order_of(partitions, times, positions)


@njit(cache=True)
def by_number(numbers: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Order rows by their numbers, below `count`, those of one as they are: each number is counted, then each row put
    in its place. Also gives where each number begins, and where the last one ends.
    """
    offsets = np.zeros(count + 1, np.int64)
    for number in numbers:
        offsets[number + 1] += 1
    offsets = np.cumsum(offsets)
    place = offsets[:-1].copy()
    order = np.empty(len(numbers), np.int64)
    for row in range(len(numbers)):
        order[place[numbers[row]]] = row
        place[numbers[row]] += 1
    return order, offsets


@njit(cache=True)
def _ascend(order: IntArray, partitions: IntArray, times: IntArray, positions: IntArray) -> bool:
    """Whether in an order by partition each event is behind the one before it."""
    for place in range(1, len(order)):
        before, row = order[place - 1], order[place]
        if partitions[before] != partitions[row] or times[before] < times[row]:
            continue
        if times[before] > times[row] or positions[before] >= positions[row]:
            return False
    return True
