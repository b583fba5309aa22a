"""The demo's pictures are drawn by `patternlake.plot`, from what the tables hold; here from tables in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]

FLIGHTS = {1: (8.0, 5, "JFK"), 2: (9.0, 12, "JFK"), 3: (10.0, 30, "JFK"), 4: (10.5, 20, "LGA"), 5: (11.0, 70, "LGA")}
TRENDS = [[1, 2, 3], [1, 3], [4, 5]]
CUTS = [None, 10, 24, 40, None]


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[ModuleType, ModuleType]]:
    sys.path.insert(0, str(ROOT / "demo"))
    import front_picture
    import picture

    yield picture, front_picture
    sys.path.remove(str(ROOT / "demo"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved."""
    matplotlib.use("Agg")
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: figures.append(figure))
    return figures


def lines(figure: Figure) -> list[tuple[str, list[float], list[float]]]:
    """Style, xs and ys of each line that has more than a point."""
    (axes,) = figure.axes
    return [
        (line.get_linestyle() if line.get_linewidth() < 3 else "bold", list(line.get_xdata()), list(line.get_ydata()))  # type: ignore[arg-type]
        for line in axes.lines
        if len(line.get_xdata()) == 3  # type: ignore[arg-type]
    ]


def test_steps_of_trends_are_drawn_once_and_those_of_the_longest_bold(
    demo: tuple[ModuleType, ModuleType], drawn: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    picture, _ = demo
    graph = picture.Graph(
        window={"key": "LAX", "day": "1 May 2013"},
        vertices={
            place: {"hour": hour, "delay": delay, "airport": airport, "flight": f"AA{place}"}
            for place, (hour, delay, airport) in FLIGHTS.items()
        },
        ranges={
            number: {"low": low, "high": high, "holds_low": low is not None, "holds_high": False}
            for number, (low, high) in enumerate(pairwise(CUTS))
        },
        edges=[{"kind": "from", "position": place, "first": 0, "last": 0} for place in FLIGHTS],
        trends=TRENDS,
    )
    monkeypatch.setattr(picture.Graph, "read", lambda spark: graph)
    picture.draw(None, Path("picture.png"))
    assert lines(drawn[0]) == [
        ("--", [8.0, 8.0, 9.0], [5.0, 12.0, 12.0]),
        ("--", [8.0, 8.0, 10.0], [5.0, 30.0, 30.0]),
        ("--", [9.0, 9.0, 10.0], [12.0, 30.0, 30.0]),
        ("--", [10.5, 10.5, 11.0], [20.0, 70.0, 70.0]),
        ("bold", [8.0, 8.0, 9.0], [5.0, 12.0, 12.0]),
        ("bold", [9.0, 9.0, 10.0], [12.0, 30.0, 30.0]),
    ]
    assert not drawn[0].axes[0].collections, "flights have signs of their own"


class Asked:
    """A session that answers the questions of the picture of a front."""

    def __init__(self, text: str) -> None:
        self.text = text

    def collect(self) -> list[dict[str, Any]]:
        if "LIMIT 1" in self.text:
            return [{"t_start": 7515, "t_end": 7520}]
        return [{"step": step, "name": "wind", "share": 1.0} for step in range(7479, 7557)]

    def toPandas(self) -> pd.DataFrame:  # noqa: N802
        return pd.DataFrame(
            {"key": [None, None], "t_start": [7515, 7530], "t_end": [7520, 7530], "probability": [0.97, 0.2]}
        )


def test_groups_stand_above_their_hours_from_the_first_ones_begin_to_the_last_ones_end(
    demo: tuple[ModuleType, ModuleType], drawn: list[Figure]
) -> None:
    class Session:
        def sql(self, text: str) -> Asked:
            return Asked(text)

    demo[1].draw_front(Session(), Path("front.png"))
    sky, lane = drawn[0].axes
    assert [(bar.get_x(), bar.get_width()) for bar in lane.patches] == [(7515, 6), (7530, 1)]  # type: ignore[attr-defined]
    assert [text.get_text() for text in lane.texts] == ["0.97", "0.20"]
    assert [line.get_xdata()[0] for line in sky.lines] == [7515, 7521, 7530, 7531]  # type: ignore[index]
    assert sky.get_xlim() == lane.get_xlim() == (7479, 7557)
