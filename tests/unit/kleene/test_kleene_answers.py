"""Limits, truncation, counts, keys and what an answer shows."""

from __future__ import annotations

import random
import tracemalloc
from math import comb

import numpy as np
import pytest
from naive.kleene import Event, matches
from naive.kleene_cases import TYPES, stream
from naive.kleene_kernels import answered, compiled, count_matches, events_of, rows_of, rows_of_nodes
from naive.kleene_random import TYPES as RANDOM_TYPES
from naive.kleene_random import Pattern, random_events

from patternlake.udfs.errors import ArgumentError, PredicateError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.kernels import bindings, joins, linearized, ranges
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.plans.trees import forced_plan
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.language.predicate.columns import Column


def test_an_answer_shows_ends_times_and_bindings() -> None:
    events = events_of([[Event(7, 5000, "a"), Event(3, 9000, "b"), Event(4, 9000, "b")], stream("b1")], TYPES)
    found = match_events(compiled("a ; c* ; b+", TYPES), events)
    assert found.operands == ("a", "c", "b")
    assert rows_of(found) == [(0, {"a": (7,), "b": (3, 4)})]
    assert found.offsets.tolist() == [0, 1, 1, 3]
    assert (found.first_position.tolist(), found.last_position.tolist()) == ([7], [4])
    assert (found.first_time.tolist(), found.last_time.tolist()) == ([5000], [9000])
    assert (found.total, found.truncated) == (1, False)


def test_rows_come_by_key_then_positions() -> None:
    streams = [stream("a3 a4 b5"), stream("a1 b2")]
    assert answered("a ; b", streams, TYPES) == [
        (0, {"a": (3,), "b": (5,)}),
        (0, {"a": (4,), "b": (5,)}),
        (1, {"a": (1,), "b": (2,)}),
    ]


@pytest.mark.parametrize("pattern", ["a ; b", "(a | c) ; b", "a ; b[2]", "a* & b"])
def test_truncation_keeps_the_first_rows(pattern: str) -> None:
    streams = [stream("a1 b2 a3 b4 b5 c6 b7"), stream("a1 a2 b3 b4")]
    everything = answered(pattern, streams, TYPES)
    events = events_of(streams, TYPES)
    for most in (1, 2, len(everything) - 1):
        found = match_events(compiled(pattern, TYPES), events, max_matches=most, truncate=True)
        assert rows_of(found) == everything[:most]
        assert most < found.total <= len(everything)
        assert found.truncated
    found = match_events(compiled(pattern, TYPES), events, max_matches=len(everything), truncate=True)
    assert (rows_of(found), found.truncated) == (everything, False)


@pytest.mark.parametrize("policy", ["skip_till_any", "skip_till_next"])
def test_too_many_matches_are_refused_with_their_count(policy: str) -> None:
    pattern = compiled("a ; b", TYPES, policy=policy)
    with pytest.raises(ArgumentError, match=r"at least 3 matches, more than max_matches = 2"):
        match_events(pattern, events_of([stream("a1 a2 a3 b4")], TYPES), policy=policy, max_matches=2)


def test_combinations_are_counted_without_being_listed() -> None:
    events = events_of([stream("a1 " + " ".join(f"b{n}" for n in range(2, 202)) + " c202")], TYPES)
    pattern = compiled("a ; b[50] ; c", TYPES)
    assert count_matches(pattern, events) == comb(200, 50)
    with pytest.raises(ArgumentError, match="max_matches = 1,000,000"):
        match_events(pattern, events)
    found = match_events(pattern, events, max_matches=3, truncate=True)
    assert found.total == comb(200, 50)
    assert [row["b"][-2:] for _, row in rows_of(found)] == [(50, 51), (50, 52), (50, 53)]


def test_a_count_of_thousands_of_digits_is_told_by_its_size() -> None:
    events = columns_of_letters("a" + "b" * 20_000 + "c")
    with pytest.raises(ArgumentError, match=r"^the pattern has at least about 10\^4882 matches, more than max_matches"):
        match_events(compiled("a ; b[5000] ; c", TYPES), events)


