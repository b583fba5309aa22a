"""Predicates judged row by row in plain Python, over the same trees as the vectorised evaluator.

Values are None (NULL), bool, int, float, str, datetime.datetime, datetime.date and datetime.timedelta, and each
operator looks at what it is given; nothing is shared with the evaluator but the trees.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from patternlake.udfs.language.predicate.expressions import Aggregate, Call, Case, Cast, Expression, Field, Literal

EPOCH = dt.datetime(1970, 1, 1)


def judge(expression: Expression, row: Mapping[Any, Any]) -> bool | None:
    """TRUE, FALSE or NULL."""
    result = value(expression, row)
    assert result is None or isinstance(result, bool)
    return result


def value(expression: Expression, row: Mapping[Any, Any]) -> Any:
    """The value of a tree, from those of its references and of its aggregates."""
    if isinstance(expression, Literal):
        return literal(expression.type, expression.value)
    if isinstance(expression, Field):
        return row[expression.reference]
    if isinstance(expression, Aggregate):
        return row[expression]
    if isinstance(expression, Cast):
        return cast(value(expression.argument, row), expression.to)
    if isinstance(expression, Case):
        for condition, result in expression.branches:
            if value(condition, row) is True:
                return value(result, row)
        return None if expression.default is None else value(expression.default, row)
    assert isinstance(expression, Call)
    return call(expression.operator, [value(argument, row) for argument in expression.arguments])


def literal(type_: str, stored: Any) -> Any:
    if type_ == "timestamp":
        return EPOCH + dt.timedelta(microseconds=stored)
    if type_ == "date":
        return (EPOCH + dt.timedelta(microseconds=stored)).date()
    return dt.timedelta(microseconds=stored) if type_ == "interval" else stored


def is_number(operand: Any) -> bool:
    return isinstance(operand, int | float) and not isinstance(operand, bool)


def call(operator: str, arguments: list[Any]) -> Any:
    if operator == "AND":
        return False if False in arguments else None if None in arguments else True
    if operator == "OR":
        return True if True in arguments else None if None in arguments else False
    if operator == "IS NULL":
        return arguments[0] is None
    if operator == "<=>":
        left, right = arguments
        return left is right if None in (left, right) else compare("=", left, right) is True
    if operator == "IN":
        return call("OR", [compare("=", arguments[0], item) for item in arguments[1:]])
    if operator == "COALESCE":
        return next((argument for argument in arguments if argument is not None), None)
    if operator in ("LEAST", "GREATEST"):
        known = [argument for argument in arguments if argument is not None]
        return (min if operator == "LEAST" else max)(known, key=rank) if known else None
    if operator == "NULLIF":
        return None if compare("=", *arguments) is True else arguments[0]
    if operator in ("=", "<>", "<", "<=", ">", ">="):
        return compare(operator, *arguments)
    if any(argument is None for argument in arguments):
        return None
    return STRICT[operator](*arguments)


def rank(operand: Any) -> Any:
    """What orders values: NaN after every number, dates among timestamps."""
    if is_number(operand):
        return (1, 0.0) if math.isnan(operand) else (0, operand)
    return dt.datetime.combine(operand, dt.time()) if type(operand) is dt.date else operand


def compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str) != isinstance(right, str):
        other = right if isinstance(left, str) else left
        target = (
            "boolean"
            if isinstance(other, bool)
            else ("double" if isinstance(other, float) else "bigint")
            if is_number(other)
            else "timestamp"
            if isinstance(other, dt.datetime)
            else "date"
        )
        left, right = (cast(side, target) if isinstance(side, str) else side for side in (left, right))
        if left is None or right is None:
            return None
    if isinstance(left, float) != isinstance(right, float):
        left, right = float(left), float(right)
    first, second = rank(left), rank(right)
    order = (first > second) - (first < second)
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def wrapped(number: Any) -> Any:
    return number if isinstance(number, float) else (number + 2**63) % 2**64 - 2**63


def moment(operand: Any) -> Any:
    return dt.datetime.combine(operand, dt.time()) if type(operand) is dt.date else operand


def add(left: Any, right: Any) -> Any:
    result = moment(left) + moment(right)
    return wrapped(result) if is_number(result) else result


def subtract(left: Any, right: Any) -> Any:
    result = moment(left) - moment(right)
    return wrapped(result) if is_number(result) else result


def scaled(duration: dt.timedelta, factor: float) -> dt.timedelta | None:
    amount = float(duration // dt.timedelta(microseconds=1)) * factor
    if not math.isfinite(amount):
        return None
    whole = math.floor(abs(amount) + 0.5)
    return dt.timedelta(microseconds=whole if amount >= 0 else -whole)


def multiply(left: Any, right: Any) -> Any:
    if isinstance(left, dt.timedelta):
        return scaled(left, float(right))
    if isinstance(right, dt.timedelta):
        return scaled(right, float(left))
    return wrapped(left * right)


def divide(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, dt.timedelta):
        amount = (left // dt.timedelta(microseconds=1)) / float(right)
        return scaled(dt.timedelta(microseconds=1), amount)
    return float(left) / float(right)


def modulo(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) % abs(right)
        return size if left >= 0 else -size
    left, right = float(left), float(right)
    if math.isnan(left) or math.isnan(right) or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


def integer(number: float) -> int:
    """A double without fraction as Java casts it to long."""
    if math.isnan(number):
        return 0
    return (
        int(min(max(number, -(2.0**63)), 2.0**63 - 1024))
        if abs(number) < 2.0**63
        else (2**63 - 1 if number > 0 else -(2**63))
    )


def floor(number: Any, rounding: Any = math.floor) -> int:
    return int(rounding(number)) if math.isfinite(number) and abs(number) < 2.0**63 else integer(number)


def ceil(number: Any) -> int:
    return floor(number, math.ceil)


def half_up(number: Any, digits: int = 0) -> Any:
    if isinstance(number, float) and not math.isfinite(number):
        return number
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return type(number)(exact) if isinstance(number, float) or digits < 0 else number


def root(number: Any) -> float:
    return math.nan if math.isnan(number) or number < 0 else math.sqrt(number)


def text(operand: Any) -> str:
    if isinstance(operand, bool):
        return "true" if operand else "false"
    return str(operand)


def like(operand: Any, pattern: str, escape: str = "\\") -> bool:
    """LIKE by recursion over both texts."""

    def matches(rest: str, wanted: str) -> bool:
        if not wanted:
            return not rest
        if wanted[0] == escape:
            return rest[:1] == wanted[1] and matches(rest[1:], wanted[2:])
        if wanted[0] == "%":
            return any(matches(rest[skip:], wanted[1:]) for skip in range(len(rest) + 1))
        return bool(rest) and wanted[0] in ("_", rest[0]) and matches(rest[1:], wanted[1:])

    return matches(text(operand), pattern)


def substring(operand: Any, position: int, length: int | None = None) -> str:
    characters = text(operand)
    start = position - 1 if position > 0 else len(characters) + position if position < 0 else 0
    stop = len(characters) if length is None else start + length
    return "".join(character for at, character in enumerate(characters) if start <= at < stop)


def negate(operand: Any) -> Any:
    return -operand if isinstance(operand, float | dt.timedelta) else wrapped(-operand)


STRICT: dict[str, Any] = {
    "NOT": lambda operand: not operand,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "NEGATE": negate,
    "ABS": lambda operand: abs(operand) if isinstance(operand, float | dt.timedelta) else wrapped(abs(operand)),
    "FLOOR": floor,
    "CEIL": ceil,
    "ROUND": half_up,
    "SQRT": root,
    "LIKE": like,
    "LOWER": lambda operand: text(operand).lower(),
    "UPPER": lambda operand: text(operand).upper(),
    "LENGTH": lambda operand: len(text(operand)),
    "SUBSTRING": substring,
    "CONCAT": lambda *operands: "".join(map(text, operands)),
}


def cast(operand: Any, to: str) -> Any:
    """The casts that the tests' trees use."""
    if operand is None:
        return None
    if to == "string":
        return text(operand)
    if to == "double":
        if isinstance(operand, str):
            found = re.fullmatch(r"\s*([+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan)\s*", operand.lower())
            return float(operand) if found else None
        return float(operand)
    if to == "bigint":
        if isinstance(operand, str):
            found = re.fullmatch(r"\s*([+-]?)(\d*)(\.\d*)?\s*", operand)
            # As Spark has it, a point alone is 0.
            return int(found[1] + (found[2] or "0")) if found and (found[2] or found[3]) else None
        return (
            integer(math.trunc(operand))
            if isinstance(operand, float) and math.isfinite(operand)
            else (integer(operand) if isinstance(operand, float) else int(operand))
        )
    if to == "boolean":
        if isinstance(operand, str):
            return {"true": True, "t": True, "yes": True, "y": True, "1": True}.get(
                operand.strip().lower(),
                False if operand.strip().lower() in ("false", "f", "no", "n", "0") else None,
            )
        return operand != 0
    if isinstance(operand, str):
        try:
            parsed = dt.datetime.fromisoformat(operand)
        except ValueError:
            return None
        return parsed.date() if to == "date" else parsed
    return operand.date() if to == "date" and isinstance(operand, dt.datetime) else moment(operand)
