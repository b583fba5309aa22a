"""Arrays whose values for one number lie side by side in memory.

A kernel that touches many arrays at one place in each waits for a line of memory from each. Views of the columns of one
block read like arrays of their own, and share lines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.machines.kernels.tables import Tables

_TOGETHER = (
    ("pending", "final", "plain", "lasting", "by_instance", "ahead_at", "out_at", "role_at", "exact", "earliest"),
    ("missing", "bound_at", "agree_at"),
    ("bound_one", "bound_other", "bound_most"),
    ("agree_variables", "agree_columns"),
    ("link_at", "join_at"),
    ("source", "target", "operand", "rival", "limit_at", "move_at"),
    ("limit_operand", "limit_after", "limit_absolute", "limit_low", "limit_high"),
    ("join_variable", "join_column"),
    ("move_role", "move_advance_counter"),
    ("role_counted_state", "role_without"),
    ("waits", "fallback_state_at", "left_at"),
    ("advance_counter_waits", "advance_counter_state", "fired_at"),
)
"""Fields of `Tables` by what they are numbered by."""
_WIDE = frozenset({"exact", "earliest", "bound_most", "agree_variables", "agree_columns", "limit_low", "limit_high"})
"""Fields with bits or times; the others are numbers of what is in memory, for which 4 bytes do."""


def side_by_side(arrays: Mapping[str, NDArray[Any]], narrow: Collection[str] = ()) -> dict[str, Any]:
    """Copies of arrays as columns of one block, by name.

    Parameters
    ----------
    arrays
        Of one or two dimensions; their lengths may differ. Those that have less than two rows get two: numba takes
        one row for contiguous, which is another type, and compiles all kernels once more.
    narrow
        Those that take 4 bytes a value instead of 8.
    """
    types = {name: np.dtype(np.int32) if name in narrow else array.dtype for name, array in arrays.items()}
    begins, width = {}, 0
    for name, array in arrays.items():
        size = types[name].itemsize
        begins[name] = -(-width // size) * size
        width = begins[name] + size * math.prod(array.shape[1:])
    width = -(-width // 8) * 8
    # What is asked for ahead may be of the row behind the last one.
    block = np.zeros((max(map(len, arrays.values())) + 2, width), np.uint8)
    made = {}
    for name, array in arrays.items():
        strides = (width, types[name].itemsize)[: array.ndim]
        shape = (max(2, len(array)), *array.shape[1:])
        made[name] = np.ndarray(shape, types[name], block, begins[name], strides)
        made[name][: len(array)] = array
    return made


def for_kernels(tables: Tables) -> Tables:
    """The same, with what belongs to one state, link, role and so on side by side."""
    for names in _TOGETHER:
        columns = {name: getattr(tables, name) for name in names}
        narrow = {name for name in names if name not in _WIDE and columns[name].dtype == np.int64}
        tables = tables._replace(**side_by_side(columns, narrow))
    return tables._replace(out=tables.out.astype(np.int32), fallback_states=tables.fallback_states.astype(np.int32))
