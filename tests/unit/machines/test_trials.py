"""Forecasts judged: predictions and hits as the oracle counts them, and what is made of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from drawn import RANDOMS
from hypothesis import given
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import both, directly, p, stream
from naive.machine_random import random_events, random_subscription
from unit.machines.running_cases import Run
from unit.machines.test_machine_forecasting import composite_states

from patternlake.udfs.machines.forecasts.grids import joined
from patternlake.udfs.machines.forecasts.trials import BINS, Told, judge, verdicts
from patternlake.udfs.machines.graph.composite_states import CompositeState

SECOND = 1_000_000


def predictions(
    subscription: naive.Subscription, events: Sequence[naive.Event], lookahead: int
) -> tuple[Counter[frozenset[str]], Counter[frozenset[str]]]:
    """Predictions and hits by bound operands: every event is followed by a look at all live rows."""
    made, hits = Counter[frozenset[str]](), Counter[frozenset[str]]()
    for taken in naive.partitions(subscription, events).values():
        future = Future(subscription, taken)
        for rank in range(len(taken) - lookahead):
            for bound, found in future.rows(rank).items():
                made[bound[1]] += 1
                hits[bound[1]] += any(future.end(one, rank) <= rank + lookahead for one in found)
    return made, hits


class Future:
    """What becomes of live assignments of one partition; a discarded copy goes on as what it moves to.

    Forecasts are judged by the instances that training counts: of assignments that only a discarded copy's way back
    tells apart, the smallest is followed.
    """

    def __init__(self, subscription: naive.Subscription, taken: Sequence[naive.Event]) -> None:
        self.states = chains.States(subscription)
        self.moments = [naive.Partition(subscription, taken[:size]) for size in range(len(taken) + 1)]
        self.steps = [chains.Moment(self.states, one, other) for one, other in pairwise(self.moments)]
        self.held = [*(step.held for step in self.steps), chains.instances(self.states, self.moments[-1])]

    def rows(self, rank: int) -> dict[tuple[chains.Joins, frozenset[str]], list[naive.Assignment]]:
        """The instances of each live row after an event, by join values and bound operands."""
        now = self.moments[rank + 1]
        rows: dict[tuple[chains.Joins, frozenset[str]], list[naive.Assignment]] = {}
        for bound in self.held[rank + 1]:
            rows.setdefault((chains.joins_of(now, bound), frozenset(bound)), []).append(bound)
        return rows

    def end(self, bound: naive.Assignment, rank: int) -> float:
        """The event at which an assignment that lives after event `rank` is matched."""
        if rank + 1 == len(self.steps):
            return inf
        step = self.steps[rank + 1]
        grown = step.grown[frozenset(bound.items())]
        if any(more in step.after.full for more in grown):
            return rank + 1
        ends = [self.end(more, rank + 1) for more in grown]
        if bound in step.after.live:
            ends.append(self.end(bound, rank + 1))
        elif step.state(bound) not in self.states.waiting:
            ends += self.fallen(bound, rank, step)
        return min(ends, default=inf)

    def fallen(self, bound: naive.Assignment, rank: int, step: chains.Moment) -> list[float]:
        """The ends of those that a discarded copy goes on as; none where its state advanced, or the copy is dead."""
        state = step.state(bound)
        if self.states.alone(state):
            kin = None if step.advance([bound]) else step.goes_back(bound)
            return [self.end(kin, rank + 1)] if kin else []
        joins = chains.joins_of(step.before, bound)
        group = [one for (own, names), found in self.rows(rank).items() for one in found
                 if own == joins and names == frozenset(bound)]  # fmt: skip
        if step.advance(group):
            return []
        target = step.together(state, joins, group)
        rows = self.rows(rank + 1).items()
        others = [found for (own, names), found in rows if own <= joins and self.states.of[names] == target.state]
        return [self.end(one, rank + 1) for found in others for one in found]


def compare(subscription: naive.Subscription, events: Sequence[naive.Event], lookaheads: Sequence[int]) -> None:
    """Predictions and hits of each state beside the oracle's; each step is forecast to match once in ten."""
    run = Run([subscription.text], apart=True)
    run.take(events)
    states = len(run.compiled.graph.waits)
    # Every state is judged as if it were a subscription of its own.
    hazards = np.full((1, states, max(lookaheads)), 0.1)
    no_grids, paces = np.full((states, 3, 3), -1), np.zeros(65, np.int64)
    told = Told(np.arange(states), no_grids, paces, np.arange(states + 1), np.zeros(states, np.int64), hazards)
    judged = np.zeros((states, len(lookaheads), BINS + 1, 4))
    wanted_at = np.array(lookaheads)
    judge(run.machines.trace, run.event_at, run.times, told, wanted_at, np.empty(0), judged)
    state_of = {
        bound: run.compiled.graph.states[0][composite_state]
        for bound, composite_state in composite_states(run.compiled.subscriptions[0]).items()
    }
    for which, lookahead in enumerate(lookaheads):
        made, hits = predictions(subscription, events, lookahead)
        for kind, counted in ((0, made), (1, hits)):
            wanted = np.zeros(states)
            for names, count in counted.items():
                wanted[state_of[names]] += count
            assert judged[:, which, -1, kind].tolist() == wanted.tolist()
        summed = judged[:, which, -1, 2] / np.maximum(1, judged[:, which, -1, 0])
        assert summed[judged[:, which, -1, 0] > 0] == pytest.approx(1 - 0.9**lookahead)


