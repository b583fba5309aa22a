"""The section `alerts` of the configuration."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ConfigurationError

BEFORE = """
streams:
  s: {source: {format: json, path: a}, time: t, name: n}
  z: {source: {format: json, path: z}, time: t, name: n}
subscriptions: {m: {stream: s, query: a ; b, threshold: 0.4}, k: {stream: z, query: a ; b, forecasts: keep}}
groups: {g: {stream: z, pattern: "a, b", within: 3}}
patterns: {p: {stream: z, query: a ; b WITHIN 3 MIN}}
"""


def loaded(alert: str) -> Configuration:
    return Configuration.from_text(f"{BEFORE}alerts: {{x: {alert}}}")


def test_what_is_left_out_has_its_default() -> None:
    alert = loaded("{of: subscription, name: m}").alerts["x"]
    assert (alert.where, alert.to, alert.retries, alert.dead_letter_after) == (None, "table", 2, 20)
    assert (alert.timeout, alert.back_off) == (timedelta(seconds=10), timedelta(seconds=1))
    assert loaded("{of: subscription, name: m, to: webhook, url: 'http://x'}").alerts["x"].at_once == 4
    assert alert.meaning == {"of": "subscription", "name": "m", "where": None}


def test_what_a_variable_has_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "hooks.example/T0/secret")
    with pytest.raises(ConfigurationError) as raised:
        loaded("{of: subscription, name: m, to: webhook, url: '${HOOK}'}")
    assert str(raised.value) == (
        "alerts.x.url: '${HOOK}' stands for what is not an address; write one like https://example.com/alerts"
    )


def test_an_alert_is_quiet_for_a_span_of_time_and_one_of_groups_for_steps() -> None:
    alert = loaded("{of: subscription, name: m, quiet: 1 hour}").alerts["x"]
    assert alert.meaning == {"of": "subscription", "name": "m", "where": None, "quiet": 3_600_000_000}
    assert loaded("{of: forecast, name: m, quiet: 1 ms}").alerts["x"].meaning["quiet"] == 1000
    assert loaded("{of: group, name: g, quiet: 60}").alerts["x"].meaning["quiet"] == 60


def test_an_alert_reads_what_predict_keeps_of_a_stream_or_groups_of_a_query() -> None:
    for alert, reads, stream in (
        ("{of: forecast, name: m}", ("predict", "s"), "s"),
        ("{of: subscription, name: k}", ("predict", "z"), "z"),
        ("{of: group, name: g}", ("groups", "g"), "z"),
        ("{of: pattern, name: p}", ("patterns", "p"), "z"),
    ):
        configuration = loaded(alert)
        assert configuration.stream_of_alert("x") == stream
        assert configuration.alerts["x"].reads(stream) == reads


def below(number: float) -> float:
    return math.nextafter(number, 0)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("probability > 0.2", 0.2),
        ("probability >= 0.2", below(0.2)),
        ("0.2 < Probability AND is_best", 0.2),
        ("0.2 <= probability", below(0.2)),
        ("(probability > 0.1 AND (probability > 0.3)) AND state = 'N1'", 0.3),
        ("probability BETWEEN 0.2 AND 0.6", below(0.2)),
        ("probability = 0.25", below(0.25)),
        # The subscription's own: less is not asked for, or cannot be told from the text.
        ("probability > 0.7", 0.4),
        ("probability > 0.1 OR is_best", 0.4),
        ("NOT probability > 0.1", 0.4),
        ("probability * 2 > 0.1", 0.4),
        ("probability < 0.1", 0.4),
        ("is_best", 0.4),
    ],
)
def test_forecasts_are_kept_that_an_alert_may_be_about(where: str, kept: float) -> None:
    assert loaded(f'{{of: forecast, name: m, where: "{where}"}}').kept_forecasts == {"k": 0.0, "m": kept}


def test_of_several_alerts_the_one_that_asks_for_least_says_what_is_kept() -> None:
    alerts = (
        "{x: {of: forecast, name: m, where: probability > 0.3}, y: {of: forecast, name: m, where: probability > 0.1}}"
    )
    assert Configuration.from_text(f"{BEFORE}alerts: {alerts}").kept_forecasts["m"] == 0.1
    assert loaded("{of: subscription, name: m}").kept_forecasts == {"k": 0.0}


def test_predicates_may_use_the_columns_of_their_rows() -> None:
    assert loaded("{of: subscription, name: m, where: \"last_time >= TIMESTAMP '2024-01-01' AND key <> 'x'\"}")
    assert loaded("{of: subscription, name: m, where: \"bindings['A'][0] > 3 AND size(bindings.B) = 1\"}")
    assert loaded("{of: subscription, name: m, where: \"exists(bindings['A'], place -> place > first_position)\"}")
    assert loaded("{of: group, name: g, where: t_end - t_start > 3}")


@pytest.mark.parametrize(
    ("alert", "line"),
    [
        ("{name: m}", "alerts.x.of: missing"),
        ("{of: subscription}", "alerts.x.name: missing"),
        ("{of: patterns, name: m}", "alerts.x.of: 'patterns' is not one of subscription, forecast, group, pattern"),
        (
            "{of: forecasts, name: m}",
            "alerts.x.of: 'forecasts' is not one of subscription, forecast, group, pattern (did you",
        ),
        ("{of: forecast, name: n}", "alerts.x.name: subscriptions has no 'n'; there: 'm', 'k'"),
        ("{of: group, name: m}", "alerts.x.name: groups has no 'm'; there: 'g'"),
        ("{of: pattern, name: g}", "alerts.x.name: patterns has no 'g'; there: 'p'"),
        ("{of: pattern, name: p, where: probability > 0.5}", "alerts.x.where: no column 'probability'; columns: key, "),
        (
            "{of: forecast, name: m, wher: is_best}",
            "alerts.x.wher: unknown key (did you mean 'where'?); known: of, name,",
        ),
        ("{of: forecast, name: m, where: ''}", "alerts.x.where: is empty"),
        ("{of: forecast, name: m, where: probability >=}", "alerts.x.where: 'probability >=' is not SQL: "),
        (
            "{of: forecast, name: m, where: probabilty > 0.3}",
            "alerts.x.where: no column 'probabilty' (did you mean 'probability'?); columns: key, state, bindings,",
        ),
        (
            "{of: subscription, name: m, where: probability > 0.3}",
            "alerts.x.where: no column 'probability'; columns: key,",
        ),
        (
            "{of: group, name: g, where: bindings IS NULL}",
            "alerts.x.where: no column 'bindings'; columns: key, t_start,",
        ),
        (
            "{of: forecast, name: m, where: probability > (SELECT 1)}",
            "alerts.x.where: 'probability > (SELECT 1)' has a subq",
        ),
        (
            "{of: forecast, name: m, where: max(probability) > 1}",
            "alerts.x.where: 'max(probability) > 1' has an aggregate",
        ),
        (
            "{of: forecast, name: m, where: rank() OVER (ORDER BY key) = 1}",
            "alerts.x.where: 'rank() OVER (ORDER BY key) =",
        ),
        ("{of: forecast, name: m, where: '*'}", "alerts.x.where: '*' is not a predicate; columns: key, state,"),
        ("{of: forecast, name: m, to: mail}", "alerts.x.to: 'mail' is not one of table, webhook, kafka, command"),
        ("{of: forecast, name: m, to: webhook}", "alerts.x.url: missing; `to: webhook` needs it"),
        (
            "{of: forecast, name: m, to: webhook, url: 'ftp://x'}",
            "alerts.x.url: 'ftp://x' is not an address; write one",
        ),
        ("{of: forecast, name: m, to: webhook, url: 'http://'}", "alerts.x.url: 'http://' is not an address"),
        (
            "{of: forecast, name: m, url: 'http://x'}",
            "alerts.x.url: belongs to `to: webhook`, and this alert goes to 'table'",
        ),
        (
            "{of: forecast, name: m, at_once: 4}",
            "alerts.x.at_once: belongs to `to: webhook`, and this alert goes to 'table'",
        ),
        (
            "{of: forecast, name: m, to: webhook, url: 'http://x', at_once: 0}",
            "alerts.x.at_once: 0 is out of range; at least 1",
        ),
        (
            "{of: forecast, name: m, to: webhook, url: 'http://x', at_once: 33}",
            "alerts.x.at_once: 33 is out of range; at most 32",
        ),
        ("{of: forecast, name: m, to: kafka, topic: t}", "alerts.x.brokers: missing; `to: kafka` needs it"),
        ("{of: forecast, name: m, to: kafka, brokers: b}", "alerts.x.topic: missing; `to: kafka` needs it"),
        ("{of: forecast, name: m, to: command}", "alerts.x.command: missing; `to: command` needs it"),
        ("{of: forecast, name: m, to: command, command: []}", "alerts.x.command: [] has too few entries; at least 1"),
        ("{of: forecast, name: m, to: command, command: tell}", "alerts.x.command: 'tell' is not a list"),
        ("{of: forecast, name: m, retries: -1}", "alerts.x.retries: -1 is out of range; at least 0"),
        ("{of: forecast, name: m, dead_letter_after: 0}", "alerts.x.dead_letter_after: 0 is out of range; at least 1"),
        ("{of: forecast, name: m, back_off: 0}", "alerts.x.back_off: 0 is no time at all; at least 1 ms"),
        (
            "{of: pattern, name: p, quiet: 0}",
            "alerts.x.quiet: 0 is out of range; at least 1 step, or a duration like 1",
        ),
        ("{of: pattern, name: p, quiet: 0 s}", "alerts.x.quiet: '0 s' is no time at all; at least 1 ms"),
        ("{of: pattern, name: p, quiet: long}", "alerts.x.quiet: 'long' is not a duration; write a duration like 1"),
        (
            "{of: pattern, name: p, quiet: 60}",
            "alerts.x.quiet: 60 is a number of steps, and a pattern has times; write a duration like 1 hour",
        ),
        (
            "{of: group, name: g, quiet: 1 hour}",
            "alerts.x.quiet: 1:00:00 is a duration, and groups have steps; write how many steps, like 60",
        ),
        ("{of: forecast, name: m, timeout: soon}", "alerts.x.timeout: 'soon' is not a duration"),
        ("{of: forecast, name: m, timeout: 2 days}", "alerts.x.timeout: '2 days' is out of range; at most 1 day"),
        (
            "{of: forecast, name: m, to: webhook, url: 'http://ä..example/x'}",
            "alerts.x.url: 'http://ä..example/x' is not an address; write one",
        ),
    ],
)
def test_a_problem_is_one_line_that_begins_with_the_keys_path(alert: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(alert)
    assert str(raised.value).startswith(line)
