"""Values gathered by slot, such as a group and a step: as lists of one slot each, and their exact percentiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.partitions import order_of

_SECOND = 1_000_000


def lists_by_slot(slots: IntArray, count: int, values: pa.Array) -> pa.ListArray:
    """Values as one list for each of `count` slots; inside one they stay in order.

    Examples
    --------
    >>> lists_by_slot(np.array([2, 0, 2]), 3, pa.array(["a", "b", "c"])).to_pylist()
    [['b'], [], ['a', 'c']]
    """
    ends = np.cumsum(np.bincount(slots, minlength=count))
    offsets = pa.array(np.append(0, ends).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(order_of(slots))))


def numbers_with_slots(lists: pa.ListArray, slots: IntArray) -> tuple[IntArray, IntArray]:
    """The values of n lists of numbers, and for each the slot of its list, of int64[n]."""
    owner = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    return lists.flatten().to_numpy(zero_copy_only=False), slots[owner]


def percentiles(micros: IntArray, slots: IntArray, count: int, *tenths: int) -> list[pa.Array]:
    """Exact percentiles of the microseconds of each slot, in seconds: between two values in proportion, NULL of none.

    Examples
    --------
    >>> [found.to_pylist() for found in percentiles(np.array([3, 1, 2]) * 1_000_000, np.array([0, 0, 2]), 3, 5, 9)]
    [[2.0, None, 2.0], [2.8, None, 2.0]]
    """
    ordered = micros[order_of(slots)]
    size = np.bincount(slots, minlength=count)
    ends, some = np.cumsum(size), size > 0
    # Numbers are sorted several times as fast as their places, or as pairs.
    for begin, end in zip((ends - size)[some].tolist(), ends[some].tolist(), strict=True):
        ordered[begin:end].sort()
    found = []
    for each in tenths:
        low, left = np.divmod((size[some] - 1) * each, 10)
        place = ends[some] - size[some] + low
        above = np.minimum(place + 1, ends[some] - 1)
        seconds: FloatArray = np.zeros(count)
        seconds[some] = (ordered[place] + (ordered[above] - ordered[place]) * left / 10) / _SECOND
        found.append(pa.array(seconds, mask=~some))
    return found
