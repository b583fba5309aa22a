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
from unit.machines.forecasters import exactly_at, probability, spot, trained
from unit.machines.running_cases import Run

from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts import passage
from patternlake.udfs.machines.forecasts.coverage import find_uncovered
from patternlake.udfs.machines.forecasts.passage import DEAD, Cell, Forecaster, Waited, any_of
from patternlake.udfs.machines.forecasts.waiting_times import counted
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves, pending, state_name
from patternlake.udfs.machines.query import Subscription, compile_subscription

SECOND = 1_000_000


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
    within = probability(trained(asked, run.counts(0), len(case.within)), reached(asked, case.bound.split()))
    assert within[1:] == pytest.approx(case.within)


@given(RANDOMS)
def test_random_forecasts_are_those_of_the_oracle_where_copies_do_all(rng: random.Random) -> None:
    case = random_subscription(rng)
    asked = compiled(case.text)
    assume(not find_uncovered(asked))
    smoothing, lookahead = rng.choice([0.0, 0.5]), rng.randint(1, 6)
    blank = trained(asked, {}, 1)
    counts: dict[Cell, dict[Cell, float]] = {}
    ours_of = {chains.Cell(name): (composite_state, 0) for name, composite_state in named(asked).items()} | {
        chains.DEAD: DEAD
    }
    name_of = {cell: name for name, cell in ours_of.items()}
    smoothed: dict[chains.Cell, dict[chains.Cell, float]] = {}
    for composite_state in {
        cell[0] for cell in ours_of.values() if cell != DEAD and not complete(asked.master, cell[0])
    }:
        possible = [DEAD if target == DEAD[0] else (target, 0) for target in blank.possible(composite_state)]
        counts[composite_state, 0] = {target: float(rng.choice([0, 0, 1, 5])) for target in possible}
        smoothed[name_of[composite_state, 0]] = {
            name_of[to]: count + smoothing for to, count in counts[composite_state, 0].items()
        }
    counts = {cell: {to: count for to, count in moves.items() if count} for cell, moves in counts.items()}
    # Deadlines apart, which the oracle's chain does not know.
    ours = Forecaster(asked, counts, lookahead, smoothing, limits={})
    naive = chains.Chain(smoothed, chains.name_of(case.root, case.primitives))
    for bound, composite_state in composite_states(asked).items():
        if bound and not complete(asked.master, composite_state):
            exactly = [naive.exactly(name_of[composite_state, 0], n) for n in range(lookahead + 1)]
            assert exactly_at(ours, composite_state) == pytest.approx(exactly, abs=1e-12)
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
    forecaster = trained(
        asked,
        {
            (CompositeState(0), 0): {(CompositeState(0), 0): 3, (CompositeState(1), 0): 2},
            (CompositeState(1), 0): {(CompositeState(1), 0): 2},
        },
        5,
    )
    assert not probability(forecaster, CompositeState(2)).any()
    assert (forecaster.trained_on(CompositeState(2)), forecaster.trained_on(CompositeState(1))) == (0, 2)


def test_an_age_that_was_never_seen_forecasts_as_the_most_similar_one() -> None:
    asked = compiled("a ; b @(t(b) - t(a) < 9 SEC)")
    # Of 9 seconds, 10 slices of 64 are about 1.3, and 60 about 8.4: so late b came once in four, and never.
    state = CompositeState(1)
    counts = {(state, 10): {(CompositeState(2), 0): 100, (state, 10): 300}, (state, 60): {(state, 60): 500}}
    forecaster = trained(asked, counts, 1)
    passed = (1, SECOND, 4 * SECOND, 6 * SECOND, 8 * SECOND)
    spots = [spot(forecaster, state, left=9 * SECOND - each) for each in passed]
    # Without waits the next event comes at once.
    assert [probability(forecaster, state, each)[1] for each in spots] == [1 / 4] * 3 + [0] * 2


