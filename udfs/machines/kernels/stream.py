"""The events that the kernels take."""

from __future__ import annotations

from typing import NamedTuple

from patternlake.udfs.arrays import FloatArray, IntArray


class Stream(NamedTuple):
    """Events by partition, in order.

    Attributes
    ----------
    time, position
        int64[n].
    matching_primitive_at, matching_primitives
        Primitives that take each event.
    values
        int64[c, n]: codes of joined columns, -1 for NULL.
    weight
        float64[n + 1]: of all events before each, as counts weigh them.
    """

    time: IntArray
    position: IntArray
    matching_primitive_at: IntArray
    matching_primitives: IntArray
    values: IntArray
    weight: FloatArray
