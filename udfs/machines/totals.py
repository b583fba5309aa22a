"""Counts of many machines, as kernels keep them, and as forecasts take them: moves between composite states with their
ages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from patternlake.udfs.machines.composite_states import START, CompositeState, complete, moves
from patternlake.udfs.machines.counting import AGES, GONE
from patternlake.udfs.machines.forecasting import DEAD, Cell, Counts
from patternlake.udfs.machines.tables import Compiled, IntArray
from patternlake.udfs.machines.workspace import FloatArray

_Row = tuple[int, int, int, float]
"""Age before; state and age after; weight."""


@dataclass(frozen=True)
class Totals:
    """All counts of a run; those of several are added.

    Attributes
    ----------
    counted
        float64: of places and slots.
    keys, weights
        int64[k, 2], float64[k]: rows of the tally, see `counting`.
    """

    counted: FloatArray
    keys: IntArray
    weights: FloatArray

    def __add__(self, other: Totals) -> Totals:
        both = np.concatenate([self.keys, other.keys])
        keys, places = np.unique(both, axis=0, return_inverse=True)
        weights = np.zeros(len(keys))
        np.add.at(weights, places.ravel(), np.concatenate([self.weights, other.weights]))
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
            yield from _of_place(compiled, totals, number, composite_state)
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


def _of_place(
    compiled: Compiled, totals: Totals, number: int, composite_state: CompositeState
) -> Iterator[tuple[Cell, Cell, float]]:
    tables, places, graph = compiled.tables, compiled.places, compiled.graph
    states = graph.states[number]
    composite_state_of = {state: one for one, state in states.items()}
    sizes = [len(tables.waits), len(tables.slot_place), int(tables.left_at[-1])]
    visits, advanced, left, fired = np.split(totals.counted, np.cumsum(sizes))
    some = [(move, places.slots[number][composite_state, move.primitive])
            for move in moves(compiled.subscriptions[number].master, composite_state)]  # fmt: skip
    gone = 0.0
    for move, slot in some:
        link = compiled.onward[states[composite_state]][states[move.target], move.primitive]
        yield (composite_state, 0), (move.target, compiled.ages.fresh[link]), float(advanced[slot])
        gone += float(advanced[slot])
    place = int(tables.slot_place[some[0][1]])
    if tables.waits[place]:
        yield (composite_state, 0), (composite_state, 0), float(visits[place]) - gone
        return
    # In a chain one slot leaves what does not wait.
    slot = some[0][1]
    width = int(tables.left_at[place + 1] - tables.left_at[place])
    ends = left[tables.left_at[place] :][:width] - fired[tables.fired_at[slot] :][:width]
    for fallback_state, count in zip(places.fallback_states[place], ends.tolist(), strict=False):
        yield (composite_state, 0), (composite_state_of[places.state_of[fallback_state]], 0), count
    yield (composite_state, 0), DEAD, float(ends[-1])
