"""Forecasts of trained machines: worked by hand, and as the oracle's for random subscriptions."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import machine_forecasts as chains
from naive.machine_cases import ATTRIBUTES, FORESEEN, Foreseen, random_subscription

from patternlake.udfs.language.parser import parse
from patternlake.udfs.language.predicates import Scope
from patternlake.udfs.machines.cuts import START, Cut, complete, moves
from patternlake.udfs.machines.forecasting import DEAD, Forecaster, machines_of
from patternlake.udfs.machines.subscription import Subscription, compile_subscription


def compiled(text: str) -> Subscription:
    return compile_subscription(parse(text), Scope(attributes=ATTRIBUTES))


def cuts(subscription: Subscription) -> dict[frozenset[str], Cut]:
    """A cut for each set of operands that can be bound on the way."""
    found = {frozenset[str](): START}
    waiting = list(found.items())
    for bound, cut in waiting:
        for move in moves(subscription.master, cut):
            more = bound | {subscription.primitives[move.primitive].name}
            if more not in found:
                found[more] = move.target
                waiting.append((more, move.target))
    return found


def reached(subscription: Subscription, bound: Iterable[str]) -> Cut:
    return cuts(subscription)[frozenset(bound)]


@pytest.mark.parametrize("case", FORESEEN, ids=lambda case: case.title)
def test_forecasts_are_the_worked_ones(case: Foreseen) -> None:
    asked = compiled(case.trained.subscription.text)
    counts = chains.train(case.trained.subscription, case.trained.events)
    within = Forecaster(asked, counts, len(case.within)).probability(reached(asked, case.bound.split()))
    assert within[1:] == pytest.approx(case.within)


@given(st.integers(0, 2**32))
def test_random_forecasts_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = random_subscription(rng)
    asked = compiled(case.text)
    counts: chains.Counts = {}
    for machine in machines_of(asked):
        for state in range(machine.final):
            targets = chains.Counter({target: rng.choice([0, 0, 1, 5]) for target in machine.possible(state)})
            counts[machine.path, state] = targets
    smoothing, lookahead = rng.choice([0.0, 0.5]), rng.randint(1, 6)
    ours = Forecaster(asked, counts, lookahead, smoothing)
    naive = chains.Chain(case, counts, smoothing)
    for bound, cut in cuts(asked).items():
        assume(not complete(asked.master, cut) or bound)
        exactly = [naive.exactly(naive.root, bound, n) for n in range(lookahead + 1)]
        assert ours.alpha(cut) == pytest.approx(exactly, abs=1e-12)
        assert ours.trained_on(cut) == sum(counts.get(((), cut.done), {}).values())


@given(st.integers(0, 2**32))
def test_machines_and_their_moves_are_those_of_the_oracle(seed: int) -> None:
    case = random_subscription(random.Random(seed))
    ours, naive = machines_of(compiled(case.text)), chains.machines(case)
    assert {machine.path for machine in ours} == {machine.path for machine in naive}
    moves_of = {machine.path: machine for machine in naive}
    for machine in ours:
        for state in range(machine.final):
            assert set(machine.possible(state)) == set(moves_of[machine.path].moves(state))


def test_an_unvisited_state_forecasts_nothing_and_says_so() -> None:
    asked = compiled("a ; b ; c")
    forecaster = Forecaster(asked, {((), 0): {0: 3, 1: 2}, ((), 1): {1: 2}}, 5)
    assert not forecaster.probability(Cut(2)).any()
    assert (forecaster.trained_on(Cut(2)), forecaster.trained_on(Cut(1))) == (0, 2)


def test_smoothing_counts_every_possible_move_once_more() -> None:
    asked = compiled("a , b")
    assert Forecaster(asked, {((), 1): {DEAD: 2}}, 1, smoothing=1.0).alpha(Cut(1)) == pytest.approx([0, 1 / 4])


def test_a_long_lookahead_stays_a_probability() -> None:
    asked = compiled("a ; b ; c")
    within = Forecaster(asked, {((), 1): {1: 9, 2: 1}, ((), 2): {2: 9, 3: 1}}, 1000).probability(Cut(1))
    assert np.all(np.diff(within) >= 0)
    assert within[-1] == pytest.approx(1.0)
    assert within[-1] <= 1.0 + 1e-9
