"""Moments as microseconds since the epoch, so that no session's time zone takes part."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.udfs.errors import ArgumentError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d))?(?::?([0-5]\d))?")
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""How Spark's functions are to write a moment: with all its microseconds, and its offset."""
JSON = {"ignoreNullFields": "false", "timestampFormat": ISO, "timestampNTZFormat": ISO.removesuffix("XXX")}
"""Options of ``to_json``, which else leaves NULLs out and cuts moments to milliseconds."""

EARLIEST = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(microseconds=1)
"""The least moment that there is, microseconds since the epoch."""


def now() -> datetime:
    """Read the driver's clock, in UTC."""
    return datetime.now(timezone.utc)


def find_zone(name: str) -> ZoneInfo | timezone:
    """Find a zone by its name in the tz database, or by an offset such as +01:00, UTC+1 or Z, as Spark takes them.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            hours, minutes, seconds = (int(part or 0) for part in offset.group(2, 3, 4))
            span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return timezone(-span if offset[1] == "-" else span)
        return ZoneInfo("UTC" if name == "Z" else name)
    except (KeyError, ValueError, OSError):
        raise ArgumentError(
            f"the time zone {name!r} is not known here; a name such as Europe/Berlin or an offset such as +01:00 would "
            "be right"
        ) from None


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch.

    Raises
    ------
    ArgumentError
        The moment has no time zone.
    """
    if moment.tzinfo is None:
        raise ArgumentError(f"the moment {moment.isoformat(sep=' ')} has no time zone; give one, such as +00:00")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int | None) -> datetime | None:
    """Turn microseconds since the epoch into a moment in UTC; None stays None."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def timestamp_literal(moment: datetime | None) -> Column:
    """Write a moment as a TIMESTAMP column; None is NULL."""
    return F.timestamp_micros(F.lit(None if moment is None else to_micros(moment)).cast("bigint"))


def show_moment(moment: datetime) -> str:
    """Write a moment for a message, with all its microseconds, in UTC."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
