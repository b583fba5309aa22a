"""Casts of columns, as Spark computes them with ANSI mode off."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from patternlake.udfs.language.predicate import columns, texts
from patternlake.udfs.language.predicate.columns import Column, Values, by_distinct

SECOND = 1_000_000
DAY = 86_400 * SECOND
_FIRST_DAY = -(2**63 // DAY)


def cast(column: Column, to: str) -> Column:
    """Spark's cast (ANSI mode off) of a column to a canonical type; timestamps are seconds as numbers."""
    goal = columns.value_type(to) or ""
    if column.type == "string":
        return columns.cast_text(column, to)
    if goal == "string":
        return _cast_to_string(column)
    values, known = column.values, column.known
    if goal == "boolean":
        return Column(values != 0, known, goal)
    if goal == "timestamp" and column.type in ("bigint", "double"):
        if column.type == "bigint":
            return Column(_micros(values), known, goal)
        return Column(whole(np.trunc(values * SECOND)), known & np.isfinite(values), goal)
    if goal == "date":
        days = values // DAY
        # The first day that microseconds reach begins before them.
        return Column(days * DAY, known & (days >= _FIRST_DAY), goal)
    if goal == "timestamp":
        return Column(values, known, goal)
    if goal == "bigint":
        return _cast_to_integer(column, columns.INTEGER_BITS[to])
    doubles = (values / SECOND if column.type == "timestamp" else values).astype(np.float64)
    if to == "float":
        doubles = doubles.astype(np.float32).astype(np.float64)
    elif to.startswith("decimal"):
        precision, scale = columns.decimal_size(to)
        doubles, fits = by_distinct(
            doubles, lambda value: texts.fit(Decimal(repr(value)), precision, scale), np.float64
        )
        known = known & fits
    return Column(doubles, known, goal)


def _micros(seconds: Values) -> Values:
    """Seconds as microseconds; what does not fit is the nearest bound, as in Java."""
    limits = np.iinfo(np.int64)
    most = limits.max // SECOND
    fits = (seconds >= -most) & (seconds <= most)
    return np.where(fits, seconds * SECOND, np.where(seconds > 0, limits.max, limits.min))


def _cast_to_integer(column: Column, bits: int) -> Column:
    values, known = column.values, column.known
    if column.type == "timestamp":
        values = values // SECOND
        # Unlike a number, a moment does not wrap.
        known = known & (values >= -(2 ** (bits - 1))) & (values < 2 ** (bits - 1))
    elif column.type == "double":
        values = whole(np.trunc(values))
        if bits < 64:
            # Java narrows a double to 32 bits by its bounds, and from there by dropping bits.
            values = np.clip(values, -(2**31), 2**31 - 1)
    dtypes: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
    return Column(np.asarray(values).astype(dtypes[bits]).astype(np.int64), known, "bigint")


def _cast_to_string(column: Column) -> Column:
    writers: dict[str, Callable[[Any], str]] = {
        "boolean": lambda value: "true" if value else "false",
        "bigint": str,
        "double": texts.write_double,
        "timestamp": texts.write_timestamp,
        "date": texts.write_date,
    }
    # A NULL's slot may hold a number that is no date at all.
    values = np.where(column.known, column.values, np.zeros((), column.values.dtype))
    return Column(by_distinct(values, writers[column.type], object)[0], column.known, "string")


def whole(values: Values) -> Values:
    """Doubles without fraction as int64, as Java casts them: NaN is 0, what does not fit is the nearest bound."""
    limits = np.iinfo(np.int64)
    inside = np.abs(values) < 2.0**63
    converted = np.where(inside, values, 0.0).astype(np.int64)
    outside = np.where(values > 0, limits.max, limits.min)
    return np.where(inside | np.isnan(values), converted, outside)
