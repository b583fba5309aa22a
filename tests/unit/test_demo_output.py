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


@pytest.mark.parametrize("name", ["DEMO", "TOUR"])
def test_every_month_arrives_once_and_june_ends_a_delivery(demo: tuple[ModuleType, ModuleType], name: str) -> None:
    flights, _ = demo
    route = getattr(flights, name)
    assert [month for months in route.deliveries for month in months] == list(range(1, 13))
    assert flights.AS_OF_MONTH in [months[-1] for months in route.deliveries]
    # What was likely as of June is asked of subscriptions.
    assert "predict" in route.june


def test_the_picture_of_a_front_tells_new_yorks_clock(demo: tuple[ModuleType, ModuleType]) -> None:
    _, front_picture = demo
    # Step 0 is the year's first hour in UTC; New York is five hours behind, in summer four.
    assert front_picture.clock(0).replace(tzinfo=None) == datetime(2012, 12, 31, 19)
    assert front_picture.clock(24 * 181).replace(tzinfo=None) == datetime(2013, 6, 30, 20)
