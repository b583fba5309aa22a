"""Types of predicates: every part gets one, and casts that SQL leaves unsaid are written out (rules: `coercion`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from patternlake.udfs.language.predicate.coercion import (
    MOMENTS,
    NUMBERS,
    OPEN,
    Typed,
    TypeMismatchError,
    as_number,
    coerce,
    comparable,
    over,
    settle,
    show_type,
    wider,
)
from patternlake.udfs.language.predicate.columns import value_type
from patternlake.udfs.language.predicate.expressions import (
    COMPARISONS,
    Aggregate,
    Call,
    Case,
    Cast,
    EqualAlong,
    Expression,
    Field,
    Literal,
    Parameter,
    Variable,
)
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.query.tree import Span

_CASTS = {
    "string": ("string", "boolean", "bigint", "double", "date", "timestamp"),
    "boolean": ("string", "boolean", "bigint", "double"),
    "bigint": ("string", "boolean", "bigint", "double", "timestamp"),
    "double": ("string", "boolean", "bigint", "double", "timestamp"),
    "date": ("string", "date", "timestamp"),
    "timestamp": ("string", "bigint", "double", "date", "timestamp"),
    "interval": (),
}
"""By value type: the value types that it casts to."""


def typed(expression: Expression, type_of: Callable[[Reference], str]) -> Typed:
    """Types of an expression, with its casts.

    Parameters
    ----------
    expression
        A tree without ``[attr]`` and ``$x``.
    type_of
        The value type of each referenced column.

    Raises
    ------
    TypeMismatchError
        A part has a type that its place cannot take.
    """
    span = expression.span
    match expression:
        case Literal(type=type_, value=value):
            return Typed("literal", type_, span, detail=value)
        case Parameter(text=text):
            return Typed("literal", OPEN, span, detail=text)
        case Field(reference=reference):
            return Typed("field", type_of(reference), span, detail=reference)
        case Cast(argument=argument, to=to):
            return _explicit_cast(typed(argument, type_of), to, span)
        case Case():
            return _case(expression, type_of)
        case Call(operator=operator, arguments=arguments):
            return _call(operator, [typed(argument, type_of) for argument in arguments], span)
        case Aggregate(function=function, argument=argument):
            return _aggregate(function, typed(argument, type_of), span)
        case Variable(name=name):
            raise TypeMismatchError(
                f"${name} can only be joined to a column, as a conjunct of its own: col = ${name}", span
            )
        case EqualAlong(attribute=attribute):
            raise TypeMismatchError(f"[{attribute}] must stand alone, joined to the rest by AND", span)
    raise TypeError(f"not an expression: {expression!r}")


def typed_predicate(expression: Expression, type_of: Callable[[Reference], str]) -> Typed:
    """As `typed`, for an expression that must be TRUE or FALSE."""
    return _boolean(typed(expression, type_of), "a predicate")


def _boolean(part: Typed, what: str) -> Typed:
    if part.type in ("null", OPEN):
        return coerce(part, "boolean")
    if part.type != "boolean":
        raise TypeMismatchError(f"{what} must be TRUE or FALSE, this is a {show_type(part.type)}", part.span)
    return part


def _number(part: Typed, what: str) -> Typed:
    part = settle(part)
    if part.type == "null":
        return coerce(part, "bigint")
    if part.type not in NUMBERS:
        hint = "; write CAST(… AS DOUBLE)" if part.type in ("string", "boolean") else ""
        raise TypeMismatchError(f"{what} takes numbers, this is a {show_type(part.type)}{hint}", part.span)
    return part


def _text(part: Typed, what: str) -> Typed:
    if part.type == "interval":
        raise TypeMismatchError(f"{what} takes strings, this is a duration", part.span)
    return coerce(part, "string")


def _integer(part: Typed, what: str) -> Typed:
    part = _number(part, what)
    if part.type != "bigint":
        raise TypeMismatchError(f"{what} takes a whole number here, this is a double", part.span)
    return part


def _common(parts: Sequence[Typed], what: str) -> list[Typed]:
    number = next((part.type for part in parts if part.type in NUMBERS), "")
    parts = [as_number(part, number) for part in parts]
    common = "null"
    for part in parts:
        both = wider(common, part.type)
        if both is None:
            raise TypeMismatchError(
                f"{what} takes values of one type, this is a {show_type(part.type)} beside a {show_type(common)}",
                part.span,
            )
        common = both
    if common == OPEN:
        return _common([settle(part) for part in parts], what)
    return [coerce(part, common) for part in parts]


def _explicit_cast(part: Typed, to: str, span: Span) -> Typed:
    part = settle(part) if part.type == OPEN and value_type(to) != "string" else part
    part = coerce(part, "string") if part.type == OPEN else part
    goal = value_type(to) or ""
    if part.type == "null":
        return Typed("literal", goal, span)
    if goal not in _CASTS[part.type]:
        raise TypeMismatchError(f"a {show_type(part.type)} cannot be cast to {to.upper()}", span)
    return Typed("cast", goal, span, (part,), to)


def _case(case: Case, type_of: Callable[[Reference], str]) -> Typed:
    conditions = [_boolean(typed(condition, type_of), "a condition of CASE") for condition, _ in case.branches]
    values = [typed(value, type_of) for _, value in case.branches]
    if case.default is not None:
        values.append(typed(case.default, type_of))
    values = _common(values, "CASE")
    parts = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return Typed("case", values[0].type, case.span, (*parts, *values[len(conditions) :]))


def _call(operator: str, parts: list[Typed], span: Span) -> Typed:
    def made(type_: str, *arguments: Typed, detail: Any = None) -> Typed:
        return Typed(operator, type_, span, arguments, detail)

    if operator in ("AND", "OR", "NOT"):
        return made("boolean", *(_boolean(part, f"an operand of {operator}") for part in parts))
    if operator in COMPARISONS:
        return made("boolean", *comparable(parts[0], parts[1], operator))
    if operator == "IN":
        return _in(parts, span)
    if operator == "LIKE":
        return _like(parts, span)
    if operator in ("+", "-", "*", "/", "%"):
        return _arithmetic(operator, parts[0], parts[1], span)
    match operator:
        case "IS NULL":
            return made("boolean", settle(parts[0]))
        case "NEGATE" | "ABS":
            part = settle(parts[0])
            part = part if part.type == "interval" else _number(part, "unary minus" if operator == "NEGATE" else "ABS")
            return made(part.type, part)
        case "CEIL" | "FLOOR":
            part = _number(parts[0], operator)
            return part if part.type == "bigint" else made("bigint", part)
        case "EXP" | "LN" | "SQRT" | "LOG" | "POWER":
            return made("double", *(coerce(_number(part, operator), "double") for part in parts))
        case "ROUND":
            part = _number(parts[0], operator)
            return made(part.type, part, detail=_digits(parts[1]) if len(parts) > 1 else 0)
        case "LOWER" | "UPPER" | "CONCAT":
            return made("string", *(_text(part, operator) for part in parts))
        case "LENGTH":
            return made("bigint", _text(parts[0], operator))
        case "SUBSTRING":
            return made("string", _text(parts[0], operator), *(_integer(part, operator) for part in parts[1:]))
        case "COALESCE" | "LEAST" | "GREATEST":
            parts = _common(parts, operator)
            return made(parts[0].type, *parts)
        case "NULLIF":
            value = settle(parts[0])
            equal = Typed("=", "boolean", span, comparable(value, parts[1], operator))
            return Typed("case", value.type, span, (equal, Typed("literal", value.type, span), value))
    raise TypeError(f"no types for {operator}")


def _aggregate(function: str, part: Typed, span: Span) -> Typed:
    part = settle(part)
    if part.type == "null":
        raise TypeMismatchError(f"{function} takes values of an attribute, this is always NULL", part.span)
    if function == "COUNT":
        return Typed(function, "bigint", span, (part,))
    if function in ("SUM", "AVG"):
        part = _number(part, function)
        part = coerce(part, "double") if function == "AVG" else part
    elif part.type == "interval":
        raise TypeMismatchError(
            f"{function} takes no durations; aggregate the times, as in MAX(t(b)) - MIN(t(b))", span
        )
    return Typed(function, part.type, span, (part,))


def _digits(part: Typed) -> int:
    part = settle(part)
    sign = 1
    if part.operator == "NEGATE":
        sign, part = -1, part.arguments[0]
    if part.operator != "literal" or part.type != "bigint":
        raise TypeMismatchError("ROUND takes a constant whole number of digits: ROUND(x, 2)", part.span)
    return max(-400, min(400, sign * int(part.detail)))


def _in(parts: list[Typed], span: Span) -> Typed:
    pairs = [comparable(parts[0], item, "IN") for item in parts[1:]]
    lefts = {left for left, _ in pairs}
    items = [item for _, item in pairs]
    if len(lefts) == 1 and all(item.operator == "literal" for item in items):
        return Typed("IN", "boolean", span, (pairs[0][0],), tuple(item.detail for item in items))
    equals = tuple(Typed("=", "boolean", over(*pair), pair) for pair in pairs)
    return equals[0] if len(equals) == 1 else Typed("OR", "boolean", span, equals)


def _like(parts: list[Typed], span: Span) -> Typed:
    value = _text(parts[0], "LIKE")
    if parts[1].type == "null":
        return Typed("literal", "boolean", span)
    pattern = coerce(parts[1], "string") if parts[1].type == OPEN else parts[1]
    if pattern.operator != "literal" or pattern.type != "string":
        raise TypeMismatchError("LIKE takes a constant pattern", pattern.span)
    escape = parts[2].detail if len(parts) > 2 else "\\"
    try:
        regex = like_regex(pattern.detail, escape)
    except ValueError as error:
        raise TypeMismatchError(str(error), pattern.span) from None
    return Typed("LIKE", "boolean", span, (value,), regex)


def _arithmetic(operator: str, left: Typed, right: Typed, span: Span) -> Typed:
    def made(type_: str, *arguments: Typed) -> Typed:
        return Typed(operator, type_, span, arguments)

    left, right = settle(left), settle(right)
    if "null" in (left.type, right.type):
        return Typed("literal", "null", span)
    kinds = (left.type, right.type)
    if operator in "+-" and (set(kinds) & {*MOMENTS, "interval"}):
        if kinds == ("interval", "interval"):
            return made("interval", left, right)
        if operator == "-" and left.type in MOMENTS and right.type in MOMENTS:
            return made("interval", left, right)
        if left.type in MOMENTS and right.type == "interval":
            return made("timestamp", left, right)
        if operator == "+" and left.type == "interval" and right.type in MOMENTS:
            return made("timestamp", left, right)
        hint = "; give the number a unit, as in 5 MIN" if set(kinds) & set(NUMBERS) else ""
        raise TypeMismatchError(
            f"{operator} cannot take a {show_type(left.type)} and a {show_type(right.type)}{hint}", span
        )
    if operator in "*/" and left.type == "interval":
        return made("interval", left, coerce(_number(right, operator), "double"))
    if operator == "*" and right.type == "interval":
        return made("interval", right, coerce(_number(left, operator), "double"))
    left, right = _number(left, operator), _number(right, operator)
    if operator == "/" or "double" in kinds:
        return made("double", coerce(left, "double"), coerce(right, "double"))
    return made("bigint", left, right)


def like_regex(pattern: str, escape: str) -> str:
    """The regular expression of a LIKE pattern, for a full match in DOTALL mode.

    Raises
    ------
    ValueError
        An escape character before something else than %, _ or itself.
    """
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape) or not following:
                raise ValueError(f"{escape} in a LIKE pattern must be followed by %, _ or {escape}")
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "".join(parts)
