"""Texts of times and numbers that do not sort as what they stand for: '10:00' comes before '9:00'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

_DIGITS = {"yyyy": r"\d{4}", "mm": r"\d\d", "ss": r"\d\d", "MMM": "[A-Za-z]{3}", "a": "[AaPp][Mm]"}
_SIGN = re.compile(r"yyyy|mm|ss|MMM|[a-zA-Z]|.")
_CLOCKS = ("H:mm", "H:mm:ss", "h:mm a", "h:mm:ss a")
_SORTING_DAYS = ("yyyy-M-d", "yyyy/M/d", "yyyy.M.d")
"""Sort right once each number has all of its digits."""
_OTHER_DAYS = ("d.M.yyyy", "d/M/yyyy", "M/d/yyyy", "d-M-yyyy", "M-d-yyyy", "d MMM yyyy", "d-MMM-yyyy", "MMM d yyyy")
_SHORT_NUMBER = re.compile(r"(?<!\d)\d(?!\d)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class BetterOrder:
    """What ORDER BY had better sort.

    Attributes
    ----------
    call
        SQL with ``{}`` in the place of the column.
    example
        A text that the column holds.
    """

    call: str
    example: str


def better_order(texts: Sequence[str | None]) -> BetterOrder | None:
    """What some texts of a column stand for, where their order is another one.

    Parameters
    ----------
    texts
        Values of the column; NULLs say nothing.

    Returns
    -------
    BetterOrder or None
        None where they sort right, or look like nothing that is known.

    Examples
    --------
    >>> better_order(["9:00", "10:00"]).call
    "to_timestamp({}, 'H:mm')"
    >>> better_order(["2025-03-03 09:00", "2025-03-03 10:00"])
    """
    given = [text.strip() for text in texts if text is not None]
    if not given:
        return None
    if all(_NUMBER.fullmatch(text) for text in given):
        whole = not any("." in text for text in given)
        # Numbers without a sign sort right where they have equally many digits before the point.
        if len({len(text.partition(".")[0]) for text in given}) == 1 and not any(text[0] == "-" for text in given):
            return None
        return BetterOrder(f"CAST({{}} AS {'BIGINT' if whole else 'DOUBLE'})", min(given, key=len))
    for pattern, sorts in _patterns():
        looks = _regex(pattern)
        if not all(looks.fullmatch(text) for text in given) or not _is_in_range(pattern, given):
            continue
        short = next((text for text in given if _SHORT_NUMBER.search(text)), None)
        if sorts and short is None:
            return None
        return BetterOrder(f"to_timestamp({{}}, '{pattern}')", short or given[0])
    return None


def _patterns() -> list[tuple[str, bool]]:
    """Spark's patterns of times that are known, and whether their texts sort right with all digits."""
    days = [(day, True) for day in _SORTING_DAYS] + [(day, False) for day in _OTHER_DAYS]
    found = [(clock, "a" not in clock) for clock in _CLOCKS]
    for (day, sorts), clock in product(days, ("", *_CLOCKS)):
        found.append((f"{day} {clock}".strip(), sorts and "a" not in clock))
    return found


def _regex(pattern: str) -> re.Pattern[str]:
    parts = [
        _DIGITS.get(part) or (r"\d{1,2}" if part.isalpha() else re.escape(part)) for part in _SIGN.findall(pattern)
    ]
    return re.compile("".join(parts))


def _is_in_range(pattern: str, texts: Sequence[str]) -> bool:
    """Whether no month is above 12: of d/M and M/d, one may be left."""
    if "M" not in pattern or "MMM" in pattern:
        return True
    place = re.split(r"[^A-Za-z]", pattern).index("M")
    return all(int(re.split(r"\D", text)[place]) <= 12 for text in texts)
