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
    order = _by_partition(partitions)
    if _ascend(order, partitions, times, positions):
        return order
    # Of files by key several partitions' events come one key after the other, in order by their positions alone.
    placed = np.argsort(positions)
    order = placed[_by_partition(partitions[placed])]
    return order if _ascend(order, partitions, times, positions) else order_of(partitions, times, positions)


@njit(cache=True)
def _by_partition(partitions: IntArray) -> IntArray:
    """Rows by their partitions, those of one as they are: each partition is counted, then each row put in its place."""
    most = -1
    for partition in partitions:
        most = max(most, partition)
    places = np.zeros(most + 2, np.int64)
    for partition in partitions:
        places[partition + 1] += 1
    places = np.cumsum(places)
    order = np.empty(len(partitions), np.int64)
    for row in range(len(partitions)):
        order[places[partitions[row]]] = row
        places[partitions[row]] += 1
    return order


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
