"""Typed columns for predicates, and Spark's casts from text (non-ANSI: what does not cast is NULL).

Values by type: ``bigint`` int64 · ``double`` float64 · ``boolean`` bool · ``string`` object (str) · ``timestamp`` and
``date`` int64, microseconds since the epoch in UTC (a date is its midnight) · ``interval`` int64 microseconds ·
``null`` for a column of nothing but NULL. Spark's narrower integers are kept as int64, FLOAT is rounded to 32 bits
and kept as float64, and DECIMAL(p,s) is rounded to s digits and kept as float64, so comparisons of decimals are
those of DOUBLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate import texts
from patternlake.udfs.language.predicate.allowed import TYPES, TYPES_SHOWN

Values = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice
"""Rows that are taken: by number, by a mask, or a range with step 1."""

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DTYPES: dict[str, Any] = {
    "bigint": np.int64,
    "double": np.float64,
    "boolean": np.bool_,
    "string": object,
    "timestamp": np.int64,
    "date": np.int64,
    "interval": np.int64,
    "null": np.bool_,
}
_HEXADECIMAL = (b"x", b"X")
_ODD = {"bigint": _HEXADECIMAL, "int": _HEXADECIMAL, "double": (b"-n", b"+n", b"-N", b"+N")}
"""What stands in texts that Arrow reads as a type, and Spark does not or not always: ``0x1F``, ``-nan``."""
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d{1,9})(?:,(-?\d{1,9}))?\))?\Z")


@dataclass(frozen=True, slots=True)
class Column:
    """Values with their NULLs; any shape, so that columns can broadcast against each other.

    Attributes
    ----------
    values
        As the module says for the type; what stands where `known` is False does not matter.
    known
        False = NULL; of the shape of `values`, or broadcastable to it.
    type
        One of the value types of the module; empty: from the dtype (int64 is then ``bigint``).
    arrow
        Of strings that came from Arrow: the same values without NULLs, one-dimensional. None: there is no such array;
        making one from Python strings costs more than all that keys of strings need besides.
    """

    values: Values
    known: Flags
    type: str = ""
    arrow: pa.StringArray | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        type_ = self.type or {"i": "bigint", "u": "bigint", "f": "double", "b": "boolean"}.get(
            values.dtype.kind, "string"
        )
        if type_ not in _DTYPES:
            raise ArgumentError(f"a column of type {type_!r} is unknown; types are {', '.join(_DTYPES)}")
        known = np.asarray(self.known, dtype=np.bool_)
        values = values.astype(_DTYPES[type_], copy=False)
        if type_ == "string" and not known.all():
            values = np.where(known, values, "")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "type", type_)

    def take(self, rows: Rows, *, arrow: bool = True) -> Column:
        """Some of the values of a column with one value a row: by number, by a mask or by a range.

        `arrow` says whether the same values as an Arrow array are wanted as well, where there is one.
        """
        values = self.values[rows]
        known = np.broadcast_to(self.known[rows] if self.known.ndim else self.known, values.shape)
        if self.arrow is None or not arrow:
            return Column(values, known, self.type)
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self.arrow))
            return Column(values, known, self.type, self.arrow.slice(begin, end - begin))
        chosen = pa.array(rows)
        taken = self.arrow.filter(chosen) if rows.dtype == np.bool_ else self.arrow.take(chosen)
        return Column(values, known, self.type, taken)


@dataclass(frozen=True, slots=True)
class Truth:
    """Three-valued truth of many rows: `true` is False wherever `known` is, so NULL never matches."""

    true: Flags
    known: Flags


def canonical_type(name: str) -> str | None:
    """The canonical name of a Spark type (``INTEGER`` is ``int``); None for one that predicates don't know."""
    text = re.sub(r"\s+", "", name).lower()
    if (found := _DECIMAL.match(text)) is not None:
        precision, scale = int(found[1] or 10), int(found[2] or 0)
        return f"decimal({precision},{scale})" if 1 <= precision <= 38 and 0 <= scale <= precision else None
    return TYPES.get(text)


def value_type(name: str) -> str | None:
    """The value type that a Spark type is computed in; None for one that predicates don't know."""
    name = canonical_type(name) or ""
    if name in INTEGER_BITS:
        return "bigint"
    return "double" if name == "float" or name.startswith("decimal") else name or None


