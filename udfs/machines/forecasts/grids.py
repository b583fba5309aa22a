"""What is left of deadlines, in slots: where a partial match stands, and what a wait makes of that.

A **spot** is what is left of the deadlines of a partial match after an event of its partition: time, events, and time
until the last lower bound is reached, each in slots of a grid. Waits are dealt to whole slots such that their means
stay, all grids by the same draw. A whole number of slots makes the commonest wait, where that is not too short, so that
what is due every second is due in time or too late, and never a little of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.forecasts.waiting_times import Waiting
from patternlake.udfs.machines.graph.ages import NEVER, SLICES, Ages, age_of
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete
from patternlake.udfs.machines.graph.liveness import NOW
from patternlake.udfs.machines.graph.merged import Graph
from patternlake.udfs.machines.query import Chain

RADIX = 1 << 13
"""Of the three parts of a spot: lower bounds, events, time; 0 where nothing is pending, greater nearer to the end."""
LATE = RADIX**3
"""The spot of what lasts for one event, which comes too late for it."""
OPEN = RADIX**2
"""Spots below this one are of instances whose lower bounds are reached."""
MOST_PIECES = 4
"""Into so many a piece of a wait's distribution is cut at most."""
MOST_TIME_GRIDS = 3
_LONG, _SHORT = 512, 128
"""Slots of a lookahead in time: at most, and at least."""


class Limits(NamedTuple):
    """What can be left in a state.

    Attributes
    ----------
    most, most_events, most_closed
        As `ages.Ages` has them; `NEVER` or 0: nothing is pending.
    bounds
        What is left of deadlines in time at the event that they run from.
    opens
        Lower bounds on what comes after an event, in microseconds.
    waits
        Whether the state lasts for more than one event.
    """

    most: int = NEVER
    most_events: int = NEVER
    most_closed: int = 0
    bounds: tuple[int, ...] = ()
    opens: tuple[int, ...] = ()
    waits: bool = True


def limits_of(graph: Graph, ages: Ages, number: int, chain: Chain) -> dict[CompositeState, Limits]:
    """The limits of the states of a subscription in which something is pending."""
    return {
        composite_state: Limits(
            ages.most[state], ages.most_events[state], ages.most_closed[state],
            tuple(sorted({limit for path in graph.completion_paths[state] for one, _, limit in path.bounds
                          if one == NOW})),
            tuple(sorted({low for _, low in graph.opens[state]})), graph.waits[state],
        )
        for composite_state, state in graph.states[number].items()
        if composite_state != START and not complete(chain, composite_state) and graph.timed[state]
    }  # fmt: skip


