"""Sums of decimals, exact as Spark's."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray

_MOST_DIGITS = 28
"""Sums have ten digits more, and 38 is the most that there are: one of wider decimals may not fit, as Spark says."""
_WORD = 0xFFFFFFFF


def is_summed_here(type_: Any) -> bool:
    """Whether `sum_between` takes a type."""
    return pa.types.is_decimal128(type_) and type_.precision <= _MOST_DIGITS and sys.byteorder == "little"


def type_of_sum(type_: Any) -> Any:
    """The type of a sum.

    Examples
    --------
    >>> type_of_sum(pa.decimal128(10, 2))
    Decimal128Type(decimal128(20, 2))
    """
    return pa.decimal128(type_.precision + 10, type_.scale)


def sum_between(values: Any, begin: IntArray, end: IntArray) -> Any:
    """Sum up runs of decimals.

    Parameters
    ----------
    values
        Arrow array of a type that `is_summed_here`, without NULLs.
    begin, end
        int64[k]: run i has the values ``begin[i]:end[i]``.

    Examples
    --------
    >>> from decimal import Decimal
    >>> values = pa.array([Decimal("0.10"), Decimal("-3.05")], pa.decimal128(10, 2))
    >>> sum_between(values, np.array([0, 0, 1]), np.array([2, 0, 2])).to_pylist()
    [Decimal('-2.95'), Decimal('0.00'), Decimal('-3.05')]
    """
    # Four words of 32 bits, the last one with the sign: 2^31 of them fit 64 bits.
    words = np.frombuffer(values.buffers()[1], np.uint32).reshape(-1, 4)[values.offset : values.offset + len(values)]
    summed = np.empty((len(begin), 4), np.uint32)
    carry = np.zeros(len(begin), np.int64)
    for place in range(4):
        word = words[:, place].view(np.int32) if place == 3 else words[:, place]
        sums = np.concatenate([[0], np.cumsum(word, dtype=np.int64)])
        carry += sums[end] - sums[begin]
        summed[:, place] = carry & _WORD
        carry >>= 32
    return pa.Array.from_buffers(type_of_sum(values.type), len(begin), [None, pa.py_buffer(summed)])
