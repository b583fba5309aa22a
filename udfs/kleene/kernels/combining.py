"""``[n]`` at the end: the combinations of n events, counted by binomials, listed when they are wanted.

Source: Behravesh et al., "Kleene num" and Algorithm 3. The paper extends the combinations of the first events one event
at a time and merges sorted lists; here a combination follows from the one before it in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.collecting import Collected, sliced
from patternlake.udfs.subkernels import subkernel


def combinations_of(matches: Collected, picks: Mapping[int, int]) -> list[int]:
    """How many rows each match gives.

    Parameters
    ----------
    matches
        k matches.
    picks
        For each pick how many events it takes.
    """
    counts = [1] * len(matches)
    for slot, size in picks.items():
        lengths, kind = np.unique(np.diff(matches.lists[slot][0]), return_inverse=True)
        ways = [comb(length, size) for length in lengths.tolist()]
        counts = [count * ways[number] for count, number in zip(counts, kind.tolist(), strict=True)]
    return counts


def total_of(matches: Collected, picks: Mapping[int, int]) -> int:
    """How many rows all matches give."""
    if not picks:
        return len(matches)
    if len(picks) > 1:
        return sum(combinations_of(matches, picks))
    ((slot, size),) = picks.items()
    lengths, often = np.unique(np.diff(matches.lists[slot][0]), return_counts=True)
    return sum(comb(length, size) * times for length, times in zip(lengths.tolist(), often.tolist(), strict=True))


def listed(matches: Collected, picks: Mapping[int, int], positions: IntArray, limit: int | None = None) -> Collected:
    """The matches with every combination a row of its own; each pick then takes all of its list.

    Parameters
    ----------
    matches, picks
        As above.
    positions
        int64[m]: positions of all events of the stream.
    limit
        Of each match so many rows at most, the first ones in order; None: all.
    """
    begun = np.arange(len(matches), dtype=np.int64)
    chosen: dict[int, IntArray] = {}
    for slot, size in picks.items():
        offsets, events = matches.lists[slot]
        lengths, kind = np.unique(np.diff(offsets), return_inverse=True)
        most = [comb(length, size) if limit is None else min(comb(length, size), limit) for length in lengths.tolist()]
        ways = np.array(most, np.int64)[kind][begun]
        if limit is not None:
            before = np.cumsum(ways) - ways
            first = np.searchsorted(begun, begun)
            ways = np.where(before - before[first] < limit, ways, 0)
        rows = np.repeat(np.arange(len(begun)), ways).astype(np.int64)
        chosen = {other: taken[rows] for other, taken in chosen.items()}
        chosen[slot] = _combinations(offsets[begun], offsets[begun + 1], events, size, ways, positions)
        begun = begun[rows]
    # The list that a pick chooses from is as long as its part: it is never copied for each of its combinations.
    lists = {slot: sliced(*found, begun) for slot, found in matches.lists.items() if slot not in picks}
    for slot, size in picks.items():
        lists[slot] = (np.arange(len(begun) + 1, dtype=np.int64) * size, chosen[slot].ravel())
    return Collected(matches.part[begun], {slot: events[begun] for slot, events in matches.ones.items()}, lists)


@njit(cache=True)
def _combinations(
    low: IntArray, high: IntArray, events: IntArray, size: int, ways: IntArray, positions: IntArray
) -> IntArray:
    """int64[sum of ways, size]: the first combinations of each list, in the order of their positions."""
    found = np.empty((ways.sum(), size), np.int64)
    places = np.empty(size, np.int64)
    row = 0
    for number in range(len(ways)):
        begin, length = low[number], high[number] - low[number]
        if ways[number] == 0:
            continue
        # A late event has a lower position than events before it: then places do not rise with positions.
        order = np.argsort(positions[events[begin : begin + length]])
        rank = np.empty(length, np.int64)
        rank[order] = np.arange(length)
        late = bool((order[1:] < order[:-1]).any())
        for at in range(size):
            places[at] = _next_place(order, late, places[at - 1] if at else -1, -1, length - size + at)
        for _ in range(ways[number]):
            for at in range(size):
                found[row, at] = events[begin + places[at]]
            row += 1
            at, place = size, -1
            while place < 0 and at > 0:
                at -= 1
                before = places[at - 1] if at else -1
                place = _next_place(order, late, before, rank[places[at]], length - size + at)
            if place < 0:
                break
            places[at] = place
            for behind in range(at + 1, size):
                places[behind] = _next_place(order, late, places[behind - 1], -1, length - size + behind)
    return found


@subkernel
def _next_place(order: IntArray, late: bool, before: int, rank: int, last: int) -> int:
    """The place with the next position above that of `rank`, behind place `before` and up to `last`; -1 for none."""
    if not late:
        place = max(before, rank) + 1
        return place if place <= last else -1
    for at in range(rank + 1, len(order)):
        if before < order[at] <= last:
            return int(order[at])
    return -1
