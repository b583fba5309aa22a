"""Random patterns over random streams: the kernels answer as the oracle does, however the input is cut."""

from __future__ import annotations

import random

import numpy as np
import pytest
from drawn import RANDOMS, SEEDED
from hypothesis import given, settings
from naive import groups as naive
from naive.group_cases import (
    Arrays,
    answer,
    arrays_of,
    cliques_by_ends,
    dense_stream,
    engine_of,
    random_query,
    random_step,
    random_stream,
    tuples,
)

from patternlake.udfs.groups.kernels.groups import Groups, joined
from patternlake.udfs.groups.state import GroupState, from_bytes, no_state

Rows = list[tuple[int, int, int, int, float, bool]]


def check(rng: random.Random, longest: int) -> None:
    query, stream = random_query(rng), random_stream(rng, longest)
    wanted, found = naive.groups(query, stream), answer(query, stream)
    place = f"{query} over {stream}"
    bounds = [[(one.t_start, one.t_first, one.t_end, one.final) for one in rows] for rows in (found, wanted)]
    assert bounds[0] == bounds[1], place
    chances = [[one.probability for one in rows] for rows in (found, wanted)]
    assert chances[0] == pytest.approx(chances[1], rel=1e-12, abs=1e-12), place


@settings(max_examples=500)
@given(RANDOMS)
def test_groups_and_probabilities_are_those_of_the_oracle(rng: random.Random) -> None:
    check(rng, 7)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(SEEDED)
def test_groups_and_probabilities_are_those_of_the_oracle_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, 9)


@settings(max_examples=200)
@given(RANDOMS)
def test_maximal_sets_of_overlapping_matches_are_found_by_distinct_ends(rng: random.Random) -> None:
    intervals = sorted({(s, s + rng.randint(0, 4)) for s in [rng.randint(0, 9) for _ in range(rng.randint(0, 9))]})
    wanted = sorted(sorted(clique) for clique in naive.cliques(intervals))
    assert sorted(sorted(clique) for clique in cliques_by_ends(intervals)) == wanted


def arrival(rng: random.Random, rows: Arrays) -> np.ndarray:
    """An order in which each key's steps ascend; keys mix, and so do the rows of one step."""
    queues: dict[int, list[int]] = {}
    for row in sorted(range(len(rows.keys)), key=lambda row: (rows.steps[row], rng.random())):
        queues.setdefault(int(rows.keys[row]), []).append(row)
    found = []
    while queues:
        key = rng.choice(sorted(queues))
        for _ in range(min(rng.randint(1, 4), len(queues[key]))):
            found.append(queues[key].pop(0))
        if not queues[key]:
            del queues[key]
    return np.array(found, np.int64)


def fed(engine: Groups, rows: Arrays, order: np.ndarray, cuts: list[int], rng: random.Random) -> Rows:
    """The answer after one run for each part of the rows, through bytes now and then, sometimes for some keys alone."""
    closed, states = [], {}
    for low, high in zip([0, *cuts], [*cuts, len(order)], strict=True):
        part = rows.take(order[low:high])
        touched = np.unique(part.keys)
        if rng.random() < 0.5:
            touched = np.array(sorted({*states, *touched.tolist()}), np.int64)
        known = [key for key in touched.tolist() if key in states]
        state, done = engine.advance(
            from_bytes(np.array(known, np.int64), [states[key] for key in known]), *part.parts()
        )  # fmt: skip
        states.update(zip(state.keys.tolist(), state.to_bytes(), strict=True))
        assert done.final.all()
        closed.append(done)
        shown = tuples(joined(*closed, engine.tail(whole_state(states))))
        seen = rows.take(order[:high])
        assert shown == tuples(engine.answer(*seen.parts()))
    return tuples(joined(*closed, engine.tail(whole_state(states))))


def whole_state(states: dict[int, bytes]) -> GroupState:
    return from_bytes(np.array(list(states), np.int64), list(states.values()))


@settings(max_examples=300)
@given(RANDOMS)
def test_no_cut_of_the_input_changes_a_row(rng: random.Random) -> None:
    engine = engine_of(random_query(rng))
    streams = {key: random_stream(rng, 25) for key in rng.sample(range(-5, 5), rng.randint(1, 4))}
    if rng.random() < 0.5:
        streams[50] = dense_stream(rng, 25)
    if rng.random() < 0.2:
        # A step that cannot be, and whose rows may come in several runs.
        bad = [naive.Row("a", 0.7), naive.Row("b", 0.8)]
        streams[99] = {1: random_step(rng) or [naive.Row("a", 1.0)], 2: bad, 3: [naive.Row("a", 1.0)]}
    rows = arrays_of(engine, streams)
    order = arrival(rng, rows)
    cuts = sorted(rng.sample(range(len(order) + 1), min(len(order), rng.randint(1, 6))))
    at_once = tuples(engine.answer(*rows.parts()))
    assert fed(engine, rows, order, cuts, rng) == at_once
    alone = [row for key in sorted(streams) for row in tuples(engine.answer(*rows.take(rows.keys == key).parts()))]
    assert alone == at_once


def test_the_state_before_the_first_row_answers_nothing() -> None:
    engine = engine_of(random_query(random.Random(0)))
    assert len(engine.tail(no_state())) == 0
    state, rows = engine.advance(no_state(), *arrays_of(engine, {}).parts())
    assert (len(state), len(rows)) == (0, 0)
