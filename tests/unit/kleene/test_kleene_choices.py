"""Choices of what repetitions take: counted without a list of them, and the first ones listed alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import pytest
from naive.kleene import Event, matches
from naive.kleene_kernels import compiled, count_matches, events_of, rows_of

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import stream_of
from patternlake.udfs.kleene.kernels import walking, walks
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.kernels.picks import Pick
from patternlake.udfs.kleene.query import KleenePattern

TYPES = {"x": "double"}


def asked(text: str, letters: str, *, repetition: str = "all") -> tuple[KleenePattern, Events]:
    """A question of events with these names, one a minute."""
    stream = [Event(at, at * 60_000_000, name, {"x": float(at)}) for at, name in enumerate(letters, start=1)]
    return compiled(text, TYPES, repetition=repetition), events_of([stream], TYPES)


def count_rounds(pattern: KleenePattern, events: Events) -> int:
    """How many matches of repeated groups are counted before any is listed."""
    stream = stream_of(pattern, events)
    keeper = Keeper(events, walks.MOST_COUNTED, truncate=False)
    ways = [walking._Walk(pattern, way, stream, keeper, None, False) for way in dict.fromkeys(pattern.ways)]
    assert all(one.counted for one in ways)
    return sum(one.count() for one in ways)


def first(pattern: KleenePattern, events: Events, most: int) -> list[Sequence[int]]:
    """The positions of b in the first rows."""
    found = match_events(pattern, events, max_matches=most, truncate=True)
    assert found.truncated
    return [row["b"] for _, row in rows_of(found)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a ; b+ ; c", 2**24 - 1),
        ("a ; b* ; c", 2**24),
        ("a ; b+ ; c+", 2**24 - 1),
        ("a , b+ ; c", 2**23),
        ("a , b+ , c", 2**22),
        ("a ; b{2,} ; c", 2**24 - 1 - 24),
        ("a ; b{2,3} ; c", comb(24, 2) + comb(24, 3)),
        ("a ; b+ UNTIL u ; c", 2**24 - 1),
        ("a ; b{2,3} b[] ; c WHERE b[i].x > b[i-1].x + 1", comb(23, 2) + comb(22, 3)),
        ("a ; b{2,} b[] ; c WHERE b[i].x < b[i-1].x", 0),
    ],
)
def test_millions_of_choices_are_counted_before_any_is_listed(text: str, count: int) -> None:
    pattern, events = asked(text, "a" + "b" * 24 + "c")
    assert count_matches(pattern, events) == count
    if count > 1_000_000:
        with pytest.raises(ArgumentError, match=r"at least \d{1,2},\d{3},\d{3} matches"):
            match_events(pattern, events)


def test_millions_of_choices_of_neighbours_are_refused() -> None:
    text = "a ; b+ b[] ; c WHERE b[i].x > b[i-1].x"
    assert count_matches(*asked(text, "a" + "b" * 10 + "c")) == 2**10 - 1
    with pytest.raises(ArgumentError, match=r"at least \d{1,2},\d{3},\d{3} matches"):
        match_events(*asked(text, "a" + "b" * 24 + "c"))


def test_more_choices_than_a_number_of_64_bits_holds_are_counted() -> None:
    pattern, events = asked("a ; b+ ; c", "a" + "b" * 100 + "c")
    assert count_matches(pattern, events) == 2**100 - 1
    assert first(pattern, events, 2) == [tuple(range(2, 102)), tuple(range(2, 101))]


def test_choices_of_any_numbers_are_sums_of_binomials() -> None:
    for length in range(8):
        for least in range(9):
            for most in (*range(least, 10), None):
                sizes = range(least, (length if most is None else min(most, length)) + 1)
                assert Pick(least, most, last=False).ways(length) == sum(comb(length, size) for size in sizes)
    # 10,000 binomials of 6,000 digits each are not computed one by one.
    assert Pick(1, 10_000, last=False).ways(20_000) == (2**20_000 + comb(20_000, 10_000)) // 2 - 1


def test_choices_of_thousands_of_digits_are_refused_by_their_size() -> None:
    pattern, events = asked("a ; b+ ; c", "a" + "b" * 15_000 + "c")
    with pytest.raises(ArgumentError, match=r"^the pattern has at least about 10\^4515 matches, more than max_matches"):
        match_events(pattern, events)
    assert [len(row) for row in first(pattern, events, 2)] == [15_000, 14_999]


def test_first_choices_before_an_event_are_those_that_go_on() -> None:
    pattern, events = asked("a ; b+ ; c", "a" + "b" * 24 + "c")
    every = tuple(range(2, 26))
    assert first(pattern, events, 3) == [every, every[:-1], (*every[:-2], 25)]


def test_first_choices_at_the_end_are_the_short_ones() -> None:
    pattern, events = asked("a ; b+", "a" + "b" * 24)
    assert first(pattern, events, 3) == [(2,), (2, 3), (2, 3, 4)]


def test_first_choices_of_which_neighbours_are_compared() -> None:
    text = "a ; b+ b[] ; c WHERE b[i].x > b[i-1].x"
    pattern, events = asked(text, "a" + "b" * 24 + "c")
    every = tuple(range(2, 26))
    assert first(pattern, events, 3) == [every, every[:-1], (*every[:-2], 25)]


def test_more_rounds_than_can_be_listed_are_refused_and_the_first_are_found() -> None:
    pattern, events = asked("a ; (b ; d)+ ; c", "a" + "bd" * 200 + "c")
    with pytest.raises(ArgumentError, match=r"at least 4,611,686,018,427,387,904 matches"):
        match_events(pattern, events)
    every = list(range(2, 402, 2))
    assert [list(row) for row in first(pattern, events, 3)] == [every, every[:-1], every[:-1]]


@pytest.mark.parametrize("most", [1, 2, 5, 40])
@pytest.mark.parametrize(
    "text",
    [
        "(p ; q)+ DEFINE p AS x < 5, q AS x > 1",
        "(p | q)+ DEFINE p AS x < 5, q AS x > 1",
        "((a ; b) | p)+ ; p AS d DEFINE p AS x > 1",
        "(p ; q)+ DEFINE p AS x < 5, q AS x > 1 WHERE SUM(p.x) > 3",
        "(p ; q)+ DEFINE p AS x < 5, q AS x > 1 WHERE ABS(p.x - q.x) <= 2 WITHIN 4 EVENTS",
    ],
)
@pytest.mark.parametrize("rising", [True, False])
def test_the_first_rounds_are_the_first_of_all(text: str, most: int, rising: bool) -> None:
    letters = "abaabab"
    stream = [
        Event(at if rising else 2 + at - 3 * (at % 3), at * 60_000_000, name, {"x": float(at)})
        for at, name in enumerate(letters, start=1)
    ]
    found = match_events(
        compiled(text, TYPES, repetition="all"), events_of([stream], TYPES), max_matches=most, truncate=True
    )
    wanted = matches(text, stream, TYPES, repetition="all")
    assert [row for _, row in rows_of(found)] == wanted[:most]
    assert found.truncated == (len(wanted) > most)


@pytest.mark.parametrize(
    "text",
    [
        "(a ; b)+",
        "(a , b)* ; c",
        "c? ; ((a ; b?) | c)+",
        "((a ; b)+ , c){1,}",
        "(a | b)+ WITHIN 4 EVENTS",
        "(a? , b)+ ; c WITHIN 5 EVENTS",
        "(P ; b*)+ DEFINE P AS x < 6 WITHIN 6 EVENTS",
    ],
)
def test_choices_of_rounds_are_counted_without_a_list_of_them(text: str) -> None:
    pattern, events = asked(text, "abacbcabb")
    assert count_rounds(pattern, events) == len(match_events(pattern, events))


def test_millions_of_rounds_are_counted() -> None:
    pattern, events = asked("x ; (a ; b)+ ; c", "x" + "ab" * 24 + "c")
    # Pairs of an a and a later b, one after another: as many as ways to choose an even number of 48 in turn.
    assert count_rounds(pattern, events) == sum(comb(24 + size, 2 * size) for size in range(1, 25))
    with pytest.raises(ArgumentError, match=r"at least \d{1,3}(,\d{3})+ matches"):
        match_events(pattern, events)


@pytest.mark.parametrize("text", ["(a+ | b)+", "(a+ ; b?)+ ; c", "((a+ | b)+){2} ; c", "(a+ | b)+ UNTIL x"])
def test_rounds_in_doubt_give_each_match_once(text: str) -> None:
    """Sixteen events may be divided into rounds in tens of thousands of ways."""
    pattern, events = asked(text, "aaaabaaabbaabaac")
    plain, _ = asked(text.replace("a+", "a").replace("){2}", "){2,}"), "")
    rows = rows_of(match_events(pattern, events))
    assert len(rows) == len(match_events(plain, events))
    assert len({repr(row) for row in rows}) == len(rows) > 1000


def test_rounds_in_doubt_that_a_condition_tells_apart_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MOST_ABREAST", 1000)
    pattern, events = asked("(a+ | b)+ WHERE ABS(a.x - b.x) < 99 ", "a" * 16)
    with pytest.raises(ArgumentError, match="position 1 \\(more than 1,000 that take the same events"):
        match_events(pattern, events)


def test_rounds_that_lead_nowhere_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MOST_LOST", 100_000)
    pattern, events = asked("(a ; b){20}", "ab" * 19)
    with pytest.raises(
        ArgumentError, match="behind the event at position 1 \\(more than 100,000 that lead to no match"
    ):
        match_events(pattern, events)


def test_rounds_of_which_few_count_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MOST_WAYS", 10_000)
    pattern, events = asked("(a ; b)+ WHERE SUM(a.x) < 0", "ab" * 19)
    with pytest.raises(ArgumentError, match="too many ways"):
        match_events(pattern, events, max_matches=10, truncate=True)


def test_what_cannot_end_inside_the_window_is_not_begun() -> None:
    pattern, events = asked("(a ; b)+ ; c WITHIN 40 EVENTS", "ab" * 4_000 + "c")
    with pytest.raises(ArgumentError, match="at least"):
        match_events(pattern, events)
    pattern, events = asked("(a , b)+ ; c WITHIN 9 EVENTS", "ab" * 50_000 + "c")
    assert len(match_events(pattern, events)) == 15


@pytest.mark.parametrize(("least", "count"), [("b{1,2}", comb(24, 2)), ("b{3}", comb(24, 3)), ("b?", 24)])
def test_the_greatest_number_of_events_is_chosen_freely(least: str, count: int) -> None:
    pattern, events = asked(f"a ; {least} ; c", "a" + "b" * 24 + "c", repetition="maximal")
    assert count_matches(pattern, events) == count
