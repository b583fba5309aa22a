"""First passage through waits and events in turn: what of all that can follow completes in time.

V[n, f]: a front that has just had an event is completed within n more units; W[n, g]: at an event, by it or within n
more units. A wait takes its cost from the units and makes one of the other:

    V[n, f] = sum over waits of weight * W[n - cost, aged[f, wait]]
    W[n, g] = done[g] + sum over outcomes of share * V[n, target]

Units are events, of which each costs one, or slots of a time; a wait of no cost leads to an event of the same slot.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.forecasts.grids import MOST_PIECES, RADIX
from patternlake.udfs.subkernels import subkernel

_ENOUGH = 1e-10
"""What one more event of the same slot would change at most."""
_MOST_EVENTS = 100_000
_FAR = 2.0**62
"""Microseconds of a wait that is too late for all deadlines."""


@njit(cache=True)
def first_passage(
    aged: NDArray[np.int32], ageing: IntArray, cost: IntArray, weight: FloatArray, at: IntArray, target: IntArray,
    share: FloatArray, done: FloatArray, units: int,
) -> FloatArray:  # fmt: skip
    """W as above, float64[units + 1, fronts at events + 1]; the last front is none, and never completed.

    Parameters
    ----------
    aged
        int32[fronts, waits].
    ageing, cost, weight
        Of what is dealt to a wait: its column of `aged`, its cost, ascending, and its probability.
    at, target, share, done
        As `passage.Passage` has them.
    units
        The greatest n.
    """
    fronts, events = len(aged), len(done)
    at_event = np.zeros((units + 1, events + 1))
    after = np.zeros(fronts)
    dear = np.zeros(fronts)
    free = int(np.searchsorted(cost, 1))
    for n in range(units + 1):
        for front in range(fronts):
            found = 0.0
            for number in range(free, len(cost)):
                if cost[number] > n:
                    break
                found += weight[number] * at_event[n - cost[number], aged[front, ageing[number]]]
            dear[front] = found
        if not free:
            after[:] = dear
        for _ in range(_MOST_EVENTS):
            changed = 0.0
            for event in range(events):
                found = done[event]
                for edge in range(at[event], at[event + 1]):
                    found += share[edge] * after[target[edge]]
                changed = max(changed, abs(found - at_event[n, event]))
                at_event[n, event] = found
            if not free or changed < _ENOUGH:
                break
            for front in range(fronts):
                found = dear[front]
                for number in range(free):
                    found += weight[number] * at_event[n, aged[front, ageing[number]]]
                after[front] = found
    return at_event


@njit(cache=True)
def after_first_waits(
    at_event: FloatArray, aged: NDArray[np.int32], front: IntArray, quiet: IntArray, left: IntArray, end: IntArray,
    low: FloatArray, high: FloatArray, weight: FloatArray, slot: FloatArray, most: IntArray, end_grid: int,
    event_slot: int, ahead_slots: int, lookahead: int, known: IntArray, first: int, last_alone: bool,
) -> FloatArray:  # fmt: skip
    """V of some fronts whose first waits have lasted for a while: float64[n, units + 1 - first], from `first` on.

    A wait that has lasted for the quiet time is one of those that are longer, each by its share. Its piece is cut into
    values, and each value is dealt to slots as `Grids.dealt` deals those of all waits.

    Parameters
    ----------
    at_event
        W.
    aged
        int32[fronts, waits].
    front
        int64[n]: a row of `aged` each.
    quiet, left, end
        int64[n]: microseconds that the wait has lasted, and after which nothing is in time (-1: as the slots say), and
        the latter in slots.
    low, high, weight
        The waits, as `Waiting` has them.
    slot
        float64[grids]: the slots of times, of events if they are longer than one, and of a lookahead in time.
    most
        int64[time grids]: their greatest number of slots.
    end_grid
        The time grid of `end`; -1: there is none.
    event_slot
        How many events a slot is.
    ahead_slots, lookahead
        A lookahead in time: slots and microseconds; -1: it counts events.
    known
        Codes of the waits of `aged`, ascending.
    first
        The least n that is wanted.
    last_alone
        Units from `first` on are the whole lookahead: it is judged to the microsecond.
    """
    units, ended = len(at_event) - 1, max(0.0, 1.0 - weight.sum())
    found = np.zeros((len(front), units + 1 - first))
    fine = slot.min() if len(slot) else np.inf
    if event_slot > 1:
        fine = min(slot[: len(most)].min() if len(most) else np.inf, slot[-1] if lookahead >= 0 else np.inf)
    remaining = np.zeros(len(weight))
    whole, part, sides = np.zeros(len(slot), np.int64), np.zeros(len(slot)), np.zeros(len(slot) + 1)
    for at in range(len(front)):
        since = quiet[at]
        until = np.inf
        if lookahead >= 0 and last_alone:
            until = float(since + lookahead)
        if left[at] >= 0:
            until = min(until, float(left[at]))
        total = ended
        for piece in range(len(weight)):
            share = 1.0
            if since > 0:
                if high[piece] <= since:
                    share = 0.0
                elif low[piece] < since:
                    share = (high[piece] - since) / (high[piece] - low[piece])
            remaining[piece] = weight[piece] * share
            total += remaining[piece]
        scale = 1.0 / total if total > 1e-12 else 0.0
        reached = 0.0
        for piece in range(len(weight) + 1):
            begin, stop, chance, values = _FAR, _FAR, max(0.0, 1.0 - reached), 1
            if piece < len(weight):
                begin, stop, chance = max(low[piece], float(since)), high[piece], remaining[piece] * scale
                reached += chance
                if chance > 0 and stop > until:
                    chance *= max(0.0, (until - begin) / (stop - begin)) if stop > begin else 0.0
                    stop = until
                if stop > begin:
                    values = min(MOST_PIECES, max(1, int(np.ceil(min((stop - begin) / fine, 8.0)))))
            elif lookahead >= 0 or until < np.inf:
                # What is longer than any wait that ended is too late.
                break
            if chance <= 0:
                continue
            for number in range(values):
                value = begin + (stop - begin) * (number + 0.5) / values
                _deal_slots(whole, part, sides, slot, value, since, len(most), event_slot, lookahead >= 0)
                before = 0.0
                for side in range(len(sides)):
                    share, before = sides[side] - before, sides[side]
                    if share <= 0:
                        continue
                    code, cost = 0, 1
                    for grid in range(len(most)):
                        taken = whole[grid] + (part[grid] >= sides[side] - 1e-12)
                        if grid == end_grid and left[at] >= 0 and last_alone:
                            taken = min(taken, end[at])
                        code = code * RADIX + min(taken, most[grid] + 1)
                    of_event = 1
                    if event_slot > 1:
                        of_event = whole[len(most)] + (part[len(most)] >= sides[side] - 1e-12)
                    code = code * RADIX + of_event
                    if lookahead >= 0:
                        cost = whole[-1] + (part[-1] >= sides[side] - 1e-12)
                        if last_alone:
                            # What is too late for the lookahead was left out before.
                            cost = min(cost, ahead_slots)
                    if cost > units:
                        continue
                    event = aged[front[at], min(int(np.searchsorted(known, code)), len(known) - 1)]
                    for n in range(max(first, cost), units + 1):
                        found[at, n - first] += chance / values * share * at_event[n - cost, event]
    return found


@subkernel
def _deal_slots(
    whole: IntArray, part: FloatArray, sides: FloatArray, slot: FloatArray, value: float, quiet: int, times: int,
    event_slot: int, in_time: bool,
) -> None:  # fmt: skip
    """Deal a wait to slots of all grids: whole ones, and the shares at which another one is taken, ascending to 1."""
    for grid in range(len(slot)):
        place = value / slot[grid]
        if event_slot > 1 and grid == times:
            # An event is an event, however long it took.
            place = 1.0 / event_slot
        elif in_time and grid == len(slot) - 1:
            # A lookahead loses nothing of the time that has passed.
            place = (value - quiet) / slot[grid]
        whole[grid] = int(np.floor(min(place, 2.0**40) + 1e-6))
        part[grid] = min(1.0, max(0.0, place - whole[grid]))
        sides[grid] = part[grid]
    sides[-1] = 1.0
    sides.sort()
