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

from patternlake.udfs.machines.forecasts.waiting_times import FloatArray, IntArray
from patternlake.udfs.subkernels import subkernel

_ENOUGH = 1e-10
"""What one more event of the same slot would change at most."""
_MOST_EVENTS = 100_000


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
            dear[front] = _summed(at_event, aged[front], ageing, cost, weight, free, n)
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
def after_waits(
    at_event: FloatArray, aged: NDArray[np.int32], ageing: IntArray, cost: IntArray, weight: FloatArray, first: int
) -> FloatArray:
    """V of some fronts, whose rows of `aged` are given, after waits of their own: float64[fronts, n from `first`]."""
    units = len(at_event) - 1
    found = np.zeros((len(aged), units + 1 - first))
    for front in range(len(aged)):
        for n in range(first, units + 1):
            found[front, n - first] = _summed(at_event, aged[front], ageing, cost, weight, 0, n)
    return found


@subkernel
def _summed(
    at_event: FloatArray,
    aged: NDArray[np.int32],
    ageing: IntArray,
    cost: IntArray,
    weight: FloatArray,
    begin: int,
    n: int,
) -> float:
    found = 0.0
    for number in range(begin, len(cost)):
        if cost[number] > n:
            break
        found += weight[number] * at_event[n - cost[number], aged[ageing[number]]]
    return found
