"""What each operator computes: from columns of the types that `inference` gave to values and their NULLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from patternlake.udfs.language.predicate.casting import whole
from patternlake.udfs.language.predicate.coercion import Typed
from patternlake.udfs.language.predicate.columns import Column, Flags, Values, by_distinct
from patternlake.udfs.language.predicate.texts import WIDE

Result = tuple[Values, Flags]
Kernel = Callable[[Typed, list[Column]], Result]


def _both(columns_: list[Column]) -> Flags:
    return reduce(and_, (column.known for column in columns_))


def _and(part: Typed, arguments: list[Column]) -> Result:
    """Kleene's AND: FALSE wins over NULL."""
    true = reduce(and_, (column.known & column.values for column in arguments))
    false = reduce(or_, (column.known & ~column.values for column in arguments))
    return np.asarray(true), np.asarray(false | _both(arguments))


def _or(part: Typed, arguments: list[Column]) -> Result:
    """Kleene's OR: TRUE wins over NULL."""
    true = reduce(or_, (column.known & column.values for column in arguments))
    return np.asarray(true), np.asarray(true | _both(arguments))


def _not(part: Typed, arguments: list[Column]) -> Result:
    return ~arguments[0].values, arguments[0].known


def equal(left: Column, right: Column) -> Values:
    """Equality of values, with NaN = NaN."""
    same = np.asarray(left.values == right.values, dtype=np.bool_)
    return same | (np.isnan(left.values) & np.isnan(right.values)) if left.type == "double" else same


def less(left: Column, right: Column) -> Values:
    """Strict order of values, with NaN above every number."""
    below = np.asarray(left.values < right.values, dtype=np.bool_)
    return below | (~np.isnan(left.values) & np.isnan(right.values)) if left.type == "double" else below


def _compare(test: Callable[[Column, Column], Values]) -> Kernel:
    def kernel(part: Typed, arguments: list[Column]) -> Result:
        return np.asarray(test(*arguments)), _both(arguments)

    return kernel


def _null_safe_equal(part: Typed, arguments: list[Column]) -> Result:
    left, right = arguments
    both = left.known & right.known
    return np.asarray((both & equal(left, right)) | (~left.known & ~right.known)), np.array(True)


def _is_null(part: Typed, arguments: list[Column]) -> Result:
    column = arguments[0]
    return np.broadcast_to(~column.known, np.broadcast_shapes(column.values.shape, column.known.shape)), np.array(True)


def _in(part: Typed, arguments: list[Column]) -> Result:
    column = arguments[0]
    items = [item for item in part.detail if item is not None]
    flat = pd.Series(column.values.ravel())
    found = flat.isin(items).to_numpy(dtype=np.bool_).reshape(column.values.shape)
    complete = len(items) == len(part.detail)
    return found, column.known & (found | complete)


def _like(part: Typed, arguments: list[Column]) -> Result:
    pattern = re.compile(part.detail, re.DOTALL)
    found, _ = by_distinct(arguments[0].values, lambda text: pattern.fullmatch(text) is not None, np.bool_)
    return found, arguments[0].known


def _add(part: Typed, arguments: list[Column]) -> Result:
    return arguments[0].values + arguments[1].values, _both(arguments)


def _subtract(part: Typed, arguments: list[Column]) -> Result:
    return arguments[0].values - arguments[1].values, _both(arguments)


def _multiply(part: Typed, arguments: list[Column]) -> Result:
    product = arguments[0].values * arguments[1].values
    return _microseconds(product, _both(arguments)) if part.type == "interval" else (product, _both(arguments))


def _divide(part: Typed, arguments: list[Column]) -> Result:
    divisor = arguments[1].values
    known = _both(arguments) & (divisor != 0)
    quotient = arguments[0].values / np.where(divisor == 0, 1, divisor)
    return _microseconds(quotient, known) if part.type == "interval" else (quotient, known)


def _microseconds(amount: Values, known: Flags) -> Result:
    """Whole microseconds, rounded half away from zero; NULL where they do not fit 64 bits."""
    fits = np.isfinite(amount) & (np.abs(amount) < 2.0**63)
    rounded = np.trunc(np.where(fits, amount, 0.0) + np.copysign(0.5, amount))
    return rounded.astype(np.int64), known & fits


def _modulo(part: Typed, arguments: list[Column]) -> Result:
    divisor = arguments[1].values
    remainder = np.fmod(arguments[0].values, np.where(divisor == 0, 1, divisor))
    return remainder, _both(arguments) & (divisor != 0)


def _each(function: Callable[[Values], Values]) -> Kernel:
    def kernel(part: Typed, arguments: list[Column]) -> Result:
        return np.asarray(function(arguments[0].values)), arguments[0].known

    return kernel


def _logarithm(part: Typed, arguments: list[Column]) -> Result:
    known = _both(arguments)
    logs = []
    for column in arguments:
        positive = ~(column.values <= 0)
        known = known & positive
        logs.append(np.log(np.where(positive, column.values, 1.0)))
    return (logs[0] if len(logs) == 1 else logs[1] / logs[0]), known


def _power(part: Typed, arguments: list[Column]) -> Result:
    base, exponent = arguments[0].values, arguments[1].values
    # Java, unlike C, gives NaN for 1 and -1 to an infinite or NaN power.
    undefined = np.isnan(exponent) | (np.isinf(exponent) & (np.abs(base) == 1))
    return np.where(undefined, np.nan, np.power(base, exponent)), _both(arguments)