def test_combinations_of_two_counted_operands_are_cut_as_well() -> None:
    text = " ".join([f"a{n}" for n in range(1, 41)] + ["b41"] + [f"c{n}" for n in range(42, 82)])
    pattern = compiled("a[20] ; b ; c[20]", TYPES)
    found = match_events(pattern, events_of([stream(text)], TYPES), max_matches=4, truncate=True)
    assert found.total == comb(40, 20) ** 2
    assert [(row["a"][-1], row["c"][-1]) for _, row in rows_of(found)] == [(20, 61), (20, 62), (20, 63), (20, 64)]


@pytest.mark.parametrize("seed", range(120))
def test_counts_are_those_of_the_rows(seed: int) -> None:
    rng = random.Random(seed)
    pattern = Pattern(rng, most=4)
    try:
        made = compiled(pattern.text, RANDOM_TYPES)
    except PredicateError:
        return
    streams = [random_events(rng, rng.randint(0, 9)) for _ in range(2)]
    wanted = sum(len(matches(pattern.text, one, RANDOM_TYPES)) for one in streams)
    events = events_of(streams, RANDOM_TYPES, made.names)
    assert count_matches(made, events) == wanted, pattern.text
    tree = forced_plan(made, rng.choice(["left", "right", "bushy", "inner"]))
    assert count_matches(made, events, tree) == wanted, pattern.text


@pytest.mark.parametrize("seed", range(40))
def test_answers_do_not_depend_on_how_much_is_held_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    pattern = Pattern(rng, most=4)
    try:
        made = compiled(pattern.text, RANDOM_TYPES)
    except PredicateError:
        return
    events = events_of([random_events(rng, 10) for _ in range(2)], RANDOM_TYPES, made.names)
    wanted = rows_of(match_events(made, events))
    monkeypatch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(linearized, "ROWS_AT_ONCE", 40)
    monkeypatch.setattr(joins, "PAIRS_AT_ONCE", 2)
    assert rows_of(match_events(made, events)) == wanted, pattern.text
    assert count_matches(made, events) == len(wanted), pattern.text


@pytest.mark.parametrize("plan", ["left", "right", "bushy", "inner"])
def test_one_event_may_begin_more_partial_matches_than_are_held(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearized, "ROWS_AT_ONCE", 1)
    events = events_of([stream("a1 b2 b3 b4 c5 c6 c7")], TYPES)
    pattern = compiled("a ; b ; c", TYPES)
    tree = forced_plan(pattern, plan)
    wanted = [(0, {"a": (1,), "b": (b,), "c": (c,)}) for b in (2, 3, 4) for c in (5, 6, 7)]
    assert rows_of(match_events(pattern, events, plan=tree)) == wanted
    assert count_matches(pattern, events, tree) == 9


def columns_of_letters(text: str) -> Events:
    """An event per letter, a microsecond apart; x is its position."""
    n = len(text)
    positions = np.arange(1, n + 1)
    known = np.ones(n, np.bool_)
    return Events(
        keys=np.zeros(n, np.int64),
        times=positions,
        positions=positions,
        names=np.array([ord(letter) - ord("a") for letter in text]),
        vocabulary=["a", "b", "c"],
        columns={"x": Column(positions.astype(np.float64), known, "double")},
    )


def test_more_partial_matches_than_are_held_are_no_error() -> None:
    """1,500 times 1,500 pairs, of which each a begins 1,500: all of them together are more than are held at once."""
    events = columns_of_letters("a" * 1500 + "b" * 1500)
    pattern = compiled("a ; b", TYPES)
    assert linearized.ROWS_AT_ONCE < 1500 * 1500
    with pytest.raises(ArgumentError, match="more than max_matches = 1,000,000"):
        match_events(pattern, events)
    found = match_events(pattern, events, max_matches=3, truncate=True)
    assert rows_of(found) == [(0, {"a": (1,), "b": (b,)}) for b in (1501, 1502, 1503)]
    assert found.truncated


