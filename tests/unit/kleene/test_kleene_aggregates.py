"""COUNT, SUM, MIN, MAX, AVG, FIRST and LAST of repeated operands: which matches count, and what comes back."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.kleene import EPOCH, Event, Row, matches, valued
from naive.kleene_cases import TYPES as WORKED_TYPES
from naive.kleene_cases import stream, words
from naive.kleene_kernels import compiled, count_matches, events_of, rows_of, rows_of_nodes, values_of
from naive.kleene_random import TYPES, Pattern, random_events, random_plan

from patternlake.udfs.errors import PatternError, PredicateError
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan, explain_choice
from patternlake.udfs.kleene.plans.trees import forced_plan
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.language.predicate.expressions import to_sql

WORKED = [
    # Judged when all is collected: b collects 1, 2 and 4, and no part of them is a match.
    ("a ; b+ ; c WHERE COUNT(b.x) = 3", "a1 b2=1 b3=2 b4=4 c5 a6 b7=1 c8", ["a1 b2 b3 b4 c5"]),
    ("a ; b+ ; c WHERE COUNT(b.x) = 2", "a1 b2=1 b3=2 b4=4 c5", []),
    ("a ; b+ ; c WHERE SUM(b.x) > 6", "a1 b2=1 b3=2 b4=4 c5", ["a1 b2 b3 b4 c5"]),
    ("a ; b+ ; c WHERE AVG(b.x) > MIN(b.x) * 2 AND MAX(b.x) = 4", "a1 b2=1 b3=2 b4=4 c5", ["a1 b2 b3 b4 c5"]),
    ("a ; b+ WHERE LAST(b.x) > FIRST(b.x)", "a1 b2=1 b3=2 a4 b5=0", []),
    ("a ; b+ ; c WHERE LAST(b.x) > FIRST(b.x)", "a1 b2=1 b3=2 c4 a5 b6=3 b7=0 c8", ["a1 b2 b3 c4"]),
    # Other conditions say what is collected, and aggregates are of that.
    ("a ; b+ ; c WHERE b.x > 1 AND SUM(b.x) = 6", "a1 b2=1 b3=2 b4=4 c5", ["a1 b3 b4 c5"]),
    ("b+ WHERE b[i].x > b[i-1].x AND COUNT(b.x) = 2", "b1=5 b2=3 b3=6", ["b1 b3"]),
    # NULL is not counted, and takes part in FIRST and LAST.
    ("a ; b+ ; c WHERE COUNT(b.x) = 1 AND FIRST(b.x) IS NULL", "a1 b2 b3=2 c4", ["a1 b2 b3 c4"]),
    # Nothing collected: COUNT is 0, and what is NULL does not match.
    ("a ; b* ; c WHERE COUNT(b.x) = 0", "a1 c2", ["a1 c2"]),
    ("a ; b* ; c WHERE SUM(b.x) < 5", "a1 c2", []),
    ("a ; b* ; c WHERE SUM(b.x) IS NULL", "a1 c2", ["a1 c2"]),
    # An alternative that is not taken is an operand without events.
    ("(a | b+) ; c WHERE COUNT(b.x) <> 1", "a1 b2=1 c3", ["a1 c3"]),
    # A plain operand beside an aggregate, and one that is not taken: the condition does not apply.
    ("a ; b+ ; c WHERE SUM(b.x) > a.x", "a1=3 b2=1 b3=2 b4=4 c5", ["a1 b2 b3 b4 c5"]),
    ("(a | d) ; b+ ; c WHERE SUM(b.x) > a.x", "a1=9 d2 b3=1 c4", ["d2 b3 c4"]),
    # Each choice of [n] has aggregates of its own.
    ("a ; b[2] ; c WHERE SUM(b.x) = 5", "a1 b2=1 b3=2 b4=4 c5", ["a1 b2 b4 c5"]),
    ("a+ ; !x ; b WHERE COUNT(a.x) = 2", "a1=1 a2=1 x3 b4 a5=1 a6=1 b7", []),
]


def found_by_kernels(text: str, events: list[Event], **arguments: Any) -> list[Row]:
    pattern = compiled(text, WORKED_TYPES, policy=arguments.get("policy", "skip_till_any"))
    taken = events_of([events], WORKED_TYPES, pattern.names)
    return [row for _, row in rows_of(match_events(pattern, taken, **arguments))]


@pytest.mark.parametrize(("text", "given_events", "wanted"), WORKED, ids=lambda value: str(value))
def test_worked_answers(text: str, given_events: str, wanted: list[str]) -> None:
    events = stream(given_events)
    names = {event.position: event.name for event in events}
    assert [words(row, names) for row in matches(text, events, WORKED_TYPES)] == wanted
    assert [words(row, names) for row in found_by_kernels(text, events)] == wanted


@pytest.mark.parametrize("policy", ["skip_till_next", "strict"])
@pytest.mark.parametrize("after_match", ["next", "past_last"])
def test_a_match_whose_aggregates_fail_consumes_nothing(policy: str, after_match: str) -> None:
    events = stream("a1 a2 b3=1 b4=1 c5")
    text = "a+ ; b+ ; c WHERE COUNT(a.position) = 1"
    names = {event.position: event.name for event in events}
    expected = matches(text, events, WORKED_TYPES, policy=policy, after_match=after_match)
    found = found_by_kernels(text, events, policy=policy, after_match=after_match)
    assert [words(row, names) for row in expected] == [words(row, names) for row in found] == ["a2 b3 b4 c5"]


def case(rng: random.Random, *, scan: bool) -> Pattern:
    """A random pattern with an aggregate."""
    while True:
        pattern = Pattern(rng, scan=scan, most=4, aggregated=0.6)
        try:
            if compiled(pattern.text, TYPES).aggregates:
                return pattern
        except PredicateError:
            continue


def python_value(value: Any, known: bool, type_: str) -> Any:
    if not known:
        return None
    return EPOCH + dt.timedelta(microseconds=value) if type_ == "timestamp" else value


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def check(rng: random.Random, policy: str, *, events: int) -> None:
    """Rows and values are the oracle's, by any plan; and so is their number."""
    pattern = case(rng, scan=policy != "skip_till_any")
    streams: Sequence[list[Event]] = [random_events(rng, rng.randint(0, events)) for _ in range(rng.choice([1, 2]))]
    after = rng.choice(["next", "past_last"])
    wanted = [
        (key, row, values)
        for key, one in enumerate(streams)
        for row, values in valued(pattern.text, one, TYPES, policy=policy, after_match=after)
    ]
    made = compiled(pattern.text, TYPES, policy=policy)
    given_events = events_of(streams, TYPES, made.names)
    for plan in [None, random_plan(rng, pattern.names)] if policy == "skip_till_any" else [None]:
        tree = None if plan is None else forced_plan(made, plan)
        found = match_events(made, given_events, policy=policy, after_match=after, plan=tree)
        assert rows_of(found) == [(key, row) for key, row, _ in wanted], f"{pattern.text} by {plan}"
        for aggregate, column in values_of(made, given_events, found).items():
            told = zip(column.values.tolist(), column.known.tolist(), strict=True)
            own = [python_value(value, known, column.type) for value, known in told]
            expected = [values[to_sql(aggregate)] for _, _, values in wanted]
            assert all(map(same, own, expected)), f"{pattern.text}: {to_sql(aggregate)} {own} {expected}"
    if policy == "skip_till_any":
        assert count_matches(made, given_events) == len(wanted)
        most = rng.randint(1, 4)
        first = match_events(made, given_events, max_matches=most, truncate=True)
        assert rows_of(first) == [(key, row) for key, row, _ in wanted[:most]], pattern.text


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_matches_and_values_are_those_of_the_oracle_whatever_the_plan(seed: int) -> None:
    check(random.Random(seed), "skip_till_any", events=8)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_scans_and_their_values_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    check(rng, rng.choice(["skip_till_next", "strict"]), events=12)


