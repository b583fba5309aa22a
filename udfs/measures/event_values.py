"""Columns of events as Arrow arrays of the types that Spark knows them by."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.attributes import values_of, write_texts
from patternlake.udfs.language.predicate.columns import decimal_size, typed_column
from patternlake.udfs.language.predicate.scopes import BUILT_IN

_MOMENT = pa.timestamp("us", "UTC")
_TYPES: dict[str, Any] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": _MOMENT,
    "timestamp_ntz": pa.timestamp("us"),
}
FIELD = "v"
"""The one field of the JSON texts that values of other types are handed on as."""
JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""How those are written: Spark's own way leaves microseconds out."""
_DAY = 86_400_000_000
_WIDE = Context(prec=100)
"""Digits of any decimal."""


def is_handed_on(spark_type: str) -> bool:
    """Whether values of a Spark type are handed on as they are; others are texts in JSON."""
    return spark_type in _TYPES or spark_type.startswith("decimal(")


def arrow_type(spark_type: str) -> Any:
    """The Arrow type of what values of a Spark type are handed on as."""
    if spark_type.startswith("decimal("):
        return pa.decimal128(*decimal_size(spark_type))
    return _TYPES.get(spark_type, pa.string())


def event_values(rows: Mapping[str, pa.Array], types: Mapping[str, str]) -> dict[str, pa.Array]:
    """Columns of n events, by names.

    Parameters
    ----------
    rows
        ``position``, ``time``, ``name`` and, where they are asked for, ``key``, ``step``, ``probability`` of `events`
        and the columns of attributes, n values each.
    types
        The columns that are asked for, and their Spark types in lower case.

    Notes
    -----
    A text that does not cast is NULL, as where predicates read it.
    """
    count = len(rows["name"])
    return {
        name: rows[name].cast(arrow_type(kind)) if name in BUILT_IN else _as_type(values_of(rows, name), kind, count)
        for name, kind in types.items()
    }


def _as_type(values: pa.Array | None, kind: str, count: int) -> pa.Array:
    """Values of an attribute as a type; where there are none, so many NULLs."""
    if values is None:
        return pa.nulls(count, arrow_type(kind))
    if values.type == arrow_type(kind):
        return values
    return write_texts(values) if kind == "string" else typed_values(write_texts(values), kind)


def column_values(texts: pa.StringArray, name: str, spark_type: str) -> pa.Array:
    """Texts of a column, an attribute or one that every event has, as its type."""
    return texts.cast(arrow_type(spark_type)) if name in BUILT_IN else typed_values(texts, spark_type)


def typed_values(texts: pa.StringArray, spark_type: str) -> pa.Array:
    """Texts of an attribute as its type."""
    if spark_type == "string" or not is_handed_on(spark_type):
        return texts
    if spark_type.startswith("decimal("):
        return _decimals(texts, spark_type)
    column = typed_column(texts, spark_type.removesuffix("_ntz"))
    values, type_ = column.values, arrow_type(spark_type)
    if spark_type == "date":
        values = np.floor_divide(values, _DAY).astype(np.int32)
    return pa.array(values, mask=~np.broadcast_to(column.known, values.shape)).cast(type_, safe=False)


def _decimals(texts: pa.StringArray, spark_type: str) -> pa.Array:
    """Texts as decimals, all digits kept: DOUBLE, by which predicates compare them, has not so many."""
    encoded = texts.dictionary_encode()
    precision, scale = decimal_size(spark_type)
    unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def value(text: str) -> Decimal | None:
        try:
            read = Decimal(text.strip())
            rounded = read.quantize(unit, ROUND_HALF_UP, _WIDE) if abs(read) < limit else read
        except InvalidOperation:
            return None
        return rounded if abs(rounded) < limit else None

    found = [value(text) for text in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(found, arrow_type(spark_type)), encoded.indices)
