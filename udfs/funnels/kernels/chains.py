"""How far each partition gets, by which events: of all chains the longest, of those the one that starts first.

A chain begins at an event of the first step, and each further step takes the earliest later event that fits it. So all
chains that have reached one step go on alike, and differ only in how much of the window is left. Which steps are
reached is a number of 64 bits, and an event moves all chains at once by shifts and masks; a loop runs over those alone
that reach a further step, in most funnels none or one. Three passes over a partition, each O(events + moves):

1. forward, with the *latest* start of each step: it has most of the window left, so it goes as far as any. That gives
   how far the partition gets (as ClickHouse's ``windowFunnel`` does it).
2. backward, for that number of steps: from each step, where a chain that has reached it ends. Read at each event of the
   first step, it says whether the chain that starts there gets as far within the window; the last one so read is the
   earliest.
3. forward from that start: the events of its chain.

Where no window and no event ends a chain, the first one goes as far as any, and the third pass is all there is.

Source: ROWS part 2. Bit s of a number stands for the step of number s, from 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.subkernels import subkernel

BitArray = NDArray[np.uint64]

ANY_ORDER_BETWEEN, STRICT_ORDER, STEPS_IN_ORDER, ONCE, STRICT = range(5)
MODES = {
    "any_order_between": ANY_ORDER_BETWEEN,
    "strict_order": STRICT_ORDER,
    "steps_in_order": STEPS_IN_ORDER,
    "once": ONCE,
    "strict": STRICT,
}
"""By what callers write: what may come between two steps. The step reached last is *its own*.