def test_conditions_are_judged_of_more_partial_matches_than_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """x is 1 to 60 of a, 61 to 120 of b, 121 to 179 of a c that counts."""
    monkeypatch.setattr(linearized, "ROWS_AT_ONCE", 1000)
    events = columns_of_letters("a" * 60 + "b" * 60 + "c" * 100)
    pattern = compiled("a ; b ; c WHERE c.x = a.x + b.x AND c.x < 180", TYPES)
    wanted = [{"a": (a,), "b": (b,), "c": (a + b,)} for a in range(1, 61) for b in range(61, 121) if 121 <= a + b < 180]
    assert [row for _, row in rows_of(match_events(pattern, events))] == wanted
    assert count_matches(pattern, events) == len(wanted)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a ; b", ["a 1, b 2", "a 1, b 5"]),
        ("a ; b ; c", ["a 1, b 2, c 3", "a 1, b 2, c 6"]),
        ("c & b & a", ["c 3, b 2, a 1", "c 6, b 2, a 1"]),
        ("a ; b+ ; c", ["a 1, b 2, c 3", "a 1, b 2 5, c 6"]),
        ("a+ ; c", ["a 1, c 3", "a 1 4, c 6"]),
        ("a ; (c | b)", ["a 1, b 2", "a 1, c 3"]),
        ("a ; b* ; (c | b)", ["a 1, b#2 2", "a 1, b 2, c 3"]),
        ("a ; b ; c WHERE b.x - a.x > 9", ["a 1, b 11, c 12", "a 1, b 11, c 15"]),
        ("a ; !c ; b", ["a 1, b 2", "a 4, b 5"]),
    ],
)
def test_the_first_rows_cost_what_they_are(text: str, rows: list[str]) -> None:
    """Of 30,000 events there are billions of matches, and two are looked for."""
    found = match_events(compiled(text, TYPES), columns_of_letters("abc" * 10_000), max_matches=2, truncate=True)
    names = found.operands
    shown = [
        ", ".join(f"{name} {' '.join(map(str, row[name]))}" for name in names if name in row)
        for _, row in rows_of(found)
    ]
    assert (shown, found.truncated) == (rows, True)


def test_a_plan_with_large_inner_joins_gives_the_rows_of_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    events = events_of([stream("a1 " + " ".join(f"b{n} c{n + 1}" for n in range(2, 30, 2)) + " a30 b31 c32")], TYPES)
    pattern = compiled("a ; b ; c WHERE t(b) - t(a) < 2 MILLISECOND", TYPES)
    wanted = rows_of(match_events(pattern, events, plan=forced_plan(pattern, "left")))
    assert len(wanted) == 16
    monkeypatch.setattr(linearized, "ROWS_AT_ONCE", 20)
    right = forced_plan(pattern, "right")
    assert rows_of(match_events(pattern, events, plan=right)) == wanted
    assert count_matches(pattern, events, right) == len(wanted)


@pytest.mark.parametrize("policy", ["skip_till_any", "skip_till_next"])
@pytest.mark.parametrize("where", ["", " WHERE ABS(b.x - a.x) >= 0"])
def test_rows_that_bind_too_many_events_are_refused(policy: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "MOST_BOUND", 10)
    events = events_of([stream("a1=1 b2=1 a3=1 b4=1 b5=1 b6=1 a7=1 b8=1")], TYPES)
    with pytest.raises(ArgumentError, match="bind more than 10 events together; narrow"):
        match_events(compiled(f"a ; b+{where}", TYPES, policy=policy), events, policy=policy)


def test_work_says_how_many_partial_matches_each_node_gave() -> None:
    events = events_of([stream("a1 a2 b3 c4 c5")], TYPES)
    pattern = compiled("a ; b ; c", TYPES)
    work = Work()
    match_events(pattern, events, plan=forced_plan(pattern, "right"), work=work)
    assert rows_of_nodes(work) == {(0,): 2, (1,): 1, (2,): 2, (1, 2): 2, (0, 1, 2): 4}


