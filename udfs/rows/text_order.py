"""Texts of times and numbers that do not sort as what they stand for: '10:00' comes before '9:00'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

_DIGITS = {"yyyy": r"\d{4}", "mm": r"\d\d", "T": "T", "ss": r"\d\d", "MMM": "[A-Za-z]{3}", "a": "[AaPp][Mm]"}
_SIGN = re.compile(r"yyyy|mm|ss|MMM|[a-zA-Z]|.")
_CLOCKS = ("H:mm", "H:mm:ss", "h:mm a", "h:mm:ss a")
_SORTING_DAYS = ("yyyy-M-d", "yyyy/M/d", "yyyy.M.d")
"""Sort right once each number has all of its digits."""
_OTHER_DAYS = ("d.M.yyyy", "d/M/yyyy", "M/d/yyyy", "d-M-yyyy", "M-d-yyyy", "d MMM yyyy", "d-MMM-yyyy", "MMM d yyyy")
_SHORT_NUMBER = re.compile(r"(?<!\d)\d(?!\d)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TAIL = re.compile(
    r"(?P<clock>:\d\d)(?P<fraction>\.\d{1,9})?((?P<gap> ?)(?P<zone>Z|[+-]\d\d:?\d\d|[A-Z]{3,4}|[A-Z]\w+/\w+))?$"
)
_MOST = 0.99


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
    numbers = [text for text in given if _NUMBER.fullmatch(text)]
    if _are_most(numbers, given):
        whole = not any("." in text for text in numbers)
        # Numbers without a sign sort right where they have equally many digits before the point.
        if len({len(text.partition(".")[0]) for text in numbers}) == 1 and not any(text[0] == "-" for text in numbers):
            return None
        cast = "CAST" if len(numbers) == len(given) else "TRY_CAST"
        return BetterOrder(f"{cast}({{}} AS {'BIGINT' if whole else 'DOUBLE'})", min(numbers, key=len))
    moments = [_split(text) for text in given]
    for pattern, sorts in _patterns():
        looks = _regex(pattern)
        fitting = [moment for moment in moments if looks.fullmatch(moment.plain)]
        if not _are_most(fitting, given) or not _is_in_range(pattern, fitting):
            continue
        short = next((moment.text for moment in fitting if _SHORT_NUMBER.search(moment.plain)), None)
        if sorts and short is None and _tails_sort(fitting):
            return None
        safe = "" if len(fitting) == len(given) else "try_"
        example = short or fitting[0].text
        if "T" in pattern:
            # Spark's patterns have T in quotes, which SQL doubles: a cast reads it, too.
            return BetterOrder(f"{safe.upper()}CAST({{}} AS TIMESTAMP)", example)
        return BetterOrder(f"{safe}to_timestamp({{}}, '{pattern}{_pattern_of_tails(fitting)}')", example)
    return None


@dataclass(frozen=True)
class _Moment:
    """A text, and what stands behind a time of day in it: parts of a second, and a zone."""

    text: str
    plain: str
    fraction: str = ""
    gap: str = ""
    zone: str = ""


def _split(text: str) -> _Moment:
    tail = _TAIL.search(text)
    if tail is None:
        return _Moment(text, text)
    fraction, gap, zone = (tail[name] or "" for name in ("fraction", "gap", "zone"))
    return _Moment(text, text[: tail.end("clock")], fraction, gap, zone)


def _are_most(fitting: Sequence[object], given: Sequence[str]) -> bool:
    """Whether all texts are of a kind, but for one in a hundred, such as 'n/a'."""
    return len(fitting) >= _MOST * len(given)


def _tails_sort(moments: Sequence[_Moment]) -> bool:
    """Whether texts that are equal up to their seconds sort right: a digit sorts before the letter of a zone."""
    zones = {moment.zone for moment in moments}
    return zones == {""} or (len(zones) == 1 and len({len(moment.fraction) for moment in moments}) == 1)


def _pattern_of_tails(moments: Sequence[_Moment]) -> str:
    digits = {max(len(moment.fraction) - 1, 0) for moment in moments}
    fraction = "." + "S" * max(digits) if max(digits) else ""
    if fraction and 0 in digits:
        fraction = f"[{fraction}]"
    zones = {moment.gap + _letters(moment.zone) for moment in moments}
    return fraction + (zones.pop() if len(zones) == 1 else "[ ][XXX][XX][z]")


def _letters(zone: str) -> str:
    """What Spark's patterns call a zone that is written so."""
    if not zone:
        return ""
    if zone == "Z" or ":" in zone:
        return "XXX"
    return "XX" if zone[0] in "+-" else "z"


def _patterns() -> list[tuple[str, bool]]:
    """Spark's patterns of times that are known, and whether their texts sort right with all digits."""
    days = [(day, True) for day in _SORTING_DAYS] + [(day, False) for day in _OTHER_DAYS]
    found = [(clock, "a" not in clock) for clock in _CLOCKS] + [("yyyy-M-dTH:mm:ss", True)]
    for (day, sorts), clock in product(days, ("", *_CLOCKS)):
        found.append((f"{day} {clock}".strip(), sorts and "a" not in clock))
    return found


def _regex(pattern: str) -> re.Pattern[str]:
    parts = [
        _DIGITS.get(part) or (r"\d{1,2}" if part.isalpha() else re.escape(part)) for part in _SIGN.findall(pattern)
    ]
    return re.compile("".join(parts))


def _is_in_range(pattern: str, moments: Sequence[_Moment]) -> bool:
    """Whether no month is above 12: of d/M and M/d, one may be left."""
    if "M" not in pattern or "MMM" in pattern:
        return True
    place = re.split(r"[^A-Za-z]", pattern).index("M")
    return all(int(re.split(r"\D", moment.plain)[place]) <= 12 for moment in moments)