@given(RANDOMS)
def test_random_predictions_hit_as_often_as_the_oracle_says(rng: random.Random) -> None:
    compare(random_subscription(rng, 4), random_events(rng, 8), [1, 2, 4])


def test_a_row_is_hit_by_what_its_smallest_assignment_goes_back_to() -> None:
    # After three events, {o1: 1, o2: 2, o3: 3} stands for {o1: 1, o3: 2, o2: 3} as well. The fourth discards both; only
    # {o1: 1, o3: 2}, to which the second goes back, takes it, and matches at the fifth.
    text = "o1, (o2 & o3), o4 DEFINE o1 AS TRUE, o2 AS y = $v, o3 AS x = $w, o4 AS y = $v AND x = $w WITHIN 6 EVENTS"
    steps = (p("o1", "a"), both(p("o2", "a", "y=v"), p("o3", "a", "x=w")), p("o4", "a", "y=v x=w"))
    subscription = naive.Subscription(directly(*steps), text, within=6, counted=True)
    values = [(None, None), (1, 1), (1, 1), (None, 2), (1, 2)]
    events = [naive.Event(at, at, "a", None, {"x": x, "y": y, "n": None}) for at, (x, y) in enumerate(values, 1)]
    assert [match.bindings for match in naive.matches(subscription, events)] == [{"o1": 1, "o2": 4, "o3": 2, "o4": 5}]
    made, hits = predictions(subscription, events, 2)
    whole = frozenset({"o1", "o2", "o3"})
    assert (made[whole], hits[whole]) == (1, 0)
    compare(subscription, events, [1, 2])


def test_a_row_is_forecast_as_any_of_its_instances_with_what_each_has_left() -> None:
    # Behind each a, b is likelier the less time is left; of two a's both count.
    run = Run(["a ; b @(t(b) - t(a) < 9 SEC)"], apart=True)
    run.take(stream("a a x x"))
    state = run.compiled.graph.states[0][CompositeState(1)]
    grid = [[SECOND, 1, 9], [-1] * 3, [-1] * 3]
    grids = np.where(np.arange(3)[:, None, None] == state, np.array(grid), -1)
    # What is left is floored to whole seconds: 8 after the a itself, 7 and 6 later.
    told = Told(
        np.where(np.arange(3) == state, 0, -1), grids, np.zeros(65, np.int64), np.array([0, 0, 2, 2]),
        np.array([joined(8, None, None), joined(6, None, None)]), np.array([[[0.1, 0.6], [0.3, 0.2]]]),
    )  # fmt: skip
    judged = np.zeros((1, 2, BINS + 1, 4))
    judge(run.machines.trace, run.event_at, run.times, told, np.array([1, 2]), np.empty(0), judged)
    # What is left in seconds: 8; 7 and 8; 6 and 7. 7 is as near to 8 as to 6, and the first is taken. Of what ends
    # sooner, nothing counts: 8; 8; 7.
    assert judged[0, 0, -1].tolist() == pytest.approx([3, 0, 0.3, 0.03])
    assert judged[0, 1, -1, 2] == pytest.approx(2 * (1 - 0.9 * 0.4))


def test_a_verdict_tells_precision_recall_and_brier_apart() -> None:
    judged = np.zeros((1, 2 + BINS + 1, 4))
    # Above 0 and above 0.4; in the bins 0 to 0.1 and 0.4 to 0.5; all.
    judged[0, 0], judged[0, 1] = (4, 3, 2.0, 1.0), (4, 3, 2.0, 1.0)
    judged[0, 2], judged[0, 2 + 4], judged[0, -1] = (10, 1, 0.0, 1.0), (4, 3, 2.0, 1.0), (14, 4, 2.0, 2.0)
    found = list(verdicts(judged, [1], [0.0, 0.4]))
    shown = {(one.kind, one.low): (one.forecasts, one.hits, one.all_hits) for one in found}
    assert shown == {
        ("threshold", 0.0): (4, 3, 4),
        ("threshold", 0.4): (4, 3, 4),
        ("calibration", 0.0): (10, 1, 4),
        ("calibration", 0.4): (4, 3, 4),
    }
    assert found[0].brier == pytest.approx(2 / 14)
    assert {one.mean_probability for one in found} == {0.0, 0.5}


def test_no_live_row_makes_no_forecast() -> None:
    (verdict,) = verdicts(np.zeros((1, 1 + BINS + 1, 4)), [5], [0.5])
    assert (verdict.forecasts, verdict.hits, verdict.brier, verdict.mean_probability) == (0, 0, None, None)