def decimal_size(name: str) -> tuple[int, int]:
    """Precision and scale of a canonical decimal type."""
    precision, scale = name[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def typed_column(written: Any, spark_type: str, timezone: str = "UTC") -> Column:
    """A column of attribute texts as the stream's configured type.

    Parameters
    ----------
    written
        ``object[n]`` of str and None, or a pyarrow string array of n.
    spark_type
        Spark's name of the type, such as ``double`` or ``decimal(10,2)``.
    timezone
        Zone of timestamps that are written without one.

    Raises
    ------
    ArgumentError
        A type that predicates don't know.

    Notes
    -----
    A text that does not cast is NULL, as in Spark with ANSI mode off.
    """
    to = canonical_type(spark_type)
    if to is None:
        raise ArgumentError(f"type {spark_type!r} cannot be used in predicates; types are {TYPES_SHOWN}")
    array = (
        written if isinstance(written, pa.Array | pa.ChunkedArray) else pa.array(written, pa.string(), from_pandas=True)
    )
    known = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), dtype=np.bool_)
    fast = _cast_canonical(array, to, timezone)
    if fast is not None:
        return Column(fast, known, value_type(to) or "")
    return cast_text(text_column(array, known), to, timezone)


def text_column(array: Any, known: Flags) -> Column:
    """A column of the texts of a pyarrow string array."""
    filled = pc.fill_null(array, "")
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return Column(np.asarray(filled.to_numpy(zero_copy_only=False), dtype=object), known, "string", filled)


def _cast_canonical(array: Any, to: str, timezone: str) -> Values | None:
    """Arrow's cast of texts in the form that Spark itself writes; None where one has another form."""
    arrow: Any = {"double": pa.float64(), "bigint": pa.int64(), "int": pa.int32(), "timestamp": pa.timestamp("us")}
    if to not in arrow or (to == "timestamp" and timezone != "UTC"):
        return None
    if _holds(array, _ODD.get(to, ())):
        return None
    try:
        cast = pc.cast(array, arrow[to])
    except pa.ArrowInvalid:
        return None
    if to == "timestamp":
        cast = pc.cast(cast, pa.int64())
    filled = pc.fill_null(cast, pa.scalar(0, cast.type))
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _holds(array: Any, odd: tuple[bytes, ...]) -> bool:
    """Whether some bytes may stand in one of the texts: of a slice, those of the whole are looked at."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    texts_ = [data.to_pybytes() for chunk in chunks if odd and (data := chunk.buffers()[2]) is not None]
    return any(part in text for text in texts_ for part in odd)


def distinct_codes(values: Values) -> tuple[npt.NDArray[np.int64], Values]:
    """Number the distinct values of an array, from 0 in the order of their first place.

    Parameters
    ----------
    values
        Any shape; objects are texts.

    Returns
    -------
    (int64[n], values[k])
        The number of each value, and the values. Doubles are told apart by their bits, so both zeros are distinct.
    """
    flat = values.ravel()
    if flat.dtype == object:
        # Not by pandas, whose table of texts ends each at its first NUL: 'a' and 'a\0b' were one.
        encoded = pa.array(flat, pa.string()).dictionary_encode()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy(zero_copy_only=False)
    codes, distinct = pd.factorize(flat.view(np.int64) if flat.dtype == np.float64 else flat)
    return codes.astype(np.int64, copy=False), distinct.view(flat.dtype)


def by_distinct(values: Values, function: Callable[[Any], Any], dtype: Any) -> tuple[Values, Flags]:
    """Apply a Python function once per distinct value; where it gives None the flag is False.

    Parameters
    ----------
    values
        Any shape and dtype.
    function
        From one value to one of `dtype`, or to None.
    dtype
        The numpy dtype of the results.
    """
    codes, distinct = distinct_codes(values)
    results = [function(value) for value in distinct.tolist()]
    known = np.array([result is not None for result in results], dtype=np.bool_)
    filler: Any = "" if dtype is object else 0
    table = np.empty(len(results), dtype=dtype)
    table[:] = [filler if result is None else result for result in results]
    return table[codes].reshape(values.shape), known[codes].reshape(values.shape)


def cast_text(column: Column, to: str, timezone: str = "UTC") -> Column:
    """Spark's cast of a string column to a canonical type; unparsable texts are NULL."""
    if to == "string":
        return column
    read = _reader(to, timezone)
    type_ = value_type(to) or ""
    values, parsed = by_distinct(column.values, read, _DTYPES[type_])
    return Column(values, column.known & parsed, type_)


def _read_float(text: str) -> float | None:
    value = texts.read_double(text)
    with np.errstate(over="ignore"):
        return None if value is None else float(np.float32(value))


def _reader(to: str, timezone: str = "UTC") -> Callable[[str], Any]:
    """The function from one text to one value of a canonical type, or to None."""
    if to in INTEGER_BITS:
        return lambda text: texts.read_integer(text, INTEGER_BITS[to])
    if to.startswith("decimal"):
        precision, scale = decimal_size(to)
        return lambda text: None if (value := texts.read_decimal(text)) is None else texts.fit(value, precision, scale)
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": texts.read_boolean,
        "double": texts.read_double,
        "float": _read_float,
        "date": texts.read_date,
        "timestamp": lambda text: texts.read_timestamp(text, timezone),
    }
    return readers[to]
