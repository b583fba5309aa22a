"""Trends picked one by one by their numbers, of any size: each is found without those before it.

The numbers of trends that lead on from each event are known exactly, in limbs (`remainders`). A pick walks from a start
to an end, and passes over what its number leaves behind.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, LaneArray, SmallArray
from patternlake.udfs.trends.kernels.extraction import Batch, Followers
from patternlake.udfs.trends.kernels.followers import followers_of, most_followers
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.role_sweep import following, most_following
from patternlake.udfs.trends.kernels.roles import Automaton

_NOUGHT = np.uint64(0)
_ONE = np.uint64(1)


def pick(
    followers: Followers, row: IntArray, cell: IntArray, starts: BoolArray, ends: BoolArray, length: SmallArray,
    completions: LaneArray, wanted: IntArray, numbers: LaneArray,
) -> Batch:  # fmt: skip
    """The trends of some numbers.

    Parameters
    ----------
    followers, row, cell, starts, ends, length
        As of `extraction.extract`.
    completions
        uint64[s, limbs]: the trends that lead on from each row (or state) of the cells that are wanted.
    wanted
        int64[m]: of which cell each is.
    numbers
        uint64[m, limbs]: its number among the trends of the cell, from 0, below how many they are.
    """
    begins = np.flatnonzero(starts & (length > 0))
    first, last = (np.searchsorted(cell[begins], wanted, side) for side in ("left", "right"))
    none = np.zeros(0, np.int64)
    listed = len(followers.offsets) > 0
    offsets, rows = _pick(
        followers.graph, followers.automaton, followers.offsets if listed else none, followers.targets, begins,
        first.astype(np.int64), last.astype(np.int64), row, ends, length, completions, numbers,
    )  # fmt: skip
    return Batch(wanted, offsets, rows)


@njit(cache=True)
def _passes(rest: LaneArray, by: LaneArray) -> bool:
    """Take one number from another where it is not greater; whether it was taken."""
    limbs = len(rest)
    for at in range(limbs):
        limb = limbs - 1 - at
        if rest[limb] != by[limb]:
            if rest[limb] < by[limb]:
                return False
            break
    borrow = _NOUGHT
    for limb in range(limbs):
        less = by[limb] + borrow
        # Where the sum wraps, all 64 bits are borrowed, and nothing is taken from the limb.
        wraps = less < borrow
        borrow = _ONE if wraps or rest[limb] < less else _NOUGHT
        rest[limb] = rest[limb] - less
    return True


@njit(cache=True)
def _pick(
    graph: Graph, automaton: Automaton, listed_offsets: IntArray, listed: SmallArray, begins: IntArray, first: IntArray,
    last: IntArray, row: IntArray, ends: BoolArray, length: SmallArray, completions: LaneArray, numbers: LaneArray,
) -> tuple[IntArray, SmallArray]:  # fmt: skip
    of_states = len(automaton.of) > 0
    offsets = np.zeros(len(numbers) + 1, np.int64)
    rows, after = np.empty(1024, np.int32), np.empty(1024, np.int32)
    one = np.zeros(numbers.shape[1], np.uint64)
    one[0] = _ONE
    written = 0
    for number in range(len(numbers)):
        rest = numbers[number].copy()
        at = first[number]
        while at < last[number] and _passes(rest, completions[begins[at]]):
            at += 1
        node = begins[at]
        while True:
            if written == len(rows):
                longer = np.empty(2 * written, np.int32)
                longer[:written] = rows
                rows = longer
            rows[written] = row[node]
            written += 1
            if ends[node] and not _passes(rest, one):
                break
            # Numbers get smaller along a trend: limbs that are not needed any more are left out.
            used = len(rest)
            while used > 1 and completions[node, used - 1] == _NOUGHT:
                used -= 1
            rest = rest[:used]
            if len(listed_offsets):
                after, low, high = listed, listed_offsets[node], listed_offsets[node + 1]
            else:
                most = most_following(graph, automaton, node) if of_states else most_followers(graph, node)
                if most > len(after):
                    after = np.empty(2 * most, np.int32)
                low = 0
                if of_states:
                    high = following(graph, automaton, node, length, after, 0)
                else:
                    high = followers_of(graph, node, length, after, 0)
            while low < high and _passes(rest, completions[after[low], :used]):
                low += 1
            node = after[low]
        offsets[number + 1] = written
    return offsets, rows[:written].copy()
