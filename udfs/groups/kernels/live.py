"""Live starts and their best products: where a match may still come from, and where one ends.

Source: SPEC section 4. An interval has a match if its best product passes the threshold (Viterbi), so no match is ever
listed. Products are kept as logarithms: a threshold of 0 asks whether a match can be reached at all, however small its
probability. Probabilities are 1 at most, so what has fallen below the threshold never rises again and is forgotten.
"""

from __future__ import annotations

from math import inf, log, log1p
from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, SmallArray
from patternlake.udfs.groups.kernels.steps import Steps, rest_of
from patternlake.udfs.groups.query import GroupQuery

SLACK = 1e-9
"""By which share a product may miss the threshold."""
_FAR = 2**62


class Plan(NamedTuple):
    """A query as the kernels take it.

    Attributes
    ----------
    symbol
        int32[positions]: their letters.
    first
        int32[]: positions that matches begin with.
    before_offset, before
        int64[positions + 1], int32[]: for each position those that it may follow.
    last
        bool[positions]: matches may end here.
    least_more
        int64[positions]: the fewest events (1 or more) that may follow.
    member
        bool[classes, letters].
    limit
        Logarithm of the least product; -inf for a threshold of 0.
    window
        The most steps that a match takes.
    single
        Whether groups hang together by single overlaps.
    bridged
        So many missing steps a match may pass over, at most.
    """

    symbol: SmallArray
    first: SmallArray
    before_offset: IntArray
    before: SmallArray
    last: BoolArray
    least_more: IntArray
    member: BoolArray
    limit: float
    window: int
    single: bool
    bridged: int


class Live(NamedTuple):
    """Live starts of one key; how many there are is counted beside.

    Attributes
    ----------
    start
        int64[m]: ascending.
    best
        float64[m, positions]: logarithm of the best product of a run that began there and is at the position.
    ended
        int64[m]: the starts of the matches that end with the step, ascending.
    weight
        float64[letters]: logarithm of the probability of each letter in the step.
    next_best
        float64[positions].
    """

    start: IntArray
    best: FloatArray
    ended: IntArray
    weight: FloatArray
    next_best: FloatArray


def plan_of(query: GroupQuery) -> Plan:
    """A query as the kernels take it."""
    positions = query.positions
    before: list[list[int]] = [[] for _ in positions.symbol]
    for position, after in enumerate(positions.follow):
        for other in after:
            before[other].append(position)
    threshold = query.threshold
    # No match is longer than the longest, and nothing is to be kept for one.
    window = int(min(query.within, positions.longest, _FAR - 1))
    return Plan(
        symbol=np.array(positions.symbol, np.int32),
        first=np.array(positions.first, np.int32),
        before_offset=np.cumsum([0, *map(len, before)], dtype=np.int64),
        before=np.array([other for part in before for other in part], np.int32),
        last=np.array(positions.last, np.bool_),
        least_more=np.array([_FAR if more == inf else int(more) for more in positions.least_more], np.int64),
        member=query.alphabet.member,
        limit=log(threshold) + log1p(-SLACK) if threshold > 0 else -inf,
        window=window,
        single=query.overlap == "single",
        # Before and behind them stands a step with events.
        bridged=max(0, window - 2) if query.alphabet.member[0].any() else 0,
    )


def live_workspace(plan: Plan, most: int) -> Live:
    """Workspace for `most` live starts."""
    positions = len(plan.symbol)
    return Live(
        np.empty(most, np.int64),
        np.empty((most, positions)),
        np.empty(most, np.int64),
        np.empty(plan.member.shape[1]),
        np.empty(positions),
    )


@njit(cache=True, inline="always")
def weigh(plan: Plan, live: Live, steps: Steps, at: int) -> None:
    """The letters' weights in a step."""
    other = rest_of(steps, at)
    for symbol in range(len(live.weight)):
        chance = other if plan.member[0, symbol] else 0.0
        for choice in range(steps.offset[at], steps.offset[at + 1]):
            if plan.member[steps.class_[choice], symbol]:
                chance += steps.probability[choice]
        live.weight[symbol] = min(np.log(chance), 0.0) if chance > 0.0 else -np.inf


@njit(cache=True, inline="always")
def grow(plan: Plan, live: Live, count: int, step: int) -> tuple[int, int]:
    """Take all live starts through a step whose symbols are weighed, and begin a new one with it.

    Parameters
    ----------
    plan, live, count
        The live starts before the step.
    step
        The step, directly behind the one before where there are live starts.

    Returns
    -------
    (int, int)
        How many are live behind the step, and how many matches end with it (`Live.ended`).
    """
    kept = ended = 0
    best, upcoming = live.best, live.next_best
    for one in range(count + 1):
        begins = one == count
        start = step if begins else live.start[one]
        age = step - start + 1
        alive = matched = False
        if begins:
            for position in range(len(upcoming)):
                upcoming[position] = -np.inf
            for position in plan.first:
                upcoming[position] = live.weight[plan.symbol[position]]
        else:
            for position in range(len(upcoming)):
                weight = live.weight[plan.symbol[position]]
                value = -np.inf
                if weight > -np.inf:
                    for place in range(plan.before_offset[position], plan.before_offset[position + 1]):
                        value = max(value, best[one, plan.before[place]])
                    value += weight
                upcoming[position] = value
        for position in range(len(upcoming)):
            value = upcoming[position]
            if value == -np.inf or value < plan.limit:
                best[kept, position] = -np.inf
                continue
            matched = matched or plan.last[position]
            if age + plan.least_more[position] > plan.window:
                best[kept, position] = -np.inf
            else:
                best[kept, position] = value
                alive = True
        if matched:
            live.ended[ended] = start
            ended += 1
        if alive:
            live.start[kept] = start
            kept += 1
    return kept, ended
