"""Time zones of sessions, as Spark takes them, for moments that Python gives without one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from patternlake.delta_tables.schema.timestamps import find_zone
from patternlake.udfs.errors import ArgumentError

WINTER = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("Europe/Berlin", 60),
        ("UTC", 0),
        ("Z", 0),
        ("+01:00", 60),
        ("-08", -480),
        ("+8", 480),
        ("GMT+8", 480),
        ("UTC-01:30", -90),
        ("+0530", 330),
    ],
)
def test_names_and_offsets_are_zones(name: str, minutes: int) -> None:
    assert find_zone(name).utcoffset(WINTER) == timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["Europe/Berln", "PST", "", "+99:99", "+30:00"])
def test_what_is_no_zone_is_named(name: str) -> None:
    with pytest.raises(ArgumentError, match="is not known here; a name such as Europe/Berlin or an offset such as"):
        find_zone(name)
