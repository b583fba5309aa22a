"""Columns of any type as the integers and doubles that the kernel's conditions compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray

INTEGER, DOUBLE, BOOLEAN, MICROSECONDS, RANKS = "integer", "double", "boolean", "microseconds", "ranks"
"""How the kernel has a column's values: as they are, true as 1, as microseconds since 1970 or of an interval, or as
ranks among the values of all columns that they are compared with."""


@dataclass(frozen=True)
class KernelColumn:
    """A column of the kernel.

    Attributes
    ----------
    name
        What the conditions call it.
    sql
        Spark SQL over the input's columns; ``{window}`` stands for the window of the partition, and braces are doubled.
    encoding
        INTEGER, DOUBLE, BOOLEAN, MICROSECONDS or RANKS.
    group
        Of RANKS: columns with the same number are ranked together.
    """

    name: str
    sql: str
    encoding: str
    group: int = -1

    @property
    def type(self) -> str:
        """``int`` or ``float``, as `compile_pattern` takes it."""
        return "float" if self.encoding == DOUBLE else "int"


def encode_columns(columns: Sequence[KernelColumn], arrays: Sequence[Any]) -> dict[str, tuple[Any, BoolArray]]:
    """Values as the kernel takes them.

    Parameters
    ----------
    columns
        Of `KernelConditions`.
    arrays
        The value of each one's `sql` in each row, as Arrow arrays.

    Returns
    -------
    dict
        What `match_rows` takes as its columns: by names, int64 or float64, and where they are not NULL.
    """
    whole = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in arrays]
    ranks: dict[int, list[IntArray]] = {}
    for group in {column.group for column in columns} - {-1}:
        members = [array for column, array in zip(columns, whole, strict=True) if column.group == group]
        ranks[group] = _ranks(members)
    encoded: dict[str, tuple[IntArray | FloatArray, BoolArray]] = {}
    for column, array in zip(columns, whole, strict=True):
        known = array.is_valid().to_numpy(zero_copy_only=False)
        if column.encoding == RANKS:
            encoded[column.name] = ranks[column.group].pop(0), known
        else:
            encoded[column.name] = _numbers(column.encoding, array), known
    return encoded


def _numbers(encoding: str, array: Any) -> IntArray | FloatArray:
    if encoding == DOUBLE:
        filled = pc.fill_null(array.cast(pa.float64(), safe=False), 0.0)
        return np.asarray(filled.to_numpy(zero_copy_only=False), np.float64)
    if encoding == MICROSECONDS:
        if pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("us"))
        elif pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp("us", array.type.tz))
        else:
            array = array.cast(pa.duration("us"))
    filled = pc.fill_null(array.cast(pa.int64()), 0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _comparable(array: Any) -> Any:
    """Values of a type that equal values of similar types share."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    if pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        return array.cast(pa.int64())
    if pa.types.is_floating(array.type):
        return pc.add(array.cast(pa.float64()), 0.0)  # both zeros are equal
    return array.cast(pa.large_string())


def _ranks(arrays: Sequence[Any]) -> list[IntArray]:
    """Ranks of the values of arrays, equal where these are equal."""
    if pa.types.is_decimal(arrays[0].type):
        scale = max(array.type.scale for array in arrays)
        arrays = [array.cast(pa.decimal256(76, scale)) for array in arrays]
    elif not pa.types.is_binary(arrays[0].type):
        arrays = [_comparable(array) for array in arrays]
    joined = pa.chunked_array(arrays).combine_chunks()
    encoded = joined.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    codes = pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)
    return np.split(rank[codes], np.cumsum([len(array) for array in arrays])[:-1])