@pytest.mark.slow
@settings(max_examples=4000)
@given(st.integers(0, 2**32))
def test_matches_and_values_are_those_of_the_oracle_in_thousands_of_cases(seed: int) -> None:
    rng = random.Random(seed)
    check(rng, rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"]), events=9)


@pytest.mark.parametrize(
    ("text", "marked", "said"),
    [
        ("a ; b+ WHERE COUNT(a.x) > 1", "^COUNT(a.x^)", "a takes one event; write a.x, or a+ in the pattern"),
        ("a ; !b ; c+ WHERE COUNT(b.x) > 1", "^COUNT(b.x^)", "no event of b is in the match, it is negated"),
        ("a ; b+ WHERE b.x > AVG(b.x)", "^b.x^ > AVG", "as in LAST(b.x)"),
        ("a+ ; b+ WHERE a[i-1].x > AVG(b.x)", "^a[i-1].x^ > AVG", "as in LAST(a.x)"),
        ("a ; !b ; c+ WHERE b.x > AVG(c.x)", "^b.x^ > AVG", "negated"),
        ("e+ DEFINE e AS SUM(x) > 1", "^SUM(x^)", "for WHERE of match_pattern"),
    ],
)
def test_what_has_no_aggregate_is_refused_at_its_place(text: str, marked: str, said: str) -> None:
    with pytest.raises(PatternError) as raised:
        compiled(text, WORKED_TYPES)
    before, place, after = marked.split("^")
    start = text.index(before + place + after) + len(before)
    assert (raised.value.start, raised.value.end) == (start, start + len(place))
    assert said in raised.value.message


@pytest.mark.parametrize(
    ("where", "least"),
    [
        ("COUNT(b.x) > 2", 3),
        ("COUNT(b.x) >= 2", 2),
        ("4 = COUNT(b.x)", 4),
        ("1 <= COUNT(b.x) AND COUNT(b.position) > 4", 5),
        ("COUNT(b.x) < 9", 1),
        ("COUNT(b.x) > 2 OR a.x > 1", 1),
        ("COUNT(b.x) <> 3", 1),
        ("SUM(b.position) > 5", 1),
        ("COUNT(b.x) > a.position", 1),
    ],
)
def test_a_count_that_must_be_reached_needs_as_many_events(where: str, least: int) -> None:
    assert compiled(f"a ; b+ WHERE {where}", WORKED_TYPES).needed[1] == least


def test_a_partial_match_with_too_few_events_around_it_goes_early() -> None:
    pattern = compiled("a ; b+ ; c WHERE COUNT(b.x) >= 2", WORKED_TYPES)
    events = events_of([stream("a1 a2 b3=1 b4=1 a5 b6=1 c7")], WORKED_TYPES)
    work = Work()
    match_events(pattern, events, plan=forced_plan(pattern, "left"), work=work)
    rows = rows_of_nodes(work)
    assert rows[0, 1] == rows[0, 1, 2] == 2


def test_a_plan_says_that_aggregates_come_last() -> None:
    pattern = compiled("a ; b+ WHERE COUNT(b.x) > 1 AND b.x > a.x", WORKED_TYPES)
    lines = [line.text for line in explain_choice(pattern, choose_plan(pattern, Statistics({"a": 1, "b": 2})))]
    assert "  last COUNT(b.x) > 1: of whole matches" in lines
