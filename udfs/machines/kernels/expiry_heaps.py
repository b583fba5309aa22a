"""Heaps of (when, instance, serial) rows in an array, the earliest first."""

from __future__ import annotations

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.subkernels import kernel


@kernel
def push(heap: IntArray, size: int, when: int, instance: int, serial: int) -> int:
    """Add a row; returns the new size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap[above, 0] <= when:
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = when, instance, serial
    return size + 1


@kernel
def pop(heap: IntArray, size: int) -> int:
    """Drop the first row; returns the new size."""
    size -= 1
    when, instance, serial = heap[size, 0], heap[size, 1], heap[size, 2]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1, 0] < heap[below, 0]:
            below += 1
        if heap[below, 0] >= when:
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[below, 0], heap[below, 1], heap[below, 2]
        at = below
    heap[at, 0], heap[at, 1], heap[at, 2] = when, instance, serial
    return size