``any_order_between``: anything; ``strict_order``: events of its own; ``steps_in_order``: those, and events of no step;
``once``: all but events of its own; ``strict``: nothing.
"""
NO_WINDOW = -1

_NONE, _ONE, _SHIFT = np.uint64(0), np.uint64(1), np.uint64(58)
_FACTOR = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.empty(64, np.int64)
_PLACES[[((int(_FACTOR) << place) % (1 << 64)) >> 58 for place in range(64)]] = range(64)
"""Which bit is set, by the upper six bits of its product with `_FACTOR`, in which no six bits in a row recur."""


class Chains(NamedTuple):
    """The chain of each of p partitions.

    Attributes
    ----------
    reached
        int64[p]: how many steps it reaches; 0 where no event fits the first one.
    offsets
        int64[p + 1].
    rows
        int64[sum of reached]: the events that it takes, those of partition i at ``offsets[i]:offsets[i + 1]``.
    """

    reached: IntArray
    offsets: IntArray
    rows: IntArray


def furthest_chains(
    fits: BitArray, spans: IntArray, partitions: IntArray, steps: int, within: int, mode: int
) -> Chains:
    """Find the chain of each partition.

    Parameters
    ----------
    fits
        uint64[n]: the steps that each event fits. Events of a partition stand side by side, in order.
    spans
        int64[n]: what the window measures: times, or ranks in the partition; never falls inside one. Without a window
        none is read.
    partitions
        int64[p + 1]: partition i has the events ``partitions[i]:partitions[i + 1]``.
    steps
        How many there are, 1 to 64; no event fits another.
    within
        Last and first event of a chain are less than this apart; `NO_WINDOW`: nothing limits it.
    mode
        One of `MODES`.
    """
    return Chains(*_furthest_chains(fits, spans, partitions, steps, within, mode))


@njit(cache=True)
def _furthest_chains(
    fits: BitArray, spans: IntArray, partitions: IntArray, steps: int, within: int, mode: int
) -> tuple[IntArray, IntArray, IntArray]:
    count = len(partitions) - 1
    reached, offsets = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    # An event is in one chain at most.
    rows = np.empty(min(len(fits), count * steps), np.int64)
    # By step: the latest start that has reached it, then where chains that have reached it end.
    work = np.zeros(64, np.int64)
    used = 0
    for partition in range(count):
        begin, end = partitions[partition], partitions[partition + 1]
        if mode == ANY_ORDER_BETWEEN and within < 0:
            furthest = _follow(fits, begin, end, steps, rows, used)
        else:
            furthest = _furthest(fits, spans, begin, end, steps, within, mode, work)
            if furthest:
                first = _earliest_start(fits, spans, begin, end, furthest, within, mode, work)
                _follow(fits, first, end, furthest, rows, used)
        used += furthest
        reached[partition] = furthest
        offsets[partition + 1] = used
    return reached, offsets, rows[:used].copy()


@subkernel
def _step_of(bit: np.uint64) -> int:
    """The number of the only bit that is set."""
    return _PLACES[np.int64((bit * _FACTOR) >> _SHIFT)]


@subkernel
def _staying(mode: int, waiting: np.uint64, fit: np.uint64) -> np.uint64:
    """Of steps that chains wait behind, those behind which they still do after an event that takes none of them on."""
    if mode == ANY_ORDER_BETWEEN:
        return waiting
    if mode == STRICT_ORDER:
        return waiting & fit
    if mode == STEPS_IN_ORDER:
        return waiting if fit == _NONE else waiting & fit
    if mode == ONCE:
        return waiting & ~fit
    return _NONE


@subkernel
def _furthest(
    fits: BitArray, spans: IntArray, begin: int, end: int, steps: int, within: int, mode: int, starts: IntArray
) -> int:
    """How many steps any chain reaches."""
    furthest = 0
    waiting = _NONE  # the steps that chains have reached last; `starts` holds the latest start of each
    for event in range(begin, end):
        fit = fits[event]
        moves = (waiting << _ONE) & fit
        still = _staying(mode, waiting & ~(moves >> _ONE), fit)
        replaced, start_before = -1, np.int64(0)
        while moves:
            bit = moves & (~moves + _ONE)
            moves ^= bit
            step = _step_of(bit)
            # From the lowest on, so the start of the step before may have been replaced just now.
            start = start_before if replaced == step - 1 else starts[step - 1]
            replaced, start_before = step, starts[step]
            if within >= 0 and spans[event] - spans[start] >= within:
                continue
            if step + 1 == steps:
                return steps
            furthest = max(furthest, step + 1)
            if not (still & bit) or start > starts[step]:
                starts[step] = start
            still |= bit
        if fit & _ONE:
            starts[0] = event
            still |= _ONE
            furthest = max(furthest, 1)
            if steps == 1:
                return 1
        waiting = still
    return furthest


@subkernel
def _earliest_start(
    fits: BitArray, spans: IntArray, begin: int, end: int, furthest: int, within: int, mode: int, ends: IntArray
) -> int:
    """The first event whose chain reaches so many steps; one does."""
    if furthest == 1:
        for event in range(begin, end):
            if fits[event] & _ONE:
                return event
    first = -1
    last = _ONE << np.uint64(furthest - 2)  # the step from which one more ends the chain
    before_last = (last << _ONE) - _ONE
    # The steps from which a chain gets to its end by the events behind this one; `ends` holds where, for each.
    ending = _NONE
    for event in range(end - 1, begin - 1, -1):
        fit = fits[event]
        if (fit & ending & _ONE) and (within < 0 or spans[ends[0]] - spans[event] < within):
            first = event
        taken_on = fit >> _ONE
        moves = taken_on & ((ending >> _ONE) | last) & before_last
        ending = _staying(mode, ending & ~taken_on, fit) | moves
        while moves:
            bit = moves & (~moves + _ONE)
            moves ^= bit
            step = _step_of(bit)
            # From the lowest on, so the end of the step behind is still that of later events.
            ends[step] = event if bit == last else ends[step + 1]
    return first


@subkernel
def _follow(fits: BitArray, begin: int, end: int, steps: int, rows: IntArray, used: int) -> int:
    """Write down the chain that takes the earliest events that it can, of so many steps at most; how many it takes."""
    taken = 0
    for event in range(begin, end):
        if (fits[event] >> np.uint64(taken)) & _ONE:
            rows[used + taken] = event
            taken += 1
            if taken == steps:
                break
    return taken
