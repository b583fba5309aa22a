"""The oracle gives the worked answers of the whole language (SPEC 3, ROWS part 3)."""

from __future__ import annotations

import pytest
from naive.kleene import final_rows, matches
from naive.kleene_begun import near_misses
from naive.kleene_begun_any import near_misses as near_misses_of_choices
from naive.kleene_cases import TYPES, stream, words
from naive.kleene_language_cases import ANSWERED, BEGUN, FINAL, Answered, Begun, Final
from naive.kleene_steps import NoSkipError


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_worked_answers(case: Answered) -> None:
    names = {event.position: event.name for event in case.stream}
    rows = matches(
        case.pattern,
        case.stream,
        TYPES,
        policy=case.policy,
        after_match=case.after_match,
        repetition=case.repetition,
    )
    assert [words(row, names) for row in rows] == list(case.rows)


@pytest.mark.parametrize("after_match", ["first s", "last b"])
def test_going_on_needs_another_event_than_the_first(after_match: str) -> None:
    case = next(case for case in ANSWERED if case.pattern == "a AS s ; b ; a AS e")
    with pytest.raises(NoSkipError):
        matches(
            "a AS s ; b* ; a AS e", case.stream[:1] + case.stream[2:3], TYPES, policy="strict", after_match=after_match
        )


@pytest.mark.parametrize("case", FINAL, ids=str)
def test_final_rows(case: Final) -> None:
    names = {event.position: event.name for event in case.stream}
    rows = final_rows(case.pattern, case.stream, case.watermark, TYPES, policy=case.policy, repetition=case.repetition)
    assert sorted(words(row, names) for row in rows) == sorted(case.rows)


@pytest.mark.parametrize("case", BEGUN, ids=str)
def test_what_has_begun(case: Begun) -> None:
    events = stream(case.events)
    names = {event.position: event.name for event in events}
    given = {"policy": case.policy, "after_match": case.after_match, "repetition": case.repetition}
    any_choice = case.policy == "skip_till_any"
    rows = (
        near_misses_of_choices(case.pattern, events, TYPES)
        if any_choice
        else near_misses(case.pattern, events, TYPES, **given)
    )
    assert [f"{words(row, names)} ? {missing}" for row, missing in rows] == list(case.rows)
