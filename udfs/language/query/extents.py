"""Sizes of windows (WITHIN) and of their steps (SLIDE): a number of events or a length of time, with its unit."""

from __future__ import annotations

from dataclasses import replace

from patternlake.udfs.language import durations
from patternlake.udfs.language.query.tree import Extent

COUNTS = frozenset({"EVENT", "EVENTS", "UNIT", "UNITS"})
"""Names of the unit that counts events, in upper case."""

EXPECTED_UNIT = "EVENTS (or UNIT), MILLISECOND, SEC, MIN, HOUR, DAY or WEEK"
"""The units as an error message lists them."""

LONGEST = 2**63 - 1
"""Greatest amount of an extent: what a 64-bit column holds."""

_MOST_EVENTS = 1 << 56
"""Events of a window: no stream has more."""
MOST_MICROS = 1 << 59
"""Microseconds of a window or a lookahead: no two moments of the years 1 to 9999 are as far apart.

Some windows, beside any rank or moment, still are whole numbers of 64 bits.
"""


_SHORT = {"SECOND": "SEC", "MINUTE": "MIN"}


def extent(count: int, unit: str) -> Extent | None:
    """The extent of `count` times `unit`, in any case; None where `unit` is none."""
    if unit.upper() in COUNTS:
        return Extent(count, counted=True)
    length = durations.unit(unit)
    return None if length is None else Extent(count * length, counted=False)


def clip(size: Extent | None) -> Extent | None:
    """Shorten a window to what is longer than any stream, so that kernels can add it to a rank or a moment."""
    if size is None:
        return None
    return replace(size, amount=min(size.amount, _MOST_EVENTS if size.counted else MOST_MICROS))


def to_text(size: Extent) -> str:
    """The extent in canonical text: events, or the longest unit of time that needs no fraction."""
    if size.counted:
        return f"{size.amount} EVENTS"
    amount, unit = durations.write(size.amount).split()
    return f"{amount} {_SHORT.get(unit, unit)}"
