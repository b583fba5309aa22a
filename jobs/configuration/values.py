"""Values of the configuration that YAML has no type for: sizes, durations, names, types, time zones.

Each reader takes what YAML gave and returns the value, or raises ValueError with one line that names the value and
says what would be right. Years have 365 days here: ageing and lateness are spans, not dates.
"""

from __future__ import annotations

import math
import os
import re
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from patternlake.udfs.errors import shorten
from patternlake.udfs.limits import MOST_DIGITS
from patternlake.udfs.nearest_names import did_you_mean
from patternlake.udfs.own_names import KEPT, is_own

NAME_LENGTH = 255
INT = 2**31 - 1
LONG = 2**63 - 1
LONGEST = timedelta(days=365 * 1000)
RESERVED = ("name", "time", "key", "position", "step", "probability")

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_SIZES = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", start=1)
    for unit, base in ((f"{letter}b", 1000), (f"{letter}ib", 1024))
}

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_DURATIONS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "year": timedelta(days=365),
}
_SHORT = {"ms": "millisecond", "s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day", "w": "week"}

_EVENTS = re.compile(r"\s*(\d+)\s*events?\s*", re.IGNORECASE)

_TYPES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\))?")
_DECIMAL_UP_TO_COMMA = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*\d+\s*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OFFSET = re.compile(r"[+-](?:0\d|1[0-8]):[0-5]\d")


def size(value: Any) -> int:
    """Bytes of ``64MB`` (10^6), ``64MiB`` (2^20), ``1GB`` or a plain whole number."""
    right = "write a size like 64MB, 64MiB, 1GB or a number of bytes"
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{shorten(value)} is not a size; {right}")
    found = _SIZE.fullmatch(str(value))
    unit = found and _SIZES.get(found[2].lower())
    if not found or not unit:
        raise ValueError(f"{shorten(value)} is not a size; {right}")
    if len(found[1].lstrip("0")) > MOST_DIGITS:
        raise ValueError(f"{shorten(value)} is out of range; at most {LONG} bytes")
    count = int(float(found[1]) * unit) if "." in found[1] else int(found[1][-MOST_DIGITS:]) * unit
    if count < 1:
        raise ValueError(f"{shorten(value)} is no memory at all; {right}")
    if count > LONG:
        raise ValueError(f"{shorten(value)} is out of range; at most {LONG} bytes")
    return count


def duration(value: Any) -> timedelta:
    """Span of ``30 days``, ``1 hour``, ``90s``, ``2 years`` (of 365 days) or 0."""
    right = "write a duration like 1 hour, 30 days or 2 years"
    if value == 0 and not isinstance(value, bool):
        return timedelta(0)
    if not isinstance(value, str):
        raise ValueError(f"{shorten(value)} is not a duration; {right}")
    if value.strip() == "0":
        return timedelta(0)
    found = _DURATION.fullmatch(value)
    if not found:
        raise ValueError(f"{shorten(value)} is not a duration; {right}")
    word = found[2].lower()
    unit = _DURATIONS.get(_SHORT.get(word, word)) or _DURATIONS.get(_SHORT.get(word[:-1], word[:-1]))
    if unit is None or word == "ss":
        units = ", ".join(f"{each}s" for each in _DURATIONS)
        raise ValueError(f"{shorten(value)}: unknown unit {shorten(found[2])}; units are {units}")
    if float(found[1]) * unit.total_seconds() > LONGEST.total_seconds():
        raise ValueError(f"{shorten(value)} is out of range; at most {LONGEST.days // 365} years")
    return float(found[1]) * unit


def write_duration(span: timedelta) -> str:
    """Write a span as `duration` reads it, in the largest unit of which it has a whole number."""
    for unit, size in reversed(_DURATIONS.items()):
        if unit not in ("week", "year") and not span % size:
            count = span // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{span / _DURATIONS['millisecond']!r} milliseconds"