@pytest.mark.parametrize("plan", ["left", "right", "bushy", "inner"])
def test_an_event_is_joined_to_none_behind_what_must_be_absent(plan: str) -> None:
    pattern, work = compiled("b ; c ; a ; !c ; b", TYPES), Work()
    events = columns_of_letters("abc" * 50)
    found = match_events(pattern, events, plan=forced_plan(pattern, plan), work=work)
    assert len(found) == sum(number * (number + 1) // 2 for number in range(50))
    # An a and the b behind it, and not 1,275 pairs of any.
    assert rows_of_nodes(work).get((2, 4), 50) == 50
    # Each is a match.
    assert rows_of_nodes(work)[0, 1, 2, 4] == len(found)


LAST_PLAIN = [
    "A ; B+ ; C",
    "A ; B* ; C WITHIN 4 EVENTS",
    "A ; B+ ; A ; B* ; C WITHIN 9 EVENTS",
    "A ; B+ ; C+ ; A",
    "A ; B+ b[] ; C WHERE b[i].n > b[i-1].n WITHIN 6 EVENTS",
    "A ; B+ b[] ; C WHERE b.n > A.n WITHIN 6 EVENTS",
    "A ; B+ b[] ; C WHERE b.n > C.n WITHIN 6 EVENTS",
    "A ; B+ b[] ; A ; C WHERE b.n > C.n",
    "A ; B+ b[] ; A AS d ; C WHERE b.n > d.n",
    "A ; B ; C WHERE B.n = C.n",
    "A ; B[2] ; C ; A",
    "(A & B) ; C WITHIN 5 EVENTS",
    "A+ ; B ; C WITHIN 5 EVENTS",
    "A ; !B ; C",
    "A ; B ; C WHERE [s]",
]


@pytest.mark.parametrize("text", LAST_PLAIN)
@pytest.mark.parametrize("plan", ["left", "right", "bushy", "inner"])
def test_matches_that_end_plain_are_counted_as_listed(text: str, plan: str) -> None:
    made = compiled(text, RANDOM_TYPES)
    rng = random.Random(f"{text} {plan}")
    counts = []
    for _ in range(30):
        streams = [random_events(rng, rng.randint(3, 11)) for _ in range(2)]
        wanted = sum(len(matches(text, one, RANDOM_TYPES)) for one in streams)
        events = events_of(streams, RANDOM_TYPES, made.names)
        assert count_matches(made, events, forced_plan(made, plan)) == wanted
        counts.append(wanted)
    assert any(counts)


TRUNCATED = [
    "A ; B",
    "A+ ; B",
    "A ; B*",
    "(A | B*) ; C",
    "A[2] ; B",
    "A ; B WHERE [s]",
    "A & B+",
    "A* AS a1 ; A AS a2 ; B+",
    "A ; B+ ; X ; C DEFINE X AS x > 0",
    "B+ & X[2] DEFINE X AS x > 0",
    "A+ AS a1 ; A[2] AS a2 ; B",
]


@pytest.mark.parametrize("text", TRUNCATED)
@pytest.mark.parametrize("seed", range(6))
def test_the_first_rows_come_first_however_ranges_are_cut(
    text: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    made = compiled(text, RANDOM_TYPES)
    streams = [random_events(rng, 9) for _ in range(3)]
    everything = [(key, row) for key, one in enumerate(streams) for row in matches(text, one, RANDOM_TYPES)]
    events = events_of(streams, RANDOM_TYPES, made.names)
    monkeypatch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", 2)
    for most in range(1, len(everything) + 2):
        found = match_events(made, events, max_matches=most, truncate=True)
        assert rows_of(found) == everything[:most]
        assert found.truncated == (most < len(everything))
        if most < len(everything):
            with pytest.raises(ArgumentError, match="max_matches"):
                match_events(made, events, max_matches=most)


def test_a_repetition_that_may_take_the_next_operands_event_orders_rows_by_what_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The row of the later b comes first, as the earlier one is among its events: {1, 2, 3, 4} before {1, 2, 4}."""
    made = compiled("a+ AS many ; a AS one ; c", TYPES)
    events = events_of([[Event(at, at * 1_000_000, name) for at, name in enumerate("aaacc", start=1)]], TYPES)
    monkeypatch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", 2)
    everything = [
        (0, {"many": (1, 2), "one": (3,), "c": (4,)}),
        (0, {"many": (1, 2), "one": (3,), "c": (5,)}),
        (0, {"many": (1,), "one": (2,), "c": (4,)}),
        (0, {"many": (1,), "one": (2,), "c": (5,)}),
    ]
    for most in range(1, 5):
        found = match_events(made, events, max_matches=most, truncate=True)
        assert rows_of(found) == everything[:most]


def repeated(names: str, count: int) -> list[list[Event]]:
    """A stream of some names, again and again, an event a second."""
    return [[Event(at + 1, at * 1_000_000, names[at % len(names)]) for at in range(count)]]


@pytest.mark.parametrize(
    ("text", "count"), [("a[3]", 1000), ("a[20]", 1000), ("a[3] & a[2]", 1000), ("a ; a[30] ; a", 400)]
)
def test_combinations_are_counted_exactly_and_only_those_asked_for_are_listed(text: str, count: int) -> None:
    events = events_of(repeated("a", count), TYPES)
    made = compiled(text, TYPES)
    exact = {"a[3]": comb(count, 3), "a[20]": comb(count, 20), "a ; a[30] ; a": comb(count, 32)}
    if text in exact:
        assert count_matches(made, events) == exact[text]
    found = match_events(made, events, max_matches=10, truncate=True)
    assert (len(found), found.truncated) == (10, True)
    with pytest.raises(ArgumentError, match=r"matches, more than max_matches = 1,000,000"):
        match_events(made, events)


def test_the_first_combinations_of_many_are_listed_in_little_memory() -> None:
    events = events_of(repeated("a", 1000), TYPES)
    tracemalloc.start()
    try:
        found = match_events(compiled("a[3]", TYPES), events, max_matches=200_000, truncate=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows_of(found)[:2] == [(0, {"a": (1, 2, 3)}), (0, {"a": (1, 2, 4)})]
    # A copy of the list of 1,000 for each row would be 1.6 GB.
    assert peak < 400_000_000


@pytest.mark.parametrize("text", ["a+ ; b+ ; c+", "a+ ; b+ ; a+ ; b+ ; c+ ; a+", "a+ ; b+ ; c ; a+ ; b+ ; c+"])
def test_ways_to_fill_groups_are_followed_only_as_far_as_rows_are_asked_for(text: str) -> None:
    events = events_of(repeated("abc", 3000), TYPES)
    made = compiled(text, TYPES)
    found = match_events(made, events, max_matches=10, truncate=True)
    assert (len(found), found.truncated) == (10, True)
    with pytest.raises(ArgumentError, match=r"matches, more than max_matches = 10"):
        match_events(made, events, max_matches=10)


def test_the_first_ways_to_fill_groups_are_those_of_the_oracle() -> None:
    for text in ("a+ ; b+ ; c+", "a* ; b+ ; c ; a* ; b+ ; c*", "b+ ; a* ; c+ WITHIN 9 EVENTS", "a+ ; !c ; b+ ; a+"):
        given = repeated("abcab", 11)
        everything = [(0, row) for row in matches(text, given[0], TYPES)]
        assert len(everything) > 2
        for most in (1, 2, len(everything) - 1):
            found = match_events(compiled(text, TYPES), events_of(given, TYPES), max_matches=most, truncate=True)
            assert (rows_of(found), found.truncated) == (everything[:most], True)
