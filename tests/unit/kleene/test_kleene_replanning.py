"""A run changes its plan where what it finds is far off what was expected; its rows stay."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.kleene import Event, matches
from naive.kleene_cases import TYPES as WORKED_TYPES
from naive.kleene_kernels import compiled, events_of, rows_of
from naive.kleene_random import TYPES, Pattern, random_events

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.kleene.kernels import course, ranges
from patternlake.udfs.kleene.kernels.matching import match_events, observed
from patternlake.udfs.kleene.plans import replanning as plans
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan
from patternlake.udfs.kleene.plans.replanning import Replanning, replanned
from patternlake.udfs.kleene.plans.trees import forced_plan, plan_text

TEXT = "a ; b ; c WHERE a.x < b.x AND b.x < c.x WITHIN 60 EVENTS"


def stream(count: int) -> list[Event]:
    """Each a is less than any b, and hardly a b less than a c."""
    rng = random.Random(1)
    low = {"a": 0, "b": 100, "c": 0}
    names = [rng.choice("abc") for _ in range(count)]
    return [Event(n, n * 1000, name, {"x": low[name] + rng.random() * 101}) for n, name in enumerate(names, start=1)]


def test_a_plan_by_wrong_shares_gives_way_to_the_one_by_what_was_seen() -> None:
    pattern, events = compiled(TEXT, WORKED_TYPES), stream(900)
    given_events = events_of([events], WORKED_TYPES)
    classes = {number: sum(event.name == name for event in events) for number, name in enumerate("abc")}
    believed = {"a.x < b.x": 0.001, "b.x < c.x": 1.0}
    statistics = Statistics({"a": 300, "b": 300, "c": 300}, selectivities=believed)
    plan = choose_plan(pattern, statistics).plan
    assert plan_text(pattern, plan) == "((a b) c)"
    work = observed(pattern, given_events, plan=plan)
    found = replanned(pattern, plan, Replanning(statistics, 10), classes, work, 1.0)
    assert found is not None
    better, known = found
    assert plan_text(pattern, better) == "(a (b c))"
    assert known.statistics.selectivities["a.x < b.x"] > 0.99
    assert known.statistics.selectivities["b.x < c.x"] < 0.05
    # What was seen is what is expected of it then.
    assert replanned(pattern, better, known, classes, observed(pattern, given_events, plan=better), 1.0) is None


def test_a_plan_that_is_off_by_less_than_the_factor_stays() -> None:
    pattern, events = compiled("a ; b WITHIN 60 EVENTS", WORKED_TYPES), stream(900)
    statistics = Statistics({"a": 300, "b": 300}, events=900)
    plan = forced_plan(pattern, "left")
    work = observed(pattern, events_of([events], WORKED_TYPES), plan=plan)
    classes = {number: sum(event.name == name for event in events) for number, name in enumerate("ab")}
    assert replanned(pattern, plan, Replanning(statistics, 1.5), classes, work, 1.0) is None


def test_shares_of_equal_values_are_seen_though_they_are_looked_up() -> None:
    events = [Event(n, n * 1000, "ab"[n % 2], {"x": float(n // 2 % 4)}) for n in range(1, 201)]
    work = observed(compiled("a ; b WHERE a.x = b.x", WORKED_TYPES), events_of([events], WORKED_TYPES))
    judged, held = work.shares["a.x = b.x"]
    pairs = [(a, b) for a, b in combinations(events, 2) if (a.name, b.name) == ("a", "b")]
    assert (judged, held) == (len(pairs), sum(a.values == b.values for a, b in pairs))


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_rows_stay_however_often_the_plan_changes(seed: int) -> None:
    rng = random.Random(seed)
    text = Pattern(rng, most=4).text
    try:
        pattern = compiled(text, TYPES)
    except PredicateError:
        return
    streams = [random_events(rng, rng.randint(0, 9)) for _ in range(rng.choice([1, 2]))]
    events = events_of(streams, TYPES, pattern.names)
    believed = Statistics({name: rng.choice([0.0, 1.0, 50.0]) for name in "ABC"}, events=100, keys=rng.choice([1, 2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", rng.randint(1, 3))
        patch.setattr(course, "FIRST_TRIED", 1)
        patch.setattr(plans, "LEAST_ROWS", 1)
        patch.setattr(plans, "LEAST_JUDGED", 1)
        plan = choose_plan(pattern, believed).plan
        found = match_events(pattern, events, plan=plan, replanning=Replanning(believed, 1.01))
    wanted = [(key, row) for key, one in enumerate(streams) for row in matches(text, one, TYPES)]
    assert rows_of(found) == wanted, text