def age(value: Any) -> timedelta | int:
    """A duration, or a number of events: ``1000000 events``."""
    found = _EVENTS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        try:
            return duration(value)
        except ValueError as error:
            raise ValueError(f"{error}, or a number of events like 1000000 events") from None
    if len(found[1].lstrip("0")) > MOST_DIGITS or int(found[1][-MOST_DIGITS:]) > LONG:
        raise ValueError(f"{shorten(value)} is out of range; at most {LONG} events")
    return int(found[1])


def lateness(value: Any) -> timedelta | None:
    """A duration, or None for the word ``none``: an event is never late."""
    if value is None:
        raise ValueError("is empty; write a duration like 1 hour, or none for events that are never late")
    if isinstance(value, str) and value.strip().lower() == "none":
        return None
    return duration(value)


def object_name(value: str) -> str:
    """A name of a stream, an object or an attribute: 1 to 255 characters, no blanks around it."""
    if not 1 <= len(value) <= NAME_LENGTH:
        raise ValueError(f"a name has 1 to {NAME_LENGTH} characters, this one {len(value)}: {shorten(value)}")
    if value != value.strip():
        raise ValueError(f"{shorten(value)} has blanks around it")
    return value


def attribute_name(value: str) -> str:
    """A name that no event column has; those are reserved in every spelling of case, as SQL ignores it."""
    if value.lower() in RESERVED:
        raise ValueError(
            f"{shorten(value)} is a reserved name ({', '.join(RESERVED)}); choose another and give its expr"
        )
    if is_own(value):
        raise ValueError(f"{shorten(value)}: {KEPT}; choose another and give its expr")
    return object_name(value)


def attribute_type(value: str) -> str:
    """Spark's name of an atomic type, in one spelling."""
    word = value.strip().lower()
    if word in _TYPES:
        return _TYPES[word]
    found = _DECIMAL.fullmatch(word)
    if found:
        precision, scale = int(found[1] or 10), int(found[2] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision},{scale})"
        raise ValueError(f"{shorten(value)}: a decimal has 1 to 38 digits and no more decimals than digits")
    if _DECIMAL_UP_TO_COMMA.fullmatch(word):
        raise ValueError(f"{shorten(value)}: a comma ends a value in {{ }}; quote the type, such as '{word},2)'")
    known = [*_TYPES, "decimal(p,s)"]
    raise ValueError(
        f"{shorten(value)} is not a type of an attribute{did_you_mean(word, known)}; types are {', '.join(known)}"
    )


def timezone(value: str) -> str:
    """A zone's name as in the tz database, or an offset such as +01:00."""
    if _OFFSET.fullmatch(value):
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{shorten(value)} is not a time zone; write one like UTC, America/New_York or +01:00"
        ) from None
    return value


def parameters(value: Any) -> Any:
    """Parameters of predicates as texts: a number or a truth value is written as YAML reads it."""
    if not isinstance(value, dict):
        return value
    for name, given in value.items():
        if isinstance(given, float) and not math.isfinite(given):
            raise ValueError(f"{name}: {given} is not a finite number")
    return {name: as_text(given) for name, given in value.items()}


def as_text(value: Any) -> Any:
    """A number, a truth value or a moment of YAML as a text; anything else as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | date) else value


def as_written(value: Any) -> Any:
    """What was written where YAML takes it for a number, as ``+10:00``, which is 600 by sixties."""
    return value.text if isinstance(value, WrittenInt | WrittenFloat) else value


class WrittenInt(int):
    """A whole number that is written in another way than Python would write it."""

    text: str


class WrittenFloat(float):
    """A number that is written in another way than Python would write it."""

    text: str


def written(given: Any) -> Any:
    """A number of YAML as it stands in the file; anything else as it is."""
    return given.text if isinstance(given, WrittenInt | WrittenFloat) else given


def with_environment(text: str) -> str:
    """A text with what the environment has for ``${NAME}``: secrets need not stand in the file."""

    def look_up(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ValueError(f"names the environment variable {shorten(found[1])}, which is not set")
        return os.environ[found[1]]

    return _VARIABLE.sub(look_up, text)
