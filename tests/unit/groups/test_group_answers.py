"""The worked answers of SPEC section 4 and of the paper, by the oracle and by the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import groups as naive
from naive.group_cases import FIG_1, OTHERS, answer, arrays_of, engine_of, is_named, named, stream_of

from patternlake.udfs.groups.kernels.gathering import Held, gather
from patternlake.udfs.groups.kernels.steps import Rows, Steps
from patternlake.udfs.groups.kernels.vectors import begin, push, vector_workspace

Row = tuple[int, int, int, float]


def both(pattern: str, stream: naive.Stream, within: int, **parameters: Any) -> list[Row]:
    """t_start, t_first, t_end and probability of all groups; oracle and kernels must agree."""
    return both_of(named(pattern, within, **parameters), stream)


def both_of(query: naive.Query, stream: naive.Stream) -> list[Row]:
    wanted, found = naive.groups(query, stream), answer(query, stream)
    rows = [(one.t_start, one.t_first, one.t_end, one.final) for one in found]
    assert rows == [(one.t_start, one.t_first, one.t_end, one.final) for one in wanted]
    assert [one.probability for one in found] == pytest.approx([one.probability for one in wanted], rel=1e-12)
    return [(one.t_start, one.t_first, one.t_end, round(one.probability, 12)) for one in found]


def test_the_paper_finds_ten_matches() -> None:
    found = naive.matches(named("a, b+, c", 6), FIG_1)
    assert len(found) == 10
    chances = {(match.start, match.end): match.probability for match in found}
    # The paper's Fig. 2.
    assert chances[1, 3] == pytest.approx(0.07)
    assert chances[1, 6] == pytest.approx(0.3528)
    assert chances[2, 5] == pytest.approx(0.0168)
    assert chances[4, 6] == pytest.approx(0.09)


def test_a_threshold_of_a_tenth_leaves_three_matches_of_the_paper() -> None:
    found = naive.matches(named("a, b+, c", 6, threshold=0.1), FIG_1)
    assert sorted((match.start, match.end) for match in found) == [(1, 4), (1, 6), (2, 6)]


def test_single_overlap_makes_one_group_of_the_paper_s_matches() -> None:
    assert both("a, b+, c", FIG_1, 6) == [(1, 3, 6, 0.9437)]


def test_pruned_matches_of_the_paper_still_count() -> None:
    assert both("a, b+, c", FIG_1, 6, threshold=0.1) == [(1, 4, 6, 0.9437)]


def test_complete_overlap_makes_two_groups_of_the_paper_s_matches() -> None:
    assert both("a, b+, c", FIG_1, 6, overlap="complete") == [(1, 3, 6, 0.86), (1, 4, 6, 0.88)]


def test_no_match_is_longer_than_the_window() -> None:
    assert both("a, b+, c", stream_of("a | b | c.5 a.25 b.25 | b | c"), 3) == [(1, 3, 5, 0.75)]


def test_pruned_matches_count_only_inside_the_group() -> None:
    assert both("a, b+, c", stream_of("a.1 | b | a.9 c.1 | b | c"), 5, threshold=0.5) == [(3, 5, 5, 0.9)]


def test_runs_go_on_behind_their_first_end() -> None:
    rows = both("a, b+", stream_of("a | b | a.5 b.5 | b"), 4, overlap="complete")
    assert rows == [(1, 2, 4, 1.0), (1, 3, 4, 1.0)]


def test_matches_that_all_hold_an_earlier_end_are_no_group_of_their_own() -> None:
    # The c at step 3 is a run that might have begun one behind the end at step 2.
    stream = stream_of("a | a | b.5 c.5 | b | z")
    regex = "a|ab|abb|cc"
    rows = both("a | (a, b) | (a, b, b) | (c, c)", stream, 3, regex=regex, overlap="complete")
    assert [row[:3] for row in rows] == [(1, 1, 1), (2, 2, 4)]


def test_events_that_follow_no_longer_are_apart() -> None:
    stream = stream_of("a | b | c") | stream_of("a | b", 5)
    assert both("a, b", stream, 5) == [(1, 2, 2, 1.0), (5, 6, 6, 1.0)]


def test_matches_that_share_one_step_are_one_group() -> None:
    assert both("a, b, a", stream_of("a | b | a | b | a | c"), 3) == [(1, 3, 5, 1.0)]
    assert both("a", stream_of("a | a"), 3) == [(1, 1, 1, 1.0), (2, 2, 2, 1.0)]


def test_either_order_is_a_match() -> None:
    stream = stream_of("a.5 b.5 | a.5 b.5 | c")
    assert both("(a & b), c", stream, 3, regex="(?:ab|ba)c") == [(1, 3, 3, 0.5)]


def test_nothing_is_a_match_of_nothing() -> None:
    assert both("a*", stream_of("b | b"), 3) == []
    assert both("a?, b", stream_of("c | b"), 3) == [(2, 2, 2, 1.0)]


def test_certain_matches_alone_pass_a_threshold_of_one() -> None:
    stream = stream_of("a | b.9 | c | a | b")
    assert both("a, b", stream, 2, threshold=1.0) == [(4, 5, 5, 1.0)]


def test_a_product_at_the_threshold_passes() -> None:
    # 0.1 * 0.1 * 0.1 is not 0.001 in floating point.
    stream = stream_of("a.1 | a.1 | a.1 c.9")
    assert both("a[3]", stream, 3, regex="aaa", threshold=0.001) == [(1, 3, 3, 0.001)]
    assert both("a[3]", stream, 3, regex="aaa", threshold=0.00100001) == []


def steps_of(query: naive.Query, stream: naive.Stream) -> Steps:
    rows = arrays_of(engine_of(query), {0: stream})
    at = np.full(1, -1, np.int64)
    held = Held(at, np.zeros(0, np.int64), at, np.zeros(0))
    gathered = gather(
        Rows(np.array([0, len(rows.steps)]), rows.steps, rows.classes, rows.probabilities), held, True, 0
    )  # fmt: skip
    return gathered.steps  # type: ignore[union-attr]


# The paper's Fig. 9: time, St[0] to St[3].
FIG_9 = [
    (1, 0, 1.0, 0, 0),
    (2, 0, 0.3, 0.7, 0),
    (3, 0.03, 0.10, 0.80, 0.07),
    (4, 0.047, 0.093, 0.630, 0.230),
    (5, 0.0563, 0, 0.6507, 0.2930),
    (6, 0.0563, 0, 0, 0.9437),
]


@pytest.mark.parametrize("within", [6, 50])
def test_state_vectors_are_those_of_the_paper(within: int) -> None:
    query = named("a, b+, c", within)
    engine, steps = engine_of(query), steps_of(query, FIG_1)
    symbol = engine.query.positions.symbol
    vector = vector_workspace(len(engine.automaton.states))
    size, accepted = begin(vector), 0.0
    for at, (_, *wanted) in enumerate(FIG_9):
        size, taken = push(vector, size, engine.automaton.inject, True, True, steps, at)
        accepted += taken
        found = [0.0, 0.0, 0.0]
        for state, value in zip(vector.state[:size], vector.value[:size], strict=True):
            runs = engine.automaton.states[state]
            # Symbols a and b are numbered 0 and 1; a run is at one of them, and never at both.
            found[symbol[runs[0][0]] + 1 if runs else 0] += value
        assert [*found, accepted] == pytest.approx(wanted, abs=1e-12)


def test_what_is_missing_from_a_step_is_no_b_and_anything() -> None:
    # At step 2 there is b with 0.3, c with 0.2, and with 0.5 what is not stored.
    stream = stream_of("a | b.3 c.2 | c")
    letters = {name: is_named(name) for name in "abc"} | OTHERS
    for pattern, regex, chance in (("a, !b, c", "anc", 0.7), ("a, _, c", "awc", 1.0), ("a, NOT(a, c), c", "amc", 0.8)):
        query = naive.Query(regex, letters, pattern, 3, others=frozenset(OTHERS))
        assert both_of(query, stream) == [(1, 3, 3, pytest.approx(chance))]
    # A DEFINE is of stored events: it loses the half.
    defined = naive.Query(
        "axc", letters | {"x": lambda row: row.name != "b"}, "a, x, c", 3, clauses="DEFINE x AS name <> 'b'"
    )
    assert both_of(defined, stream) == [(1, 3, 3, pytest.approx(0.2))]


def test_steps_without_events_are_passed_over_inside_the_window() -> None:
    letters = {name: is_named(name) for name in "abc"} | OTHERS
    stream = {1: [naive.Row("a", 0.5)], 5: [naive.Row("c", 1.0)], 9: [naive.Row("c", 1.0)]}
    query = naive.Query("an*c", letters, "a, (!b)*, c", 6, others=frozenset("n"))
    assert both_of(query, stream) == [(1, 5, 5, 0.5)]
    assert both_of(naive.Query("an*c", letters, "a, (!b)*, c", 9, others=frozenset("n")), stream) == [(1, 5, 9, 0.5)]
    assert both_of(naive.Query("an*c", letters, "a, (!b)*, c", 4, others=frozenset("n")), stream) == []
