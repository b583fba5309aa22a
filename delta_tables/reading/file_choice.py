"""Conditions on single columns: which files can hold such rows, which hold nothing else, and which rows they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.udfs.record_batches import in_micros


def choose_files(files: pa.Table, where: Sequence[Condition]) -> pa.Table:
    """Return the files that may hold rows which satisfy all conditions, by their partitions and their statistics.

    Parameters
    ----------
    files
        A row each, as delta-rs flattens what a table's log says of them.
    where
        The conditions.
    """
    keep = np.ones(files.num_rows, np.bool_)
    for condition in where:
        keep &= possible(files, condition)
    return files.filter(pa.array(keep))


def possible(files: pa.Table, condition: Condition) -> NDArray[np.bool_]:
    """Tell which files may hold rows that satisfy a condition: bool[files]."""
    exact = f"partition.{condition.column}"
    if exact in files.column_names:
        return truth(files[exact], condition)
    low, high = f"min.{condition.column}", f"max.{condition.column}"
    if low not in files.column_names:
        return np.ones(files.num_rows, np.bool_)
    if condition.operator == "null or >":
        return _may_be_open(files, condition)
    least, greatest = files[low], _greatest(files[high])
    values = condition.value if condition.operator in ("in", "in ranges") else (condition.value,)
    if not values:
        return np.zeros(files.num_rows, np.bool_)
    found = pa.chunked_array([pa.array(np.ones(files.num_rows, np.bool_))])
    if condition.operator == "in ranges":
        found = _meet(least, greatest, condition.value)
    if condition.operator in ("=", "in", "<="):
        found = pc.and_kleene(found, pc.less_equal(least, _scalar(max(values), least.type)))
    if condition.operator in ("=", "in", ">="):
        found = pc.and_kleene(found, pc.greater_equal(greatest, _scalar(min(values), greatest.type)))
    # A file without statistics may hold anything; one with nothing but NULL has no bounds, but tells that.
    open_to = np.asarray(pc.fill_null(found, True).to_numpy(zero_copy_only=False), np.bool_)
    nulls = f"null_count.{condition.column}"
    if nulls not in files.column_names:
        return open_to
    empty = pc.fill_null(pc.equal(files[nulls], files["num_records"]), False)
    return open_to & ~np.asarray(empty.to_numpy(zero_copy_only=False), np.bool_)


def _meet(least: pa.ChunkedArray, greatest: pa.ChunkedArray, ranges: Sequence[tuple[int, int]]) -> pa.ChunkedArray:
    """Whether bounds meet one of some ranges, NULL where there are none."""
    first, last = (np.array(ends, np.int64) for ends in zip(*ranges, strict=True))
    low, high = (np.asarray(pc.fill_null(in_micros(each), 0).to_numpy(), np.int64) for each in (least, greatest))
    place = np.minimum(np.searchsorted(last, low), len(last) - 1)
    meets = (last[place] >= low) & (first[place] <= high)
    return pa.chunked_array([pa.array(meets, mask=pc.or_(pc.is_null(least), pc.is_null(greatest)).to_numpy())])


def _lie_within(least: pa.ChunkedArray, greatest: pa.ChunkedArray, ranges: Sequence[tuple[int, int]]) -> pa.Array:
    """Whether bounds lie within one of some ranges, NULL where there are none."""
    if not ranges:
        return pa.repeat(False, len(least))
    first, last = (np.array(ends, np.int64) for ends in zip(*ranges, strict=True))
    low, high = (np.asarray(pc.fill_null(in_micros(each), 0).to_numpy(), np.int64) for each in (least, greatest))
    place = np.minimum(np.searchsorted(last, low), len(last) - 1)
    within = (first[place] <= low) & (high <= last[place])
    return pa.array(within, mask=pc.or_(pc.is_null(least), pc.is_null(greatest)).to_numpy())


def _may_be_open(files: pa.Table, condition: Condition) -> NDArray[np.bool_]:
    """The files that may hold NULL or a value above one in a column."""
    nulls, greatest = f"null_count.{condition.column}", _greatest(files[f"max.{condition.column}"])
    if nulls not in files.column_names or not pa.types.is_integer(greatest.type):
        return np.ones(files.num_rows, np.bool_)  # bounds of texts may be shortened, numbers be none
    above = pc.greater(greatest, _scalar(condition.value, greatest.type))
    found = pc.fill_null(pc.or_kleene(pc.greater(files[nulls], 0), above), True)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def certain(files: pa.Table, condition: Condition) -> NDArray[np.bool_]:
    """Tell of files that `choose_files` gave for a condition whether all of their rows satisfy it: bool[files]."""
    if f"partition.{condition.column}" in files.column_names:
        return np.ones(files.num_rows, np.bool_)  # it has chosen the files
    low, high, nulls = (f"{said}.{condition.column}" for said in ("min", "max", "null_count"))
    if not {low, high, nulls, "num_records"} <= set(files.column_names) or condition.operator == "in":
        return np.zeros(files.num_rows, np.bool_)
    least, greatest = files[low], _greatest(files[high])
    if not (pa.types.is_integer(least.type) or pa.types.is_timestamp(least.type)):
        return np.zeros(files.num_rows, np.bool_)  # bounds of texts may be shortened, numbers be none
    some, none = pc.greater(files[nulls], 0), pc.equal(files[nulls], files["num_records"])
    if condition.operator == "in ranges":
        holds = pc.and_kleene(pc.invert(some), _lie_within(least, greatest, condition.value))
        return np.asarray(pc.fill_null(holds, False).to_numpy(zero_copy_only=False), np.bool_)
    value = _scalar(condition.value, least.type)
    if condition.operator == "null or >":
        holds = pc.or_kleene(none, pc.greater(least, value))
    else:
        holds = pc.invert(some)
        if condition.operator in ("=", ">="):
            holds = pc.and_kleene(holds, pc.greater_equal(least, value))
        if condition.operator in ("=", "<="):
            holds = pc.and_kleene(holds, pc.less_equal(greatest, value))
    return np.asarray(pc.fill_null(holds, False).to_numpy(zero_copy_only=False), np.bool_)


def _greatest(told: pa.ChunkedArray) -> pa.ChunkedArray:
    """The greatest value that a file can hold: statistics tell moments in whole milliseconds, rounded down."""
    return pc.add(told, pa.scalar(999, pa.duration("us"))) if pa.types.is_timestamp(told.type) else told


def truth(column: pa.ChunkedArray, condition: Condition) -> NDArray[np.bool_]:
    """Tell which values of a column satisfy a condition on it: bool[n]."""
    if pa.types.is_dictionary(column.type):
        truths = [_truth_of_coded(chunk, condition) for chunk in column.chunks]
        return np.concatenate([np.zeros(0, np.bool_), *truths])
    value = condition.value
    if condition.operator == "in":
        holds = pc.is_in(column, value_set=pa.array(value, column.type))
    elif condition.operator == "in ranges":
        holds = _meet(column, column, value) if value else pa.nulls(len(column), pa.bool_())
    elif condition.operator == "=":
        holds = pc.equal(column, _scalar(value, column.type))
    elif condition.operator == ">=":
        holds = pc.greater_equal(column, _scalar(value, column.type))
    elif condition.operator == "<=":
        holds = pc.less_equal(column, _scalar(value, column.type))
    else:
        holds = pc.fill_null(pc.greater(column, _scalar(value, column.type)), True)
    return np.asarray(pc.fill_null(holds, False).to_numpy(zero_copy_only=False), np.bool_)


def _truth_of_coded(column: pa.DictionaryArray, condition: Condition) -> NDArray[np.bool_]:
    """The same of texts by numbers of a dictionary: each text is judged once, and NULL."""
    texts, numbers = column.dictionary, column.indices
    if numbers.null_count:
        numbers = numbers.fill_null(len(texts))
        texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
    return np.asarray(truth(pa.chunked_array([texts]), condition)[numbers.to_numpy()], np.bool_)


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, pa.int64()).cast(type_) if pa.types.is_timestamp(type_) else pa.scalar(value, type_)
