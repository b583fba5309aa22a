"""Patterns on nodes: the relaxed policies, and what they promise about the events behind the nodes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drawn import RANDOMS, SEEDED
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import sketch_matching as naive
from naive.sketch_cases import (
    POLICIES,
    compiled,
    hits_of,
    leaves,
    naive_operands,
    naive_rows,
    operands_of,
    random_events,
    random_pattern,
    rows_of,
)

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.kernels.hits import Hits, Matches
from patternlake.udfs.sketch.kernels.matching import match_nodes_by_key
from patternlake.udfs.sketch.query import SketchPattern

STREAM = "A B C B A A C B A D C B A B C B"


def nodes(text: str) -> list[naive.Row]:
    """One node per word, its letters the names; a node of k letters takes k positions, each a millisecond."""
    rows, position = [], 0
    for word in text.split():
        low, high = position + 1, position + len(word)
        names = frozenset(word) - {"-"}
        rows.append(naive.Row(low, high, low * 1000, high * 1000, names))
        position = high
    return rows


def match_nodes(pattern: SketchPattern, hits: Hits, **arguments: Any) -> Matches:
    """The matches of a stream without keys."""
    return match_nodes_by_key(pattern, hits, np.array([0, len(hits)], np.int64), **arguments)


def answer(text: str, stream: str, policy: str = "skip_till_next", after_match: str = "past_last") -> Matches:
    pattern = compiled(text)
    return match_nodes(pattern, hits_of(pattern, nodes(stream)), policy=policy, after_match=after_match)


def pairs(matches: Matches) -> list[tuple[int, int]]:
    """First and last position of each match."""
    return list(zip(matches.first_position.tolist(), matches.last_position.tolist(), strict=True))


# -- the worked answers of SPEC section 2 ----------------------------------------------------------------------------


def test_strict_takes_adjacent_leaves() -> None:
    assert pairs(answer("SEQ(A,B)", STREAM, "strict")) == [(1, 2), (13, 14)]


def test_skip_till_next_takes_the_nearest_later_leaf() -> None:
    assert pairs(answer("SEQ(A,B)", STREAM, after_match="next")) == [(1, 2), (5, 8), (6, 8), (9, 12), (13, 14)]


def test_past_last_goes_on_from_the_leaf_of_the_last_operand() -> None:
    assert pairs(answer("SEQ(A,B)", STREAM)) == [(1, 2), (5, 8), (9, 12), (13, 14)]


def test_skip_till_any_takes_every_tuple_of_leaves() -> None:
    assert len(answer("SEQ(A,B)", STREAM, "skip_till_any")) == 19


def test_and_takes_its_names_in_any_order() -> None:
    assert pairs(answer("SEQ(A,AND(B,C))", "A B C B")) == [(1, 3)]


def test_a_start_that_not_rejects_consumes_nothing() -> None:
    assert pairs(answer("SEQ(A,!B,C)", "A B A C")) == [(3, 4)]


def test_a_run_moves_as_a_whole() -> None:
    matches = answer("A ; B , C", "A B D B C")
    assert pairs(matches) == [(1, 5)]
    assert rows_of(matches) == [(1, 4, 5)]


# -- policies --------------------------------------------------------------------------------------------------------


def test_one_leaf_never_serves_two_consecutive_operands() -> None:
    assert pairs(answer("A ; B", "AB CB")) == [(1, 4)]
    assert pairs(answer("A ; B", "AB", "skip_till_any")) == []


def test_the_leaf_of_the_last_operand_can_start_the_next_match() -> None:
    assert pairs(answer("A ; B", "A- BA -B")) == [(1, 4), (3, 6)]


def test_the_start_always_advances() -> None:
    assert pairs(answer("A", "A A")) == [(1, 1), (2, 2)]
    assert pairs(answer("A & B", "AB AB")) == [(1, 2), (3, 4)]


def test_or_takes_any_of_the_names_and_shows_the_first_that_is_there() -> None:
    pattern = compiled("A ; B | C")
    matches = match_nodes(pattern, hits_of(pattern, nodes("A C A BC")))
    assert pairs(matches) == [(1, 2), (3, 5)]
    assert [pattern.labels[step] for step in matches.operand[:, 1]] == ["C", "B"]


def test_names_of_an_and_may_share_a_leaf_or_not() -> None:
    assert pairs(answer("A ; B & C", "A BC")) == [(1, 3)]
    assert rows_of(answer("A ; B & C", "A C D B")) == [(1, 4, 2)]
    assert pairs(answer("A ; B & C", "A C D B", "strict")) == []


def test_strict_tries_back_where_an_and_could_end_early() -> None:
    # B & C is complete in the second leaf already, but only its longer reading goes on to D.
    assert rows_of(answer("A , B & C , D", "A BC BC D", "strict")) == [(1, 2, 4, 6)]


def test_an_and_alone_is_one_leaf_or_adjacent_leaves_under_strict() -> None:
    assert pairs(answer("A & B", "A D B B A", "strict")) == [(4, 5)]


def test_skip_till_any_takes_every_leaf_of_each_name_of_an_and() -> None:
    assert sorted(rows_of(answer("A ; B & C", "A B C B", "skip_till_any"))) == [(1, 2, 3), (1, 4, 3)]


def test_under_strict_nothing_lies_between_so_not_rejects_nothing() -> None:
    assert pairs(answer("A ; !B ; C", "A CB", "strict")) == [(1, 3)]


def test_the_leaf_of_an_operand_may_hold_a_negated_name() -> None:
    assert pairs(answer("A ; !B ; C", "AB CB")) == [(1, 4)]


def test_a_run_takes_the_earliest_end_then_the_earliest_start() -> None:
    assert rows_of(answer("A ; B & C , D", "A B BC D B C D")) == [(1, 2, 3, 5)]


# -- windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("within", "found"), [("3 EVENTS", []), ("4 EVENTS", [(1, 5)])])
def test_within_counts_the_least_events_that_the_leaves_allow(within: str, found: list[tuple[int, int]]) -> None:
    # A in positions 1-1, B in 5-5: 5 - 1 = 4 is not below 4 ...
    assert pairs(answer(f"A ; B WITHIN {within}", "A --- B")) == []
    # ... but A in 1-2, D in 3-4, B in 5-5 may be 5 - 2 = 3 apart.
    assert pairs(answer(f"A ; B WITHIN {within}", "A- -- B")) == found


def test_within_a_time_judges_the_least_span_of_time() -> None:
    assert pairs(answer("A ; B WITHIN 3 MILLISECOND", "A- -- B")) == []
    assert pairs(answer("A ; B WITHIN 4 MILLISECOND", "A- -- B")) == [(1, 5)]


def test_skip_till_next_keeps_the_nearest_leaf_even_if_the_window_then_fails() -> None:
    assert pairs(answer("A ; B ; C WITHIN 3 EVENTS", "A B D C B C", after_match="next")) == []
    assert pairs(answer("A ; B ; C WITHIN 4 EVENTS", "A B D C B C", after_match="next")) == [(1, 4)]


def test_skip_till_any_takes_only_tuples_inside_the_window() -> None:
    assert rows_of(answer("A ; B WITHIN 3 EVENTS", "A B B B", "skip_till_any")) == [(1, 2), (1, 3)]


# -- what a row says -------------------------------------------------------------------------------------------------


def test_a_row_tells_positions_times_and_the_coarsest_level() -> None:
    pattern = compiled("A ; B")
    hits = replace(hits_of(pattern, nodes("A- -B")), level=np.array([3, 0], np.int8))
    matches = match_nodes(pattern, hits)
    assert (matches.step_lo.tolist(), matches.step_hi.tolist()) == ([[1, 3]], [[2, 4]])
    assert (matches.first_time.tolist(), matches.last_time.tolist()) == ([1000], [4000])
    assert matches.level.tolist() == [3]
    assert not matches.truncated


@pytest.mark.parametrize(
    ("text", "stream", "probes"),
    [
        ("A ; B", "A B", 2),
        ("A ; B | C", "A BC", 3),
        ("A ; B | C", "A C", 2),
        ("A ; B & C", "A BC", 3),
        ("A ; !D ; B", "A E B", 2),
    ],
)
def test_the_bound_counts_the_probes_that_a_row_rests_on(text: str, stream: str, probes: int) -> None:
    pattern = compiled(text)
    matches = match_nodes(pattern, hits_of(pattern, nodes(stream), fp=0.1))
    assert matches.fp_bound == pytest.approx([1 - 0.9**probes])


def test_matches_come_in_the_order_of_first_positions() -> None:
    for policy, after_match in POLICIES:
        first = answer("A & B ; C", "B A C B C A C", policy, after_match).first_position
        assert (np.diff(first) >= 0).all()


# -- limits ----------------------------------------------------------------------------------------------------------


def many(n: int) -> Hits:
    """n leaves with A, then n leaves with B."""
    pattern = compiled("A ; B")
    return hits_of(pattern, nodes(" ".join(["A"] * n + ["B"] * n)))


def test_too_many_matches_are_counted_before_any_is_written() -> None:
    with pytest.raises(ArgumentError, match=r"has 4,000,000 matches, more than max_matches = 1,000,000; .*truncate"):
        match_nodes(compiled("A ; B"), many(2000), policy="skip_till_any")


def test_truncate_gives_the_first_rows_and_says_so() -> None:
    matches = match_nodes(compiled("A ; B"), many(2000), policy="skip_till_any", max_matches=3, truncate=True)
    assert rows_of(matches) == [(1, 2001), (1, 2002), (1, 2003)]
    assert (matches.total, matches.truncated) == (4_000_000, True)


def test_truncate_cuts_the_greedy_policies_as_well() -> None:
    with pytest.raises(ArgumentError, match="has 4 matches, more than max_matches = 2"):
        match_nodes(compiled("A ; B"), many(4), after_match="next", max_matches=2)
    matches = match_nodes(compiled("A ; B"), many(4), after_match="next", max_matches=2, truncate=True)
    assert (rows_of(matches), matches.total, matches.truncated) == ([(1, 5), (2, 5)], 4, True)


def test_as_many_as_allowed_are_not_too_many() -> None:
    matches = match_nodes(compiled("A ; B"), many(4), policy="skip_till_any", max_matches=16)
    assert (len(matches), matches.truncated) == (16, False)


def test_counts_are_exact_and_stop_at_two_to_the_62() -> None:
    stream = " ".join("A" * 40)
    pattern = compiled("A[20]")
    hits = hits_of(pattern, nodes(stream))
    matches = match_nodes(pattern, hits, policy="skip_till_any", max_matches=1, truncate=True)
    assert matches.total == math.comb(40, 20)
    pattern = compiled("A[40]")
    hits = hits_of(pattern, nodes(stream + " " + stream))
    with pytest.raises(ArgumentError, match=f"at least {1 << 62:,} matches"):
        match_nodes(pattern, hits, policy="skip_till_any")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "skip"}, "policy must be one of strict, skip_till_next, skip_till_any, not 'skip'"),
        ({"after_match": "last"}, "after_match must be one of past_last, next, not 'last'"),
        ({"max_matches": 0}, "max_matches must be 1 or more, not 0"),
    ],
)
def test_an_argument_without_meaning_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        match_nodes(compiled("A ; B"), many(1), **arguments)


@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_no_hits_no_matches(policy: str, after_match: str) -> None:
    assert len(answer("A & B ; !C ; D , E", "", policy, after_match)) == 0


# -- times that run backwards ----------------------------------------------------------------------------------------


def at_times(*given: tuple[str, int, int]) -> list[naive.Row]:
    """One node per place: the names in it, and its least and greatest time in milliseconds."""
    return [
        naive.Row(place, place, low * 1000, high * 1000, frozenset(names))
        for place, (names, low, high) in enumerate(given, 1)
    ]


@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_a_span_is_the_greatest_less_the_least_time_whichever_comes_first(policy: str, after_match: str) -> None:
    pattern = compiled("A ; B WITHIN 10 SEC")
    for a, b, expected in [(3600, 0, []), (0, 3600, []), (0, 9, [(1, 2)]), (9, 0, [(1, 2)]), (10, 0, [])]:
        hits = hits_of(pattern, at_times(("A", a * 1000, a * 1000), ("B", b * 1000, b * 1000)))
        assert pairs(match_nodes(pattern, hits, policy=policy, after_match=after_match)) == expected


@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_an_event_between_first_and_last_counts_for_the_span(policy: str, after_match: str) -> None:
    pattern = compiled("A ; B ; C WITHIN 10 SEC")
    late = hits_of(pattern, at_times(("A", 0, 0), ("B", 60_000, 60_000), ("C", 1000, 1000)))
    early = hits_of(pattern, at_times(("A", 60_000, 60_000), ("B", 0, 0), ("C", 61_000, 61_000)))
    for hits in (late, early):
        assert pairs(match_nodes(pattern, hits, policy=policy, after_match=after_match)) == []


def test_of_leaves_the_least_span_that_their_times_allow_counts() -> None:
    pattern = compiled("A ; B ; C WITHIN 10 SEC")
    hits = hits_of(pattern, at_times(("A", 50_000, 60_000), ("B", 0, 41_000), ("C", 45_000, 90_000)))
    assert pairs(match_nodes(pattern, hits)) == [(1, 3)]
    hits = hits_of(pattern, at_times(("A", 51_000, 60_000), ("B", 0, 41_000), ("C", 45_000, 90_000)))
    assert pairs(match_nodes(pattern, hits)) == []


# -- random cases ----------------------------------------------------------------------------------------------------


def check_against_oracle(rng: random.Random) -> None:
    described = random_pattern(rng)
    pattern = compiled(described.text())
    size = rng.choice([1, 2, 3])
    events = random_events(rng, size * rng.randint(0, 10), ordered=rng.random() < 0.5)
    rows = leaves(rng, events, size, noise=rng.choice([0, 0.2]))
    for policy, after_match in POLICIES:
        found = naive.match(described, rows, policy=policy, after_match=after_match, exclusive=False)
        got = match_nodes(pattern, hits_of(pattern, rows), policy=policy, after_match=after_match)
        expected = sorted(zip(naive_rows(rows, found), naive_operands(described, found), strict=True))
        assert sorted(zip(rows_of(got), operands_of(got), strict=True)) == expected
        assert got.total == len(got) == len(expected)


@given(RANDOMS)
@settings(max_examples=300)
def test_every_policy_equals_brute_force(rng: random.Random) -> None:
    check_against_oracle(rng)


@pytest.mark.slow
@given(SEEDED)
@settings(max_examples=4000)
def test_every_policy_equals_brute_force_in_thousands_of_cases(rng: random.Random) -> None:
    check_against_oracle(rng)


@given(RANDOMS, st.integers(1, 30))
@settings(max_examples=150)
def test_truncated_answers_are_the_first_rows_of_the_whole(rng: random.Random, most: int) -> None:
    pattern = compiled(random_pattern(rng).text())
    hits = hits_of(pattern, leaves(rng, random_events(rng, 12, ordered=rng.random() < 0.5), 1, noise=0.2))
    for policy, after_match in POLICIES:
        whole = match_nodes(pattern, hits, policy=policy, after_match=after_match)
        cut = match_nodes(pattern, hits, policy=policy, after_match=after_match, max_matches=most, truncate=True)
        assert rows_of(cut) == rows_of(whole)[:most]
        assert (cut.total, cut.truncated) == (len(whole), len(whole) > most)


def joined(parts: Sequence[Hits]) -> Hits:
    return Hits(*(np.concatenate([getattr(part, name) for part in parts]) for name in Hits.__dataclass_fields__))


@given(RANDOMS)
@settings(max_examples=150)
def test_many_keys_are_answered_as_each_of_them_alone(rng: random.Random) -> None:
    pattern = compiled(random_pattern(rng).text())
    ordered = rng.random() < 0.5
    parts = [
        hits_of(pattern, leaves(rng, random_events(rng, rng.randint(0, 10), ordered=ordered), 2)) for _ in range(4)
    ]
    offsets = np.cumsum([0, *map(len, parts)])
    for policy, after_match in POLICIES:
        got = match_nodes_by_key(pattern, joined(parts), offsets, policy=policy, after_match=after_match)
        alone = [match_nodes(pattern, part, policy=policy, after_match=after_match) for part in parts]
        expected = [(key, row) for key, matches in enumerate(alone) for row in rows_of(matches)]
        assert list(zip(got.key.tolist(), rows_of(got), strict=True)) == expected


# -- the promise -----------------------------------------------------------------------------------------------------


def true_rows(described: naive.Pattern, events: list[naive.Row], size: int, policy: str) -> list[tuple[int, ...]]:
    """Matches of events as leaves, without those that relaxed policies ignore: consecutive operands in one leaf."""
    found = naive.match(described, events, policy=policy, after_match="next", exclusive=True)
    blocks = [block for term in described.terms for block in term]
    rows = []
    for match in found:
        leaf = [row // size for row, _ in match]
        parts, at = [], 0
        for block in blocks:
            parts.append(leaf[at : at + len(block)])
            at += len(block)
        if all(max(a) < min(b) for a, b in pairwise(parts)):
            rows.append(tuple(number * size + 1 for number in leaf))
    return rows


def promise_case(
    rng: random.Random, *, negation: bool, ordered: bool = True
) -> tuple[naive.Pattern, list[naive.Row], int, list[naive.Row]]:
    described = random_pattern(rng, negation=negation)
    size = rng.choice([1, 1, 2, 3, 4])
    events = random_events(rng, rng.randint(2, 18), ordered=ordered or rng.random() < 0.5)
    return described, events, size, leaves(rng, events, size, noise=0 if negation else rng.choice([0, 0.2]))


@given(RANDOMS)
@settings(max_examples=200)
def test_without_not_existence_is_never_lost(rng: random.Random) -> None:
    described, events, size, rows = promise_case(rng, negation=False)
    pattern = compiled(described.text())
    for policy, after_match in POLICIES:
        if true_rows(described, events, size, policy):
            assert len(match_nodes(pattern, hits_of(pattern, rows), policy=policy, after_match=after_match))


@given(RANDOMS)
@settings(max_examples=200)
def test_under_skip_till_any_every_true_row_is_there(rng: random.Random) -> None:
    for negation in (False, True):
        described, events, size, rows = promise_case(rng, negation=negation, ordered=False)
        pattern = compiled(described.text())
        got = match_nodes(pattern, hits_of(pattern, rows), policy="skip_till_any")
        assert set(true_rows(described, events, size, "skip_till_any")) <= set(rows_of(got))


@given(RANDOMS)
@settings(max_examples=200)
def test_under_strict_with_next_and_no_and_every_true_row_is_there(rng: random.Random) -> None:
    described, events, size, rows = promise_case(rng, negation=False, ordered=False)
    if all(len(block) == 1 for term in described.terms for block in term):
        pattern = compiled(described.text())
        got = match_nodes(pattern, hits_of(pattern, rows), policy="strict", after_match="next")
        assert set(true_rows(described, events, size, "strict")) <= set(rows_of(got))


@given(RANDOMS)
@settings(max_examples=200)
def test_under_skip_till_next_with_next_every_true_start_is_there_with_no_later_end(rng: random.Random) -> None:
    described, events, size, rows = promise_case(rng, negation=False)
    pattern = compiled(described.text())
    got = match_nodes(pattern, hits_of(pattern, rows), after_match="next")
    ends = dict(zip(got.first_position.tolist(), got.last_position.tolist(), strict=True))
    for row in true_rows(described, events, size, "skip_till_next"):
        assert ends[min(row)] <= max(row) + size - 1