def _round(part: Typed, arguments: list[Column]) -> Result:
    column, digits = arguments[0], int(part.detail)
    if part.type == "bigint":
        if digits >= 0:
            return column.values, column.known
        return by_distinct(column.values, lambda value: _rounded_integer(value, digits), np.int64)[0], column.known
    return round_half_up(column.values, digits), column.known


def _rounded_integer(value: int, digits: int) -> int:
    step = 10**-digits
    size = (abs(value) + step // 2) // step * step
    return ((size if value >= 0 else -size) + 2**63) % 2**64 - 2**63


def round_half_up(values: Values, digits: int) -> Values:
    """Doubles rounded half up in the shortest decimal that stands for them, as Spark does: 2.675 to 2.68."""
    if not -300 <= digits <= 300:
        return np.where(np.isfinite(values) & (digits < 0), 0.0, values)
    scaled = np.abs(values) * 10.0**digits if digits >= 0 else np.abs(values) / 10.0**-digits
    nearest = np.rint(scaled)
    unit = 10.0 ** abs(digits)
    result = np.copysign(nearest / unit if digits >= 0 else nearest * unit, values)
    # Near a tie, and where doubles hold no exact result, decimal arithmetic decides.
    unsure = (np.abs(scaled - np.floor(scaled) - 0.5) < 1e-4) | (scaled > 2.0**42) | (abs(digits) > 15)
    unsure &= np.isfinite(values)
    if unsure.any():
        exact, _ = by_distinct(np.asarray(values)[unsure], lambda value: _rounded_decimal(value, digits), np.float64)
        result = np.array(result)
        result[unsure] = exact
    return np.where(np.isfinite(values), result, values)


def _rounded_decimal(value: float, digits: int) -> float:
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, WIDE))


def _concat(part: Typed, arguments: list[Column]) -> Result:
    text: Any = arguments[0].values
    for column in arguments[1:]:
        text = text + column.values
    return np.array(text, dtype=object), _both(arguments)


def _texts(function: Callable[[str], Any], dtype: Any) -> Kernel:
    def kernel(part: Typed, arguments: list[Column]) -> Result:
        return by_distinct(arguments[0].values, function, dtype)[0], arguments[0].known

    return kernel


def _substring(part: Typed, arguments: list[Column]) -> Result:
    known = _both(arguments)
    if all(argument.values.ndim == 0 for argument in arguments[1:]):
        numbers = [int(argument.values) for argument in arguments[1:]]
        return by_distinct(arguments[0].values, lambda text: substring(text, *numbers), object)[0], known
    return np.asarray(np.frompyfunc(substring, len(arguments), 1)(*(a.values for a in arguments)), dtype=object), known


def substring(text: str, position: int, length: int | None = None) -> str:
    """Spark's SUBSTRING: 1-based, 0 is 1, a negative position counts from the end."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _coalesce(part: Typed, arguments: list[Column]) -> Result:
    values, known = arguments[-1].values, arguments[-1].known
    for column in reversed(arguments[:-1]):
        values = np.where(column.known, column.values, values)
        known = column.known | known
    return values, known


def _extreme(greatest: bool) -> Kernel:
    def kernel(part: Typed, arguments: list[Column]) -> Result:
        best = arguments[0]
        for column in arguments[1:]:
            beats = less(best, column) if greatest else less(column, best)
            take = column.known & (beats | ~best.known)
            values = np.where(take, column.values, best.values)
            best = Column(values, best.known | column.known, best.type)
        return best.values, best.known

    return kernel


def _case(part: Typed, arguments: list[Column]) -> Result:
    if len(arguments) % 2:
        values, known = arguments[-1].values, arguments[-1].known
    else:
        values, known = arguments[1].values, np.array(False)
    for at in reversed(range(len(arguments) // 2)):
        condition, value = arguments[2 * at], arguments[2 * at + 1]
        holds = condition.values & condition.known
        values = np.where(holds, value.values, values)
        known = np.where(holds, value.known, known)
    return values, known


KERNELS: dict[str, Kernel] = {
    "AND": _and,
    "OR": _or,
    "NOT": _not,
    "=": _compare(equal),
    "<>": _compare(lambda left, right: ~equal(left, right)),
    "<": _compare(less),
    "<=": _compare(lambda left, right: ~less(right, left)),
    ">": _compare(lambda left, right: less(right, left)),
    ">=": _compare(lambda left, right: ~less(left, right)),
    "<=>": _null_safe_equal,
    "IS NULL": _is_null,
    "IN": _in,
    "LIKE": _like,
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _modulo,
    "NEGATE": _each(np.negative),
    "ABS": _each(np.abs),
    "FLOOR": _each(lambda values: whole(np.floor(values))),
    "CEIL": _each(lambda values: whole(np.ceil(values))),
    "SQRT": _each(np.sqrt),
    "EXP": _each(np.exp),
    "LN": _logarithm,
    "LOG": _logarithm,
    "POWER": _power,
    "ROUND": _round,
    "LOWER": _texts(str.lower, object),
    "UPPER": _texts(str.upper, object),
    "LENGTH": _texts(len, np.int64),
    "SUBSTRING": _substring,
    "CONCAT": _concat,
    "COALESCE": _coalesce,
    "LEAST": _extreme(False),
    "GREATEST": _extreme(True),
    "case": _case,
}
"""The kernel of each operator of `Typed`, but for literals, fields and casts."""
