"""Each form of the language: the kernels answer as the oracle does, on worked questions and on random ones."""

from __future__ import annotations

import random
from collections.abc import Collection
from contextlib import suppress

import pytest
from drawn import SEEDED, SMALL
from hypothesis import given, settings
from naive.kleene import Event, matches
from naive.kleene import final_rows as naive_final_rows
from naive.kleene_cases import TYPES as LETTER_TYPES
from naive.kleene_cases import words
from naive.kleene_final import may_go
from naive.kleene_kernels import answered, compiled, final_rows
from naive.kleene_language_cases import ANSWERED, ANY, FINAL, NEXT, STRICT, Answered, Final
from naive.kleene_orders import TooManyError
from naive.kleene_random import TYPES, Language, random_events, random_plan
from naive.kleene_steps import NoSkipError

from patternlake.udfs.errors import ArgumentError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.kleene.rounds import repeated_groups
from patternlake.udfs.language.query.parser import parse

SCANNED = (
    "absence",
    "deadline",
    "directly",
    "optional",
    "bounded",
    "until",
    "some_of",
    "conjunction",
    "group",
    "steering",
    "all",
    "after_match",
)
TAKEN: dict[str, tuple[str, ...]] = {
    ANY: ("absence", "deadline", "directly", "optional", "bounded", "until", "some_of", "all", "group"),
    NEXT: SCANNED,
    STRICT: SCANNED,
}
"""The forms that the kernels match, by policy."""
REFUSED = ("more than 500 orders", "may begin without this")

WORKED = [case for case in ANSWERED if case.form in TAKEN[case.policy]]


def question(rng: random.Random, policy: str, forms: Collection[str]) -> Language:
    """A random question of some forms that the engine takes."""
    while True:
        asked = Language(rng, policy=policy, forms=forms)
        try:
            compiled(asked.text, TYPES, policy=policy, repetition=asked.repetition)
        except PredicateError:
            continue
        except UnsupportedOperatorError as error:
            if not any(said in error.message for said in REFUSED):
                raise
            continue
        return asked


def question_with_groups(rng: random.Random) -> Language:
    """A random question with a group that is repeated under skip_till_any."""
    while True:
        asked = question(rng, ANY, [form for form in TAKEN[ANY] if form in ("all", "group") or rng.random() < 0.4])
        if any(repeated_groups(parse(asked.text).pattern)):
            return asked


def check(rng: random.Random, policy: str, *, events: int, groups: bool = False) -> None:
    forms = [form for form in TAKEN[policy] if rng.random() < 0.5]
    asked = question_with_groups(rng) if groups else question(rng, policy, forms)
    # Every place to stop is every number of events of each repetition, to the oracle.
    events = events if asked.repetition == "maximal" else min(events, 7)
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
    except TooManyError:
        return
    plans = [None] if policy != ANY else [None, random_plan(rng, asked.names)]
    for plan in plans:
        assert answered(asked.text, streams, TYPES, plan=plan, **how) == wanted, f"{asked.text} by {plan}, {how}"


def check_final(rng: random.Random, policy: str, *, events: int) -> None:
    """Rows that must be said to be final are, and none is that some later event takes away."""
    forms = [form for form in TAKEN[policy] if rng.random() < 0.5]
    asked = question(rng, policy, forms)
    stream = random_events(rng, rng.randint(1, events))
    watermark = rng.choice(stream).time + rng.choice([0, 0, 1, 3, 9]) * 1000
    how = {"policy": policy}
    if asked.repetition != "maximal":
        how["repetition"] = asked.repetition
    after_match = "next" if policy == ANY else rng.choice(["next", "past_last"])
    told = f"{asked.text} at {watermark}, {how}, {after_match}"
    with suppress(TooManyError):
        if after_match == "next":
            needed = naive_final_rows(asked.text, stream, watermark, TYPES, **how)
        else:
            needed, how["after_match"] = [], after_match
        rows, said = final_rows(asked.text, stream, watermark, TYPES, **how)
        assert rows == matches(asked.text, stream, TYPES, **how), told
        missed = [row for row in needed if row not in said]
        assert not missed, f"not final: {told}"
        gone = may_go(rng, lambda them: matches(asked.text, them, TYPES, **how), stream, watermark, random_events, 6)
        assert not [row for row in said if row in gone], f"was final: {told}"


@pytest.mark.parametrize("case", [case for case in FINAL if case.form in TAKEN[case.policy]], ids=str)
def test_final_rows(case: Final) -> None:
    names = {event.position: event.name for event in case.stream}
    how = {} if case.repetition == "maximal" else {"repetition": case.repetition}
    _, rows = final_rows(case.pattern, case.stream, case.watermark, LETTER_TYPES, policy=case.policy, **how)
    assert sorted(words(row, names) for row in rows) == sorted(case.rows)


@settings(max_examples=60)
@given(SMALL)
def test_what_is_final_stays_and_is_said_in_time(rng: random.Random) -> None:
    check_final(rng, rng.choice([ANY, NEXT, STRICT]), events=6)


@pytest.mark.slow
@settings(max_examples=2000)
@given(SEEDED)
def test_what_is_final_stays_and_is_said_in_time_in_thousands_of_cases(rng: random.Random) -> None:
    check_final(rng, rng.choice([ANY, NEXT, STRICT]), events=7)


@pytest.mark.parametrize("case", WORKED, ids=str)
def test_worked_answers(case: Answered) -> None:
    names = {event.position: event.name for event in case.stream}
    how = {"policy": case.policy, "after_match": case.after_match}
    if case.repetition != "maximal":
        how["repetition"] = case.repetition
    rows = answered(case.pattern, [case.stream], LETTER_TYPES, **how)
    assert [words(row, names) for _, row in rows] == list(case.rows)


def test_until_that_nothing_meets_changes_nothing_of_long_windows() -> None:
    names = ["A", *["B", "C"] * 160, "A"]
    events = [Event(number + 1, number, name) for number, name in enumerate(names)]
    plain, until = (
        answered(f"A ; B+ AS b{until} ; C+ AS c ; A AS e WITHIN 1000 EVENTS", [events], {})
        for until in ("", " UNTIL D")
    )
    assert len(plain) == 160
    assert until == plain


@settings(max_examples=100)
@given(SMALL)
def test_all_matches_are_those_of_the_oracle(rng: random.Random) -> None:
    check(rng, ANY, events=7)


@settings(max_examples=40)
@given(SEEDED)
def test_repeated_groups_give_every_choice_that_the_oracle_gives(rng: random.Random) -> None:
    check(rng, ANY, events=7, groups=True)


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
@settings(max_examples=2000)
@given(SEEDED)
def test_repeated_groups_give_every_choice_that_the_oracle_gives_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, ANY, events=8, groups=True)


@pytest.mark.slow
@settings(max_examples=4000)
@given(SEEDED)
def test_scans_find_what_the_oracle_finds_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, rng.choice([NEXT, STRICT]), events=12)
