"""Rows and steps: what adds up, what cannot be, what waits, and what a gap does."""

from __future__ import annotations

import numpy as np
import pytest
from naive import groups as naive
from naive.group_cases import OTHERS, answer, arrays_of, engine_of, is_named, named, stream_of, tuples

from patternlake.udfs.errors import ArgumentError, StateError
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.groups.state import from_bytes, no_state
from patternlake.udfs.language.query.parser import parse

ROW = naive.Row


def bounds(found: list[naive.Group]) -> list[tuple[int, int, float, bool]]:
    return [(one.t_start, one.t_end, round(one.probability, 12), one.final) for one in found]


def test_equal_names_of_a_step_add_up() -> None:
    stream = {1: [ROW("a", 0.3), ROW("b", 0.3), ROW("a", 0.4)], 2: [ROW("b", 1.0)]}
    assert bounds(answer(named("a, b", 2, threshold=0.7), stream)) == [(1, 2, 0.7, True)]


def test_a_shortfall_is_another_event() -> None:
    stream = stream_of("a.6 | b.5 | c")
    assert bounds(answer(named("a, b", 2), stream)) == [(1, 2, 0.3, True)]


def test_a_stored_event_counts_however_small_its_probability_is() -> None:
    letters = {name: is_named(name) for name in "abc"} | OTHERS
    query = naive.Query("anc", letters, "a, !b, c", 3, others=frozenset("n"))
    stream = {1: [ROW("a", 1.0)], 2: [ROW("b", 1 - 1e-9), ROW("z", 1e-9)], 3: [ROW("c", 1.0)]}
    assert bounds(answer(query, stream)) == [(1, 3, 1e-9, True)]
    # What is missing to 1 by less than the tolerance is rounding.
    assert answer(query, stream | {2: [ROW("b", 1 - 1e-9)]}) == []


def test_a_missing_step_is_another_event() -> None:
    stream = stream_of("a | b") | stream_of("b | a | b", 4)
    assert bounds(answer(named("a, b+", 9), stream)) == [(1, 2, 1.0, True), (5, 6, 1.0, False)]


def test_a_step_that_cannot_be_is_another_event() -> None:
    for bad in ([ROW("b", 0.6), ROW("b", 0.6)], [ROW("b", 1.5)], [ROW("b", 0.5), ROW("c", -0.1)], [ROW("b", np.nan)]):
        assert answer(named("a, b", 2), {1: [ROW("a", 1.0)], 2: bad, 3: [ROW("c", 1.0)]}) == []


def test_sums_within_the_tolerance_are_scaled_to_one() -> None:
    stream = {at: [ROW("a", 0.5000004), ROW("a", 0.5000004)] for at in range(1, 200)}
    [group] = answer(named("a+", 300, threshold=1.0), stream)
    assert group.probability == 1.0


def test_the_last_step_waits_until_its_probabilities_reach_one() -> None:
    assert answer(named("a, b", 2), stream_of("a | b.9")) == []
    assert bounds(answer(named("a, b", 2), stream_of("a | b.9 c.1"))) == [(1, 2, 0.9, True)]
    nearly = {1: [ROW("a", 1.0)], 2: [ROW("b", 1 - 9e-7)]}
    assert bounds(answer(named("a, b", 2), nearly)) == [(1, 2, 1 - 9e-7, True)]
    assert answer(named("a, b", 2), {1: [ROW("a", 1.0)], 2: [ROW("b", 1 - 2e-6)]}) == []


def test_groups_are_final_once_nothing_can_change_them() -> None:
    query = named("a, b+", 3)
    assert bounds(answer(query, stream_of("a | b"))) == [(1, 2, 1.0, False)]
    assert bounds(answer(query, stream_of("a | b | b"))) == [(1, 3, 1.0, True)]
    assert bounds(answer(query, stream_of("a | b | c"))) == [(1, 2, 1.0, True)]


def test_no_window_is_too_wide() -> None:
    engine = Groups(compile_query(parse("a+, c?"), within=2**63 - 1))
    rows = engine.answer(*arrays_of(engine, {0: stream_of("a | a | c")}).parts())
    assert tuples(rows) == [(0, 1, 1, 3, 1.0, True)]


def test_steps_may_lie_as_far_apart_as_numbers_can() -> None:
    letters = {name: is_named(name) for name in "abc"} | OTHERS
    query = naive.Query("anc", letters, "a, !b, c", 3, others=frozenset("n"))
    first = {-(2**63): [ROW("a", 1.0)]}
    assert answer(query, first | stream_of("a", 5)) == []
    assert bounds(answer(query, first | stream_of("a | x | c | x", 5))) == [(5, 7, 1.0, True)]


def test_a_step_before_one_that_was_seen_is_refused() -> None:
    engine = engine_of(named("a, b", 2))
    state, _ = engine.advance(no_state(), *arrays_of(engine, {3: stream_of("a | b | a.5", 4)}).parts())
    for late in (4, 5):
        with pytest.raises(ArgumentError, match=f"step {late} of key 3 comes after step 6; the steps of a key must"):
            engine.advance(state, *arrays_of(engine, {3: stream_of("a", late)}).parts())
    # The step that still waits may have more rows.
    state, _ = engine.advance(state, *arrays_of(engine, {3: stream_of("b.5", 6)}).parts())
    assert engine.advance(state, *arrays_of(engine, {3: stream_of("b | c", 7)}).parts())[1].t_start.tolist() == [6]


def test_rows_in_any_order_answer_alike() -> None:
    engine = engine_of(named("a, b+, c", 4))
    rng = np.random.default_rng(5)
    streams = {key: {at: [ROW(name, 0.25) for name in "abc"] for at in range(1, 30)} for key in (4, 2, 9)}
    rows = arrays_of(engine, streams)
    wanted = tuples(engine.answer(*rows.parts()))
    assert tuples(engine.answer(*rows.take(rng.permutation(len(rows.keys))).parts())) == wanted
    assert [row[0] for row in wanted] == sorted(row[0] for row in wanted)


def test_many_rows_of_one_step_are_one_step() -> None:
    step = [ROW("a", 0.005) for _ in range(100)] + [ROW("b", 0.005) for _ in range(100)]
    rng = np.random.default_rng(7)
    streams = [{1: [step[at] for at in rng.permutation(200)], 2: [ROW("b", 1.0)]} for _ in range(3)]
    found = [answer(named("a, b", 2), stream) for stream in streams]
    assert found[0] == found[1] == found[2]
    assert bounds(found[0]) == [(1, 2, 0.5, True)]


def test_a_broken_state_is_refused() -> None:
    for value in (b"", b"12345678", (10**6).to_bytes(8, "little") + bytes(800), bytes(83)):
        with pytest.raises(StateError, match=rf"has {len(value)} bytes and cannot be read; rebuild"):
            from_bytes(np.array([1]), [value])
