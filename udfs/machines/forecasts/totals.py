"""Counts of many machines, as kernels keep them, and as forecasts take them: moves between composite states with their
ages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.forecasts.passage import DEAD, Cell, Counts
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves
from patternlake.udfs.machines.kernels.counting import AGES, GONE
from patternlake.udfs.machines.kernels.tables import Compiled

_Row = tuple[int, int, int, float]
"""Age before; state and age after; weight."""


@dataclass(frozen=True)
class Totals:
    """All counts of a run; those of several are added.

    Attributes
    ----------
    counted
        float64: of counted states and advance counters.
    keys, weights
        int64[k, 2], float64[k]: rows of the tally, see `counting`.
    """

    counted: FloatArray
    keys: IntArray
    weights: FloatArray

    def __add__(self, other: Totals) -> Totals:
        both = np.concatenate([self.keys, other.keys])
        keys, row = np.unique(both, axis=0, return_inverse=True)
        weights = np.zeros(len(keys))
        np.add.at(weights, row.ravel(), np.concatenate([self.weights, other.weights]))
        return Totals(self.counted + other.counted, keys, weights)

    @cached_property
    def tally(self) -> Mapping[int, list[_Row]]:
        """The rows of the tally by kind."""
        found: dict[int, list[_Row]] = {}
        before, behind = self.keys[:, 0], self.keys[:, 1]
        columns = (before // AGES, before % AGES, behind // AGES, behind % AGES, self.weights)
        for kind, age, state, after, weight in zip(*(column.tolist() for column in columns), strict=True):
            found.setdefault(kind, []).append((age, state, after, weight))
        return found


def counts_of(compiled: Compiled, totals: Totals, number: int) -> Counts:
    """The moves of a subscription.

    Parameters
    ----------
    compiled
        The subscriptions.
    totals
        `Machines.totals`.
    number
        Of the subscription.
    """
    found: dict[Cell, dict[Cell, float]] = {}
    for cell, after, count in _moves(compiled, totals, number):
        some = found.setdefault(cell, {})
        some[after] = some.get(after, 0.0) + count
    # What advanced is taken from what waited, which leaves rests where counts are weighted.
    counted = {
        cell: {after: count for after, count in some.items() if count > 1e-9 * sum(map(abs, some.values()))}
        for cell, some in found.items()
    }
    return {cell: some for cell, some in counted.items() if some}


def _moves(compiled: Compiled, totals: Totals, number: int) -> Iterator[tuple[Cell, Cell, float]]:
    graph, chain = compiled.graph, compiled.subscriptions[number].master
    states = graph.states[number]
    composite_state_of = {state: composite_state for composite_state, state in states.items()}
    onward = compiled.onward
    kinds, links = max(2, len(graph.waits)), max(2, len(graph.links))
    boolean = compiled.subscriptions[number].boolean
    for composite_state, state in states.items():
        if complete(chain, composite_state):
            continue
        if composite_state == START or not (boolean or graph.by_instance[state]):
            yield from _of_counted_state(compiled, totals, number, composite_state)
            continue
        own = [
            compiled.link_number[onward[state][states[move.target], move.primitive]]
            for move in moves(chain, composite_state)
        ]
        signed = [(state, 1.0)]
        for link in own:
            signed += [(kinds + link, 1.0), (kinds + links + link, -1.0)]
        for kind, sign in signed:
            for age, after_state, after, weight in totals.tally.get(kind, ()):
                yield (
                    (composite_state, age),
                    DEAD if after_state == GONE else (composite_state_of[after_state], after),
                    sign * weight,
                )


def _of_counted_state(
    compiled: Compiled, totals: Totals, number: int, composite_state: CompositeState
) -> Iterator[tuple[Cell, Cell, float]]:
    tables, counted_states, graph = compiled.tables, compiled.counted_states, compiled.graph
    states = graph.states[number]
    composite_state_of = {state: one for one, state in states.items()}
    sizes = [
        len(tables.counted_states) - 1,
        len(tables.advance_counters) - 1,
        int(tables.counted_states[-1]["left_at"]),
    ]
    visits, advanced, left, fired = np.split(totals.counted, np.cumsum(sizes))
    some = [(move, counted_states.advance_counters[number][composite_state, move.primitive])
            for move in moves(compiled.subscriptions[number].master, composite_state)]  # fmt: skip
    gone = 0.0
    for move, advance_counter in some:
        link = compiled.onward[states[composite_state]][states[move.target], move.primitive]
        yield (composite_state, 0), (move.target, compiled.ages.fresh[link]), float(advanced[advance_counter])
        gone += float(advanced[advance_counter])
    counted_state = int(tables.advance_counters[some[0][1]]["state"])
    if tables.counted_states[counted_state]["waits"]:
        yield (composite_state, 0), (composite_state, 0), float(visits[counted_state]) - gone
        return
    # In a chain one advance counter leaves what does not wait.
    advance_counter = some[0][1]
    begin, end = tables.counted_states["left_at"][counted_state : counted_state + 2].tolist()
    fired_begin = int(tables.advance_counters[advance_counter]["fired_at"])
    ends = left[begin:end] - fired[fired_begin : fired_begin + end - begin]
    for fallback_state, count in zip(counted_states.fallback_states[counted_state], ends.tolist(), strict=False):
        yield (composite_state, 0), (composite_state_of[counted_states.state_of[fallback_state]], 0), count
    yield (composite_state, 0), DEAD, float(ends[-1])
