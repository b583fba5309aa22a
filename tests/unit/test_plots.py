"""What pictures of answers show: lanes, bars, lines and their names. Drawn without a screen, from frames of pandas."""

from __future__ import annotations

import builtins
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib import dates
from matplotlib.patches import PathPatch

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


def test_dollars_of_names_begin_no_formula() -> None:
    names = ["$page_view_a $b_c_d", "$screen"]
    nexts = [[{"name": "$feature_flag_called", "partitions": 3}, {"name": "$pageleave", "partitions": 2}], None]
    frame = pd.DataFrame(
        {
            "step": [1, 2], "operand": names, "reached": [9, 4], "dropped": [5, 0], "seconds_p50": [None, 1.0],
            "seconds_p90": [None, 2.0], "next_events": nexts,
        }
    )  # fmt: skip
    ax = plot.funnel(frame)
    ax.figure.canvas.draw()
    assert "$feature_…g_called 3, $pageleave 2" in [text.get_text() for text in ax.texts]
    found = matches(("$a_b_c$", "10:00", "11:00"), ("$d_e_f$", "10:30", "11:30"))
    ax = plot.timeline(found)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$a_b_c$", "$d_e_f$"]
    assert not any(text.get_parse_math() for text in (*ax.texts, *ax.get_yticklabels()))


def bars(ax: Any) -> list[tuple[str, str, float]]:
    """Begin, end and middle of each bar of a timeline."""
    found = []
    for bar in ax.patches:
        ends = (bar.get_x(), bar.get_x() + bar.get_width())
        begin, end = (dates.num2date(each).strftime("%H:%M") for each in ends)
        found.append((begin, end, round(bar.get_y() + bar.get_height() / 2, 3)))
    return found


