"""The most probable matches inside groups, by dynamic programming: none but these is ever written down.

For each start the best words are carried from step to step, at most so many for each state of the automaton of words
(k-best Viterbi): whatever is among the best of all has only such beginnings. Products never rise, so a word that is not
better than the worst of the best is dropped at once.

Source: Sugiura et al. 2015, Fig. 2; SPEC section 4 for what a match and a group are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, SmallArray
from patternlake.udfs.groups.kernels.steps import Steps, rest_of
from patternlake.udfs.groups.words import Words
from patternlake.udfs.subkernels import resized


class Bounds(NamedTuple):
    """Groups, g of them.

    Attributes
    ----------
    key
        int64[g]: places of their keys in the steps.
    t_start, t_first, t_end
        int64[g].
    """

    key: IntArray
    t_start: IntArray
    t_first: IntArray
    t_end: IntArray


class Members(NamedTuple):
    """Matches, m of them, by group; of a group the most probable first, of equal ones the earlier first.

    Attributes
    ----------
    group
        int64[m]: number of the group.
    start
        int64[m]: first step.
    probability
        float64[m].
    offset, letter
        int64[m + 1], int32[…]: match j takes ``letter[offset[j]:offset[j + 1]]``, one for each step from its start on.
    """

    group: IntArray
    start: IntArray
    probability: FloatArray
    offset: IntArray
    letter: SmallArray


@njit(cache=True)
def best_members(
    words: Words, member: BoolArray, steps: Steps, bounds: Bounds, limit: float, window: int, single: bool, best: int
) -> Members:
    """The best matches of each group.

    Parameters
    ----------
    words
        The automaton of the pattern's words.
    member
        bool[classes, letters].
    steps
        Of all keys; those of a group follow one another without gaps.
    bounds
        The groups.
    limit
        Logarithm of the least product; -inf: any that can be reached.
    window
        The most steps of a match.
    single
        Whether a group's matches are all inside its bounds, or those that hold its earliest end.
    best
        How many of each group, at most.

    Notes
    -----
    O(starts · w · states · letters · best) for a group in time, where little is dropped.
    """
    groups, letters, states = len(bounds.key), words.to.shape[1], len(words.to)
    group, start = np.empty(groups * best, np.int64), np.empty(groups * best, np.int64)
    probability = np.empty(groups * best)
    offset, letter = np.zeros(groups * best + 1, np.int64), np.empty(1024, np.int32)
    found = 0
    # Of each state the best words of a step: how many, product, the word before, last letter.
    held, touched = np.zeros(states, np.int64), np.empty(states, np.int64)
    product, before, last = (
        np.empty((states, best)),
        np.empty((states, best), np.int64),
        np.empty((states, best), np.int32),
    )
    # All words of a start, each as a product, a state, the word without its last letter, and this.
    value, state = np.empty(1024), np.empty(1024, np.int64)
    parent, taken = np.empty(1024, np.int64), np.empty(1024, np.int32)
    top, top_start, top_size = np.empty(best), np.empty(best, np.int64), np.empty(best, np.int64)
    for one in range(groups):
        key, size = bounds.key[one], bounds.t_end[one] - bounds.t_start[one] + 1
        low, high = steps.key_offset[key], steps.key_offset[key + 1]
        place = low + np.searchsorted(steps.step[low:high], bounds.t_start[one])
        chance, weight = _chances(member, steps, place, size)
        longest = min(window, size)
        word = np.empty((best, longest), np.int32)
        anchor = bounds.t_first[one] - bounds.t_start[one]
        count = 0
        for first in range(size if single else anchor + 1):
            value[0], state[0], parent[0] = 0.0, 0, -1
            lower, upper = 0, 1
            for at in range(first, min(size, first + window)):
                touches = 0
                for node in range(lower, upper):
                    for number in range(letters):
                        target = words.to[state[node], number]
                        if target < 0 or weight[at, number] == -np.inf:
                            continue
                        total = value[node] + weight[at, number]
                        if total < limit or (count == best and total <= top[best - 1]):
                            continue
                        mine = held[target]
                        if mine == best and total <= product[target, best - 1]:
                            continue
                        if mine == 0:
                            touched[touches] = target
                            touches += 1
                        if mine < best:
                            mine += 1
                            held[target] = mine
                        rank = mine - 1
                        while rank > 0 and product[target, rank - 1] < total:
                            product[target, rank] = product[target, rank - 1]
                            before[target, rank] = before[target, rank - 1]
                            last[target, rank] = last[target, rank - 1]
                            rank -= 1
                        product[target, rank], before[target, rank], last[target, rank] = total, node, number
                lower = upper
                length = at - first + 1
                for touch in range(touches):
                    target = touched[touch]
                    dead = length + words.least_more[target] > window
                    for rank in range(held[target]):
                        total = product[target, rank]
                        ends = words.accepts[target] and (single or at >= anchor)
                        if ends and (count < best or total > top[best - 1]):
                            count = min(count + 1, best)
                            into = _inserted(top, top_start, top_size, word, count - 1, total)
                            top[into], top_start[into], top_size[into] = total, first, length
                            word[into, length - 1] = last[target, rank]
                            node = before[target, rank]
                            for back in range(length - 2, -1, -1):
                                word[into, back] = taken[node]
                                node = parent[node]
                        if dead:
                            continue
                        if upper == len(value):
                            value, state = resized(value, 2 * len(value)), resized(state, 2 * len(state))
                            parent, taken = resized(parent, 2 * len(parent)), resized(taken, 2 * len(taken))
                        value[upper], state[upper] = total, target
                        parent[upper], taken[upper] = before[target, rank], last[target, rank]
                        upper += 1
                    held[target] = 0
                if lower == upper:
                    break
        for rank in range(count):
            length = top_size[rank]
            while offset[found] + length > len(letter):
                letter = resized(letter, 2 * len(letter))
            total = 1.0
            for at in range(length):
                number = word[rank, at]
                letter[offset[found] + at] = number
                total *= chance[top_start[rank] + at, number]
            group[found], start[found] = one, bounds.t_start[one] + top_start[rank]
            probability[found] = total
            offset[found + 1] = offset[found] + length
            found += 1
    return Members(
        group[:found].copy(), start[:found].copy(), probability[:found].copy(), offset[: found + 1].copy(),
        letter[: offset[found]].copy(),
    )  # fmt: skip


@njit(cache=True)
def _chances(member: BoolArray, steps: Steps, place: int, size: int) -> tuple[FloatArray, FloatArray]:
    """The probability of each letter in some steps, and its logarithm: float64[size, letters] each."""
    letters = member.shape[1]
    chance, weight = np.zeros((size, letters)), np.full((size, letters), -np.inf)
    for at in range(size):
        other = rest_of(steps, place + at)
        for number in range(letters):
            total = other if member[0, number] else 0.0
            for choice in range(steps.offset[place + at], steps.offset[place + at + 1]):
                if member[steps.class_[choice], number]:
                    total += steps.probability[choice]
            chance[at, number] = min(total, 1.0)
            if total > 0.0:
                weight[at, number] = min(np.log(total), 0.0)
    return chance, weight


@njit(cache=True)
def _inserted(
    top: FloatArray, top_start: IntArray, top_size: IntArray, word: SmallArray, last: int, total: float
) -> int:
    """Make room for a product among the best ones, of which that at `last` may be overwritten; its place."""
    into = last
    while into > 0 and top[into - 1] < total:
        top[into], top_start[into], top_size[into] = top[into - 1], top_start[into - 1], top_size[into - 1]
        word[into, : top_size[into]] = word[into - 1, : top_size[into]]
        into -= 1
    return into
