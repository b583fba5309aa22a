"""Aggregates of an attribute over the trends of a window, none of which is listed.

Source: Mei et al. 2021, section 2, which names GRETA (Poppe et al. 2017) for them, and GRETA's definition: an aggregate
is over all trends and all events of each, so an event counts once for every trend that holds it. COUNT(*) is the number
of trends, COUNT(x) that of their events whose x is not NULL, SUM(x), MIN(x) and MAX(x) are over the x of these, and
AVG(x) is SUM(x) / COUNT(x).
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.digits import digits
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import INTEGER_BITS, canonical_type, decimal_size, typed_column
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.result import COUNT_ROWS, table_of
from patternlake.udfs.trends.task import trends_of
from patternlake.udfs.trends.weights import flags, weights_of

Value = tuple[str | None, float | None]
"""Of one cell: its text, and the same as a double."""
_NONE: Value = (None, None)

FUNCTIONS = ("COUNT", "SUM", "MIN", "MAX", "AVG")
AGGREGATE_ROWS = pa.schema(
    [
        *(COUNT_ROWS.field(name) for name in ("key", "window", "window_start", "window_end")),
        ("aggregate", pa.string()),
        ("value", pa.string()),
        ("value_approx", pa.float64()),
        ("final", pa.bool_()),
    ]
)
"""One row for each partition, window and aggregate."""

_ONE = re.compile(r"\s*(\w+)\s*\(\s*(\*|\w+|`[^`]+`)\s*\)\s*")
_SHAPE = "write COUNT(*), or COUNT, SUM, MIN, MAX or AVG of an attribute, such as SUM(amount); several with commas"
_DIGITS = 17
"""Of a quotient that no DOUBLE holds."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate; `attribute` is None for COUNT(*)."""

    function: str
    attribute: str | None

    @property
    def text(self) -> str:
        """As rows show it."""
        return f"{self.function}({self.attribute or '*'})"


def parse_aggregates(text: str | None) -> tuple[Aggregate, ...]:
    """The aggregates that a text asks for, in its order.

    Raises
    ------
    ArgumentError
        What the text has that is no aggregate.
    """
    if text is None:
        raise ArgumentError(f"aggregate is NULL; {_SHAPE}")
    found, at = [], 0
    while True:
        one = _ONE.match(text, at)
        rest = text[one.end() :] if one else text[at:]
        if one is None or (rest and rest[0] != ","):
            wrong = text[at:].split(",")[0].strip()
            raise ArgumentError(f"aggregate => {text!r}: {wrong!r} is no aggregate; {_SHAPE}")
        function, of = one[1].upper(), one[2].strip("`")
        if function not in FUNCTIONS:
            raise ArgumentError(f"aggregate => {text!r}: there is no {one[1]}; {_SHAPE}")
        if of == "*" and function != "COUNT":
            raise ArgumentError(f"aggregate => {text!r}: {function}(*) says nothing; name an attribute, {function}(x)")
        found.append(Aggregate(function, None if of == "*" else of))
        if not rest:
            return tuple(dict.fromkeys(found))
        at = one.end() + 1


