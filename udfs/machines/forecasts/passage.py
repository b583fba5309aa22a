"""How likely a partial match is to be completed: first passage on the chain of the states that are trained.

Source: Muthusamy et al. 2010, sections 5.2.1 to 5.2.3, and SPEC section 6. A state is a composite state of the whole
subscription, which is the paper's global state, with the age of its deadlines (`ages`). From cell i it goes to cell j
with probability N_ij / Σ_j N_ij; what is matched goes nowhere, so that the probability to be matched at exactly the
n-th event is **first passage** (α), and its sum up to n is a probability (β).

What is counted is the way of one instance. An instance that advances may wait on beside its copy (the paper's second
link of section 4.1), and mostly the copy does all that it can do. Where it doesn't, as an alternative is lost to it or
a deadline of its own begins with it, both go on: what is followed is a **front**, the cells that the descendants of one
instance are in. One event serves one operand, so what different operands take are different events, and those that
take the same are the same event.

Departures from the paper:

- rows are divided by how often a cell was left, not by how often it was reached, so that they are probabilities;
- discarded copies may die, so a row may sum to less than 1 over the states;
- ``&`` and ``|`` are not put together from their sides: moves between global states are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.machines.forecasts.coverage import uncovered
from patternlake.udfs.machines.graph.ages import OPEN, SLICES, ends_sooner
from patternlake.udfs.machines.graph.composite_states import (
    START,
    CompositeState,
    complete,
    fallback_states,
    fallback_states_by_lineage,
    moves,
    pending,
)
from patternlake.udfs.machines.query import Subscription

FloatArray = NDArray[np.float64]
Cell = tuple[CompositeState, int]
"""A composite state and its age."""
Counts = Mapping[Cell, Mapping[Cell, float]]
"""How often each cell was followed by which."""
Front = tuple[Cell, ...]

DEAD: Cell = (CompositeState(-1), 0)
"""Stands for what follows where a copy is discarded and has nowhere to go, or cannot be completed any more."""
MOST_FRONTS = 1_024
"""Greatest number of fronts of a subscription with some of more than one cell; of more, slices of ages are put
together, and at last each instance is followed by its own way alone."""
_SLICES_TOGETHER = (1, 4, 16)
_Outcomes = list[tuple[float, Front]]
_DONE: Front = ()


@dataclass(frozen=True)
class _Row:
    """What one cell does: the probability of each advance by what its event is and the cell that follows, the shares of
    what else it does, and how often it was counted.
    """

    advances: Mapping[str, Sequence[tuple[float, Cell]]]
    stays: Sequence[tuple[float, Cell]]
    counted: float


class Forecaster:
    """What a trained subscription forecasts for the next `lookahead` events.

    Parameters
    ----------
    subscription
        Compiled.
    counts
        Its moves.
    lookahead
        Number of events, from 1 to `MOST_LOOKAHEAD`.
    smoothing
        Is added to the count of every possible move.
    """

    def __init__(self, subscription: Subscription, counts: Counts, lookahead: int, smoothing: float = 0.0) -> None:
        self.subscription, self.chain = subscription, subscription.master
        self.lookahead, self.smoothing = lookahead, smoothing
        self.uncovered = uncovered(subscription)
        self.exact = True
        fronts = None
        for slices in _SLICES_TOGETHER if self.uncovered else (1,):
            self._take(counts, slices)
            fronts = self._fronts(MOST_FRONTS if self.uncovered else None)
            if fronts is not None:
                break
        if fronts is None:
            self.exact, self.uncovered = False, frozenset()
            self._take(counts, 1)
            fronts = self._fronts(None)
        self.fronts = fronts or {}

    def _take(self, counts: Counts, slices: int) -> None:
        """Take counts in, so many slices of an age as one."""
        self.counts: dict[Cell, dict[Cell, float]] = {}
        for (composite_state, age), after in counts.items():
            some = self.counts.setdefault((composite_state, _coarser(age, slices)), {})
            for (target, target_age), count in after.items():
                cell = target, _coarser(target_age, slices)
                some[cell] = some.get(cell, 0.0) + count
        ages: dict[CompositeState, list[int]] = {}
        for (composite_state, age), moved in self.counts.items():
            if moved:
                ages.setdefault(composite_state, []).append(age)
        self.trained = {composite_state: np.array(sorted(some), np.int64) for composite_state, some in ages.items()}
        self.rows: dict[Cell, _Row] = {}

    def trained_on(self, composite_state: CompositeState) -> float:
        """How often a state was left, at any age."""
        ages = self.trained.get(composite_state, ())
        return float(sum(sum(self.counts[composite_state, int(age)].values()) for age in ages))

    def ages(self, composite_state: CompositeState) -> list[int]:
        """The ages at which a state was left; 0 where it never was."""
        return [int(age) for age in self.trained.get(composite_state, ())] or [0]

    def alpha(self, composite_state: CompositeState, age: int = 0) -> FloatArray:
        """Matched at exactly the n-th event, for each n from 0: float64[lookahead + 1]."""
        if complete(self.chain, composite_state):
            matched: FloatArray = np.zeros(self.lookahead + 1)
            matched[0] = 1.0
            return matched
        number = self._numbers[(self.nearest((composite_state, age)),)]
        found: FloatArray = self._passage[:, number]
        return found

    def probability(self, composite_state: CompositeState, age: int = 0) -> FloatArray:
        """Matched within n events (β), for each n from 0: float64[lookahead + 1]."""
        return np.minimum(1.0, np.cumsum(self.alpha(composite_state, age)))

    def hazard(self, composite_state: CompositeState, age: int = 0) -> FloatArray:
        """Matched at the n-th event if not before, for each n from 1: float64[lookahead]."""
        alpha = self.alpha(composite_state, age)
        left = 1.0 - np.cumsum(alpha)[:-1]
        found = np.divide(alpha[1:], left, out=np.zeros(self.lookahead), where=left > 1e-12)
        return np.clip(found, 0.0, 1.0)

    def nearest(self, cell: Cell) -> Cell:
        """The cell, or the one of the same state that was left at the most similar age."""
        composite_state, age = cell
        ages = self.trained.get(composite_state)
        if ages is None:
            return composite_state, 0
        if self.counts.get(cell):
            return cell
        return composite_state, int(ages[nearest(ages, age)])

    def row(self, cell: Cell) -> _Row:
        """What a cell does."""
        if cell not in self.rows:
            self.rows[cell] = self._row(cell)
        return self.rows[cell]

    def _row(self, cell: Cell) -> _Row:
        composite_state, age = cell
        targets: dict[CompositeState, str] = {}
        for move in moves(self.chain, composite_state):
            one = self.subscription.primitives[move.primitive]
            targets.setdefault(move.target, repr((one.takes if one.define is None else one.define.sql(), one.joins)))
        seen = dict(self.counts.get(cell, {}))
        counted = sum(seen.values())
        if self.smoothing > 0:
            for target in self.possible(composite_state, age):
                known = {after: count for after, count in seen.items() if after[0] == target}
                total = sum(known.values())
                for after, count in known.items():
                    seen[after] = count + self.smoothing * count / total
                if not known:
                    seen[self._unseen(target, cell)] = self.smoothing
        total = sum(seen.values())
        advances: dict[str, list[tuple[float, Cell]]] = {}
        stays: list[tuple[float, Cell]] = []
        for after, count in seen.items():
            if after[0] in targets:
                advances.setdefault(targets[after[0]], []).append((count / total, self._known(after)))
            else:
                stays.append((count / total, DEAD if after == DEAD else self.nearest(after)))
        left = sum(share for share, _ in stays)
        # The youngest first, so that those of several instances go together.
        ordered = sorted(((share / left, after) for share, after in stays), key=lambda one: (one[1] == DEAD, one[1][1]))
        return _Row(advances, ordered, counted)

    def possible(self, composite_state: CompositeState, age: int) -> list[CompositeState]:
        """The states that may follow one, that of `DEAD` among them."""
        found = [move.target for move in moves(self.chain, composite_state)]
        if not pending(self.chain, composite_state):
            found += [composite_state, DEAD[0]] if age else [composite_state]
        else:
            boolean = any(item.children for item in self.chain.items)
            found += [
                *(
                    fallback_states_by_lineage(self.chain, composite_state)
                    if boolean
                    else fallback_states(self.chain, composite_state)
                ),
                DEAD[0],
            ]
        return list(dict.fromkeys(found))

    def _unseen(self, target: CompositeState, cell: Cell) -> Cell:
        """The cell of a move that was never counted."""
        if target == DEAD[0]:
            return DEAD
        return self.nearest((target, cell[1]))

    def _known(self, cell: Cell) -> Cell:
        return cell if complete(self.chain, cell[0]) else self.nearest(cell)

    def _fronts(self, most: int | None) -> dict[Front, _Outcomes] | None:
        """What follows each front that live rows lead to; None if there are more than so many."""
        found: dict[Front, _Outcomes] = {}
        waiting: list[Front] = [
            (self.nearest((composite_state, age)),)
            for composite_state in self._composite_states
            for age in self.ages(composite_state)
        ]
        while waiting:
            front = waiting.pop()
            if front in found:
                continue
            found[front] = self._outcomes(front)
            waiting += [after for _, after in found[front] if after not in found and after != _DONE]
            if most is not None and len(found) > most:
                return None
        return found

    @cached_property
    def _composite_states(self) -> list[CompositeState]:
        """All states of partial matches."""
        found, waiting = {START: None}, [START]
        for composite_state in waiting:
            for move in moves(self.chain, composite_state):
                if move.target not in found:
                    found[move.target] = None
                    waiting.append(move.target)
        return [
            composite_state
            for composite_state in found
            if composite_state != START and not complete(self.chain, composite_state)
        ]

    def _outcomes(self, front: Front) -> _Outcomes:
        """The fronts that may follow one at an event; what dies is left out, `_DONE` is a match."""
        rows = [self.row(cell) for cell in front]
        events = {event: [sum(share for share, _ in row.advances.get(event, ())) for row in rows]
                  for event in dict.fromkeys(event for row in rows for event in row.advances)}  # fmt: skip
        chances = {event: max(shares) for event, shares in events.items()}
        scale = 1.0 / max(1.0, sum(chances.values()))
        found: dict[Front, float] = {}
        nothing = 1.0 - scale * sum(chances.values())
        for event, chance in [*chances.items(), ("", nothing)]:
            if chance <= 1e-12:
                continue
            share = chance if not event else chance * scale
            ways = []
            for number, row in enumerate(rows):
                # What it does at the event: it goes on as some cells, of which none is left of what dies.
                advances = [(p / chance, self._with_copy(front[number], after, row))
                            for p, after in row.advances.get(event, ())] if event else []  # fmt: skip
                rest = max(0.0, 1.0 - sum(p for p, _ in advances))
                stay = [(rest * p, ((after,) if after != DEAD else (), None)) for p, after in row.stays]
                ways.append([(p, way) for p, way in [*advances, *stay] if p > 1e-12] or [(1.0, ((), None))])
            for p, chosen in _together(ways):
                for q, after in self._gone_on(chosen):
                    found[after] = found.get(after, 0.0) + share * p * q
        return [(p, after) for after, p in found.items() if after != (DEAD,)]

    def _with_copy(self, cell: Cell, after: Cell, row: _Row) -> tuple[Front, _Row | None]:
        """An advance: the copy, and what waits on beside it where the copy does not do all that it can."""
        beside = (cell[0], after[0]) in self.uncovered
        return (after,), row if beside else None

    def _gone_on(self, chosen: Sequence[tuple[Front, _Row | None]]) -> _Outcomes:
        cells = [cell for some, _ in chosen for cell in some]
        if any(complete(self.chain, cell[0]) for cell in cells):
            return [(1.0, _DONE)]
        beside = [[(p, after) for p, after in row.stays] for _, row in chosen if row is not None and row.stays]
        found = []
        for p, waits in _together(beside) if beside else [(1.0, ())]:
            alive = [*cells, *(cell for cell in waits if cell != DEAD)]
            found.append((p, self._least(alive) or (DEAD,)))
        return found

    def _least(self, cells: Iterable[Cell]) -> Front:
        """Some cells without those that another one of the same state dominates, in one order."""
        some = list(dict.fromkeys(cells))
        kept = [
            cell
            for cell in some
            if not any(other != cell and other[0] == cell[0] and _better(other[1], cell[1]) for other in some)
        ]
        return tuple(sorted(kept, key=repr))

    @cached_property
    def _numbers(self) -> dict[Front, int]:
        return {front: number for number, front in enumerate(self.fronts)}

    @cached_property
    def _passage(self) -> FloatArray:
        """Matched at exactly the n-th event, from each front: float64[lookahead + 1, fronts]."""
        numbers = self._numbers
        edges = [
            (numbers[front], numbers[after], p)
            for front, outcomes in self.fronts.items()
            for p, after in outcomes
            if after != _DONE
        ]
        source = np.array([one for one, _, _ in edges], np.int64)
        target = np.array([after for _, after, _ in edges], np.int64)
        share = np.array([p for _, _, p in edges])
        found = np.zeros((self.lookahead + 1, len(numbers)))
        for front, outcomes in self.fronts.items():
            found[1, numbers[front]] = sum(p for p, after in outcomes if after == _DONE)
        for n in range(2, self.lookahead + 1):
            found[n] = np.bincount(source, share * found[n - 1][target], len(numbers))
        return found


def _coarser(age: int, slices: int) -> int:
    """The first age of those that are put together with one."""
    found = 0
    for part in (2, 1, 0):
        slice_ = age // (2 * SLICES) ** part % (2 * SLICES)
        found = found * 2 * SLICES + (slice_ if slice_ == 0 else (slice_ - 1) // slices * slices + 1)
    return found


def nearest(ages: NDArray[np.int64], age: int) -> int:
    """The place of the most similar one among some ages."""
    apart = np.zeros(len(ages), np.int64)
    for part in range(3):
        radix = (2 * SLICES) ** part
        apart += np.abs(ages // radix % (2 * SLICES) - age // radix % (2 * SLICES))
    return int(np.argmin(apart))


def telling(ages: Sequence[int]) -> list[int]:
    """The ages of instances of one row without those of which another one does all: it is open, and ends no sooner."""
    last = min((age for age in ages if age < OPEN), default=None)
    return [age for age in ages if last is None or age == last or not ends_sooner(age, last)]


def any_of(hazards: FloatArray) -> FloatArray:
    """What instances forecast that one row stands for, any of which may be completed: within n events, from 0 on.

    They bind the same operands and differ in times, so that the same events complete them, as long as each may be: at
    each event the likeliest of them holds for all.

    Parameters
    ----------
    hazards
        float64[instances, lookahead]: `Forecaster.hazard` of each.
    """
    found: FloatArray = 1.0 - np.concatenate([[1.0], np.cumprod(1.0 - hazards.max(axis=0))])
    return found


def _better(age: int, other: int) -> bool:
    """Whether an instance of one age does all that one of the other does: it ends no sooner, and opens no later."""
    parts, beside = (
        [one // (2 * SLICES) ** part % (2 * SLICES) for part in (0, 1, 2)] for one in (age, other)
    )  # fmt: skip
    opens, opens_beside = (part or 2 * SLICES for part in (parts[2], beside[2]))
    return parts[0] <= beside[0] and parts[1] <= beside[1] and opens >= opens_beside


def _together(ways: Sequence[Sequence[tuple[float, object]]]) -> list[tuple[float, tuple]]:  # type: ignore[type-arg]
    """Outcomes of several at one event, each by its shares in order: the first parts of all go together."""
    found = []
    at, left = [0] * len(ways), [some[0][0] for some in ways]
    while True:
        p = min(left)
        if p > 0:
            found.append((p, tuple(some[number][1] for some, number in zip(ways, at, strict=True))))
        for number, some in enumerate(ways):
            left[number] -= p
            if left[number] <= 1e-12:
                at[number] += 1
                if at[number] == len(some):
                    return found
                left[number] += some[at[number]][0]
