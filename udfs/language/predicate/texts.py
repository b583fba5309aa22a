"""Single values as texts, read and written as Spark casts them with ANSI mode off.

What does not cast is None. Moments are microseconds since the epoch in UTC.
"""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from zoneinfo import ZoneInfo

WIDE = Context(prec=400, Emax=999, Emin=-999)
"""Decimal arithmetic that holds every double exactly enough to round it."""

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_INTEGER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)\Z", re.ASCII)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[df]?\Z", re.ASCII)
_INFINITY = float("inf")
_SPECIAL = {"nan": float("nan")}
_SPECIAL |= {sign + word: _INFINITY for sign in ("", "+") for word in ("inf", "infinity")}
_SPECIAL |= {"-inf": -_INFINITY, "-infinity": -_INFINITY}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s?(.*))?)?)?\Z",
    re.ASCII | re.DOTALL,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2}))?\Z", re.ASCII)


def read_integer(text: str, bits: int = 64) -> int | None:
    """An integer of so many bits; a fraction is cut off, as Spark does."""
    text = text.strip()
    if _INTEGER.match(text) is None:
        return None
    digits = text.partition(".")[0].lstrip("+-0")
    # Python reads no more than 4,300 digits, and a bigint has 19.
    if len(digits) > 19:
        return None
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def read_double(text: str) -> float | None:
    """A number as Java reads it: ``1.5``, ``1e3``, ``1d``, ``NaN``, ``-Infinity``."""
    text = text.strip().lower()
    found = _NUMBER.match(text)
    return _SPECIAL.get(text) if found is None else float(found[1])


def read_decimal(text: str) -> Decimal | None:
    """A number such as ``12.50``; None for what is no finite number."""
    text = text.strip().lower()
    return Decimal(text) if _NUMBER.match(text) and text[-1] not in "df" else None


def fit(value: Decimal, precision: int, scale: int) -> float | None:
    """A decimal rounded half up to `scale` digits; None if that has more than `precision` digits."""
    if not value.is_finite() or value.adjusted() > precision:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, WIDE)
    return float(rounded) if abs(rounded) < Decimal(10) ** (precision - scale) else None


def read_boolean(text: str) -> bool | None:
    """``true``, ``t``, ``yes``, ``y``, ``1`` and their opposites, in any case."""
    text = text.strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def read_date(text: str) -> int | None:
    """Microseconds of the midnight of a date such as ``2013-01-31`` (what follows a space or T is ignored)."""
    found = _DATE.match(text.strip())
    if found is None:
        return None
    try:
        day = datetime.datetime(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None
    return (day - _EPOCH) // _MICROSECOND


def read_timestamp(text: str, timezone: str = "UTC") -> int | None:
    """Microseconds since the epoch of ``2013-01-31 23:59:59.5+01:00``; without a zone it is in `timezone`."""
    found = _TIMESTAMP.match(text.strip())
    if found is None:
        return None
    fraction = int(((found[7] or "") + "000000")[:6])
    try:
        moment = datetime.datetime(
            int(found[1]),
            int(found[2] or 1),
            int(found[3] or 1),
            int(found[4] or 0),
            int(found[5] or 0),
            int(found[6] or 0),
            fraction,
        )
        offset = _zone_offset((found[8] or "").strip() or timezone, moment)
    except (ValueError, OverflowError):
        return None
    return None if offset is None else (moment - _EPOCH - offset) // _MICROSECOND


def _zone_offset(zone: str, moment: datetime.datetime) -> datetime.timedelta | None:
    if zone in ("UTC", "Z", "GMT"):
        return datetime.timedelta(0)
    found = _OFFSET.match(zone)
    if found is not None:
        offset = datetime.timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return -offset if found[1] == "-" else offset
    try:
        return moment.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (KeyError, OSError, ValueError):
        return None


def write_double(value: float) -> str:
    """A double as Java writes it: ``1.0``, ``1.0E7``, ``NaN``."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    if "." not in digits:
        digits += ".0"
    return f"{digits}E{int(exponent)}"


def write_timestamp(value: int) -> str:
    """Microseconds since the epoch as Spark writes them, in UTC: ``2013-01-31 23:59:59.5``."""
    text = (_EPOCH + value * _MICROSECOND).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def write_date(value: int) -> str:
    """The date of a midnight in microseconds since the epoch."""
    return (_EPOCH + value * _MICROSECOND).date().isoformat()
