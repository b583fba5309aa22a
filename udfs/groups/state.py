"""What is remembered of keys between runs: numbers in two arrays, so that it can be kept anywhere.

Source: SPEC section 4, "between job runs". For each key the integers hold, in this order: the fixed part (`LAST` …
`TRAIL_STEP`); for each step that open groups or live starts reach back to, its number of classes; the classes; the
classes of the rows that wait; the live starts; for each open group t_start, t_first, t_end, the end before t_first,
whether it is sure, and the size of its vector; the states of the vectors and of the trail. The floats hold the
probabilities of the steps and of the waiting rows; for each live start the logarithm of its best product at each
position; for each open group what has been accepted; the vectors; the trail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.errors import StateError

LAST, KNOWN, PREVIOUS_END, STEPS, CLASSES, WAITING, WAITING_STEP, LIVE, GROUPS, TRAIL, TRAIL_STEP, FIXED = range(12)
"""Places in the fixed part: the last closed step and whether there is one; the last end of a match; how many steps,
classes of steps and waiting rows are kept, and the waiting rows' step; how many live starts and open groups; the size
of the trail (`complete.Trail`) and its step; and the length of the fixed part itself."""
GROUP_SIZE = 6
"""Integers of an open group."""
NEVER = -(2**63)
"""Stands for "no match has ended yet"."""


@dataclass(frozen=True)
class GroupState:
    """The states of some keys.

    Attributes
    ----------
    keys
        int64[k]: codes of the keys, ascending.
    integer_offset, float_offset
        int64[k + 1]: where each key's numbers begin.
    integers, floats
        int64[], float64[]: as the module says.
    """

    keys: IntArray
    integer_offset: IntArray
    integers: IntArray
    float_offset: IntArray
    floats: FloatArray

    def __len__(self) -> int:
        return len(self.keys)

    def to_bytes(self) -> list[bytes]:
        """One value for each key, little-endian: the number of integers, the integers, the floats."""
        integers, floats = self.integers.astype("<i8"), self.floats.astype("<f8")
        cuts = zip(
            self.integer_offset[:-1].tolist(),
            self.integer_offset[1:].tolist(),
            self.float_offset[:-1].tolist(),
            self.float_offset[1:].tolist(),
            strict=True,
        )
        return [(b - a).to_bytes(8, "little") + integers[a:b].tobytes() + floats[c:d].tobytes() for a, b, c, d in cuts]


def no_state() -> GroupState:
    """The state before the first event."""
    return _stack(np.zeros(0, np.int64), [], [])


def from_bytes(keys: IntArray, values: Sequence[bytes]) -> GroupState:
    """States that `GroupState.to_bytes` wrote.

    Parameters
    ----------
    keys
        int64[k]: the code of each key in this run, distinct, in any order.
    values
        k values.

    Raises
    ------
    StateError
        A value that is no state.
    """
    order = np.argsort(keys, kind="stable")
    integers, floats = [], []
    for place in order.tolist():
        value = values[place]
        count = int.from_bytes(value[:8], "little")
        if len(value) % 8 or len(value) < 8 + 8 * FIXED or not FIXED <= count <= len(value) // 8 - 1:
            raise StateError(f"the state of a key of groups has {len(value)} bytes and cannot be read; rebuild it")
        integers.append(np.frombuffer(value, "<i8", count, 8).astype(np.int64))
        floats.append(np.frombuffer(value, "<f8", -1, 8 + 8 * count).astype(np.float64))
    return _stack(keys[order].astype(np.int64), integers, floats)


def _stack(keys: IntArray, integers: list[IntArray], floats: list[FloatArray]) -> GroupState:
    return GroupState(
        keys,
        np.cumsum([0, *map(len, integers)], dtype=np.int64),
        np.concatenate([np.zeros(0, np.int64), *integers]),
        np.cumsum([0, *map(len, floats)], dtype=np.int64),
        np.concatenate([np.zeros(0, np.float64), *floats]),
    )
