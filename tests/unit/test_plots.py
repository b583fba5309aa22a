"""What pictures of answers show: lanes, bars, lines and their names. Drawn without a screen, from frames of pandas."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib import dates

import patternlake
from patternlake.udfs.errors import ArgumentError, StateError

plot = patternlake.plot


@pytest.fixture(autouse=True)
def _no_screen() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2025-03-03 {text}")


def matches(*rows: tuple[str | None, str, str], **more: list[Any]) -> pd.DataFrame:
    keys, begins, ends = zip(*rows, strict=True)
    times = {"first_time": list(map(moment, begins)), "last_time": list(map(moment, ends))}
    return pd.DataFrame({"key": list(keys), **times, **more})


def bars(ax: Any) -> list[tuple[str, str, float]]:
    """Begin, end and middle of each bar of a timeline."""
    found = []
    for bar in ax.patches:
        ends = (bar.get_x(), bar.get_x() + bar.get_width())
        begin, end = (dates.num2date(each).strftime("%H:%M") for each in ends)
        found.append((begin, end, round(bar.get_y() + bar.get_height() / 2, 3)))
    return found


def labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


class TestTimeline:
    def test_each_key_has_a_lane_in_the_order_of_first_matches(self) -> None:
        ax = plot.timeline(matches(("ben", "09:02", "09:31"), ("ann", "09:00", "09:20"), ("ben", "10:00", "10:30")))
        assert labels(ax) == ["ann", "ben"]
        assert bars(ax) == [("09:00", "09:20", 0.0), ("09:02", "09:31", 1.0), ("10:00", "10:30", 1.0)]
        assert ax.get_ylim() == (1.5, -0.5)

    def test_matches_of_one_key_that_overlap_stand_above_each_other(self) -> None:
        ax = plot.timeline(matches(("k", "09:00", "09:20"), ("k", "09:10", "09:30"), ("k", "09:25", "09:40")))
        assert bars(ax) == [("09:00", "09:20", -0.2), ("09:10", "09:30", 0.2), ("09:25", "09:40", -0.2)]

    def test_a_match_of_one_moment_is_a_point_and_no_key_is_one_lane(self) -> None:
        ax = plot.timeline(matches((None, "09:00", "09:00")))
        assert labels(ax) == ["all"]
        assert (len(ax.patches), [line.get_marker() for line in ax.lines]) == (0, ["D"])

    def test_what_may_still_change_is_pale(self) -> None:
        frame = matches(("k", "09:00", "09:20"), ("k", "09:30", "09:40"), final=[True, False])
        assert [bar.get_alpha() for bar in plot.timeline(frame).patches] == [1.0, 0.35]

    def test_groups_are_drawn_over_their_steps_by_their_probability(self) -> None:
        frame = pd.DataFrame({"key": ["x"], "t_start": [1], "t_first": [3], "t_end": [5], "probability": [0.5]})
        ax = plot.timeline(frame)
        assert [(bar.get_x(), bar.get_width(), bar.get_alpha()) for bar in ax.patches] == [(1, 4, 0.575)]
        assert ax.get_xlabel() == "step"

    def test_given_axes_are_drawn_on_and_returned(self) -> None:
        from matplotlib import pyplot

        _, (given, other) = pyplot.subplots(1, 2)
        assert plot.timeline(matches(("k", "09:00", "09:20")), ax=given) is given
        assert (len(given.patches), len(other.patches)) == (1, 0)

    def test_too_many_keys_or_rows_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="the matches are of 101 keys, and 100 lanes fit; choose"):
            plot.timeline(matches(*[(str(number), "09:00", "09:20") for number in range(101)]))
        with pytest.raises(ArgumentError, match="more than 5,000 rows, which no picture shows"):
            plot.timeline(matches(*[("k", "09:00", "09:20")] * 5001))


class TestTrends:
    CHAINS = pd.DataFrame({"key": ["k"] * 3, "window_start": [1] * 3, "positions": [[1, 3], [1, 2, 4], [2, 4]]})
    EVENTS = pd.DataFrame(
        {
            "position": [1, 2, 3, 4, 5],
            "time": [moment(f"09:0{minute}") for minute in range(5)],
            "name": list("abcde"),
            "delay": [10, 20, 30, 40, 50],
        }
    )

    def test_each_step_is_one_line_and_the_longest_trend_is_drawn_over_them(self) -> None:
        ax = plot.trends(self.CHAINS)
        lines = [(list(line.get_xdata()), list(line.get_ydata()), line.get_linewidth()) for line in ax.lines]
        assert lines == [
            ([1, 2], [1, 2], 1),
            ([1, 3], [1, 2], 1),
            ([2, 4], [2, 3], 1),
            ([1, 2], [1, 2], 3),
            ([2, 4], [2, 3], 3),
        ]
        assert ax.collections[0].get_offsets().tolist() == [[1, 1], [2, 2], [3, 2], [4, 3]]
        assert [(text.get_text(), text.get_weight()) for text in ax.texts] == [
            ("1", "bold"),
            ("2", "bold"),
            ("3", "normal"),
            ("4", "bold"),
        ]

    def test_events_give_times_heights_and_names(self) -> None:
        ax = plot.trends(self.CHAINS, self.EVENTS, y="delay", elbows=True)
        first = ax.lines[0]
        assert [each.strftime("%H:%M") for each in first.get_xdata()] == ["09:00", "09:00", "09:01"]
        assert list(first.get_ydata()) == [10, 20, 20]
        assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "d"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "delay")

    def test_several_windows_are_refused(self) -> None:
        frame = self.CHAINS.assign(window_start=[1, 1, 2])
        with pytest.raises(ArgumentError, match=r"of 2 windows \(key k, window_start 1; key k, window_start 2, …\)"):
            plot.trends(frame)

    def test_an_event_that_is_missing_is_named(self) -> None:
        with pytest.raises(ArgumentError, match="the event at position 4 of a trend is not among the events"):
            plot.trends(self.CHAINS, self.EVENTS[:3])


class TestFunnel:
    STEPS = pd.DataFrame({"step": ["cart", "pay", "leave"], "count": [40, 10, 5]})

    def test_each_step_is_a_bar_with_its_shares(self) -> None:
        ax = plot.funnel(self.STEPS)
        assert [(bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in ax.patches] == [
            (40, 0),
            (10, 1),
            (5, 2),
        ]
        assert labels(ax) == ["cart", "pay", "leave"]
        assert [text.get_text() for text in ax.texts] == [
            "40",
            "10   25 % of the first, 25 % of the one before",
            "5   12.5 % of the first, 50 % of the one before",
        ]

    def test_columns_may_be_called_otherwise(self) -> None:
        ax = plot.funnel(self.STEPS.rename(columns={"step": "page", "count": "users"}), step="page", count="users")
        assert ax.get_xlabel() == "users"

    @pytest.mark.parametrize("wrong", [-1, 0.5, "many", True])
    def test_what_is_no_count_is_refused(self, wrong: object) -> None:
        frame = pd.DataFrame({"step": ["a"], "count": pd.Series([wrong], dtype=object)})
        with pytest.raises(ArgumentError, match=r"count is .*a whole number of 0 or more would be right"):
            plot.funnel(frame)

    def test_nobody_at_the_first_step_is_no_share(self) -> None:
        ax = plot.funnel(pd.DataFrame({"step": ["a", "b"], "count": [0, 0]}))
        assert ax.texts[1].get_text() == "0   – of the first, – of the one before"


class TestForecasts:
    LIKELY = pd.DataFrame({"key": ["x", None, "z"], "state": ["s1", "s2", "s3"], "probability": [0.2, 0.9, 0.5]})
    JUDGED = pd.DataFrame(
        {
            "lookahead": [1, 1, 5, 5, 5],
            "kind": ["threshold"] * 4 + ["calibration"],
            "low": [0.1, 0.5, 0.1, 0.5, 0.7],
            "precision": [0.3, None, 0.4, 0.6, 1.0],
            "recall": [0.5, 0.0, 0.7, 0.2, 1.0],
        }
    )

    def test_the_most_probable_stands_at_the_top(self) -> None:
        ax = plot.forecasts(self.LIKELY, threshold=0.4)
        assert labels(ax) == ["all", "z", "x"]
        assert [bar.get_width() for bar in ax.patches] == [0.9, 0.5, 0.2]
        assert [text.get_text() for text in ax.texts] == ["0.9   s2", "0.5   s3", "0.2   s1"]
        assert list(ax.lines[0].get_xdata()) == [0.4, 0.4]

    def test_an_evaluation_has_a_line_for_each_lookahead_over_the_thresholds(self) -> None:
        ax = plot.forecasts(self.JUDGED)
        assert [(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines] == [
            ("within 1 event", [0], [0.3]),
            ("within 5 events", [0, 1], [0.4, 0.6]),
        ]
        assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.5"]
        assert plot.forecasts(self.JUDGED, measure="recall", dashed=True).lines[0].get_linestyle() == "--"

    def test_where_nothing_was_forecast_a_line_has_no_point(self) -> None:
        judged = self.JUDGED.assign(forecasts=[10, 0, 20, 5, 1])
        lines = plot.forecasts(judged, measure="recall").lines
        assert [list(line.get_ydata()) for line in lines] == [[0.5], [0.7, 0.2]]

    def test_other_measures_and_several_subscriptions_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="measure is 'brier'; one of precision, recall would be right"):
            plot.forecasts(self.JUDGED, measure="brier")
        two = self.JUDGED.assign(subscription=["a", "b", "a", "a", "a"])
        with pytest.raises(ArgumentError, match=r"of several subscriptions \(a, b\); choose one with WHERE"):
            plot.forecasts(two)


@pytest.mark.parametrize("picture", [plot.timeline, plot.trends, plot.funnel, plot.forecasts])
def test_a_missing_column_and_an_empty_frame_are_told(picture: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"plot.{picture.__name__}: no column '\w+' in the frame, which has other"):
        picture(pd.DataFrame({"other": [1]}))
    empty = pd.DataFrame(
        columns=["key", "first_time", "last_time", "positions", "step", "count", "state", "probability"]
    )
    with pytest.raises(
        ArgumentError, match=rf"plot.{picture.__name__}: the frame has no rows; there is nothing to draw"
    ):
        picture(empty)


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def missing(name: str, *given: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return there(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(StateError, match=r"pip install 'patternlake\[plot\]'"):
        plot.funnel(TestFunnel.STEPS)
