"""The section `patterns` of the configuration."""

from __future__ import annotations

import pytest

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.steps import Step, find_waits, steps
from patternlake.udfs.errors import ConfigurationError

BEFORE = """
streams:
  s: {source: {format: json, path: a}, time: t, name: n}
"""


def loaded(pattern: str) -> Configuration:
    return Configuration.from_text(f"{BEFORE}patterns: {{x: {pattern}}}")


def test_what_is_left_out_has_the_defaults_of_match_pattern() -> None:
    assert loaded("{stream: s, query: a ; b WITHIN 3 MIN}").patterns["x"].meaning == {
        "stream_name": "s",
        "query": "a ; b WITHIN 3 MIN",
        "policy": "skip_till_any",
        "after_match": "next",
        "params": {},
    }


def test_what_repetitions_take_is_part_of_the_meaning_where_it_is_chosen() -> None:
    chosen = loaded("{stream: s, query: a+ WITHIN 3 MIN, repetition: all}").patterns["x"].meaning
    assert chosen == {**loaded("{stream: s, query: a+ WITHIN 3 MIN}").patterns["x"].meaning, "repetition": "all"}


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("{stream: z, query: a}", "patterns.x.stream: no stream 'z'; streams are 's'"),
        ("{stream: s}", "patterns.x.query: missing"),
        ("{stream: s, query: ''}", "patterns.x.query: is empty"),
        (
            "{stream: s, query: a, policy: any}",
            "patterns.x.policy: 'any' is not one of strict, skip_till_next, skip_till_any",
        ),
        ("{stream: s, query: a, after_match: last}", "patterns.x.after_match: 'last' is not one of past_last, next"),
        (
            "{stream: s, query: a, within: 3}",
            "patterns.x.within: unknown key; known: stream, query, policy, after_match",
        ),
    ],
)
def test_a_problem_is_one_line_that_begins_with_the_keys_path(pattern: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(pattern)
    assert str(caught.value).startswith(line), str(caught.value)


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("patterns: {x: {stream: s, query: view pay}}", "patterns.x.query: line 1, column 6: found 'pay' right after"),
        ("trends: {x: {stream: s, query: a ; !b}}", "trends.x.query: line 1, column 5: the trends engine"),
        ("groups: {x: {stream: s, pattern: a ; b}}", "groups.x.pattern: line 1, column 3: the groups engine"),
        ("subscriptions: {x: {stream: s, query: a+}}", "subscriptions.x.query: line 1, column 2: the machines engine"),
    ],
)
def test_queries_are_read_when_the_file_is(section: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(f"{BEFORE}{section}")
    assert str(caught.value).startswith(line), str(caught.value)


def test_an_alert_of_a_pattern_waits_for_the_job_that_keeps_it() -> None:
    alerts = "alerts: {told: {of: pattern, name: x}}"
    configuration = Configuration.from_text(f"{BEFORE}patterns: {{x: {{stream: s, query: a WITHIN 3 MIN}}}}\n{alerts}")
    planned = steps(configuration)
    place = {step: number for number, step in enumerate(planned)}
    waits = find_waits(planned, configuration)
    assert place[Step("ingest", "s")] in waits[place[Step("patterns", "x")]]
    assert place[Step("patterns", "x")] in waits[place[Step("alerts", "told")]]
