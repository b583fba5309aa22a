"""DECIMAL in conditions that join rows: whole numbers of the last digit, where these are sure to fit 64 bits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 17
"""Sums and differences of two numbers of so many digits fit 64 bits."""
MOST_DIGITS_SUMMED = 12
"""Sums of millions of numbers of so many digits fit 64 bits."""

MOST_FACTOR = 10**8
"""So many times an integer of 32 bits has no more digits than a decimal may have."""


def find_scale(types: Iterable[str]) -> int | None:
    """How many digits behind the point all decimals of some types have at most; None where that makes one too long.

    Parameters
    ----------
    types
        As Spark writes them; those that are no decimals do not matter.

    Examples
    --------
    >>> find_scale(["decimal(10,2)", "int", "decimal(5,3)"]), find_scale(["int"]), find_scale(["decimal(38,18)"])
    (3, None, None)
    """
    digits = [(int(found[1]) - int(found[2]), int(found[2])) for one in types if (found := _DECIMAL.fullmatch(one))]
    scale = max((behind for _, behind in digits), default=0)
    return scale if digits and all(whole + scale <= _MOST_DIGITS for whole, _ in digits) else None


def whole_digits(type_: str) -> int:
    """How many digits before the point a decimal type has."""
    found = _DECIMAL.fullmatch(type_)
    assert found is not None, type_
    return int(found[1]) - int(found[2])


def whole_number(value: float, factor: int) -> int | None:
    """So many times a constant, where that is a whole number of few enough digits."""
    number = Decimal(repr(value)) * factor
    fits = number.is_finite() and number == number.to_integral_value() and abs(number) < 10**_MOST_DIGITS
    return int(number) if fits else None