def attributes_of(aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """The attributes that aggregates read, each once."""
    return tuple(dict.fromkeys(one.attribute for one in aggregates if one.attribute is not None))


def check_types(aggregates: Sequence[Aggregate], types: Mapping[str, str]) -> None:
    """Refuse what is no attribute of the stream, and what is not of numbers.

    Raises
    ------
    ArgumentError
        Naming the aggregate.
    """
    for one in aggregates:
        if one.attribute is None:
            continue
        if one.attribute not in types:
            known = ", ".join(sorted(types)) or "none"
            raise ArgumentError(f"{one.text}: the stream has no attribute {one.attribute!r}; its attributes: {known}")
        type_ = canonical_type(types[one.attribute]) or types[one.attribute]
        if one.function != "COUNT" and not _of_numbers(type_):
            raise ArgumentError(
                f"{one.text}: {one.attribute} is a {types[one.attribute].upper()}; {one.function} is of numbers, and "
                f"of other attributes there is COUNT({one.attribute})"
            )


def _of_numbers(type_: str) -> bool:
    return type_ in INTEGER_BITS or type_ in ("float", "double") or type_.startswith("decimal")


def aggregate_trends(asked: TrendsRequest, aggregates: Sequence[Aggregate], rows: Mapping[str, pa.Array]) -> pa.Table:
    """Aggregate over the trends of a task's vertices.

    Parameters
    ----------
    asked, rows
        As of `parts.count_part`; with ``values``: of each vertex the texts of `attributes_of` the aggregates.
    aggregates
        As `check_types` lets them pass.

    Returns
    -------
    Rows of `AGGREGATE_ROWS`.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    if not len(rows["block"]):
        return AGGREGATE_ROWS.empty_table()
    answered = trends_of(asked, rows)
    names = attributes_of(aggregates)
    texts = pc.list_flatten(rows["values"]) if names else pa.array([], pa.string())
    measured = {
        name: _Measured(
            answered.trends, texts.take(pa.array(answered.order * len(names) + at)), asked.layout.types[name]
        )
        for at, name in enumerate(names)
    }
    cells = np.arange(len(answered.trends.cells.key))
    columns = answered.columns(cells)
    found = []
    for one in aggregates:
        values: list[Value]
        if one.attribute is None:
            values = [(digits(number), _double(number, 1)) for number in answered.trends.counts().trends]
        else:
            values = measured[one.attribute].values(one.function)
        shown = {
            "aggregate": pa.repeat(pa.scalar(one.text), len(cells)),
            "value": pa.array([text for text, _ in values], pa.string()),
            "value_approx": pa.array([number for _, number in values], pa.float64()),
        }
        found.append(table_of(columns | shown, AGGREGATE_ROWS))
    return pa.concat_tables(found)


class _Measured:
    """An attribute over the trends of a task's vertices."""

    def __init__(self, trends: Trends, texts: pa.Array, spark_type: str) -> None:
        self._trends = trends
        self._type = canonical_type(spark_type) or spark_type
        self._texts = texts

    def values(self, function: str) -> list[Value]:
        """Of each cell."""
        if function == "COUNT":
            return [(digits(number), _double(number, 1)) for number in self._counted]
        if function in ("MIN", "MAX"):
            return self._extremes(function == "MAX")
        return self._sums(function == "AVG")

    @cached_property
    def _numbers(self) -> pa.Array:
        """int64, float64 or decimal128."""
        if self._type.startswith("decimal"):
            return pc.cast(self._texts, pa.decimal128(38, decimal_size(self._type)[1]))
        column = typed_column(self._texts, self._type)
        known = np.broadcast_to(column.known, column.values.shape)
        # A zero is added because -0.0 is 0.0, and one of them is shown.
        return pa.array(column.values + column.values.dtype.type(0), mask=~known, from_pandas=False)

    @cached_property
    def _counted(self) -> list[int]:
        known = pc.is_valid(self._numbers if _of_numbers(self._type) else self._texts)
        known = known.to_numpy(zero_copy_only=False)
        return self._trends.counts().total_length if known.all() else self._trends.totals(flags(known))

    @cached_property
    def _weights(self) -> tuple[list[int], int]:
        """The sum of each cell, and what they are counted in."""
        weights = weights_of(self._numbers)
        return self._trends.totals(weights), weights.denominator

    @cached_property
    def _beyond(self) -> list[float | None]:
        """Of each cell NaN or an infinity, where a sum comes to it."""
        cells = len(self._trends.cells.key)
        if not pa.types.is_floating(self._numbers.type):
            return [None] * cells
        values = pc.fill_null(self._numbers, 0.0).to_numpy(zero_copy_only=False)
        if np.isfinite(values).all():
            return [None] * cells
        there = [
            self._trends.greatest(np.where(mask, 2, 1).astype(np.int32)) == 2
            for mask in (np.isnan(values), values == np.inf, values == -np.inf)
        ]
        return [
            np.nan if none or (up and down) else np.inf if up else -np.inf if down else None
            for none, up, down in zip(*(flag.tolist() for flag in there), strict=True)
        ]

    def _sums(self, average: bool) -> list[Value]:
        totals, denominator = self._weights
        return [
            self._sum(total, number, denominator, beyond, average)
            for total, number, beyond in zip(totals, self._counted, self._beyond, strict=True)
        ]

    def _sum(self, total: int, number: int, denominator: int, beyond: float | None, average: bool) -> Value:
        if not number:
            return _NONE
        if beyond is not None:
            return _shown(beyond), beyond
        if average:
            return _quotient(total, denominator * number)
        if pa.types.is_floating(self._numbers.type):
            return _quotient(total, denominator)
        return _decimal(total, denominator), _double(total, denominator)

    def _extremes(self, greatest: bool) -> list[Value]:
        encoded = self._numbers.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        if not greatest:
            order = order[::-1]
        rank = np.empty(len(order) + 1, np.int32)
        # 1 is what is not there; the other ranks begin behind it.
        rank[order], rank[-1] = np.arange(len(order)) + 2, 1
        place = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
        found = self._trends.greatest(rank[place])
        values = encoded.dictionary.to_pylist()
        return [
            (_shown(values[order[best - 2]]), float(values[order[best - 2]])) if best > 1 else _NONE
            for best in found.tolist()
        ]


def _shown(value: float | decimal.Decimal) -> str:
    """A number as text that Spark casts back to it."""
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if value != value or value in (np.inf, -np.inf):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _decimal(number: int, denominator: int) -> str:
    """A number of `denominator`-ths, which is a power of ten, with all its digits."""
    scale = len(str(denominator)) - 1
    written = digits(abs(number)).rjust(scale + 1, "0")
    whole = written if not scale else f"{written[:-scale]}.{written[-scale:]}"
    return f"-{whole}" if number < 0 else whole


def _double(number: int, denominator: int) -> float:
    try:
        return number / denominator
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def _quotient(number: int, denominator: int) -> Value:
    """The nearest DOUBLE, or, where none is near, `_DIGITS` digits."""
    near = _double(number, denominator)
    if np.isfinite(near):
        return repr(near), near
    # Far more bits than digits are shown.
    shift = max(0, abs(number).bit_length() - 4 * 64)
    wide = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    scaled = wide.multiply(decimal.Decimal(number >> shift), wide.power(decimal.Decimal(2), shift))
    exact = wide.divide(scaled, decimal.Decimal(denominator))
    narrow = decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    return format(narrow.plus(exact), "E"), near
