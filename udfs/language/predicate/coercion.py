"""Types of predicates: every part gets one, and the casts that SQL leaves unsaid are written out.

Rules, where they are not obvious:

- Comparing a string with a number, boolean, date or timestamp casts the string to the other's type, and a text that
  does not cast is NULL (Spark with ANSI mode off): beside an integer, ``'2.8'`` is 2. A *constant* that does not cast,
  or would lose its fraction, is an error: it could never match.
- Arithmetic and numeric functions refuse strings and booleans; CAST says what is meant. A duration is compared with a
  duration: ``t(b) - t(a) < 5`` is refused, ``< 5 MIN`` is meant. A boolean is not a number.
- CASE, COALESCE, LEAST, GREATEST take parts of one type (integers beside doubles and dates beside timestamps are one);
  strings beside numbers are refused.
- A parameter is a text and takes the type that its place asks for; where nothing asks, it is what it looks like.
- Integers are 64 bits wide and wrap, constants with a point are DOUBLE (Spark: INT and DECIMAL).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.language import durations
from patternlake.udfs.language.predicate.texts import read_boolean, read_date, read_double, read_integer, read_timestamp
from patternlake.udfs.language.query.tree import Span

NUMBERS = ("bigint", "double")
MOMENTS = ("date", "timestamp")
OPEN = "?"
"""The type of a parameter before its place asks for one."""

_SHOWN = {"interval": "duration", "null": "NULL", OPEN: "parameter"}


def _whole(text: str) -> int | None:
    return None if "." in text else read_integer(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "double": read_double,
    "bigint": _whole,
    "boolean": read_boolean,
    "date": read_date,
    "timestamp": read_timestamp,
    "interval": durations.read,
    "string": lambda text: text,
}


class TypeMismatchError(Exception):
    """A part has a type that its place cannot take; turned into a PredicateError where the text is known."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


class UnreadableConstantError(TypeMismatchError):
    """A constant cannot be read as the type that its place asks for; turned into a ConstantError."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A part with its type.

    Attributes
    ----------
    operator
        ``literal``, ``field``, ``cast``, ``case`` (conditions and values by turns, then the default), or the operator
        of a Call; all casts are explicit.
    type
        A value type of `columns`.
    detail
        Value of a literal, Reference of a field, canonical target of a cast, digits of ROUND, pattern and escape of
        LIKE.
    """

    operator: str
    type: str
    span: Span
    arguments: tuple[Typed, ...] = ()
    detail: Any = None


def show_type(type_: str) -> str:
    """A type as messages call it."""
    return _SHOWN.get(type_, type_)


def coerce(part: Typed, to: str) -> Typed:
    """`part` cast to another value type; constants are cast at once, and must cast."""
    if part.type == to:
        return part
    if part.type == "null":
        return Typed("literal", to, part.span)
    if part.operator == "literal" and part.type in (OPEN, "string"):
        value = _READERS[to](part.detail)
        if value is None:
            raise UnreadableConstantError(f"'{part.detail}' cannot be read as a {show_type(to)}", part.span)
        if to == "interval" and abs(value) >= durations.BEYOND:
            raise UnreadableConstantError(durations.BEYOND_MESSAGE, part.span)
        return Typed("literal", to, part.span, detail=value)
    return Typed("cast", to, part.span, (part,), to)


def settle(part: Typed) -> Typed:
    """`part`, where it is a parameter that nothing asks a type of, as what it looks like."""
    if part.type != OPEN:
        return part
    for type_ in ("bigint", "double", "interval", "timestamp"):
        if _READERS[type_](part.detail) is not None and (type_ != "timestamp" or "-" in part.detail):
            return coerce(part, type_)
    if part.detail.strip().lower() in ("true", "false"):
        return coerce(part, "boolean")
    return coerce(part, "string")


def as_number(part: Typed, beside: str) -> Typed:
    """`part`, where it is a parameter beside a number, as the number that it is: 2.8 stays so beside an integer."""
    if part.type != OPEN or beside not in NUMBERS:
        return part
    return coerce(part, "bigint" if _whole(part.detail) is not None else "double")


def wider(left: str, right: str) -> str | None:
    """The type that holds both, without strings: what CASE and COALESCE take."""
    if left == right or right in ("null", OPEN):
        return left
    if left in ("null", OPEN):
        return right
    if left in NUMBERS and right in NUMBERS:
        return "double"
    return "timestamp" if left in MOMENTS and right in MOMENTS else None


def comparable(left: Typed, right: Typed, operator: str) -> tuple[Typed, Typed]:
    """Both sides of a comparison, cast to one type."""
    if left.type == right.type == OPEN:
        left, right = settle(left), settle(right)
        if wider(left.type, right.type) is None:
            left, right = (Typed("literal", "string", side.span, detail=str(side.detail)) for side in (left, right))
    left, right = as_number(left, right.type), as_number(right, left.type)
    common = wider(left.type, right.type)
    if common is None and "string" in (left.type, right.type):
        other = right.type if left.type == "string" else left.type
        common = other if other != "interval" else None
    if common is None:
        kinds = {left.type, right.type}
        hint = "; give the number a unit, as in 5 MIN" if "interval" in kinds and kinds & set(NUMBERS) else ""
        message = f"{operator} cannot compare a {show_type(left.type)} with a {show_type(right.type)}{hint}"
        raise TypeMismatchError(message, over(left, right))
    if common in ("null", OPEN):
        return settle(left), settle(right)
    return coerce(left, common), coerce(right, common)


def over(*parts: Typed) -> Span:
    """The span from the first part to the last."""
    return Span(min(part.span.start for part in parts), max(part.span.end for part in parts))
