"""What the demo prints and draws, as far as that needs no Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[ModuleType, ModuleType]]:
    sys.path.insert(0, str(ROOT / "demo"))
    import flights
    import front_picture

    yield flights, front_picture
    sys.path.remove(str(ROOT / "demo"))


def test_a_plan_keeps_its_indexes(demo: tuple[ModuleType, ModuleType]) -> None:
    flights, _ = demo
    with flights.console.capture() as printed:
        flights.print_rows("Its plan", [{"plan": "b+ where b[i].x > b[i-1].x"}])
    assert "b+ where b[i].x > b[i-1].x" in printed.get()


def test_the_table_of_months_fits_a_terminal_of_80_columns(demo: tuple[ModuleType, ModuleType]) -> None:
    flights, _ = demo
    titles = flights.month_line("month", "rows in", "events", "quarantined", "ingest", "sketch", *flights.LATER)
    longest = flights.month_line("2013-12", "28,135", "28,135", "1,000", *["9999.9 s"] * (2 + len(flights.LATER)))
    assert titles.split() == ["month", "rows", "in", "events", "quarantined", "ingest", "sketch", *flights.LATER]
    assert len(titles) == len(longest) <= 80


def test_the_picture_of_a_front_tells_new_yorks_clock(demo: tuple[ModuleType, ModuleType]) -> None:
    _, front_picture = demo
    # Step 0 is the year's first hour in UTC; New York is five hours behind, in summer four.
    assert front_picture.clock(0).replace(tzinfo=None) == datetime(2012, 12, 31, 19)
    assert front_picture.clock(24 * 181).replace(tzinfo=None) == datetime(2013, 6, 30, 20)