def overlapping(texts: Iterable[Any]) -> list[tuple[str, str]]:
    """Pairs of texts of which one covers a part of the other."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    return [(one[0], other[0]) for one, other in combinations(boxes, 2) if one[1].overlaps(other[1])]


def cut(ax: Any) -> list[str]:
    """Texts that are not whole within the picture."""
    whole = ax.figure.bbox
    texts = [*ax.texts, *ax.get_yticklabels(), *ax.get_legend().get_texts(), ax.xaxis.label, ax.title, ax._left_title]
    return [
        text.get_text()
        for text in texts
        if text.get_text() and (box := text.get_window_extent()).intersection(whole, box).bounds != box.bounds
    ]


def signs(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def table(ax: Any) -> list[list[str]]:
    """The columns of text beside a funnel, under their heads."""
    steps = len(ax.get_yticklabels())
    texts = [text.get_text() for text in ax.texts]
    return [texts[first : first + steps + 1] for first in range(0, len(texts), steps + 1)]


def nodes(ax: Any) -> set[tuple[int, str]]:
    """The nodes of a Sankey diagram: place, and name with occurrences."""
    return {(int(text.get_position()[0] // 1), text.get_text()) for text in ax.texts}


def bands(ax: Any) -> list[Any]:
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def ticks(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


class TestTimeline:
    def test_each_key_has_a_lane_in_the_order_of_first_matches(self) -> None:
        ax = plot.timeline(matches(("ben", "09:02", "09:31"), ("ann", "09:00", "09:20"), ("ben", "10:00", "10:30")))
        assert labels(ax) == ["ann", "ben"]
        assert bars(ax) == [("09:00", "09:20", 0.0), ("09:02", "09:31", 1.0), ("10:00", "10:30", 1.0)]
        assert ax.get_ylim() == (1.5, -0.5)

    def test_matches_of_one_key_that_overlap_stand_above_each_other(self) -> None:
        ax = plot.timeline(matches(("k", "09:00", "09:20"), ("k", "09:10", "09:30"), ("k", "09:25", "09:40")))
        assert bars(ax) == [("09:00", "09:20", -0.2), ("09:10", "09:30", 0.2), ("09:25", "09:40", -0.2)]

    def test_a_match_of_one_moment_is_a_point_and_no_key_is_called_as_in_sql(self) -> None:
        ax = plot.timeline(matches((None, "09:00", "09:00")))
        assert labels(ax) == ["NULL"]
        days = pd.DataFrame(
            {"key": [pd.NaT, moment("00:00")], "first_time": moment("09:00"), "last_time": moment("9:30".zfill(5))}
        )
        assert labels(plot.timeline(days)) == ["NULL", "2025-03-03 00:00:00"]
        assert (len(ax.patches), [line.get_marker() for line in ax.lines]) == (0, ["D"])

    def test_what_may_still_change_is_pale(self) -> None:
        frame = matches(("k", "09:00", "09:20"), ("k", "09:30", "09:40"), final=[True, False])
        assert [bar.get_alpha() for bar in plot.timeline(frame).patches] == [1.0, 0.35]

    def test_groups_are_drawn_over_their_steps_by_their_probability(self) -> None:
        frame = pd.DataFrame({"key": ["x"], "t_start": [1], "t_first": [3], "t_end": [5], "probability": [0.5]})
        ax = plot.timeline(frame)
        assert [(bar.get_x(), bar.get_width(), bar.get_alpha()) for bar in ax.patches] == [(1, 4, 0.575)]
        assert ax.get_xlabel() == "step"

    def test_it_says_what_it_shows_in_which_units(self) -> None:
        ax = plot.timeline(matches(("k", "09:00", "09:20"), ("l", "09:30", "09:30"), final=[True, False]))
        assert (ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel()) == ("2 matches of 2 keys", "time", "key")
        assert signs(ax) == ["final match", "match that later events may change", "match of one moment"]
        groups = pd.DataFrame({"key": ["x"], "t_start": [1], "t_end": [5], "probability": [0.5]})
        ax = plot.timeline(groups)
        assert ax.get_title("left") == "1 group of 1 key"
        assert signs(ax) == ["group of probability 1", "group of probability 0.5", "group of probability 0.1"]

    def test_a_title_that_is_there_stays(self) -> None:
        from matplotlib import pyplot

        given = pyplot.subplots()[1]
        given.set_title("mine")
        assert (plot.timeline(matches(("k", "09:00", "09:20")), ax=given).get_title("left"), given.get_title()) == (
            "",
            "mine",
        )

    def test_a_bar_is_at_least_three_pixels_wide_around_its_middle(self) -> None:
        frame = matches(("k", "09:00", "09:01"), ("k", "10:00", "19:00"))
        frame.loc[0, "last_time"] = moment("09:00:10")
        ax = plot.timeline(frame)
        ax.figure.canvas.draw()
        narrow, wide = (bar.get_window_extent() for bar in ax.patches)
        assert narrow.width >= 2.99
        assert ax.bbox.x0 < narrow.x0
        assert wide.width > 100
        middle = dates.num2date(ax.patches[0].get_x() + ax.patches[0].get_width() / 2)
        assert middle.strftime("%H:%M:%S") == "09:00:05"

    @pytest.mark.parametrize("seconds", [3, 9, 119, 480, 660, 7000, 130_000, 5_200_000])
    @pytest.mark.parametrize("width", [3, 9])
    def test_there_are_ticks_and_they_do_not_overlap(self, seconds: int, width: int) -> None:
        from matplotlib import pyplot

        begin = moment("09:12:31")
        frame = pd.DataFrame({"key": ["k"], "first_time": [begin], "last_time": [begin + timedelta(seconds=seconds)]})
        ax = plot.timeline(frame, ax=pyplot.subplots(figsize=(width, 3), layout="constrained")[1])
        ax.figure.canvas.draw()
        assert overlapping([*ax.get_xticklabels(), ax.xaxis.label, ax.xaxis.get_offset_text()]) == []
        low, high = ax.get_xlim()
        assert sum(low <= tick <= high for tick in ax.get_xticks()) >= (2 if width == 9 else 1)

    def test_of_many_lanes_so_many_are_named_as_have_room(self) -> None:
        from matplotlib import pyplot

        frame = matches(*[(f"key {number}", "09:00", "09:20") for number in range(90)])
        ax = plot.timeline(frame, ax=pyplot.subplots(figsize=(9, 3), layout="constrained")[1])
        ax.figure.canvas.draw()
        assert overlapping(ax.get_yticklabels()) == []
        assert 10 < len(labels(ax)) < 30
        assert labels(ax)[0] == "key 0"

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
        assert ax.get_title("left") == "3 trends, the longest of 3 events"
        assert signs(ax) == ["event", "step of a trend", "the longest trend"]

    def test_several_windows_are_refused(self) -> None:
        frame = self.CHAINS.assign(window_start=[1, 1, 2])
        with pytest.raises(ArgumentError, match=r"of 2 windows \(key k, window_start 1; key k, window_start 2, …\)"):
            plot.trends(frame)

    def test_an_event_that_is_missing_is_named(self) -> None:
        with pytest.raises(ArgumentError, match="the event at position 4 of a trend is not among the events"):
            plot.trends(self.CHAINS, self.EVENTS[:3])

    def test_events_of_several_streams_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="the position 2 stands twice among the events"):
            plot.trends(self.CHAINS, pd.concat([self.EVENTS, self.EVENTS[1:2]]))

    def test_events_of_no_trend_are_left_out_however_many(self) -> None:
        more = pd.DataFrame({"position": range(10, 5000), "time": moment("10:00"), "name": "z", "delay": 1})
        assert len(plot.trends(self.CHAINS, pd.concat([self.EVENTS, more])).texts) == 4

    def test_labels_are_cut_as_names_are_and_null_is_null(self) -> None:
        ax = plot.trends(self.CHAINS, self.EVENTS.assign(name=["a" * 80, None, "c", "d", "e"]))
        long, null, *_ = (text.get_text() for text in ax.texts)
        assert (len(long) < 40, "…" in long, null) == (True, True, "NULL")

    def test_a_height_that_is_no_number_is_named(self) -> None:
        with pytest.raises(ArgumentError, match="y is 'name', of which 'a' is no number"):
            plot.trends(self.CHAINS, self.EVENTS, y="name")


class TestFunnel:
    STEPS = pd.DataFrame({"step": ["cart", "pay", "leave"], "count": [40, 10, 5]})

    def test_each_step_is_a_bar_with_its_shares(self) -> None:
        ax = plot.funnel(self.STEPS)
        assert [(bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in ax.patches] == [
            (40, 0), (10, 1), (5, 2), (10, 0), (5, 1), (5, 2),
        ]  # fmt: skip
        assert labels(ax) == ["1. cart", "2. pay", "3. leave"]
        assert table(ax) == [
            ["count", "40", "10", "5"],
            ["of first", "", "25 %", "12.5 %"],
            ["of previous", "", "25 %", "50 %"],
        ]
        assert ax.get_title("left") == "5 of 40 get to the last step: 12.5 %"
        assert signs(ax) == ["went on, or reached the last step", "dropped out here"]

    ANSWER = pd.DataFrame(
        {
            "group": [None] * 3,
            "step": [3, 1, 2],
            "operand": ["pay", "view", "cart"],
            "reached": [0, 40, 10],
            "dropped": [0, 30, 10],
            "seconds_p50": [None, None, 90.0],
            "seconds_p90": [None, None, 100_000.0],
            "next_events": [
                [],
                [{"name": "leave", "partitions": 20}, {"name": None, "partitions": 4}],
                [{"name": "help", "partitions": 10}],
            ],
        }
    )

    def test_an_answer_of_match_funnel_tells_times_and_what_those_did_who_dropped_out(self) -> None:
        ax = plot.funnel(self.ANSWER)
        assert labels(ax) == ["1. view", "2. cart", "3. pay"]
        assert table(ax) == [
            ["partitions", "40", "10", "0"],
            ["of first", "", "25 %", "0 %"],
            ["of previous", "", "25 %", "0 %"],
            ["median time", "", "1.5 min", ""],
            ["90 % within", "", "1.16 d", ""],
            ["dropped out", "30", "10", "0"],
            ["and did next", "leave 20, nothing 4, other 6", "help 10", ""],
        ]
        assert ax.get_xlabel() == "partitions"

    def test_the_picture_is_of_one_group_and_names_it(self) -> None:
        ax = plot.funnel(self.ANSWER.assign(group="north"))
        assert ax.get_title("left") == "0 of 40 get to the last step: 0 % (north)"
        with pytest.raises(
            ArgumentError, match=r"the rows are of 2 groups \(a, b\), and a picture shows one; choose it"
        ):
            plot.funnel(self.ANSWER.assign(group=["a", "b", "b"]))

    @pytest.mark.parametrize("count", [2, 5, 12])
    def test_long_names_and_large_numbers_neither_overlap_nor_are_cut(self, count: int) -> None:
        steps = range(1, count + 1)
        name = "checkout.payment_provider.redirect_{}.completed"
        events = [{"name": name.format(number), "partitions": 1_234_567} for number in range(3)]
        frame = pd.DataFrame(
            {
                "step": steps,
                "operand": [name.format(number) for number in steps],
                "reached": [123_456_789 - 6_543_210 * number for number in steps],
                "dropped": [6_543_210] * (count - 1) + [0],
                "seconds_p50": [None] + [86_000.0] * (count - 1),
                "seconds_p90": [None] + [860_000.0] * (count - 1),
                "next_events": [events] * (count - 1) + [[]],
            }
        )
        ax = plot.funnel(frame)
        ax.figure.canvas.draw()
        texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), *ax.get_legend().get_texts()]
        assert overlapping([*texts, ax._left_title, ax.xaxis.label]) == []
        assert cut(ax) == []
        assert len(set(labels(ax))) == count, "names that are shortened differ still"

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
        assert table(ax) == [["count", "0", "0"], ["of first", "", "–"], ["of previous", "", "–"]]
        assert ax.get_title("left") == "0 of 0 get to the last step: –"


class TestPaths:
    AROUND = pd.DataFrame(
        {
            "path": [["a", "C", "a"], ["C", "b", "C"], ["C", "…"], ["a", "C"]],
            "occurrences": [5, 3, 2, 1],
            "share": [0.4, 0.3, 0.1, 0.1],
        }
    )

    def test_a_name_at_two_places_is_two_nodes_and_bands_are_as_wide_as_what_goes_along(self) -> None:
        ax = plot.paths(self.AROUND, around="C", before=1, after=2)
        assert nodes(ax) == {(-1, "a  6"), (0, "C  11"), (1, "a  5"), (1, "b  3"), (1, "…  2"), (2, "C  3")}
        assert ticks(ax) == ["1 before", "C", "1 after", "2 after"]
        widths = sorted(corners[7][1] - corners[0][1] for corners in (band.get_path().vertices for band in bands(ax)))
        assert [width / widths[0] * 2 for width in widths] == pytest.approx([2, 3, 3, 5, 6])

    def test_the_event_in_the_middle_and_names_beyond_the_alphabet_are_told_apart(self) -> None:
        ax = plot.paths(self.AROUND, around="C", before=1, after=2)
        colours = {text.get_text(): (text.get_color(), text.get_weight()) for text in ax.texts}
        assert colours["C  11"] == ("#c0392b", "bold")
        assert colours["C  3"] == ("#222222", "normal"), "it is C again, and not what the path is around"
        assert colours["…  2"] == ("#7f8c8d", "normal")
        assert signs(ax)[2:] == ["the event that paths lead to and from", "…: names beyond the most frequent"]

    def test_it_says_what_it_shows_in_which_units(self) -> None:
        ax = plot.paths(self.AROUND.assign(group="north"), around="C", before=1, after=2)
        assert ax.get_title("left") == "Paths around C: 4 paths, 11 occurrences, 90 % of all (north)"
        assert ax.get_xlabel() == "names before and after the event"
        ax = plot.paths(self.AROUND)
        assert ax.get_title("left") == "Paths: 4 paths, 11 occurrences, 90 % of all"
        assert (ticks(ax), ax.get_xlabel()) == (["1", "2", "3"], "place in the path")

    def test_what_does_not_fit_is_refused(self) -> None:
        with pytest.raises(
            ArgumentError, match="the path C, b, C has no 'C' with at most 0 names before it and 1 behind"
        ):
            plot.paths(self.AROUND[1:], around="C", before=0, after=1)
        with pytest.raises(ArgumentError, match="the path a, C, a has no 'x'"):
            plot.paths(self.AROUND, around="x")
        with pytest.raises(ArgumentError, match="a path has 21 names, and 20 fit; ask match_paths for shorter ones"):
            plot.paths(pd.DataFrame({"path": [list(map(str, range(21)))], "occurrences": [1], "share": [1.0]}))
        with pytest.raises(ArgumentError, match="more than 40 rows"):
            plot.paths(pd.DataFrame({"path": [["a"]] * 41, "occurrences": 1, "share": 0.01}))
        with pytest.raises(ArgumentError, match=r"the rows are of 2 groups \(n, NULL\)"):
            plot.paths(self.AROUND.assign(group=["n", None, None, "n"]))

    def test_twenty_paths_of_six_names_neither_overlap_nor_are_cut(self) -> None:
        rng = random.Random(7)
        names = [f"checkout.payment_provider.redirect_{number}" for number in range(15)]
        paths = [[*rng.choices(names, k=2), "cart", *rng.choices(names, k=3)] for _ in range(20)]
        frame = pd.DataFrame({"path": paths, "occurrences": range(20_000_000, 0, -1_000_000), "share": 0.02})
        ax = plot.paths(frame, around="cart")
        ax.figure.canvas.draw()
        assert len(ax.texts) > 50
        texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_legend().get_texts(), ax._left_title, ax.xaxis.label]
        assert overlapping(texts) == []
        assert cut(ax) == []


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

    def test_states_are_called_by_what_is_done(self) -> None:
        bindings = [{"a": [1], "b": [2], "c": []}, {"a": [], "b": [], "c": []}, {"a": [4], "b": [], "c": []}]
        ax = plot.forecasts(self.LIKELY.assign(bindings=bindings))
        assert [text.get_text() for text in ax.texts] == ["0.9   nothing done", "0.5   a done", "0.2   a, b done"]

    def test_it_says_what_it_shows_in_which_units(self) -> None:
        ax = plot.forecasts(self.LIKELY, threshold=0.4)
        assert (ax.get_title("left"), ax.get_ylabel()) == ("Forecasts of 3 partial matches", "key")
        assert ax.get_xlabel() == "probability of being completed"
        assert signs(ax) == ["a partial match, and what it has by now", "threshold 0.4"]
        ax = plot.forecasts(self.JUDGED, measure="recall")
        assert ax.get_title("left") == "Recall: the share of the matches that were forecast"
        assert signs(ax) == ["within 1 event", "within 5 events"]

    def test_the_most_probable_stands_at_the_top(self) -> None:
        ax = plot.forecasts(self.LIKELY, threshold=0.4)
        assert labels(ax) == ["NULL", "z", "x"]
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

    def test_points_at_the_top_are_seen_as_a_whole_also_where_lines_are_alike_or_there_are_none(self) -> None:
        flat = self.JUDGED.assign(precision=0.004)
        assert plot.forecasts(flat).get_ylim() == (0, pytest.approx(0.0042))
        assert plot.forecasts(flat, measure="recall").get_ylim() == (0, 1.05)
        assert plot.forecasts(self.JUDGED.assign(forecasts=0)).get_ylim() == (0, 1.05)

    def test_where_nothing_was_forecast_a_line_has_no_point(self) -> None:
        judged = self.JUDGED.assign(forecasts=[10, 0, 20, 5, 1])
        lines = plot.forecasts(judged, measure="recall").lines
        assert [list(line.get_ydata()) for line in lines] == [[0.5], [0.7, 0.2]]

    def test_kept_forecasts_have_a_lookahead_too(self) -> None:
        kept = pd.DataFrame({"key": ["k"], "state": ["N1"], "probability": [0.5], "lookahead": [None]})
        assert plot.forecasts(kept).get_xlabel() == "probability of being completed"

    def test_calibration_alone_is_no_picture(self) -> None:
        with pytest.raises(ArgumentError, match="of the rows none is of the kind 'threshold'"):
            plot.forecasts(self.JUDGED.assign(kind="calibration"))

    def test_other_measures_and_several_subscriptions_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="measure is 'brier'; one of precision, recall would be right"):
            plot.forecasts(self.JUDGED, measure="brier")
        two = self.JUDGED.assign(subscription=["a", "b", "a", "a", "a"])
        with pytest.raises(ArgumentError, match=r"of several subscriptions \(a, b\); choose one with WHERE"):
            plot.forecasts(two)


@pytest.mark.parametrize("picture", [plot.timeline, plot.trends, plot.funnel, plot.forecasts, plot.paths])
def test_a_missing_column_an_empty_frame_and_what_is_no_frame_are_told(picture: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"plot.{picture.__name__}: no column '\w+' in the frame, which has other"):
        picture(pd.DataFrame({"other": [1]}))
    with pytest.raises(ArgumentError, match=rf"plot.{picture.__name__}: list is no frame; give the DataFrame of Spark"):
        picture([])
    columns = "key first_time last_time positions step count state probability path occurrences share"
    empty = pd.DataFrame(columns=columns.split())
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
    with pytest.raises(StateError, match=r"pip install matplotlib"):
        plot.funnel(TestFunnel.STEPS)
