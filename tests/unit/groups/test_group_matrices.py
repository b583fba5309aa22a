"""Probabilities of complete overlap in wide windows: those of the paper's matrices, group by group."""

from __future__ import annotations

import random

import numpy as np
import pytest
from drawn import RANDOMS
from hypothesis import given, settings
from naive import groups as naive
from naive.group_cases import arrays_of, dense_stream, engine_of, is_named, random_pattern, tuples

from patternlake.udfs.groups.automaton.subsets import Moves
from patternlake.udfs.groups.kernels.groups import Groups


def matrix(moves: Moves, chances: np.ndarray, *, starting: bool, taken: bool) -> np.ndarray:
    """T (`starting` and `taken`), T^A or T^B for one step; the last state is the final one."""
    states = len(moves.to)
    found = np.zeros((states + 1, states + 1))
    found[states, states] = 1
    for state in range(states):
        if state == 0 and not starting:
            # Without new runs the empty set stays empty.
            found[0, 0] = 1
            continue
        for class_, chance in enumerate(chances):
            accepted = taken and moves.accepts[state, class_]
            found[state, states if accepted else moves.to[state, class_]] += chance
    return found


def by_matrices(engine: Groups, stream: naive.Stream, first: int, anchor: int, last: int) -> float:
    rows = arrays_of(engine, {0: stream})
    classes = len(engine.query.alphabet.member)
    vector = np.zeros(len(engine.automaton.states) + 1)
    vector[0] = 1
    for step in range(first, last + 1):
        mine = rows.steps == step
        chances = np.bincount(rows.classes[mine], rows.probabilities[mine], classes)
        chances[0] += 1 - chances.sum()
        moves = engine.automaton.carry if step > anchor else engine.automaton.inject
        vector = vector @ matrix(moves, chances, starting=step <= anchor, taken=step >= anchor)
    return float(vector[-1])


@settings(max_examples=60)
@given(RANDOMS)
def test_shared_work_gives_the_probabilities_of_the_matrices(rng: random.Random) -> None:
    pattern, regex = rng.choice([("a, b+, c", "ab+c"), ("(a | b)+, c+", "(?:a|b)+c+"), random_pattern(rng, "abc")])
    query = naive.Query(
        regex,
        {symbol: is_named(symbol) for symbol in "abc"},
        pattern,
        rng.randint(6, 14),
        "complete",
        rng.choice([0.0, 0.0, 1e-6, 1e-3]),
    )
    engine = engine_of(query)
    if len(engine.automaton.states) > 400:
        return
    stream = dense_stream(rng, 40)
    for row in tuples(engine.answer(*arrays_of(engine, {0: stream}).parts())):
        _, first, anchor, last, found, _ = row
        assert found == pytest.approx(by_matrices(engine, stream, first, anchor, last), rel=1e-12, abs=1e-14), query
