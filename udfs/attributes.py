"""Attributes of events: columns of the table `events`, each of its own type.

A column's name is the attribute's and its type's: ``price:double``. So streams whose attributes are called alike may
have other types, and a stream that is rebuilt with another type gets a column beside that of before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.language.predicate.texts import write_double, write_timestamp

_STORED = frozenset(
    ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "date", "timestamp")
)
_ODD = re.compile(r"[^a-z0-9_]")
_FIRST_MICRO, _LAST_MICRO = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Of the years 1 to 9999, which Arrow writes as Spark does, but for zeros at the end."""


def types_of_attributes(stream: Mapping[str, Any]) -> dict[str, str]:
    """The Spark type of each attribute, as the configuration of a stream, or of a table in its place, has them."""
    return {name: entry["type"] for name, entry in stream["attributes"].items()} | stream.get("measured", {})


def column_of(attribute: str, type_: str) -> str:
    """Name the column of an attribute.

    Examples
    --------
    >>> column_of("dep_delay", "double"), column_of("Cost (€)", "decimal(10,2)")
    ('dep_delay:double', '%43ost%20%28%e2%82%ac%29:decimal%2810%2c2%29')
    """
    # SQL ignores the case of a name, and Delta takes no blanks and brackets.
    return f"{_escape(attribute)}:{_escape(type_)}"


def attribute_columns(read: Iterable[str], types: Mapping[str, str]) -> tuple[str, ...]:
    """Name the columns of those attributes that are among the columns that are read, in order."""
    return tuple(column_of(name, types[name]) for name in sorted({*read} & types.keys()))


def is_attribute(column: str) -> bool:
    """Whether a column is that of an attribute."""
    return ":" in column


def stored_type(type_: str) -> str:
    """The Spark type of the column of an attribute's type.

    Delta has moments without a zone only in tables that fewer readers know, so they are texts; values of other types,
    which a table in a stream's place may have, are handed on as texts in JSON.
    """
    return type_ if type_ in _STORED or type_.startswith("decimal(") else "string"


def attribute_of(column: str) -> str:
    """The attribute of a column."""
    return unquote(column.partition(":")[0])


def type_of(column: str) -> str:
    """The Spark type of an attribute's column."""
    return unquote(column.partition(":")[2])


def values_of(rows: Any, attribute: str) -> pa.Array | None:
    """Find the values of an attribute, of whatever type, among columns by name; None: they are not there."""
    begin = f"{_escape(attribute)}:"
    names = rows.column_names if isinstance(rows, pa.Table) else rows
    column = next((rows[name] for name in names if name.startswith(begin)), None)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def write_texts(values: pa.Array) -> pa.StringArray:
    """Values as texts that cast back to them: as Spark casts them, moments of a zone with their offset."""
    if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
        return values.cast(pa.string())
    if pa.types.is_floating(values.type):
        return _each_written(values, _write_float if values.type == pa.float32() else write_double)
    if pa.types.is_decimal(values.type):
        return _each_written(values, "{:f}".format)
    if not pa.types.is_timestamp(values.type):
        return values.cast(pa.string())
    if values.type.tz is None:
        return _write_moments(values.cast(pa.int64()))
    return pc.strftime(values.cast(pa.timestamp("us", "UTC")), "%Y-%m-%dT%H:%M:%SZ")


def _write_moments(micros: pa.Array) -> pa.StringArray:
    """Microseconds since the epoch as Spark casts moments."""
    bounds = pc.min_max(micros).as_py()
    if bounds["min"] is not None and bounds["min"] >= _FIRST_MICRO and bounds["max"] <= _LAST_MICRO:
        texts = pc.utf8_rtrim(micros.cast(pa.timestamp("us")).cast(pa.string()), "0")
        return pc.utf8_rtrim(texts, ".")
    return _each_written(micros, write_timestamp)


def _each_written(values: pa.Array, write: Callable[[Any], str]) -> pa.StringArray:
    """Values as texts, each distinct one written once."""
    words = values.dictionary_encode()
    texts = pa.array([write(value) for value in words.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(words.indices, texts).cast(pa.string())


def _write_float(value: float) -> str:
    """A float as Java writes it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(np.float32(value), trim="0")
    if not np.isfinite(value):
        return write_double(value)
    return np.format_float_scientific(np.float32(value), trim="0", exp_digits=1).upper().replace("+", "")


def _escape(text: str) -> str:
    """Escaped as in URLs, which SQL can read, but for small letters."""
    return _ODD.sub(lambda found: "".join(f"%{byte:02x}" for byte in found[0].encode()), text)
