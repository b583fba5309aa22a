"""What a table's log tells of a file's columns: rows, NULLs, least and greatest values, as Delta writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.record_batches import in_micros

_FIRST_COLUMNS = 32
"""Of a table that names no columns, Delta tells of so many."""
_LONGEST_TEXT = 32
"""A longer text would be shortened; its file goes without bounds of it instead."""
_EPOCH = datetime(1970, 1, 1)


def statistics_of(rows: pa.Table, columns: Sequence[str] | None) -> str:
    """Tell of the rows of one file.

    Parameters
    ----------
    rows
        All of them, without partition columns.
    columns
        Names of the columns that the table wants told, others ignored; None: the first ones.

    Returns
    -------
    str
        JSON, as Delta's protocol has it in ``stats``. Columns of lists and maps are left out.
    """
    named = rows.column_names[:_FIRST_COLUMNS] if columns is None else [each.strip() for each in columns]
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in named:
        if name not in rows.column_names or pa.types.is_nested(rows[name].type) or pa.types.is_binary(rows[name].type):
            continue
        nulls[name] = rows[name].null_count
        if pa.types.is_floating(rows[name].type) and pc.any(pc.is_nan(rows[name])).as_py():
            continue  # to Spark it is the greatest number, to Arrow none
        bounds = pc.min_max(_plain(rows[name]))
        low, high = (_as_json(bounds[side].as_py(), rows[name].type) for side in ("min", "max"))
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    told = {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(told, allow_nan=False)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return in_micros(column)


def _as_json(value: Any, type_: pa.DataType) -> Any:
    """A bound as JSON has it; None where it cannot be told."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if pa.types.is_timestamp(type_):
        return (_EPOCH + timedelta(microseconds=value)).isoformat(timespec="microseconds") + "Z"
    return value
