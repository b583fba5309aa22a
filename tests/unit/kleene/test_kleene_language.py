"""Each form of the language: the kernels answer as the oracle does, on worked questions and on random ones."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest
from drawn import SEEDED, SMALL
from hypothesis import given, settings
from naive.kleene import matches
from naive.kleene_cases import TYPES as LETTER_TYPES
from naive.kleene_cases import words
from naive.kleene_kernels import answered, compiled
from naive.kleene_language_cases import ANSWERED, ANY, NEXT, STRICT, Answered
from naive.kleene_random import TYPES, Language, random_events, random_plan
from naive.kleene_steps import NoSkipError

from patternlake.udfs.errors import ArgumentError, PredicateError

TAKEN: dict[str, tuple[str, ...]] = {ANY: (), NEXT: (), STRICT: ()}
"""The forms that the kernels match, by policy."""

WORKED = [case for case in ANSWERED if case.form in TAKEN[case.policy]]


def question(rng: random.Random, policy: str, forms: Collection[str]) -> Language:
    """A random question of some forms that the engine takes."""
    while True:
        asked = Language(rng, policy=policy, forms=forms)
        try:
            compiled(asked.text, TYPES, policy=policy)
        except PredicateError:
            continue
        return asked


def check(rng: random.Random, policy: str, *, events: int) -> None:
    forms = [form for form in TAKEN[policy] if rng.random() < 0.5]
    asked = question(rng, policy, forms)
    streams = [random_events(rng, rng.randint(0, events)) for _ in range(rng.choice([1, 1, 2]))]
    how = {"policy": policy, "after_match": asked.after_match}
    if asked.repetition != "maximal":
        how["repetition"] = asked.repetition
    try:
        wanted = [(key, row) for key, stream in enumerate(streams) for row in matches(asked.text, stream, TYPES, **how)]
    except NoSkipError:
        with pytest.raises(ArgumentError):
            answered(asked.text, streams, TYPES, **how)
        return
    plans = [None] if policy != ANY else [None, random_plan(rng, asked.names)]
    for plan in plans:
        assert answered(asked.text, streams, TYPES, plan=plan, **how) == wanted, f"{asked.text} by {plan}, {how}"


@pytest.mark.parametrize("case", WORKED, ids=str)
def test_worked_answers(case: Answered) -> None:
    names = {event.position: event.name for event in case.stream}
    how = {"policy": case.policy, "after_match": case.after_match}
    if case.repetition != "maximal":
        how["repetition"] = case.repetition
    rows = answered(case.pattern, [case.stream], LETTER_TYPES, **how)
    assert [words(row, names) for _, row in rows] == list(case.rows)


@settings(max_examples=100)
@given(SMALL)
def test_all_matches_are_those_of_the_oracle(rng: random.Random) -> None:
    check(rng, ANY, events=7)


@settings(max_examples=100)
@given(SMALL)
def test_scans_find_what_the_oracle_finds(rng: random.Random) -> None:
    check(rng, rng.choice([NEXT, STRICT]), events=9)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_all_matches_are_those_of_the_oracle_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, ANY, events=8)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_scans_find_what_the_oracle_finds_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, rng.choice([NEXT, STRICT]), events=12)
