"""The sections `subscriptions` and `evaluate` of the configuration."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ConfigurationError

STREAM = "streams: {s: {source: {format: json, path: a}, time: t, name: n}}\n"
RANGES = "evaluate: {train: [2013-01-01, 2013-07-01], test: [2013-07-01, 2014-01-01]}"


def loaded(text: str) -> Configuration:
    return Configuration.from_text(STREAM + text)


def test_what_is_left_out_of_a_subscription_has_its_default() -> None:
    (one,) = loaded("subscriptions: {ab: {stream: s, query: a ; b}}").subscriptions.values()
    assert one.meaning == {
        "query": "a ; b", "lookahead": 10, "threshold": 0.0, "params": {}, "smoothing": 0.0, "decay": 0.0,
    }  # fmt: skip


def test_a_threshold_may_be_a_wanted_precision() -> None:
    text = "subscriptions: {ab: {stream: s, query: a ; b, threshold: {precision: 0.8}}}"
    (one,) = loaded(text).subscriptions.values()
    assert one.meaning["threshold"] == {"precision": 0.8}


def test_days_are_moments_in_utc() -> None:
    evaluation = loaded(RANGES).evaluate
    assert evaluation is not None
    assert evaluation.train == [datetime(2013, 1, 1, tzinfo=timezone.utc), datetime(2013, 7, 1, tzinfo=timezone.utc)]
    assert evaluation.lookaheads == [1, 5, 10]
    assert evaluation.thresholds == [0.1, 0.5, 0.9]


def test_streams_are_watched_where_the_section_stands() -> None:
    assert loaded("subscriptions: {ab: {stream: s, query: a ; b}}").watched == ["s"]
    # An empty section drops what there was.
    assert loaded("subscriptions: {}").watched == ["s"]
    assert loaded("").watched == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("subscriptions: {ab: {stream: z, query: a}}", "subscriptions.ab.stream: no stream 'z'"),
        ("subscriptions: {ab: {stream: s}}", "subscriptions.ab.query: missing"),
        ("subscriptions: {ab: {stream: s, query: a, lookahead: 0}}", "subscriptions.ab.lookahead: 0 is out of range"),
        ("subscriptions: {ab: {stream: s, query: a, threshold: 2}}", "subscriptions.ab.threshold: 2 is out of range"),
        ("subscriptions: {ab: {stream: s, query: a, decay: 1}}", "subscriptions.ab.decay: 1 is out of range"),
        ("subscriptions: {ab: {stream: s, query: a, smoothing: -1}}", "subscriptions.ab.smoothing: -1 is out of range"),
        *(
            (f"subscriptions: {{ab: {{stream: s, query: a, {key}}}}}", f"subscriptions.ab.{line}")
            for key, line in (
                ("lookahead: 1001", "lookahead: 1001 is out of range; at most 1000"),
                ("lookahead: 99999999999", "lookahead: 99999999999 is out of range; at most 1000"),
                (
                    "threshold: {precision: 0}",
                    "threshold: a precision of 0 is out of range; greater than 0 and less than 1",
                ),
                ("threshold: {precision: 1}", "threshold: a precision of 1 is out of range; greater than 0 and less"),
                ("threshold: {precision: high}", "threshold: a precision of 'high' is out of range"),
                ("threshold: {precision: true}", "threshold: a precision of True is out of range"),
                ("threshold: {recall: 0.5}", "threshold: {'recall': 0.5} is no threshold; write a number from 0 to 1"),
                ("threshold: {}", "threshold: {} is no threshold"),
                ("smoothing: .inf", "smoothing: inf is not a finite number"),
                ("smoothing: .nan", "smoothing: nan is not a finite number"),
                ("smoothing: 2.0e+9", "smoothing: 2000000000.0 is out of range; at most 1000000000"),
                ("decay: -0.1", "decay: -0.1 is out of range; at least 0"),
                ("decay: .nan", "decay: nan is not a finite number"),
                ("threshold: -.inf", "threshold: -inf is not a finite number"),
                ("params: {p: .nan}", "params: p: nan is not a finite number"),
            )
        ),
        (
            "subscriptions: {ab: {stream: s, query: a}, ab: {stream: s, query: b}}",
            "configuration, line 2, column 44: not YAML: the key 'ab' stands twice",
        ),
        (RANGES.replace("2013-07-01, 2014", "2013-06-01, 2014"), "evaluate.test: the range from 2013-06-01"),
        (RANGES.replace("[2013-01-01", "[2013-08-01"), "evaluate.train: 2013-08-01 00:00:00+00:00 is not before"),
        (RANGES.replace("2013-01-01", "soon"), "evaluate.train.0: 'soon' is not a day or a moment such as 2013-07-01"),
        (
            RANGES.replace("2013-07-01]", "2013-13-08]"),
            "evaluate.train.1: '2013-13-08' is not a day or a moment such as 2013-07-01",
        ),
        (RANGES.replace("2013-07-01]", "2013-07-01 25:00:00]"), "evaluate.train.1: '2013-07-01 25:00:00' is not a day"),
        (RANGES.replace("}", ", lookaheads: [0]}"), "evaluate.lookaheads.0: 0 is out of range; at least 1"),
        (
            RANGES.replace("}", ", lookaheads: [5, 1001]}"),
            "evaluate.lookaheads.1: 1001 is out of range; at most 1000",
        ),
        (RANGES.replace("}", ", thresholds: [.nan]}"), "evaluate.thresholds.0: nan is not a finite number"),
        (RANGES.replace("}", ", thresholds: [1.5]}"), "evaluate.thresholds.0: 1.5 is out of range; at most 1"),
    ],
)
def test_a_problem_is_one_line_that_begins_with_the_keys_path(text: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(text)
    assert str(raised.value).startswith(line)


def test_a_day_that_is_none_hides_no_other_problem() -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(RANGES.replace("2013-07-01]", "2013-13-08]") + "\nsubscriptions: {ab: {stream: s}}")
    lines = [line.partition(":")[0] for line in str(raised.value).splitlines()]
    assert lines == ["subscriptions.ab.query", "evaluate.train.1"]
