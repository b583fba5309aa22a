"""Units of time, and texts such as ``5 MIN``; all durations are whole microseconds."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

MICROSECONDS: dict[str, int] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Microseconds in one of each unit, by its long name."""

BEYOND = 2**63
"""Stands for all durations that do not fit 64 bits of microseconds."""
BEYOND_MESSAGE = "this duration does not fit 64 bits of microseconds"

_SHORT = {"MS": "MILLISECOND", "MILLI": "MILLISECOND", "MICRO": "MICROSECOND", "SEC": "SECOND", "MIN": "MINUTE"}
SHOWN = "MILLISECOND, SEC, MIN, HOUR, DAY, WEEK"
"""The units as messages list them."""

_TEXT = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]+)\s*\Z")


def unit(word: str) -> int | None:
    """Microseconds of one `word` (``MIN``, ``minutes``, ``Hour``); None if it is no unit of time."""
    upper = word.upper()
    for name in (upper, upper.removesuffix("S")):
        name = _SHORT.get(name, name)
        if name in MICROSECONDS:
            return MICROSECONDS[name]
    return None


def microseconds(number: str, word: str) -> int | None:
    """Microseconds of `number` units, rounded half up, `BEYOND` at most; None if `word` is no unit of time."""
    size = unit(word)
    if size is None:
        return None
    try:
        exact = Decimal(number) * size
    except ArithmeticError:
        return BEYOND
    # Not of all numbers: those of an exponent may have a million digits.
    return BEYOND if exact >= BEYOND else int(exact.to_integral_value(ROUND_HALF_UP))


def read(text: str) -> int | None:
    """Microseconds of a text such as ``5 MIN`` or ``-1.5 hours``; None if it is no duration."""
    found = _TEXT.match(text)
    if found is None:
        return None
    amount = microseconds(found[2], found[3])
    return -amount if amount is not None and found[1] == "-" else amount


def write(amount: int) -> str:
    """The text of a duration of 0 or more microseconds in its greatest whole unit: ``5 MINUTE``."""
    for name, size in reversed(MICROSECONDS.items()):
        if amount and amount % size == 0:
            return f"{amount // size} {name}"
    return f"{amount} MICROSECOND"
