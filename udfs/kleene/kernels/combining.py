"""Picks at the end: the choices of so many events, counted by binomials, listed when they are wanted.

Source: Behravesh et al., "Kleene num" and Algorithm 3. The paper extends the combinations of the first events one event
at a time and merges sorted lists; here a combination follows from the one before it in order. Where a pick may take
several numbers of events, a choice comes before those that it begins with if something stands behind the pick, and
behind them if nothing does, as the rows of the answer do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.collecting import Collected, sliced
from patternlake.udfs.kleene.kernels.picks import Pick
from patternlake.udfs.subkernels import subkernel


def combinations_of(matches: Collected, picks: Mapping[int, Pick]) -> list[int]:
    """How many rows each match gives.

    Parameters
    ----------
    matches
        k matches.
    picks
        For each pick how many events it takes.
    """
    counts = [1] * len(matches)
    for slot, pick in picks.items():
        lengths, kind = np.unique(np.diff(matches.lists[slot][0]), return_inverse=True)
        ways = [pick.ways(length) for length in lengths.tolist()]
        counts = [count * ways[number] for count, number in zip(counts, kind.tolist(), strict=True)]
    return counts


def total_of(matches: Collected, picks: Mapping[int, Pick]) -> int:
    """How many rows all matches give."""
    if not picks:
        return len(matches)
    if len(picks) > 1:
        return sum(combinations_of(matches, picks))
    ((slot, pick),) = picks.items()
    lengths, often = np.unique(np.diff(matches.lists[slot][0]), return_counts=True)
    return sum(pick.ways(length) * times for length, times in zip(lengths.tolist(), often.tolist(), strict=True))


def listed(matches: Collected, picks: Mapping[int, Pick], positions: IntArray, limit: int | None = None) -> Collected:
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
    chosen: dict[int, tuple[IntArray, IntArray]] = {}
    for slot, pick in picks.items():
        offsets, events = matches.lists[slot]
        lengths, kind = np.unique(np.diff(offsets), return_inverse=True)
        counts = [pick.ways(length) for length in lengths.tolist()]
        most = [count if limit is None else min(count, limit) for count in counts]
        ways = np.array(most, np.int64)[kind][begun]
        if limit is not None:
            before = np.cumsum(ways) - ways
            first = np.searchsorted(begun, begun)
            ways = np.where(before - before[first] < limit, ways, 0)
        rows = np.repeat(np.arange(len(begun)), ways).astype(np.int64)
        chosen = {other: sliced(*taken, rows) for other, taken in chosen.items()}
        low, high = offsets[begun], offsets[begun + 1]
        greatest = int(max(lengths, default=0)) if pick.most is None else pick.most
        chosen[slot] = _choices(low, high, events, pick.least, greatest, pick.last, ways, positions)
        begun = begun[rows]
    # The list that a pick chooses from is as long as its part: it is never copied for each of its combinations.
    lists = {slot: sliced(*found, begun) for slot, found in matches.lists.items() if slot not in picks}
    lists |= chosen
    return Collected(matches.part[begun], {slot: events[begun] for slot, events in matches.ones.items()}, lists)


@njit(cache=True)
def _choices(
    low: IntArray,
    high: IntArray,
    events: IntArray,
    least: int,
    most: int,
    last: bool,
    ways: IntArray,
    positions: IntArray,
) -> tuple[IntArray, IntArray]:
    """(int64[sum of ways + 1], int64[e]): the first choices of `least` to `most` events of each list, as offsets and
    events, in the order of their positions; a choice before those that it begins with only where `last`.

    That is the order of a walk through the tree of choices, in which each one leads to those with one event more: it
    is met on the way down, and left on the way back.
    """
    # Where all have as many events, that is the room that they need.
    offsets, found = np.zeros(ways.sum() + 1, np.int64), np.empty(max(1024, ways.sum() * least), np.int64)
    row, used = 0, 0
    for number in range(len(ways)):
        begin, length = low[number], high[number] - low[number]
        if ways[number] == 0:
            continue
        # A late event has a lower position than events before it: then places do not rise with positions.
        order = np.argsort(positions[events[begin : begin + length]])
        rank = np.empty(length, np.int64)
        rank[order] = np.arange(length)
        late = bool((order[1:] < order[:-1]).any())
        places = np.empty(length + 1, np.int64)
        wanted = row + ways[number]
        size, entering = 0, True
        while row < wanted:
            if size >= least and entering == last:
                while used + size > len(found):
                    found = np.concatenate((found, np.empty(len(found), np.int64)))
                for at in range(size):
                    found[used + at] = events[begin + places[at]]
                used += size
                row += 1
                offsets[row] = used
            place = -1
            if entering and size < most:
                # Enough must be left for the choice to have its least number.
                room = length - max(least - size, 1)
                place = _next_place(order, late, places[size - 1] if size else -1, -1, room)
                if place >= 0:
                    places[size] = place
                    size += 1
                    continue
            if entering:
                entering = False
                continue
            if size == 0:
                break
            size -= 1
            before = places[size - 1] if size else -1
            place = _next_place(order, late, before, rank[places[size]], length - max(least - size, 1))
            if place >= 0:
                places[size] = place
                size += 1
                entering = True
    return offsets, found if used == len(found) else found[:used].copy()


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
