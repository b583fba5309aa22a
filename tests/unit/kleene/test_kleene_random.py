"""Random patterns over random streams: the kernels answer as the oracle does, under every policy and plan."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from drawn import SEEDED, SMALL
from hypothesis import example, given, settings
from naive.kleene import Row, matches
from naive.kleene_kernels import answered, compiled, events_of, rows_of
from naive.kleene_random import KEYWORDS, TYPES, Pattern, random_events, random_plan

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.kleene.kernels import joins, judged_scans, keeping, ranges
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.plans.trees import forced_plan

PLANS = ["left", "right", "bushy", "inner"]


def case(rng: random.Random, *, scan: bool, most: int, names: Sequence[str] = "ABC") -> Pattern:
    """A random pattern that the engine takes."""
    while True:
        pattern = Pattern(rng, scan=scan, most=most, names=names)
        try:
            compiled(pattern.text, TYPES)
        except PredicateError:
            continue
        return pattern


def check(rng: random.Random, policy: str, *, events: int, most: int = 4) -> None:
    names = rng.choice(["ABC", KEYWORDS])
    pattern = case(rng, scan=policy != "skip_till_any", most=most, names=names)
    streams = [random_events(rng, rng.randint(0, events), names) for _ in range(rng.choice([1, 1, 2]))]
    after = rng.choice(["next", "past_last"])
    wanted: list[tuple[int, Row]] = [
        (key, row)
        for key, stream in enumerate(streams)
        for row in matches(pattern.text, stream, TYPES, policy=policy, after_match=after)
    ]
    plans = [None]
    if policy == "skip_till_any":
        plans = [None, rng.choice(PLANS), *(random_plan(rng, pattern.names) for _ in range(2))]
    for plan in plans:
        found = answered(pattern.text, streams, TYPES, policy=policy, after_match=after, plan=plan)
        assert found == wanted, f"{pattern.text} by {plan}"


@settings(max_examples=300)
@given(SMALL)
def test_all_matches_are_those_of_the_oracle_whatever_the_plan(rng: random.Random) -> None:
    check(rng, "skip_till_any", events=8)


@settings(max_examples=150)
@given(SMALL)
@example(random.Random(219))  # equal events under different operands
def test_the_first_rows_are_those_of_the_oracle(rng: random.Random) -> None:
    first_rows_are_those_of_the_oracle(rng)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_the_first_rows_are_those_of_the_oracle_in_thousands_of_cases(rng: random.Random) -> None:
    first_rows_are_those_of_the_oracle(rng)


def first_rows_are_those_of_the_oracle(rng: random.Random) -> None:
    case_ = case(rng, scan=False, most=4)
    text = case_.text
    streams = [random_events(rng, rng.randint(0, 9)) for _ in range(rng.choice([1, 2]))]
    wanted = [(key, row) for key, stream in enumerate(streams) for row in matches(text, stream, TYPES)]
    made = compiled(text, TYPES)
    events, most = events_of(streams, TYPES, made.names), rng.randint(1, 6)
    with pytest.MonkeyPatch.context() as patch:
        # So few partial matches are held that most questions are cut, and events one by one.
        patch.setattr(keeping, "FEWEST_ROWS_AT_ONCE", rng.choice([1, 3, 4096]))
        patch.setattr(joins, "FEWEST_PAIRS_AT_ONCE", rng.choice([1, 1 << 16]))
        patch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", rng.choice([2, 1 << 16]))
        plan = forced_plan(made, rng.choice([*PLANS, random_plan(rng, case_.names)]))
        found = match_events(made, events, plan=plan, max_matches=most, truncate=True)
    assert (rows_of(found), found.truncated) == (wanted[:most], most < len(wanted)), text


@settings(max_examples=200)
@given(SMALL)
def test_scans_find_what_the_oracle_finds(rng: random.Random) -> None:
    check_scans(rng, events=12)


def check_scans(rng: random.Random, *, events: int) -> None:
    own = random.Random(rng.random())
    with pytest.MonkeyPatch.context() as patch:
        # Few scans go on side by side, ask little and keep little, as long streams make them.
        patch.setattr(judged_scans, "STARTS_AT_ONCE", own.choice([1, 3, 1 << 14]))
        patch.setattr(judged_scans, "ASKED_AT_ONCE", own.choice([1, 6, 1 << 19]))
        patch.setattr(judged_scans, "MOST_KEPT", own.choice([1, 12, 1 << 24]))
        patch.setattr(judged_scans, "PAIRS_AT_ONCE", own.choice([1, 3, 1 << 21]))
        patch.setattr(judged_scans, "FIRST_JUDGED", own.choice([1, 8]))
        check(rng, rng.choice(["skip_till_next", "strict"]), events=events)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_all_matches_are_those_of_the_oracle_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, "skip_till_any", events=9)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_scans_find_what_the_oracle_finds_in_thousands_of_cases(rng: random.Random) -> None:
    check_scans(rng, events=14)
