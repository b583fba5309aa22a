"""Forecasts of trained machines: worked by hand, and as the oracle's for random subscriptions."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from drawn import RANDOMS
from hypothesis import assume, given
from naive import machine_forecasts as chains
from naive.machine_cases import ATTRIBUTES, FORESEEN, Foreseen
from naive.machine_random import random_subscription
from unit.machines.running_cases import Run

from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts import passage
from patternlake.udfs.machines.forecasts.coverage import uncovered
from patternlake.udfs.machines.forecasts.passage import DEAD, Cell, Forecaster, any_of
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves, pending, state_name
from patternlake.udfs.machines.query import Subscription, compile_subscription


def compiled(text: str) -> Subscription:
    return compile_subscription(parse(text), Scope(attributes=ATTRIBUTES))


def composite_states(subscription: Subscription) -> dict[frozenset[str], CompositeState]:
    """A composite state for each set of operands that can be bound on the way."""
    found = {frozenset[str](): START}
    waiting = list(found.items())
    for bound, composite_state in waiting:
        for move in moves(subscription.master, composite_state):
            more = bound | {subscription.primitives[move.primitive].name}
            if more not in found:
                found[more] = move.target
                waiting.append((more, move.target))
    return found


def reached(subscription: Subscription, bound: Iterable[str]) -> CompositeState:
    return composite_states(subscription)[frozenset(bound)]


def named(asked: Subscription) -> dict[str, CompositeState]:
    """The composite states of a subscription by the names of states."""
    return {
        state_name(asked.master, composite_state): composite_state
        for composite_state in composite_states(asked).values()
    }


@pytest.mark.parametrize("case", FORESEEN, ids=lambda case: case.title)
def test_forecasts_are_the_worked_ones(case: Foreseen) -> None:
    run = Run([case.trained.subscription.text])
    run.take(case.trained.events)
    asked = compiled(case.trained.subscription.text)
    within = Forecaster(asked, run.counts(0), len(case.within)).probability(reached(asked, case.bound.split()))
    assert within[1:] == pytest.approx(case.within)


@given(RANDOMS)
def test_random_forecasts_are_those_of_the_oracle_where_copies_do_all(rng: random.Random) -> None:
    case = random_subscription(rng)
    asked = compiled(case.text)
    assume(not uncovered(asked))
    smoothing, lookahead = rng.choice([0.0, 0.5]), rng.randint(1, 6)
    blank = Forecaster(asked, {}, 1)
    counts: dict[Cell, dict[Cell, float]] = {}
    ours_of = {chains.Cell(name): (composite_state, 0) for name, composite_state in named(asked).items()} | {
        chains.DEAD: DEAD
    }
    name_of = {cell: name for name, cell in ours_of.items()}
    smoothed: dict[chains.Cell, dict[chains.Cell, float]] = {}
    for composite_state in {
        cell[0] for cell in ours_of.values() if cell != DEAD and not complete(asked.master, cell[0])
    }:
        possible = [DEAD if target == DEAD[0] else (target, 0) for target in blank.possible(composite_state, 0)]
        counts[composite_state, 0] = {target: float(rng.choice([0, 0, 1, 5])) for target in possible}
        smoothed[name_of[composite_state, 0]] = {
            name_of[to]: count + smoothing for to, count in counts[composite_state, 0].items()
        }
    counts = {cell: {to: count for to, count in moves.items() if count} for cell, moves in counts.items()}
    ours = Forecaster(asked, counts, lookahead, smoothing)
    naive = chains.Chain(smoothed, chains.name_of(case.root, case.primitives))
    for bound, composite_state in composite_states(asked).items():
        if bound and not complete(asked.master, composite_state):
            exactly = [naive.exactly(name_of[composite_state, 0], n) for n in range(lookahead + 1)]
            assert ours.alpha(composite_state) == pytest.approx(exactly, abs=1e-12)
            assert ours.trained_on(composite_state) == sum(counts[composite_state, 0].values())


@given(RANDOMS)
def test_states_are_named_as_by_the_oracle(rng: random.Random) -> None:
    case = random_subscription(rng)
    states = chains.States(case)
    asked = compiled(case.text)
    for bound, composite_state in composite_states(asked).items():
        assert state_name(asked.master, composite_state) == states.of[bound]
        assert complete(asked.master, composite_state) or pending(asked.master, composite_state) != (
            states.of[bound] in states.waiting
        )


def test_an_unvisited_state_forecasts_nothing_and_says_so() -> None:
    asked = compiled("a ; b ; c")
    forecaster = Forecaster(
        asked,
        {
            (CompositeState(0), 0): {(CompositeState(0), 0): 3, (CompositeState(1), 0): 2},
            (CompositeState(1), 0): {(CompositeState(1), 0): 2},
        },
        5,
    )
    assert not forecaster.probability(CompositeState(2)).any()
    assert not forecaster.probability(CompositeState(2), 30).any()
    assert (forecaster.trained_on(CompositeState(2)), forecaster.trained_on(CompositeState(1))) == (0, 2)


def test_an_age_that_was_never_seen_forecasts_as_the_most_similar_one() -> None:
    asked = compiled("a ; b @(t(b) - t(a) < 9 SEC)")
    counts = {
        (CompositeState(1), 10): {(CompositeState(2), 0): 1, (CompositeState(1), 60): 3},
        (CompositeState(1), 60): {DEAD: 1},
    }
    forecaster = Forecaster(asked, counts, 1)
    assert [forecaster.probability(CompositeState(1), age)[1] for age in (1, 10, 30, 40, 60, 127)] == [1 / 4] * 3 + [
        0
    ] * 3


def test_what_waits_on_beside_its_copy_is_followed_too() -> None:
    # From a: b leads to a copy that only c completes, while d may still complete the a that waits.
    asked = compiled("a ; ((b ; c) | d)")
    inside = CompositeState(1, 0, (CompositeState(1),))
    counts = {
        (CompositeState(1), 0): {(inside, 0): 1, (CompositeState(2), 0): 1, (CompositeState(1), 0): 2},
        (inside, 0): {(CompositeState(2), 0): 1, (inside, 0): 3},
    }
    forecaster = Forecaster(asked, counts, 2)
    assert forecaster.probability(inside) == pytest.approx([0, 1 / 4, 1 / 4 + 3 / 16])
    assert forecaster.probability(CompositeState(1)) == pytest.approx(
        [0, 1 / 4, 1 / 4 + 1 / 4 * (1 / 4 + 1 / 4) + 1 / 2 * 1 / 4]
    )


def test_where_there_are_too_many_fronts_each_instance_goes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "MOST_FRONTS", 1)
    asked = compiled("a ; ((b ; c) | d)")
    inside = CompositeState(1, 0, (CompositeState(1),))
    counts = {
        (CompositeState(1), 0): {(inside, 0): 1, (CompositeState(2), 0): 1},
        (inside, 0): {(CompositeState(2), 0): 1, (inside, 0): 3},
    }
    forecaster = Forecaster(asked, counts, 2)
    assert not forecaster.exact
    assert forecaster.probability(CompositeState(1)) == pytest.approx([0, 1 / 2, 1 / 2 + 1 / 2 * 1 / 4])


def test_any_instance_of_a_row_may_be_completed() -> None:
    # One can be completed at the next event, another one at the second.
    assert any_of(np.array([[0.2, 0.0], [0.0, 0.2]])) == pytest.approx([0, 0.2, 0.36])
    assert any_of(np.array([[0.2, 0.2], [0.2, 0.0]])) == pytest.approx([0, 0.2, 0.36])


def test_smoothing_counts_every_possible_move_once_more() -> None:
    asked = compiled("a , b")
    assert Forecaster(asked, {(CompositeState(1), 0): {DEAD: 2}}, 1, smoothing=1.0).alpha(
        CompositeState(1)
    ) == pytest.approx([0, 1 / 4])


def test_a_long_lookahead_stays_a_probability() -> None:
    asked = compiled("a ; b ; c")
    counts = {
        (CompositeState(1), 0): {(CompositeState(1), 0): 9, (CompositeState(2), 0): 1},
        (CompositeState(2), 0): {(CompositeState(2), 0): 9, (CompositeState(3), 0): 1},
    }
    within = Forecaster(asked, counts, 1000).probability(CompositeState(1))
    assert np.all(np.diff(within) >= 0)
    assert within[-1] == pytest.approx(1.0)
    assert within[-1] <= 1.0 + 1e-9