class Grid(NamedTuple):
    """A slot is `above` / `below` microseconds, or events; `slots`: the greatest number of them."""

    above: int
    below: int
    slots: int

    @property
    def slot(self) -> float:
        """How long a slot is."""
        return self.above / self.below

    def whole(self, rest: int) -> int:
        """The slots that have passed before `rest` has."""
        return min(self.slots, rest * self.below // self.above)

    def begun(self, rest: int) -> int:
        """The slots until `rest` has passed."""
        return min(self.slots, -(-rest * self.below // self.above))


def grid_of(shortest: int, longest: int, common: int, slots: int) -> Grid:
    """A grid of values up to the longest, fine enough for the shortest; `common`: the commonest wait."""
    # A wait of no length, or none at all, asks for nothing.
    below = max(1, -(-common * slots // max(1, shortest)))
    above = max(1, common)
    if not common or shortest * below // above > 4 * slots:
        above, below = max(1, shortest), 4 * slots
    return Grid(above, below, longest * below // above + 1)


@dataclass(frozen=True)
class Grids:
    """The grids of a subscription's states.

    Attributes
    ----------
    limits
        Of the states in which something is pending.
    time
        Grids of times, from the shortest slots to the longest.
    events
        Of events.
    """

    limits: Mapping[CompositeState, Limits]
    time: tuple[Grid, ...]
    events: Grid

    @classmethod
    def of(cls, limits: Mapping[CompositeState, Limits], common: int, slots: int) -> Grids:
        """Grids with about so many slots for the shortest of each few limits that are of one order."""
        scales = {max(1, each.most) for each in limits.values() if each.most >= 0}
        scales |= {each.most_closed for each in limits.values() if each.most_closed > 0}
        wide = 4
        while True:
            clusters: list[list[int]] = []
            for scale in sorted(scales):
                if clusters and scale <= wide * clusters[-1][0]:
                    clusters[-1].append(scale)
                else:
                    clusters.append([scale])
            if len(clusters) <= MOST_TIME_GRIDS:
                break
            wide *= 4
        # A wide cluster has more slots than its shortest limit needs, and never more than a spot can tell.
        time = tuple(
            grid_of(max(some[0], some[-1] * 4 * slots // (RADIX - 2) + 1), some[-1], common, slots) for some in clusters
        )
        events = max((each.most_events for each in limits.values()), default=0)
        slot = max(1, -(-events // (4 * slots)))
        return cls(limits, time, Grid(slot, 1, max(0, events) // slot + 1))

    @property
    def timed(self) -> bool:
        """Whether time alone changes what is left."""
        return bool(self.time)

    def grid(self, scale: int) -> int:
        """The number of the grid of a limit."""
        return next((at for at, grid in enumerate(self.time) if scale <= grid.slots * grid.slot), len(self.time) - 1)

    def spot(self, composite_state: CompositeState, left: int, events: int, closed: int) -> int:
        """Where an instance stands of which so much is left, in microseconds and events; `NEVER`: no deadline."""
        limits = self.limits.get(composite_state)
        if limits is None:
            return 0
        in_time = closed_for = None
        if left >= 0 and limits.most >= 0:
            in_time = self.time[self.grid(limits.most)].whole(left)
        if closed > 0 and limits.most_closed > 0:
            closed_for = self.time[self.grid(limits.most_closed)].begun(closed)
        return joined(in_time, None if events < 0 else self.events.whole(events), closed_for)

    def spots(self, composite_state: CompositeState, left: IntArray, events: IntArray, closed: IntArray) -> IntArray:
        """The same of many instances: int64[n]."""
        wanted, of = np.unique(np.stack([left, events, closed]), axis=1, return_inverse=True)
        found = np.array([self.spot(composite_state, *map(int, each)) for each in wanted.T], np.int64)
        return found[of.ravel()]

    def of_state(self, composite_state: CompositeState) -> IntArray:
        """The grids of a state, of time, events, and time until lower bounds are reached: int64[3, 3]; -1: none."""
        found = np.full((3, 3), -1, np.int64)
        limits = self.limits.get(composite_state)
        if limits is not None:
            for part, most in ((0, limits.most), (2, limits.most_closed or NEVER)):
                if most >= 0:
                    found[part] = self.time[self.grid(most)]
            if limits.most_events >= 0:
                found[1] = self.events
        return found

    def rest(self, composite_state: CompositeState, spot: int) -> tuple[int, int, int]:
        """About what is left at a spot: microseconds, events, microseconds until lower bounds are reached."""
        limits = self.limits.get(composite_state, Limits())
        if spot == LATE:
            return min(0, limits.most), min(0, limits.most_events), 0
        in_time, events, closed = parts(spot)
        left = NEVER
        if in_time is not None:
            left = min(limits.most, int((in_time + 0.5) * self.time[self.grid(limits.most)].slot))
        some = NEVER if events is None else int(events * self.events.slot)
        closed_for = 0
        if closed is not None:
            closed_for = max(1, int((closed - 0.5) * self.time[self.grid(limits.most_closed)].slot))
        return left, some, closed_for

    def age(self, composite_state: CompositeState, spot: int) -> int:
        """The age of an instance that stands there."""
        limits = self.limits.get(composite_state)
        if limits is None or not spot:
            return 0
        left, events, closed = self.rest(composite_state, spot)
        return int(age_of(left, limits.most, events, limits.most_events, closed, limits.most_closed))

    def spot_after(self, composite_state: CompositeState, age: int, before: CompositeState, spot: int) -> int:
        """Where what an instance advances to stands, of which the age is known alone.

        A deadline goes on, or begins with the event: what is left then is known exactly. Else it is the middle of what
        has this age.
        """
        limits = self.limits.get(composite_state)
        if limits is None or not age:
            return 0
        had = self.limits.get(before, Limits())
        left, events, closed = self.rest(before, spot)
        in_time, _, closed_before = parts(spot)
        if in_time is not None:
            # As it was floored, so that it is floored to the same slot again.
            left = int(in_time * self.time[self.grid(had.most)].slot + 0.999)
        if closed_before is not None:
            closed = int(closed_before * self.time[self.grid(had.most_closed)].slot)
        radix = 2 * SLICES
        of_closed, of_events, of_time = age // radix**2, age // radix % radix, age % radix
        carried = [] if left < 0 else [left, left + limits.most - had.most]
        in_events = [] if events < 0 else [events + limits.most_events - had.most_events]
        return self.spot(
            composite_state,
            _likeliest(of_time, limits.most, [*carried, *limits.bounds]),
            _likeliest(of_events, limits.most_events, [*in_events, limits.most_events]),
            max(0, _likeliest(of_closed, limits.most_closed, [closed, *limits.opens], closed=True)),
        )

    def waited(self, composite_state: CompositeState, spot: int) -> IntArray:
        """Where an instance stands at the event after each of `waits`: int64[waits]; -1: that comes too late for it."""
        found, late = np.zeros(len(self._taken), np.int64), np.zeros(len(self._taken), np.bool_)
        if not spot:
            return found
        limits = self.limits[composite_state]
        in_time, events, closed = parts(spot)
        if in_time is not None:
            rest = in_time - self._taken[:, self.grid(limits.most)]
            late |= rest < 0
            found += RADIX - 1 - rest
        if events is not None:
            rest = events - self._taken[:, -1]
            late |= rest < 0
            found += (RADIX - 1 - rest) * RADIX
        if closed is not None:
            rest = closed - self._taken[:, self.grid(limits.most_closed)]
            # A bound that is reached is pending no more.
            found += np.where(rest > 0, RADIX - 1 - rest, 0) * OPEN
        return np.where(late, -1, found)

    @cached_property
    def waits(self) -> list[tuple[int, ...]]:
        """All that a wait and its event can take from what is left: slots of each grid, the last one of events."""
        found = {tuple(grid.slots + 1 for grid in self.time)}
        edges = sorted({at * grid.slot for grid in self.time for at in range(grid.slots + 2)})
        for low, high in pairwise(edges or [0.0, 1.0]):
            middle = (low + high) / 2
            floors = [int(middle / grid.slot) for grid in self.time]
            found |= {
                tuple(min(grid.slots + 1, at + more) for grid, at, more in zip(self.time, floors, dealt, strict=True))
                for dealt in product((0, 1), repeat=len(floors))
            }
        of_event = (1,) if self.events.slot == 1 else (0, 1)
        return sorted((*some, event) for some in found for event in of_event)

    def slots(self, ahead: Grid | None) -> FloatArray:
        """The slots to which waits are dealt: of times, of events if that is more than one, of a lookahead in time."""
        grids = [*self.time, *([] if self.events.slot == 1 else [self.events]), *([] if ahead is None else [ahead])]
        return np.array([grid.slot for grid in grids], np.float64)

    def dealt(self, waiting: Waiting, ahead: Grid | None) -> tuple[IntArray, IntArray, FloatArray]:
        """A wait in slots: which of `waits` it is, what it takes of a lookahead (1 if that counts events), how likely.

        Parameters
        ----------
        waiting
            How long it is.
        ahead
            The lookahead in time; None: it counts events.
        """
        values, weights = self._values(waiting, ahead)
        slots = self.slots(ahead)
        places = values[:, None] / slots[None, :]
        if self.events.slot > 1:
            # An event is an event, however long it took.
            places[:, len(self.time)] = 1.0 / self.events.slot
        whole = np.floor(np.minimum(places, 2.0**40) + 1e-6)
        part = np.clip(places - whole, 0.0, 1.0)
        sides = np.sort(np.concatenate([np.zeros((len(values), 1)), part, np.ones((len(values), 1))], axis=1), axis=1)
        share = np.diff(sides, axis=1)
        # One draw for all grids: each goes up a slot whose rest is above it.
        up = part[:, None, :] >= sides[:, 1:, None] - 1e-12
        taken = (whole[:, None, :] + up).astype(np.int64).reshape(share.size, len(slots))
        weight = (weights[:, None] * share).ravel()
        cost = np.ones(len(weight), np.int64) if ahead is None else taken[:, -1]
        kept = weight > 0 if ahead is None else (weight > 0) & (cost <= ahead.slots)
        of_time = np.minimum(taken[:, : len(self.time)], self.most + 1)
        of_event = np.ones(len(weight), np.int64) if self.events.slot == 1 else taken[:, len(self.time)]
        code = self._codes(np.column_stack([of_time, of_event]))
        number = np.minimum(np.searchsorted(self.known, code), len(self.known) - 1)
        both, at_ = np.unique(np.stack([cost[kept], number[kept]]), axis=1, return_inverse=True)
        summed = np.bincount(at_.ravel(), weight[kept], both.shape[1])
        return both[1].astype(np.int64), both[0].astype(np.int64), np.asarray(summed, np.float64)

    def _values(self, waiting: Waiting, ahead: Grid | None) -> tuple[FloatArray, FloatArray]:
        """Values of a wait and their probabilities: pieces that are longer than slots are cut."""
        fine = min([grid.slot for grid in (*self.time, *([] if ahead is None else [ahead]))], default=np.inf)
        count = np.clip(np.ceil((waiting.high - waiting.low) / fine), 1, MOST_PIECES).astype(np.int64)
        of = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        values = waiting.low[of] + (waiting.high - waiting.low)[of] * (place + 0.5) / count[of]
        return values, waiting.weight[of] / count[of]

    def _codes(self, some: NDArray[np.int64]) -> IntArray:
        code = np.zeros(len(some), np.int64)
        for column in some.T:
            code = code * RADIX + column
        return code

    @cached_property
    def _taken(self) -> IntArray:
        """`waits` as an array: int64[waits, grids + 1]."""
        return np.array(self.waits, np.int64).reshape(len(self.waits), -1)

    @property
    def most(self) -> IntArray:
        """The greatest number of slots of each time grid."""
        return np.array([grid.slots for grid in self.time], np.int64)

    @cached_property
    def known(self) -> IntArray:
        """Codes of `waits`, ascending as they are."""
        return self._codes(self._taken)


def lookahead_grid(time: int, common: int) -> Grid:
    """The slots of a lookahead in time."""
    grid = grid_of(time, time, common, _SHORT)
    return Grid(grid.above, grid.below, max(1, time * grid.below // grid.above))


@njit(cache=True)
def ends_sooner(spot: int, other: int) -> bool:
    """Whether an instance at one spot ends before one at the other does, or at its end; both deadlines are compared."""
    return spot % RADIX >= other % RADIX and spot // RADIX % RADIX >= other // RADIX % RADIX


def joined(in_time: int | None, events: int | None, closed: int | None) -> int:
    """A spot by what is left in slots; None: nothing is pending."""
    found = 0
    for rest in (closed, events, in_time):
        found = found * RADIX + (0 if rest is None else RADIX - 1 - rest)
    return found


def parts(spot: int) -> tuple[int | None, int | None, int | None]:
    """The same back: time, events, and time until lower bounds are reached; of `LATE`, none."""
    if spot == LATE:
        return None, None, None
    in_time, events, closed = (
        None if not part else RADIX - 1 - part for part in (spot % RADIX, spot // RADIX % RADIX, spot // RADIX**2)
    )  # fmt: skip
    return in_time, events, closed


def _likeliest(slice_: int, most: int, known: Sequence[int], *, closed: bool = False) -> int:
    """What is left where it lies in a slice: one of some known values if that lies there, else its middle."""
    if not slice_:
        return NEVER
    for value in known:
        if 0 <= value <= max(0, most) and abs(_slice(value, most, closed=closed) - slice_) <= 1:
            return value
    coarse = max(0, most) // SLICES + 1
    fine = coarse // SLICES + 1
    width, at = (coarse, SLICES - slice_) if slice_ < SLICES else (fine, 2 * SLICES - 1 - slice_)
    return min(max(0, most), at * width + width // 2)


def _slice(value: int, most: int, *, closed: bool) -> int:
    """The part of an age that tells of one of its deadlines alone."""
    if closed:
        return int(age_of(NEVER, 0, NEVER, 0, value, most)) // (2 * SLICES) ** 2
    return int(age_of(value, most, NEVER, 0, 0, 0))
