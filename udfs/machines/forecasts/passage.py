"""How likely a partial match is to be completed: first passage, by the moves of states and the waits of partitions.

Source: Muthusamy et al. 2010, sections 5.2.1 to 5.2.3, and SPEC section 6. A state is a composite state of the whole
subscription, which is the paper's global state; at an event it goes to another with probability N_ij / Σ_j N_ij. Under
deadlines the chain is joint in the state and what is left of them: a **cell** is a composite state and a spot
(`grids`). Two things follow each other:

- **a wait**, which takes from what is left, and ends what is too late. It is a wait as `waiting_times` counted them;
  the first one goes on after the quiet time of the partition, from the watermark;
- **an event**, at which the cell moves as its state did in training with what is left at the event.

A lookahead is a number of events, of which each takes one, or a time, from which each takes its wait: so time is
taken from the deadline and from the lookahead together. What is matched goes nowhere, so that what is found is first
passage, and a probability.

What is counted is the way of one instance. An instance that advances may wait on beside its copy (the paper's second
link of section 4.1), and mostly the copy does all that it can do. Where it doesn't, as an alternative is lost to it or
a deadline of its own begins with it, both go on: what is followed is a **front**, the cells that the descendants of one
instance are in. One event serves one operand, so what different operands take are different events, and those that
take the same are the same event.

Departures from the paper:

- rows are divided by how often a cell was left, not by how often it was reached, so that they are probabilities;
- discarded copies may die, so a row may sum to less than 1 over the states;
- ``&`` and ``|`` are not put together from their sides: moves between global states are counted;
- deadlines are judged by waiting times; the paper's chain knows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.forecasts.coverage import find_uncovered
from patternlake.udfs.machines.forecasts.first_passage import after_first_waits, first_passage
from patternlake.udfs.machines.forecasts.grids import (
    LATE,
    OPEN,
    RADIX,
    Grid,
    Grids,
    Limits,
    ends_sooner,
    lookahead_grid,
)
from patternlake.udfs.machines.forecasts.waiting_times import ANY_PACE, Waiting, Waits, commonest, paces
from patternlake.udfs.machines.graph.ages import LEAST_LEFT, NEVER, SLICES
from patternlake.udfs.machines.graph.composite_states import (
    CompositeState,
    complete,
    fallback_states,
    fallback_states_by_lineage,
    moves,
    pending,
)
from patternlake.udfs.machines.graph.links import steps_into
from patternlake.udfs.machines.query import Subscription

Cell = tuple[CompositeState, int]
"""A composite state and its age, as moves are counted; or its spot, as they are followed."""
Counts = Mapping[Cell, Mapping[Cell, float]]
"""How often each cell was followed by which."""
Front = tuple[Cell, ...]

DEAD: Cell = (CompositeState(-1), 0)
"""Stands for what follows where a copy is discarded and has nowhere to go, or cannot be completed any more."""
MOST_FRONTS = 1_024
"""Greatest number of fronts of a subscription with some of more than one cell; of more, and of four times as many
fronts of single cells, slots are made longer, and at last each instance is followed by its own way alone."""
LEAST_MOVES = 400
"""An age next to the deadline at which a state was left more rarely is counted together with those after it."""
_SLOTS = (128, 32, 8)
"""Of the shortest deadline, at least."""
_Outcomes = list[tuple[float, Front]]
_DONE: Front = ()


@dataclass(frozen=True)
class _Row:
    """What one cell does at an event: the probability of each advance by what the event is and the cell that follows,
    the shares of what else it does, and how often it was counted.
    """

    advances: Mapping[str, Sequence[tuple[float, Cell]]]
    stays: Sequence[tuple[float, Cell]]
    counted: float


@dataclass(frozen=True)
class Waited:
    """The waits of the partitions of one PARTITION BY, up to a watermark in microseconds."""

    counts: Waits = field(default_factory=dict)
    now: int = 0


@dataclass(frozen=True)
class Passage:
    """What partial matches forecast, by where they stand and how long their partitions have been quiet.

    Attributes
    ----------
    grids, ahead, lookahead
        Of deadlines, and of a lookahead in time (None: it is a number of events) of so many microseconds.
    units
        The lookahead in slots, or in events.
    waited
        Waits.
    spots, places
        By composite state: int64 each, the spots that are known, ascending, and their rows of `aged`.
    aged
        int32[fronts, waits]: what a front is at the event after each of `Grids.waits`; the last number: nothing.
    at, target, share, done
        Outcomes of events, from where `at` says on: the front that follows, and how likely; how likely a match is.
    """

    grids: Grids
    ahead: Grid | None
    lookahead: int
    units: int
    waited: Waited
    spots: Mapping[CompositeState, IntArray]
    places: Mapping[CompositeState, IntArray]
    aged: NDArray[np.int32]
    at: IntArray
    target: IntArray
    share: FloatArray
    done: FloatArray
    _waiting: dict[int, Waiting] = field(default_factory=dict)
    _at_events: dict[int, FloatArray] = field(default_factory=dict)

    @property
    def untimed(self) -> bool:
        """Whether no wait matters."""
        return self.ahead is None and not self.grids.timed

    @cached_property
    def paces(self) -> frozenset[int]:
        """Those that are told apart."""
        return frozenset({ANY_PACE} if self.untimed else paces(self.waited.counts))

    def waiting(self, pace: int) -> Waiting:
        """How long partitions of a pace wait."""
        if pace not in self._waiting:
            known = pace if pace in self.paces else ANY_PACE
            self._waiting[pace] = Waiting.of(self.waited.counts, self.waited.now, known)
        return self._waiting[pace]

    def within(
        self, composite_state: CompositeState, spots: IntArray, quiet: IntArray | None = None, pace: int = ANY_PACE, *,
        left: IntArray | None = None, last: int | None = None,
    ) -> FloatArray:  # fmt: skip
        """Completed within so much: float64[spots, units + 1], from 0 on; or of the `last` so many of them.

        Parameters
        ----------
        composite_state
            Not complete.
        spots
            int64[n]: where instances stood after the last event of their partition.
        quiet
            int64[n]: microseconds from that to the watermark, from which on is looked ahead; None: nothing.
        pace
            Of the partitions.
        left
            int64[n]: how many microseconds were left after the last event; `NEVER`: as the spot says.
        last
            So many of the figures are wanted; None: all.
        """
        pace = pace if pace in self.paces else ANY_PACE
        waiting, grids = self.waiting(pace), self.grids
        none = np.zeros(len(spots), np.int64)
        quiet = none if quiet is None or self.untimed else quiet
        left, grid = none + NEVER if left is None else left, -1
        limits = grids.limits.get(composite_state)
        if limits is None or not limits.waits or limits.most < 0:
            left = none + NEVER
        else:
            # The first wait is judged to the microsecond, not to the slot.
            grid = grids.grid(limits.most)
        kinds, of = np.unique(np.stack([spots, quiet, left]), axis=1, return_inverse=True)
        spots, quiet, left = kinds
        slots_left = [-1 if end < 0 else grids.time[grid].whole(end) for end in left.tolist()]
        found = after_first_waits(
            self._at_event(pace, waiting),
            self.aged,
            self.places[composite_state][nearest(self.spots[composite_state], spots, RADIX)],
            quiet,
            left,
            np.array(slots_left, np.int64),
            waiting.low,
            waiting.high,
            waiting.weight,
            grids.slots(self.ahead),
            grids.most,
            grid,
            grids.events.above,
            -1 if self.ahead is None else self.ahead.slots,
            -1 if self.ahead is None else self.lookahead,
            grids.known,
            0 if last is None else self.units + 1 - last,
            last is not None,
        )
        return np.minimum(1.0, found)[of.ravel()]

    def _at_event(self, pace: int, waiting: Waiting) -> FloatArray:
        """Completed by an event and what follows in so much: float64[units + 1, fronts + 1]."""
        if pace not in self._at_events:
            whole = waiting if self.ahead is not None else waiting.whole
            ageing, cost, weight = self.grids.dealt(whole, self.ahead)
            self._at_events[pace] = first_passage(
                self.aged, ageing, cost, weight, self.at, self.target, self.share, self.done, self.units
            )
        return self._at_events[pace]


class Forecaster:
    """What a trained subscription forecasts.

    Parameters
    ----------
    subscription
        Compiled.
    counts
        Its moves, by the ages at their events.
    lookahead
        Number of events, from 1 to `MOST_LOOKAHEAD`; what is asked for a `time` has no need of it.
    smoothing
        Is added to the count of every possible move.
    limits
        What can be left of its deadlines.
    waited
        The waits of its partitions; none: every next event comes at once.
    time
        A lookahead in time: microseconds.
    """

    def __init__(
        self, subscription: Subscription, counts: Counts, lookahead: int, smoothing: float = 0.0, *,
        limits: Mapping[CompositeState, Limits], waited: Waited | None = None, time: int | None = None,
    ) -> None:  # fmt: skip
        self.subscription, self.chain = subscription, subscription.master
        self.lookahead, self.smoothing = lookahead, smoothing
        self.waited = waited or Waited()
        self.limits = limits
        common = commonest(self.waited.counts)
        self.time = time
        self.ahead = None if time is None else lookahead_grid(time, common)
        self.uncovered = find_uncovered(subscription)
        self.exact = True
        self._take(counts)
        made = None
        for slots in _SLOTS:
            self.grids = Grids.of(limits, common, slots if not self.uncovered else slots // 2)
            self.rows: dict[Cell, _Row] = {}
            made = self._followed(MOST_FRONTS if self.uncovered else 4 * MOST_FRONTS)
            if made is not None:
                break
        if made is None:
            self.exact, self.uncovered = not self.uncovered, frozenset()
            made = self._followed(None)
        assert made is not None
        self.passage = self._passage(*made)

    def _take(self, counts: Counts) -> None:
        """Take counts in; what waits is dead where its time is up, which waits tell."""
        self.counts: dict[Cell, dict[Cell, float]] = {}
        self.left: dict[CompositeState, float] = {}
        ages: dict[CompositeState, list[int]] = {}
        for (composite_state, age), after in counts.items():
            self.left[composite_state] = self.left.get(composite_state, 0.0) + sum(after.values())
            waits = not pending(self.chain, composite_state)
            late = waits and age % (2 * SLICES) == LEAST_LEFT
            some = {cell: count for cell, count in after.items() if not (late and cell == DEAD)}
            if some:
                self.counts[composite_state, age] = some
                ages.setdefault(composite_state, []).append(age)
        self.trained = {composite_state: np.array(sorted(some), np.int64) for composite_state, some in ages.items()}
        for composite_state, known in self.trained.items():
            self._pool(composite_state, known.tolist())

    def _pool(self, composite_state: CompositeState, ages: Sequence[int]) -> None:
        """Count ages next to the deadline together, where one was left too rarely to tell by itself.

        Only the short slices of the last 64th of it are so many. Ages that differ in more than the time left stay
        apart, and what is late from what is not.
        """
        radix = 2 * SLICES
        together: list[list[int]] = []
        enough = 0.0
        for age in ages:
            same = together and together[-1][-1] // radix == age // radix
            same = same and SLICES < age % radix < LEAST_LEFT
            if not same or enough >= LEAST_MOVES:
                together.append([])
                enough = 0.0
            together[-1].append(age)
            enough += sum(self.counts[composite_state, age].values())
        for some in together:
            summed: dict[Cell, float] = {}
            for age in some:
                for after, count in self.counts[composite_state, age].items():
                    summed[after] = summed.get(after, 0.0) + count
            for age in some:
                self.counts[composite_state, age] = summed

    def trained_on(self, composite_state: CompositeState) -> float:
        """How often a state was left, at any age."""
        return self.left.get(composite_state, 0.0)

    def row(self, cell: Cell) -> _Row:
        """What a cell does."""
        if cell not in self.rows:
            self.rows[cell] = self._row(cell)
        return self.rows[cell]

    def _row(self, cell: Cell) -> _Row:
        composite_state = cell[0]
        targets: dict[CompositeState, str] = {}
        for move in moves(self.chain, composite_state):
            one = self.subscription.primitives[move.primitive]
            targets.setdefault(move.target, repr((one.takes if one.define is None else one.define.sql(), one.joins)))
        waits = not pending(self.chain, composite_state)
        seen = dict(self.counts.get((composite_state, self._trained_age(cell)), {}))
        counted = sum(seen.values())
        if self.smoothing > 0:
            for target in self.possible(composite_state):
                known = {after: count for after, count in seen.items() if after[0] == target}
                total = sum(known.values())
                for after, count in known.items():
                    seen[after] = count + self.smoothing * count / total
                if not known:
                    seen[target, 0] = self.smoothing
        if cell[1] == LATE:
            # Nothing completes what comes too late, whatever was seen at other ages.
            seen = {after: count for after, count in seen.items() if after[0] not in targets}
        total = sum(seen.values())
        advances: dict[str, list[tuple[float, Cell]]] = {}
        others: dict[Cell, float] = {}
        for after, count in seen.items():
            if after[0] in targets:
                advances.setdefault(targets[after[0]], []).append((count / total, self._placed(after, cell)))
            else:
                # What waits stands where it stood, whatever its age was called.
                stays = cell if waits and after != DEAD else self._placed(after, cell)
                others[stays] = others.get(stays, 0.0) + count / total
        if waits and not others:
            others[cell] = 1.0
        left = sum(others.values())
        # The youngest first, so that those of several instances go together.
        ordered = sorted(((share / left, after) for after, share in others.items()),
                         key=lambda one: (one[1] == DEAD, one[1][1]))  # fmt: skip
        return _Row(advances, ordered, counted)

    def possible(self, composite_state: CompositeState) -> list[CompositeState]:
        """The states that may follow one at an event, that of `DEAD` among them."""
        found = [move.target for move in moves(self.chain, composite_state)]
        if not pending(self.chain, composite_state):
            return list(dict.fromkeys([*found, composite_state]))
        boolean = any(item.children for item in self.chain.items)
        found += (
            fallback_states_by_lineage(self.chain, composite_state)
            if boolean
            else fallback_states(self.chain, composite_state)
        )
        return list(dict.fromkeys([*found, DEAD[0]]))

    def _trained_age(self, cell: Cell) -> int:
        """The age of a cell, or the most similar one at which its state was left."""
        composite_state, spot = cell
        ages, age = self.trained.get(composite_state), self.grids.age(composite_state, spot)
        if ages is None or (composite_state, age) in self.counts:
            return age
        return int(ages[nearest(ages, np.array([age]), 2 * SLICES)[0]])

    def _placed(self, after: Cell, cell: Cell) -> Cell:
        """The cell of what has an age after a cell; an age that nobody saw goes on as what is left."""
        if after == DEAD or complete(self.chain, after[0]):
            return after
        if not after[1] and after[0] in self.limits:
            limits = self.limits[after[0]]
            left, events, closed = self.grids.rest(*cell)
            return after[0], self.grids.spot(
                after[0],
                min(limits.most, limits.most if left < 0 else left),
                min(limits.most_events, limits.most_events if events < 0 else events),
                min(limits.most_closed, closed),
            )
        return after[0], self.grids.spot_after(*after, *cell)

    def _followed(self, most: int | None) -> _Followed | None:
        """What each front that live rows lead to is after each wait, and what follows; None: of more than so many."""
        fronts: dict[Front, int] = {}
        aged: list[list[int]] = []
        at_events: dict[Front, int] = {}
        outcomes: list[_Outcomes] = []
        waiting: list[Front] = [
            ((composite_state, spot),)
            for composite_state in self._composite_states
            for spot in self._first_spots(composite_state)
        ]
        waited: dict[Cell, list[int]] = {}
        # Most waits lead fronts of some states to spots where others of them came before.
        numbers: dict[tuple[CompositeState, ...], dict[tuple[int, ...], int]] = {}
        while waiting:
            front = waiting.pop()
            if front in fronts:
                continue
            fronts[front] = len(aged)
            for cell in front:
                if cell not in waited:
                    waited[cell] = self._waited(cell)
            states = tuple(composite_state for composite_state, _ in front)
            number_of = numbers.setdefault(states, {})
            row = []
            for spots in zip(*(waited[cell] for cell in front), strict=True):
                number = number_of.get(spots)
                if number is None:
                    after = self._least(cell for cell in zip(states, spots, strict=True) if cell[1] >= 0)
                    number = at_events.get(after, -1)
                    if after and number < 0:
                        number = at_events[after] = len(outcomes)
                        outcomes.append(self._outcomes(after))
                        waiting += [each for _, each in outcomes[-1] if each not in fronts and each != _DONE]
                    number_of[spots] = number
                row.append(number)
            aged.append(row)
            if most is not None and max(len(fronts), len(at_events)) > most:
                return None
        return fronts, aged, outcomes

    def _first_spots(self, composite_state: CompositeState) -> list[int]:
        """Where instances of a state may stand: with all that can be left, and as they were in training."""
        limits = self.limits.get(composite_state)
        if limits is None:
            return [0]
        found = {self.grids.spot(composite_state, limits.most, limits.most_events, closed)
                 for closed in (0, limits.most_closed)}  # fmt: skip
        for age in self.trained.get(composite_state, ()):
            found.add(self.grids.spot_after(composite_state, int(age), composite_state, 0))
        return sorted(found)

    def _waited(self, cell: Cell) -> list[int]:
        """The spot of a cell at the event after each wait; -1: nothing of it is left."""
        spots = self.grids.waited(*cell)
        if pending(self.chain, cell[0]):
            # Its copy goes on, if that has more time.
            spots = np.where(spots < 0, LATE, spots)
        return spots.tolist()

    @cached_property
    def _composite_states(self) -> list[CompositeState]:
        """All states of partial matches."""
        states = steps_into(self.subscription)
        return [composite_state for composite_state in states if not complete(self.chain, composite_state)]

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
                # What it does at the event: it goes on as some cells, of which none is left of what dies. An advance is
                # the copy, with what waits on beside it where the copy does not do all that it can.
                state = front[number][0]
                advances = [(p / chance, ((after,), row if (state, after[0]) in self.uncovered else None))
                            for p, after in row.advances.get(event, ())] if event else []  # fmt: skip
                rest = max(0.0, 1.0 - sum(p for p, _ in advances))
                stay = [(rest * p, ((after,) if after != DEAD else (), None)) for p, after in row.stays]
                ways.append([(p, way) for p, way in [*advances, *stay] if p > 1e-12] or [(1.0, ((), None))])
            for p, chosen in _together(ways):
                for q, after in self._gone_on(chosen):
                    found[after] = found.get(after, 0.0) + share * p * q
        return [(p, after) for after, p in found.items() if after != (DEAD,)]

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

    def _passage(self, fronts: Mapping[Front, int], aged: Sequence[Sequence[int]], outcomes: Sequence[_Outcomes]
                 ) -> Passage:  # fmt: skip
        known: dict[CompositeState, list[tuple[int, int]]] = {}
        for front, number in fronts.items():
            if len(front) == 1:
                known.setdefault(front[0][0], []).append((front[0][1], number))
        spots = {state: np.array(sorted(some), np.int64) for state, some in known.items()}
        onward = [[(fronts[after], p) for p, after in some if after != _DONE] for some in outcomes]
        rows = np.array(aged, np.int32).reshape(len(fronts), len(self.grids.waits))
        return Passage(
            self.grids,
            self.ahead,
            self.time or 0,
            self.lookahead if self.ahead is None else self.ahead.slots,
            self.waited,
            {state: some[:, 0].copy() for state, some in spots.items()},
            {state: some[:, 1].copy() for state, some in spots.items()},
            np.where(rows < 0, len(outcomes), rows).astype(np.int32),
            np.cumsum([0, *map(len, onward)]).astype(np.int64),
            np.array([after for some in onward for after, _ in some], np.int64),
            np.array([p for some in onward for _, p in some], np.float64),
            np.array([sum(p for p, after in some if after == _DONE) for some in outcomes], np.float64),
        )


_Followed = tuple[dict[Front, int], list[list[int]], list[_Outcomes]]


def nearest(known: IntArray, wanted: IntArray, radix: int) -> IntArray:
    """The places of the most similar ones among some ages, or spots, of three parts each: int64[wanted]."""
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    missed = np.flatnonzero(known[place] != wanted)
    values, of = np.unique(wanted[missed], return_inverse=True)
    apart = np.zeros((len(values), len(known)), np.int64)
    for part in range(3):
        unit = radix**part
        apart += np.abs(known // unit % radix - (values // unit % radix)[:, None])
    place[missed] = np.argmin(apart, axis=1)[of.ravel()] if len(missed) else 0
    return place


def telling(spots: Sequence[int]) -> list[int]:
    """The spots of instances of one row without those of which another one does all: it is open, and ends no sooner."""
    last = min((spot for spot in spots if spot < OPEN), default=None)
    return [spot for spot in spots if last is None or spot == last or not ends_sooner(spot, last)]


def any_of(within: FloatArray) -> FloatArray:
    """What instances forecast that one row stands for, any of which may be completed: within n, from 0 on.

    They bind the same operands and differ in times, so that the same events complete them, as long as each may be: at
    each event the likeliest of them holds for all.

    Parameters
    ----------
    within
        float64[instances, units + 1]: what each of them forecasts.
    """
    found: FloatArray = 1.0 - np.concatenate([[1.0], np.cumprod(1.0 - hazards(within).max(axis=0))])
    return found


def hazards(within: FloatArray) -> FloatArray:
    """Matched at the n-th event, or slot, if not before, for each n from 1: float64[instances, units]."""
    left = 1.0 - within[:, :-1]
    found = np.divide(np.diff(within, axis=1), left, out=np.zeros_like(left), where=left > 1e-12)
    return np.clip(found, 0.0, 1.0)


def _better(spot: int, other: int) -> bool:
    """Whether an instance at one spot does all that one at the other does: it ends no sooner, and opens no later."""
    parts, beside = ([one // RADIX**part % RADIX for part in (0, 1, 2)] for one in (spot, other))
    opens, opens_beside = (part or RADIX for part in (parts[2], beside[2]))
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
