"""Single values as texts, read and written as Spark casts them with ANSI mode off.

What does not cast is None. Moments are microseconds since the epoch in UTC, in 64 bits: from the year -290308 to
294247. The calendar is Gregorian before 1582 as well; the year 0 is that before the year 1.
"""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from zoneinfo import ZoneInfo

WIDE = Context(prec=400, Emax=999, Emin=-999)
"""Decimal arithmetic that holds every double exactly enough to round it."""

_MICROSECOND = datetime.timedelta(microseconds=1)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_LEAST, _MOST = -(2**63), 2**63 - 1
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years, or days, the calendar repeats itself."""
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

# Spark trims by bytes, so no Unicode blank, and most of its readers take control characters for blanks.
_BLANKS = "".join(map(chr, range(33)))
_BLANKS_AND_DEL = _BLANKS + "\x7f"
_INTEGER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d*)\Z", re.ASCII)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[df]?\Z", re.ASCII | re.IGNORECASE)
_BINARY = re.compile(r"([+-]?0x(?:[0-9a-f]+\.?|[0-9a-f]*\.[0-9a-f]+)p[+-]?\d+)[df]?\Z", re.ASCII | re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,10})?\Z", re.IGNORECASE)
_INFINITY = float("inf")
_SPECIAL = {"nan": float("nan")}
_SPECIAL |= {sign + word: _INFINITY for sign in ("", "+") for word in ("inf", "infinity")}
_SPECIAL |= {"-inf": -_INFINITY, "-infinity": -_INFINITY}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})"
    r"(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?\Z",
    re.ASCII | re.DOTALL,
)
_OFFSETS = tuple(
    re.compile(rf"(?:UTC|GMT|UT)?([+-]){form}\Z", re.ASCII)
    for form in (r"(\d\d?)(?::(\d\d?))?", r"(\d\d?):(\d\d):(\d\d)", r"(\d\d)(\d\d)(\d\d)?")
)
_MOST_OFFSET = 18 * 3600
_WIDEST = 38
"""Most digits of a decimal before its point."""
_SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""Short names of zones as Java reads them (``java.time.ZoneId.SHORT_IDS``)."""


def read_integer(text: str, bits: int = 64) -> int | None:
    """An integer of so many bits; a fraction is cut off, as Spark does."""
    text = text.strip(_BLANKS_AND_DEL)
    if _INTEGER.match(text) is None:
        return None
    digits = text.partition(".")[0].lstrip("+-0")
    # Python reads no more than 4,300 digits, and a bigint has 19.
    if len(digits) > 19:
        return None
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def read_double(text: str) -> float | None:
    """A number as Java reads it: ``1.5``, ``1e3``, ``1d``, ``0x1p3``, ``NaN``, ``-Infinity``."""
    text = text.strip(_BLANKS)
    if (found := _NUMBER.match(text)) is not None:
        return float(found[1])
    if (found := _BINARY.match(text)) is not None:
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return -_INFINITY if text[0] == "-" else _INFINITY
    return _SPECIAL.get(text.lower(), _SPECIAL["nan"] if text in ("+NaN", "-NaN") else None)


def read_decimal(text: str) -> Decimal | None:
    """A number such as ``12.50``; None for what is no finite number. As in Java, digits of all scripts are digits."""
    text = text.strip(_BLANKS)
    value = Decimal(text) if _DECIMAL.match(text) else None
    return None if value is None or value.adjusted() >= _WIDEST else value


def fit(value: Decimal, precision: int, scale: int) -> float | None:
    """A decimal rounded half up to `scale` digits; None if that has more than `precision` digits."""
    if not value.is_finite() or (value and value.adjusted() > precision):
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, WIDE)
    return float(rounded) if abs(rounded) < Decimal(10) ** (precision - scale) else None


def read_boolean(text: str) -> bool | None:
    """``true``, ``t``, ``yes``, ``y``, ``1`` and their opposites, in any case."""
    text = text.strip(_BLANKS_AND_DEL).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def read_date(text: str) -> int | None:
    """Microseconds of the midnight of a date such as ``2013-01-31`` (what follows a space or T is ignored)."""
    found = _DATE.match(text.strip(_BLANKS_AND_DEL))
    if found is None:
        return None
    try:
        return _fitting(_day_number(*_day(found)) * _DAY)
    except ValueError:
        return None


