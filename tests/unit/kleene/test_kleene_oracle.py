"""The oracle gives the worked answers of SPEC 3."""

from __future__ import annotations

import pytest
from naive.kleene import matches
from naive.kleene_cases import TYPES, WORKED, Worked, stream, words


@pytest.mark.parametrize("case", WORKED, ids=lambda case: f"{case.pattern} on {case.events}")
def test_worked_answers(case: Worked) -> None:
    events = stream(case.events)
    names = {event.position: event.name for event in events}
    rows = matches(case.pattern, events, TYPES)
    assert sorted(words(row, names) for row in rows) == sorted(case.rows)


@pytest.mark.parametrize(
    ("pattern", "policy", "after_match", "events", "wanted"),
    [
        ("a ; b ; c", "skip_till_next", "next", "a1 a2 b3 b4 c5", ["a1 b3 c5", "a2 b3 c5"]),
        ("a ; b ; c", "skip_till_next", "past_last", "a1 a2 b3 b4 c5 a6 b7 c8", ["a1 b3 c5", "a6 b7 c8"]),
        ("a+ ; b", "skip_till_next", "next", "a1 z2 a3 b4 b5", ["a1 a3 b4", "a3 b4"]),
        ("a+ ; b", "strict", "next", "a1 z2 a3 a4 b5 b6", ["a3 a4 b5", "a4 b5"]),
        ("a ; b[2] ; c", "skip_till_next", "next", "a1 b2 b3 b4 c5", ["a1 b2 b3 c5"]),
        ("a ; b*", "skip_till_next", "next", "a1 b2 b3 a4", ["a1 b2 b3", "a4"]),
        ("a ; b+ WITHIN 3 EVENTS", "skip_till_next", "next", "a1 b2 b3 b4", ["a1 b2 b3"]),
        ("a ; b+ WITHIN 3 EVENTS", "strict", "next", "a1 b2 z3 b4", ["a1 b2"]),
        ("a ; b WHERE b.x > a.x", "skip_till_next", "next", "a1=2 b2=1 b3=3", ["a1 b3"]),
        ("a ; !x ; b", "skip_till_next", "next", "a1 x2 a3 b4", ["a3 b4"]),
        # Ways are tried in the order of the text: b, though the c is nearer.
        ("a ; (b | c)", "skip_till_next", "next", "a1 c2 b3", ["a1 b3"]),
        ("a ; (b | c)", "skip_till_next", "next", "a1 c2 x3", ["a1 c2"]),
        ("a ; (b | c) WITHIN 2 EVENTS", "skip_till_next", "next", "a1 c2 b3", ["a1 c2"]),
        ("x ; (a | c) ; !c ; b", "skip_till_next", "next", "x1 a2 c3 b4", ["x1 c3 b4"]),
        ("a ; (b | c)", "strict", "next", "a1 c2 b3", ["a1 c2"]),
        # What is optional is taken before it is left out, if that gives a match.
        ("a ; b* ; c", "skip_till_next", "next", "a1 c2 b3 b4 c5", ["a1 b3 b4 c5"]),
        ("a ; b* ; c WITHIN 3 EVENTS", "skip_till_next", "next", "a1 c2 b3 b4 c5", ["a1 c2"]),
        ("a ; b* ; c", "strict", "next", "a1 c2 b3 b4 c5", ["a1 c2"]),
        ("a* ; b", "skip_till_next", "past_last", "b1 a2 b3", ["b1", "a2 b3"]),
    ],
)
def test_policies(pattern: str, policy: str, after_match: str, events: str, wanted: list[str]) -> None:
    given = stream(events)
    names = {event.position: event.name for event in given}
    rows = matches(pattern, given, TYPES, policy=policy, after_match=after_match)
    assert [words(row, names) for row in rows] == wanted


def test_a_match_is_never_empty() -> None:
    assert matches("a* ; b*", stream("z1 z2")) == []


def test_orders_of_a_conjunction_count_once() -> None:
    assert matches("a* & b", stream("b1")) == [{"b": (1,)}]
