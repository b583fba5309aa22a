"""Columns of events as predicates read them, from the columns of the table `events`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.attributes import values_of
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.allowed import TYPES_SHOWN
from patternlake.udfs.language.predicate.columns import Column, canonical_type, typed_column, value_type

_BUILT_IN = (("key", "string"), ("name", "string"), ("step", "bigint"), ("probability", "double"))
_STORED = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us")}
_DAY = 86_400_000_000


def event_columns(rows: Mapping[str, pa.Array], wanted: Collection[str], types: Mapping[str, str]) -> dict[str, Column]:
    """Typed columns of n events.

    Parameters
    ----------
    rows
        ``key``, ``name``, ``step``, ``probability`` of `events` and the columns of attributes, see `attributes`, n
        values each.
    wanted
        Names of columns; those that are neither built in nor attributes are left out.
    types
        Attribute to Spark type.
    """
    columns = {name: typed_column(rows[name].cast(pa.string()), kind) for name, kind in _BUILT_IN if name in wanted}
    for name in sorted(set(wanted) & types.keys()):
        values = values_of(rows, name)
        columns[name] = column_of_values(pa.nulls(len(rows["name"])) if values is None else values, types[name])
    return columns


def column_of_values(values: pa.Array, spark_type: str) -> Column:
    """A column of values that are stored as their type, or as texts.

    Raises
    ------
    ArgumentError
        A type that predicates don't know.
    """
    kind = value_type(spark_type)
    if kind is None:
        raise ArgumentError(f"type {spark_type!r} cannot be used in predicates; types are {TYPES_SHOWN}")
    if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type) or pa.types.is_null(values.type):
        return typed_column(values.cast(pa.string()), canonical_type(spark_type) or "")
    known = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())  # Arrow's cast to doubles is not always to the nearest one.
    if kind == "date":
        days = pc.fill_null(values.cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
        return Column(days.astype(np.int64) * _DAY, known, kind)
    stored = values.cast(_STORED[kind])
    if kind == "timestamp":
        stored = stored.cast(pa.int64())
    filled = pc.fill_null(stored, pa.scalar(False if kind == "boolean" else 0, stored.type))
    return Column(filled.to_numpy(zero_copy_only=False), known, kind)