def read_timestamp(text: str, timezone: str = "UTC") -> int | None:
    """Microseconds since the epoch of ``2013-01-31 23:59:59.5+01:00``; without a zone it is in `timezone`."""
    found = _TIMESTAMP.match(text.strip(_BLANKS_AND_DEL))
    if found is None:
        return None
    year, month, day = _day(found)
    try:
        time = datetime.time(int(found[4] or 0), int(found[5] or 0), int(found[6] or 0))
        number = _day_number(year, month, day)
        zone = (found[8] or "").strip(_BLANKS) or timezone
        offset = _zone_offset(zone, datetime.datetime.combine(datetime.date(_alike(year), month, day), time))
    except (ValueError, OverflowError):
        return None
    if offset is None:
        return None
    seconds = number * 86_400 + time.hour * 3600 + time.minute * 60 + time.second - offset
    return _fitting(seconds * _SECOND + int(((found[7] or "") + "000000")[:6]))


def _day(found: re.Match[str]) -> tuple[int, int, int]:
    """Year, month and day of a text."""
    return int(found[1]), int(found[2] or 1), int(found[3] or 1)


def _day_number(year: int, month: int, day: int) -> int:
    """Days since the epoch; years may be any.

    Raises
    ------
    ValueError
        There is no such day.
    """
    cycles, place = divmod(year - 1, _CYCLE_YEARS)
    return datetime.date(place + 1, month, day).toordinal() - _EPOCH_ORDINAL + cycles * _CYCLE_DAYS


def _alike(year: int) -> int:
    """A year that Python knows, with the same days and, before all rules of zones or after the last, the same rules."""
    if datetime.MINYEAR <= year <= datetime.MAXYEAR:
        return year
    return (year - 1) % _CYCLE_YEARS + (401 if year < 1 else 9201)


def _fitting(micros: int) -> int | None:
    return micros if _LEAST <= micros <= _MOST else None


def _zone_offset(zone: str, moment: datetime.datetime) -> int | None:
    """Seconds that a zone is ahead of UTC."""
    if zone in ("UTC", "Z", "GMT", "UT"):
        return 0
    zone = _SHORT_ZONES.get(zone, zone)
    for form in _OFFSETS:
        if (found := form.match(zone)) is not None:
            hours, minutes, seconds = (*(int(part or 0) for part in found.groups()[1:]), 0)[:3]
            size = hours * 3600 + minutes * 60 + seconds
            fits = minutes < 60 and seconds < 60 and size <= _MOST_OFFSET
            return None if not fits else -size if found[1] == "-" else size
    if zone.startswith(("posix/", "right/")):
        return None
    try:
        ahead = moment.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (KeyError, OSError, ValueError):
        return None
    return None if ahead is None else round(ahead.total_seconds())


def write_double(value: float) -> str:
    """A double as Java writes it: ``1.0``, ``1.0E7``, ``NaN``."""
    if value != value:
        return "NaN"
    if value in (_INFINITY, -_INFINITY):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    if "." not in digits:
        # A second digit is the value's: 4.9E-324, though 5E-324 would tell it.
        digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits}E{int(exponent)}"


def write_timestamp(value: int) -> str:
    """Microseconds since the epoch as Spark writes them, in UTC: ``2013-01-31 23:59:59.5``."""
    time = datetime.datetime.min + value % _DAY * _MICROSECOND
    text = f"{write_date(value)} {time.time().isoformat()}"
    return text.rstrip("0") if "." in text else text


def write_date(value: int) -> str:
    """The date of microseconds since the epoch: ``2013-01-31``, ``+10000-01-01``, ``-0044-03-15``."""
    cycles, place = divmod(value // _DAY + _EPOCH_ORDINAL - 1, _CYCLE_DAYS)
    day = datetime.date.fromordinal(place + 1)
    year = day.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > datetime.MAXYEAR else ""
    return f"{sign}{abs(year):04}-{day.month:02}-{day.day:02}"
