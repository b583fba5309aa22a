"""Final matches: those that no event can change which may still come, and only those."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest
from naive.kleene import Event
from naive.kleene_kernels import compiled, events_of, rows_of

from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.kernels.matching import match_events

MINUTE = 60_000_000
TYPES = {"x": "double"}


def told(text: str, events: str, policy: str, after_match: str = "next", repetition: str = "maximal") -> str:
    """The rows at the time of the last event, given with their minutes; ``?`` behind those that are not final."""
    known = [
        Event(at, int(word[1:]) * MINUTE, word[0], {"x": float(at)}) for at, word in enumerate(events.split(), start=1)
    ]
    rows = said(text, known, known[-1].time, policy, after_match, repetition)
    word = dict(enumerate(events.split(), start=1))
    return ", ".join(" ".join(word[at] for at in places) + ("" if sure else "?") for places, sure in rows.items())


def said(
    text: str, known: list[Event], watermark: int, policy: str, after_match: str = "next", repetition: str = "maximal"
) -> dict[tuple[int, ...], bool]:
    """The positions of each row, and whether it is final."""
    pattern, given = compiled(text, TYPES, policy=policy, repetition=repetition), events_of([known], TYPES)
    found = match_events(pattern, given, policy=policy, after_match=after_match)
    sure = final(pattern, found, given, Moment(watermark), policy=policy, after_match=after_match)
    places = [tuple(sorted(at for run in row.values() for at in run)) for _, row in rows_of(found)]
    return dict(zip(places, sure.tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "events", "rows"),
    [
        # A last operand that has as many as it may have takes no more.
        ("A ; B?", "A1 B2 A3", "A1 B2, A3?"),
        ("A ; B{1,2}", "A1 B2 A3 B4 A5 B6", "A1 B2 B4, A3 B4 B6, A5 B6?"),
        ("(A ; B){1,2}", "A1 B2 A3 B4 A5 B6", "A1 B2 A3 B4, A3 B4 A5 B6, A5 B6?"),
        # An event of a later one stands behind it.
        ("A ; B* ; C?", "A1 B2 C3", "A1 B2 C3"),
        # UNTIL ends it once it has an event.
        ("A ; B+ UNTIL C", "A1 B2 C3 A4 C5 B6", "A1 B2, A4 B6?"),
        # A way that is tried earlier, and may begin with the same event.
        ("A | B", "A1 B2", "A1, B2"),
        ("(A ; B) | (C ; B)", "C1 B2", "C1 B2"),
        ("(A ; B ; C) | (A ; B)", "A1 B2", "A1 B2?"),
        ("(A ; B) | (A ; B ; C)", "A1 B2", "A1 B2"),
        ("A? ; B", "B1", "B1"),
        ("A ; B? ; C", "A1 C2", "A1 C2?"),
    ],
)
def test_a_match_is_final_that_nothing_can_join_or_replace(text: str, events: str, rows: str) -> None:
    assert told(text, events, "skip_till_next") == rows


@pytest.mark.parametrize(
    ("text", "events", "rows"),
    [
        ("A ; B+", "A1 B2 B3", "A1 B2 B3?"),
        ("A ; B+", "A1 B2 B3 X4", "A1 B2 B3"),
        ("A ; B*", "A1 A2", "A1, A2?"),
        ("(A ; B ; C) | (A ; B)", "A1 B2 X3", "A1 B2"),
        ("(A ; B ; C ; D) | (A ; B)", "A1 B2 C3", "A1 B2?"),
        # Of a round at hand an event is taken that is no part of the match yet.
        ("(A ; B)+", "A1 B2 A3", "A1 B2?"),
        ("(A ; B)+", "A1 B2 A3 C4", "A1 B2"),
    ],
)
def test_under_strict_a_match_is_final_once_an_event_comes_that_it_did_not_take(
    text: str, events: str, rows: str
) -> None:
    assert told(text, events, "strict") == rows


@pytest.mark.parametrize("policy", ["skip_till_next", "strict"])
def test_behind_a_match_a_start_that_may_still_go_over_it_keeps_it_open(policy: str) -> None:
    assert told("A ; B", "A1 X2 A3 B4", policy, "past_last") == {"skip_till_next": "A1 B4", "strict": "A3 B4"}[policy]
    rows = {"skip_till_next": "C2 D3?", "strict": "C2 D3"}[policy]
    assert told("(A ; B) | (C ; D)", "A1 C2 D3", policy, "past_last") == rows
    # So it does behind what must come directly next, which another event does.
    assert told("A , B", "A1 X2 A3 B4", policy, "past_last") == "A3 B4"
    # Before the event that tells, the start may go on.
    assert told("(A ; B+ ; C) | (B ; D)", "A1 B2 B3", "strict", "past_last") == ""


@pytest.mark.parametrize("after_match", ["past_last", "last B"])
def test_with_every_place_to_stop_the_matches_of_a_start_are_final_together(after_match: str) -> None:
    """The search goes on behind all of them: a later one of A1 goes over those of A3."""
    assert told("A ; B+", "A1 B2 A3 B4", "skip_till_next", "next", "all") == "A1 B2, A1 B2 B4, A3 B4"
    assert told("A ; B+", "A1 B2", "skip_till_next", after_match, "all") == "A1 B2?"
    assert told("A ; B+", "A1 B2 X3", "strict", after_match, "all") == "A1 B2"
    assert told("A ; B+ WITHIN 3 MIN", "A1 B2 X4", "skip_till_next", after_match, "all") == "A1 B2"


def test_a_condition_on_the_time_of_what_is_absent_ends_its_wait() -> None:
    text = "A ; !B WHERE t(B) - t(A) < 2 MIN WITHIN 9 MIN"
    assert told(text, "A1 X2", "skip_till_next") == "A1?"
    assert told(text, "A1 X3", "skip_till_next") == "A1"
    # Its own deadline stands in place of the window; another one ends it sooner.
    text = "A ; !B @(t(B) - t(A) < 9 MIN) WHERE t(B) - t(A) < 2 MIN WITHIN 1 MIN"
    assert told(text, "A1 X2", "skip_till_next") == "A1?"
    assert told(text, "A1 X3", "skip_till_next") == "A1"


EXACT = (
    "A ; B",
    "A ; B+",
    "A ; B?",
    "A ; B{1,2}",
    "A ; B{2,}",
    "A ; B* ; C?",
    "A ; B+ ; C",
    "A ; B+ UNTIL C",
    "A ; B[2]",
    "A | B",
    "(A ; B) | (B ; C)",
    "(A ; B) | (A ; C)",
    "(A ; B ; C) | (A ; B)",
    "A? ; B",
    "A ; B? ; C",
    "A , B",
    "A , B+",
    "(A , B) | (B ; C)",
    "2 OF (A, B, C)",
    "(A ; B){1,2}",
    "(A | B)+",
    "A ; !B WHERE t(B) - t(A) < 1 MIN",
    "A ; C ; !B @(t(B) - t(C) < 1 MIN)",
    "A ; B+ b[] WHERE b[i].x > b[i-1].x",
    "A ; B+ WHERE COUNT(B.x) >= 2",
)
"""Patterns of which it is known of each row whether something can change it."""
GROUPS = ("(A ; B){1,2}", "(A | B)+")
"""Those that ``skip_till_any`` repeats with ``repetition => 'all'`` alone."""
ASKED = [
    (text, policy)
    for text, policy in product(EXACT, ["skip_till_any", "skip_till_next", "strict"])
    if policy != "skip_till_any" or text not in GROUPS
]


def continuations(watermark: int) -> Iterator[list[Event]]:
    """One or two events that may still come, of any name, at one of three moments, with a small or a great x."""
    moments = [watermark, watermark + MINUTE, watermark + 2 * MINUTE]
    one = [(time, name, x) for time, name, x in product(moments, "ABCX", (0.0, 9.0))]
    for count in (1, 2):
        for times in combinations_with_replacement(moments, count):
            for kinds in product([kind[1:] for kind in one if kind[0] == watermark], repeat=count):
                yield [
                    Event(100 + at, time, name, {"x": x})
                    for at, (time, (name, x)) in enumerate(zip(times, kinds, strict=True))
                ]


def changeable(text: str, known: list[Event], policy: str, after_match: str, watermark: int) -> set[tuple[int, ...]]:
    """The rows that some continuation takes away."""
    pattern = compiled(text, TYPES, policy=policy)
    streams = [known, *(known + more for more in continuations(watermark))]
    found: list[set[str]] = [set() for _ in streams]
    places = {}
    for key, row in rows_of(match_events(pattern, events_of(streams, TYPES), policy=policy, after_match=after_match)):
        found[key].add(repr(row))
        places[repr(row)] = tuple(sorted(at for run in row.values() for at in run))
    return {places[row] for row in found[0] if any(row not in then for then in found[1:])}


def few_events(rng: random.Random) -> list[Event]:
    minute, events = 0, []
    for position in range(1, rng.randint(2, 6)):
        minute += rng.choice([0, 1, 1])
        events.append(Event(position, minute * MINUTE, rng.choice("AABBCX"), {"x": float(rng.randint(1, 2))}))
    return events


def check(seed: int, text: str, policy: str, cases: int) -> None:
    rng = random.Random(f"{seed} {text} {policy}")
    for _ in range(cases):
        known, within = few_events(rng), rng.choice(["", " WITHIN 3 MIN"])
        after_match = rng.choice(["next", "past_last"])
        asked, watermark = text + within, known[-1].time
        rows = said(asked, known, watermark, policy, after_match)
        gone = changeable(asked, known, policy, after_match, watermark)
        about = (asked, policy, after_match, [(event.name, event.time // MINUTE, event.values) for event in known])
        assert not [row for row, sure in rows.items() if sure and row in gone], ("was final", about)
        # A start that an absence has ruled out counts as one that may still go on.
        if after_match == "next" or "!" not in text:
            assert not [row for row, sure in rows.items() if not sure and row not in gone], ("not final", about)


@pytest.mark.parametrize(("text", "policy"), ASKED)
def test_a_match_is_final_where_and_only_where_no_continuation_changes_it(text: str, policy: str) -> None:
    check(1, text, policy, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "policy"), ASKED)
def test_it_is_so_in_many_more_cases(text: str, policy: str) -> None:
    check(2, text, policy, 40)
