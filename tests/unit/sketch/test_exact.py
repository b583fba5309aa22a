"""Patterns on events: the exact answer of verify => true."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from drawn import RANDOMS, SEEDED
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import sketch_matching as naive
from naive.sketch_cases import (
    POLICIES,
    by_key,
    compiled,
    events_of,
    naive_operands,
    naive_rows,
    operands_of,
    random_conditions,
    random_events,
    random_pattern,
    rows_of,
)

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.events import TokenEvents, presence
from patternlake.udfs.sketch.kernels import conditional, partials
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.kernels.hits import Matches
from patternlake.udfs.sketch.windows import Window


def stream(text: str) -> list[naive.Row]:
    """One event per word, ``A5`` has name A and x = 5, ``AB`` two names; position p is p milliseconds."""
    rows = []
    for position, word in enumerate(text.split(), 1):
        names = word.rstrip("0123456789")
        value = float(word[len(names) :]) if len(names) < len(word) else None
        at = position * 1000
        rows.append(naive.Row(position, position, at, at, frozenset(names), position, value))
    return rows


def answer(
    text: str,
    events: str,
    policy: str = "skip_till_next",
    after_match: str = "past_last",
    window: Window | None = None,
) -> Matches:
    pattern = compiled(text, verify=True)
    return match_events(
        pattern, events_of(pattern, stream(events)), policy=policy, after_match=after_match, window=window
    )


# -- policies --------------------------------------------------------------------------------------------------------


def test_past_last_goes_on_after_the_last_event() -> None:
    assert rows_of(answer("SEQ(A,A)", "A A A")) == [(1, 2)]
    assert rows_of(answer("SEQ(A,A)", "A A A A")) == [(1, 2), (3, 4)]


def test_next_tries_every_start() -> None:
    assert rows_of(answer("SEQ(A,A)", "A A A", after_match="next")) == [(1, 2), (2, 3)]


def test_strict_means_directly_next() -> None:
    assert rows_of(answer("A ; B", "A C B A B", "strict")) == [(4, 5)]


def test_skip_till_any_takes_every_tuple_of_events() -> None:
    assert rows_of(answer("A ; B", "A B A B", "skip_till_any")) == [(1, 2), (1, 4), (3, 4)]


def test_an_event_serves_one_operand() -> None:
    assert rows_of(answer("A & B", "AB")) == []
    assert rows_of(answer("A & B", "AB AB")) == [(1, 2)]
    assert rows_of(answer("AND(A, A)", "A A A", "skip_till_any")) == [(1, 2), (1, 3), (2, 1), (3, 1), (2, 3), (3, 2)]


def test_an_and_gives_its_events_out_for_the_earliest_end() -> None:
    # The first event can be A or B; as A it would have to wait for the B at the end.
    assert rows_of(answer("A & B", "AB A C B")) == [(2, 1)]


def test_a_run_moves_as_a_whole() -> None:
    assert rows_of(answer("A ; B , C", "A B D B C")) == [(1, 4, 5)]


def test_not_forbids_its_names_strictly_between_and_consumes_nothing() -> None:
    assert rows_of(answer("A ; !B ; C", "A B A C")) == [(3, 4)]
    assert rows_of(answer("A ; !B ; C", "AB BC")) == [(1, 2)]


def test_ways_of_an_or_are_tried_in_the_order_of_the_text() -> None:
    assert rows_of(answer("D ; A | C ; !C ; B", "D A C B")) == [(1, 3, 4)], "as A the C at 3 rejects"
    assert rows_of(answer("D ; A | C ; B", "D C A B")) == [(1, 3, 4)], "A is tried first, though the C is nearer"
    assert rows_of(answer("D ; A | C ; B", "D C B A")) == [(1, 2, 3)]
    assert rows_of(answer("D ; A | C WITHIN 2 EVENTS", "D C A")) == [(1, 2)]
    assert rows_of(answer("D ; A | C , B", "D A C B A B", "skip_till_next")) == [(1, 5, 6)]
    assert rows_of(answer("D ; A | C ; B", "D C B A", "strict")) == [(1, 2, 3)]


def test_too_many_ways_are_refused() -> None:
    text = " ; ".join(["A | B | C | D"] * 5)
    with pytest.raises(ArgumentError, match=r"'\|' gives this pattern 1,024 ways, .*; 1,000 are the most"):
        answer(text, "A B C D")
    assert rows_of(answer(text, "A B C D A", "skip_till_any")) == [(1, 2, 3, 4, 5)]


def test_skip_till_next_does_not_look_back_when_not_rejects() -> None:
    assert rows_of(answer("A ; B ; !D ; C", "A B D B C")) == []


def test_within_is_last_minus_first() -> None:
    assert rows_of(answer("A ; B WITHIN 2 EVENTS", "A C B A B")) == [(4, 5)]
    assert rows_of(answer("A ; B WITHIN 3 EVENTS", "A C B A B")) == [(1, 3), (4, 5)]
    assert rows_of(answer("A ; B WITHIN 2 MILLISECOND", "A C B A B")) == [(4, 5)]


def test_windows_are_inclusive_and_hide_events_without_renumbering_them() -> None:
    assert rows_of(answer("A ; B", "A B A B", window=Window(from_position=2, to_position=4))) == [(3, 4)]
    assert rows_of(answer("A ; B", "A B A B", window=Window(from_time=3000, to_time=4000))) == [(3, 4)]
    assert rows_of(answer("A ; B", "A B A B", window=Window(to_position=3))) == [(1, 2)]
    assert rows_of(answer("A ; B", "A B A B", window=Window(from_position=3, to_position=2))) == []


def test_a_row_tells_positions_and_times_of_its_first_and_last_event() -> None:
    matches = answer("A & B ; C", "B A C")
    assert (matches.first_position.tolist(), matches.last_position.tolist()) == ([1], [3])
    assert (matches.first_time.tolist(), matches.last_time.tolist()) == ([1000], [3000])
    assert (matches.level.tolist(), matches.fp_bound.tolist()) == ([0], [0.0])


# -- DEFINE and WHERE ------------------------------------------------------------------------------------------------


def test_a_primitive_is_what_its_predicate_says() -> None:
    assert rows_of(answer("A ; b DEFINE b AS name = 'B' AND x > 4", "A B3 B5")) == [(1, 3)]
    assert rows_of(answer("A ; e DEFINE e AS TRUE", "C A D")) == [(2, 3)]


def test_conditions_steer_the_choice_of_the_nearest_event() -> None:
    assert rows_of(answer("A ; B WHERE B.x > A.x", "A4 B3 B5")) == [(1, 3)]
    assert rows_of(answer("A ; B WHERE B.x > 4", "A4 B3 B5")) == [(1, 3)]


def test_a_condition_is_judged_once_all_its_operands_are_bound() -> None:
    # B is the nearest; that no C fits it is found too late.
    text = "A ; B ; C WHERE C.x = B.x"
    assert rows_of(answer(text, "A B1 B2 C2", after_match="next")) == []
    assert rows_of(answer(text, "A B1 B2 C2", "skip_till_any")) == [(1, 3, 4)]


def test_a_missing_value_never_matches() -> None:
    assert rows_of(answer("A ; B WHERE B.x <> A.x", "A B1 A2 B3")) == [(3, 4)]


def test_an_attribute_is_equal_along_the_whole_match() -> None:
    assert rows_of(answer("A ; B ; C WHERE [x]", "A1 B2 B1 C2 C1")) == [(1, 3, 5)]


def test_a_negated_event_of_another_value_breaks_nothing() -> None:
    assert rows_of(answer("A ; !B ; C WHERE [x]", "A1 B2 C1 A2 B2 C2")) == [(1, 3)]
    assert rows_of(answer("A ; !B ; C WHERE B.x > A.x", "A1 B1 C A1 B2 C")) == [(1, 3)]


@pytest.mark.parametrize("where", ["", " WHERE B.x > 5", " WHERE B.x > A.x", " WHERE C.x > B.x AND A.x = 1"])
def test_a_negation_inside_a_comma_run_forbids_nothing_whatever_is_said_of_it(where: str) -> None:
    # Nothing lies between direct neighbours.
    assert rows_of(answer("A , !B , C" + where, "A1 B9 C3 B9 A1 C3")) == [(5, 6)]


def test_a_condition_on_an_alternative_applies_where_it_was_taken() -> None:
    assert rows_of(answer("A ; B | C WHERE B.x > A.x", "A3 B1 C1 A3 B2")) == [(1, 3)]
    assert rows_of(answer("A ; B | C WHERE B.x > A.x", "A3 B1 C1 A3 B4")) == [(1, 5)], "B is tried before C"


def test_skip_till_any_takes_an_alternative_that_later_conditions_allow() -> None:
    assert rows_of(answer("A | B ; C WHERE A.x = C.x", "AB1 C2", "skip_till_any")) == [(1, 2)]


def test_neighbours_of_a_repetition_are_compared_by_index() -> None:
    text = "A[3] AS a WHERE a[i].x > a[i-1].x"
    assert rows_of(answer(text, "A5 A3 A4 A6", "skip_till_any")) == [(2, 3, 4)]
    assert rows_of(answer("A[2] AS a WHERE a.x > 3", "A5 A3 A4 A6")) == [(1, 3)]


def test_conditions_choose_the_events_of_an_and() -> None:
    assert rows_of(answer("A & B WHERE A.x = B.x", "A1 B2 A2 B1")) == [(1, 4)]
    assert rows_of(answer("A & B WHERE A.x = B.x", "A1 B2 A2", after_match="next")) == [(3, 2)]


def test_a_distant_partner_is_found() -> None:
    events = "A7 " + "B1 " * 3000 + "B7"
    assert rows_of(answer("A ; B WHERE A.x = B.x", events)) == [(1, 3002)]
    assert rows_of(answer("A ; B , B AS c WHERE A.x = c.x", events)) == [(1, 3001, 3002)]


@pytest.mark.parametrize(
    ("sign", "a", "b", "holds"),
    [
        ("=", math.nan, math.nan, True),
        ("=", -0.0, 0.0, True),
        ("=", None, None, False),
        (">", math.nan, 5.0, True),
        (">", 5.0, math.nan, False),
        ("<", 5.0, math.nan, True),
        ("<=", math.nan, math.nan, True),
        ("<", None, 5.0, False),
    ],
)
def test_values_compare_as_spark_compares_them(sign: str, a: float | None, b: float | None, holds: bool) -> None:
    pattern = compiled(f"A ; B WHERE A.x {sign} B.x", verify=True)
    events = [replace(event, x=x) for event, x in zip(stream("A B"), (a, b), strict=True)]
    for policy, after_match in POLICIES:
        found = match_events(pattern, events_of(pattern, events), policy=policy, after_match=after_match)
        assert len(found) == holds


def test_a_column_that_is_not_given_is_named() -> None:
    pattern = compiled("A ; B WHERE A.x = B.x", verify=True)
    events = replace(events_of(pattern, stream("A1 B1")), columns={})
    with pytest.raises(ArgumentError, match="column 'x' of the events is needed; given are position, time"):
        match_events(pattern, events)


# -- limits and input ------------------------------------------------------------------------------------------------


def test_too_many_matches_are_an_error_or_cut() -> None:
    text = "A ; B WHERE A.x = B.x"
    pattern = compiled(text, verify=True)
    events = events_of(pattern, stream("A1 A1 B1 B1"))
    with pytest.raises(ArgumentError, match="has at least 3 matches, more than max_matches = 2"):
        match_events(pattern, events, policy="skip_till_any", max_matches=2)
    cut = match_events(pattern, events, policy="skip_till_any", max_matches=3, truncate=True)
    assert (rows_of(cut), cut.truncated) == ([(1, 3), (1, 4), (2, 3)], True)


def test_presence_finds_names_among_the_tokens_of_every_expression() -> None:
    tokens = [pa.array(["A", None, "B"]), pa.array(["B", "A", None])]
    assert presence(("A", "B"), tokens).tolist() == [[True, True], [True, False], [False, True]]


def test_neighbours_and_counts_are_those_of_the_partition() -> None:
    pattern = compiled("A ; B WITHIN 2 EVENTS", verify=True)
    positions = np.array([1, 9, 2, 3, 4], np.int64)
    events = TokenEvents(
        positions=positions,
        times=positions,
        names=np.zeros(5, np.int64),
        vocabulary=[""],
        keys=np.array([0, 0, 1, 1, 1]),
        asked=pattern.names,
        present=np.array([[1, 0], [0, 1], [1, 0], [0, 0], [0, 1]], np.bool_),
        offsets=np.array([0, 2, 5], np.int64),
    )
    for policy in ("strict", "skip_till_next"):
        matches = match_events(pattern, events, policy=policy)
        assert (matches.key.tolist(), rows_of(matches)) == ([0], [(1, 9)])


@pytest.mark.parametrize("where", ["", " WHERE A.x <= C.x"])
@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_a_span_is_the_greatest_less_the_least_time_of_all_events(where: str, policy: str, after_match: str) -> None:
    pattern = compiled(f"A ; B ; C{where} WITHIN 10 SEC", verify=True)
    for seconds, found in [((0, 9, 5), 1), ((9, 0, 5), 1), ((5, 9, 0), 1), ((0, 60, 1), 0), ((60, 0, 61), 0)]:
        events = [
            naive.Row(place, place, at * 1_000_000, at * 1_000_000, frozenset(name), place, 1.0)
            for place, (name, at) in enumerate(zip("ABC", seconds, strict=True), 1)
        ]
        got = match_events(pattern, events_of(pattern, events), policy=policy, after_match=after_match)
        assert len(got) == found, seconds


@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_no_events_no_matches(policy: str, after_match: str) -> None:
    assert len(answer("A & B ; !C ; D , E WHERE A.x < D.x AND C.x = A.x", "", policy, after_match)) == 0


# -- random cases ----------------------------------------------------------------------------------------------------


def check_against_oracle(rng: random.Random, *, conditions: bool) -> None:
    described = random_pattern(rng)
    if conditions:
        described = random_conditions(rng, described)
    pattern = compiled(described.text(), verify=True)
    several = rng.random() < 0.5
    events = random_events(rng, rng.randint(0, 11), names="ABCD", several=several, ordered=rng.random() < 0.5)
    events = [replace(event, x=None) if rng.random() < 0.05 else event for event in events]
    offsets, parts = None, [events]
    if rng.random() < 0.4:
        events, offsets, parts = by_key(rng, events, rng.choice([1, 2, 3]))
    for policy, after_match in POLICIES:
        expected = []
        for key, part in enumerate(parts):
            found = naive.match(described, part, policy=policy, after_match=after_match, exclusive=True)
            rows, operands = naive_rows(part, found), naive_operands(described, found)
            expected += zip([key] * len(found), rows, operands, strict=True)
        got = match_events(pattern, events_of(pattern, events, offsets), policy=policy, after_match=after_match)
        assert sorted(zip(got.key.tolist(), rows_of(got), operands_of(got), strict=True)) == sorted(expected)
        first = [(key, position) for key, position in zip(got.key, got.first_position, strict=True)]
        assert first == sorted(first)


@given(RANDOMS)
@settings(max_examples=300)
def test_every_policy_equals_brute_force(rng: random.Random) -> None:
    check_against_oracle(rng, conditions=False)


@given(RANDOMS)
@settings(max_examples=300)
def test_every_policy_equals_brute_force_under_conditions(rng: random.Random) -> None:
    check_against_oracle(rng, conditions=True)


@given(RANDOMS, st.integers(1, 4), st.integers(1, 5))
@settings(max_examples=150)
def test_the_answer_does_not_depend_on_how_many_candidates_are_judged_at_a_time(
    rng: random.Random, width: int, most: int
) -> None:
    with (
        mock.patch.object(conditional, "FIRST_WIDTH", width),
        mock.patch.object(conditional, "MOST_ROWS", most),
        mock.patch.object(partials, "MOST_ROWS", most),
    ):
        check_against_oracle(rng, conditions=True)


@pytest.mark.slow
@given(SEEDED, st.booleans())
@settings(max_examples=4000)
def test_every_policy_equals_brute_force_in_thousands_of_cases(rng: random.Random, conditions: bool) -> None:
    check_against_oracle(rng, conditions=conditions)