def test_what_a_wait_takes_from_the_deadline_and_from_the_lookahead_is_the_same() -> None:
    # An event a second, of which half are b: two events are left of 3 seconds, and one of them comes in 1.5 seconds.
    asked, state = compiled("a ; b @(t(b) - t(a) < 3 SEC)"), CompositeState(1)
    counts = {(state, 30): {(CompositeState(2), 0): 1, (state, 30): 1}}
    waited = Waited(
        counted(np.arange(9) * SECOND, np.array([0, 9]), *np.zeros((3, 1), np.int64), 8 * SECOND), 8 * SECOND
    )

    def within(time: int | None, steps: int = 1, *, left: int = 3 * SECOND - 1, quiet: int = 0) -> float:
        forecaster = trained(asked, counts, steps, waited=waited, time=time)
        return float(probability(forecaster, state, spot(forecaster, state, left), quiet, left=left, last=1)[-1])

    assert [within(None, n) for n in (1, 2, 3, 9)] == pytest.approx([1 / 2, 3 / 4, 3 / 4, 3 / 4])
    assert [within(time) for time in (SECOND // 2, SECOND, 3 * SECOND // 2, 9 * SECOND)] == pytest.approx(
        [0, 1 / 2, 1 / 2, 3 / 4]
    )
    # After 0.9 seconds without an event the next one is 0.1 seconds away, the second one 1.1, and the third too late.
    for time, wanted in ((SECOND // 20, 0), (SECOND // 5, 1 / 2), (9 * SECOND, 3 / 4)):
        assert within(time, quiet=9 * SECOND // 10) == pytest.approx(wanted, abs=1e-9)
    assert within(None, 9, quiet=9 * SECOND // 10) == pytest.approx(3 / 4)
    # Quiet for longer than any wait: the next event comes too late.
    assert within(None, 9, quiet=2 * SECOND) == 0


def test_what_waits_on_beside_its_copy_is_followed_too() -> None:
    # From a: b leads to a copy that only c completes, while d may still complete the a that waits.
    asked = compiled("a ; ((b ; c) | d)")
    inside = CompositeState(1, 0, (CompositeState(1),))
    counts = {
        (CompositeState(1), 0): {(inside, 0): 1, (CompositeState(2), 0): 1, (CompositeState(1), 0): 2},
        (inside, 0): {(CompositeState(2), 0): 1, (inside, 0): 3},
    }
    forecaster = trained(asked, counts, 2)
    assert probability(forecaster, inside) == pytest.approx([0, 1 / 4, 1 / 4 + 3 / 16])
    assert probability(forecaster, CompositeState(1)) == pytest.approx(
        [0, 1 / 4, 1 / 4 + 1 / 4 * (1 / 4 + 1 / 4) + 1 / 2 * 1 / 4]
    )


def test_what_a_longer_alternative_binds_bears_on_what_goes_on_beside_its_copy() -> None:
    # N1 is reached by a, and later by b and c. Where c is bound, f comes in time for the first choice or e for the
    # second, so an instance at N2 may still do what its copy with an earlier e cannot.
    asked = compiled("(a | (b ; c)) ; d ; e ; f @(t(f) - t(c) < 9 SEC) @(t(f) - t(d) > 4 SEC OR t(e) - t(d) > 9 SEC)")
    assert (CompositeState(2), CompositeState(3)) in find_uncovered(asked)


def test_where_there_are_too_many_fronts_each_instance_goes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "MOST_FRONTS", 1)
    asked = compiled("a ; ((b ; c) | d)")
    inside = CompositeState(1, 0, (CompositeState(1),))
    counts = {
        (CompositeState(1), 0): {(inside, 0): 1, (CompositeState(2), 0): 1},
        (inside, 0): {(CompositeState(2), 0): 1, (inside, 0): 3},
    }
    forecaster = trained(asked, counts, 2)
    assert not forecaster.exact
    assert probability(forecaster, CompositeState(1)) == pytest.approx([0, 1 / 2, 1 / 2 + 1 / 2 * 1 / 4])


def test_any_instance_of_a_row_may_be_completed() -> None:
    # One can be completed at the next event, another one at the second.
    assert any_of(np.array([[0, 0.2, 0.2], [0, 0.0, 0.2]])) == pytest.approx([0, 0.2, 0.36])
    assert any_of(np.array([[0, 0.2, 0.36], [0, 0.2, 0.2]])) == pytest.approx([0, 0.2, 0.36])


def test_smoothing_counts_every_possible_move_once_more() -> None:
    asked = compiled("a , b")
    forecaster = trained(asked, {(CompositeState(1), 0): {DEAD: 2}}, 1, smoothing=1.0)
    assert exactly_at(forecaster, CompositeState(1)) == pytest.approx([0, 1 / 4])


def test_a_long_lookahead_stays_a_probability() -> None:
    asked = compiled("a ; b ; c")
    counts = {
        (CompositeState(1), 0): {(CompositeState(1), 0): 9, (CompositeState(2), 0): 1},
        (CompositeState(2), 0): {(CompositeState(2), 0): 9, (CompositeState(3), 0): 1},
    }
    within = probability(trained(asked, counts, 1000), CompositeState(1))
    assert np.all(np.diff(within) >= 0)
    assert within[-1] == pytest.approx(1.0)
    assert within[-1] <= 1.0 + 1e-9


def test_what_comes_too_late_by_events_completes_nothing() -> None:
    # Untrained, each move is as likely as the others: d completes c with 1/4, or c comes again (1/4) and has its own d.
    query = compile_subscription(parse("(a, b) ; (c, d) WITHIN 7 EVENTS"))
    forecaster = trained(query, {}, 4, 1.0)
    c = CompositeState(3)
    none, one, two = (probability(forecaster, c, spot(forecaster, c, events=left)) for left in (0, 1, 2))
    assert none.tolist() == [0, 0, 0, 0, 0]
    assert one.tolist() == [0, 0.25, 0.25, 0.25, 0.25]
    assert two.tolist() == pytest.approx([0, 0.25, 0.3125, 0.3125, 0.3125])
