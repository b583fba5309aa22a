"""Forecasts judged: predictions and hits as the oracle counts them, and what is made of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import random_events, random_subscription
from unit.machines.running_cases import Run
from unit.machines.test_machine_forecasting import cuts

from patternlake.udfs.machines.configured import Group
from patternlake.udfs.machines.trials import judge, verdicts


def predictions(
    subscription: naive.Subscription, events: Sequence[naive.Event], lookahead: int
) -> tuple[Counter[frozenset[str]], Counter[frozenset[str]]]:
    """Predictions and hits by bound operands, of a sequence: every event is followed by a look at all live rows."""
    made, hits = Counter[frozenset[str]](), Counter[frozenset[str]]()
    for taken in naive.partitions(subscription, events).values():
        future = Future(subscription, taken)
        for rank in range(len(taken) - lookahead):
            for bound, found in future.rows(rank).items():
                made[bound[1]] += 1
                hits[bound[1]] += any(future.end(one, rank) <= rank + lookahead for one in found)
    return made, hits


class Future:
    """What becomes of live assignments of one partition; a discarded copy goes on as the row that it moves to."""

    def __init__(self, subscription: naive.Subscription, taken: Sequence[naive.Event]) -> None:
        self.moments = [naive.Partition(subscription, taken[:size]) for size in range(len(taken) + 1)]
        self.steps = [chains.Moment(one, other) for one, other in pairwise(self.moments)]

    def rows(self, rank: int) -> dict[tuple[chains.Joins, frozenset[str]], list[naive.Assignment]]:
        """The live rows after an event, by join values and bound operands."""
        now = self.moments[rank + 1]
        rows: dict[tuple[chains.Joins, frozenset[str]], list[naive.Assignment]] = {}
        for bound in now.live:
            if bound:
                rows.setdefault((frozenset(now.joined(bound)), frozenset(bound)), []).append(bound)
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
        elif not step.root.waits(step.root.state(bound)):
            ends += self.fallen(bound, rank, step)
        return min(ends, default=inf)

    def fallen(self, bound: naive.Assignment, rank: int, step: chains.Moment) -> list[float]:
        """The ends of those that a discarded copy goes on as; none where its state advanced, or the copy is dead."""
        joins = step.joins(step.before, bound, bound)
        group = [one for (own, names), found in self.rows(rank).items() for one in found
                 if own == joins and names == frozenset(bound)]  # fmt: skip
        state = step.root.state(bound)
        target = step.target(step.root, state, joins, group)
        if target in (state + 1, chains.DEAD):
            return []
        rows = self.rows(rank + 1).items()
        others = [found for (own, names), found in rows if own <= joins and step.root.state(names) == target]
        return [self.end(one, rank + 1) for found in others for one in found]


def in_sequence(node: naive.Node) -> bool:
    return isinstance(node, naive.Primitive) or (isinstance(node, naive.Seq) and all(map(in_sequence, node.items)))


@given(st.integers(0, 2**32))
def test_random_predictions_hit_as_often_as_the_oracle_says(seed: int) -> None:
    rng = random.Random(seed)
    while not in_sequence((subscription := random_subscription(rng, 4)).root):
        pass
    events = random_events(rng, 8)
    run = Run([subscription.text], apart=True)
    run.take(events)
    lookaheads = [1, 2, 4]
    judged = np.zeros((2, len(run.compiled.graph.waits), len(lookaheads)))
    judge(run.machines.trace, run.event_at, np.array(lookaheads), judged)
    state_of = {bound: run.compiled.graph.states[0][cut] for bound, cut in cuts(run.compiled.subscriptions[0]).items()}
    for which, lookahead in enumerate(lookaheads):
        for kind, counted in enumerate(predictions(subscription, events, lookahead)):
            wanted = np.zeros(len(run.compiled.graph.waits))
            for names, count in counted.items():
                wanted[state_of[names]] += count
            assert judged[kind, :, which].tolist() == wanted.tolist()


def test_a_verdict_tells_precision_recall_and_brier_apart() -> None:
    run = Run(["a ; b ; c"], apart=True)
    group = Group(("abc",), run.compiled, 0.0)
    graph = run.compiled.graph
    # From N1 the next event is b in a fifth of all cases, from N2 it is c in half of them.
    counts = {((), 1): {1: 4.0, 2: 1.0}, ((), 2): {2: 1.0, 3: 1.0}}
    judged = np.zeros((2, len(graph.waits), 1))
    first, second = (next(state for cut, state in graph.states[0].items() if cut.done == done) for done in (1, 2))
    judged[:, first, 0], judged[:, second, 0] = (10, 1), (4, 3)
    found = list(verdicts(group, 0, counts, 0.0, judged, [1], [0.0, 0.4]))
    shown = {(one.kind, one.low): (one.forecasts, one.hits, one.all_hits) for one in found}
    assert shown == {
        ("threshold", 0.0): (4, 3, 4),
        ("threshold", 0.4): (4, 3, 4),
        ("calibration", 0.0): (10, 1, 4),
        ("calibration", 0.4): (4, 3, 4),
    }
    # One hit at forecast 0, and of four forecasts of a half three hits.
    assert found[0].brier == pytest.approx((1 * 1 + 4 * 0.25) / 14)
    assert {one.mean_probability for one in found} == {0.0, 0.5}


def test_no_live_row_makes_no_forecast() -> None:
    run = Run(["a ; b"], apart=True)
    group = Group(("ab",), run.compiled, 0.0)
    judged = np.zeros((2, len(run.compiled.graph.waits), 1))
    (verdict,) = verdicts(group, 0, {}, 0.0, judged, [5], [0.5])
    assert (verdict.forecasts, verdict.hits, verdict.brier, verdict.mean_probability) == (0, 0, None, None)
