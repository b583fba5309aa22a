"""What ``+`` and ``*`` operands collect around given plain events, where no condition ties two of them together.

Source: SPEC section 3 (rule M) and Behravesh et al., Algorithms 1 and 2. Neighbouring groups without a plain event
between them are a **run**. Inside a run a group begins with the first event behind the last kept one, and collects up
to a cut; rule M allows exactly those cuts behind which the next kept event comes no later than anything that could
still be added. Where both ends of a linearization are groups and there is a window, the first event settles how far it
reaches, and a match is complete if the window of the latest event that could stand before it ends too early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.comparisons import Comparisons, holds
from patternlake.udfs.subkernels import subkernel

NEVER = 1 << 62
"""Stands for "no such event"."""

WHOLE, CUT, FULL, OPEN = range(4)
"""What has cut the matches of a row: nothing, their number, or their size. `OPEN`: its first ones are not known."""


class Chains(NamedTuple):
    """Conditions between neighbours of a group.

    Attributes
    ----------
    offsets
        int64[g + 1]: group k has the comparisons ``offsets[k]:offsets[k + 1]``.
    comparisons
        Of the later event, on the left, and the earlier one.
    judged
        bool[g]: the group has conditions of other forms too, judged for all pairs of its candidates.
    pair_offsets
        int64[g, r]: where in `pairs` those of a row begin, candidate by candidate.
    pairs
        bool[p]: for each earlier candidate, whether each other may follow it.
    """

    offsets: IntArray
    comparisons: Comparisons
    judged: BoolArray
    pair_offsets: IntArray
    pairs: BoolArray


class Candidates(NamedTuple):
    """What the groups of a linearization may collect, and what lies around them.

    Attributes
    ----------
    offsets
        int64[g, r + 1]: group k of row i has the events ``events[offsets[k, i]:offsets[k, i + 1]]``, in order.
    events
        int64[c].
    least
        int64[g]: 0 for ``*``, 1 for ``+``.
    runs
        int64[n, 2]: groups of each run, as a half-open range.
    low, high
        int64[r]: first and last plain event of each row; ignored where a linearization has none.
    coupled
        True where both ends of the linearization are groups and there is a window.
    bare
        True where the linearization has no plain operand.
    open_end
        True where the linearization ends with a group.
    begin, end
        First events that are wanted, where the linearization is bare and coupled.
    operands
        int64[g]: number of the operand of each group.
    """

    offsets: IntArray
    events: IntArray
    least: IntArray
    runs: IntArray
    low: IntArray
    high: IntArray
    coupled: bool
    bare: bool
    open_end: bool
    begin: int
    end: int
    operands: IntArray


@njit(cache=True)
def collect(
    given: Candidates,
    chains: Chains,
    reach: IntArray,
    from_row: int,
    most: int,
    capacity: int,
    at_once: int,
    first: bool,
) -> tuple[IntArray, IntArray, IntArray, int, int]:
    """The matches of some rows, those of one row in no order that counts.

    Parameters
    ----------
    given, chains
        As above.
    reach
        int64[m]: `Stream.reach`.
    from_row
        The first row.
    most, capacity
        One row gives so many matches, with so many events together, at most.
    at_once
        The row at which the matches have so many events together is the last one.
    first
        Of a row that is cut the first matches are wanted, not just any.

    Returns
    -------
    (int64[k], int64[k·g + 1], int64[e], row, cut)
        The row of each match; offsets of the events of each match and group; the events; the row to go on with; what
        has cut a row's matches: `WHOLE`, `CUT` by `most`, or `FULL` by `capacity`, which ends the work; or `OPEN`: the
        row to go on with is one whose matches `first_ways.collect` must find.
    """
    groups, rows = given.offsets.shape[0], given.offsets.shape[1] - 1
    row_of, offsets, kept = np.empty(1024, np.int64), np.zeros(1025, np.int64), np.empty(1024, np.int64)
    found = 0
    runs = len(given.runs)
    chosen = np.empty(runs, np.int64)
    begins, ends, musts = np.zeros(runs, np.int64), np.full(runs, NEVER, np.int64), np.full(runs, -1, np.int64)
    cut, row = WHOLE, from_row
    while row < rows and cut != FULL and offsets[found * groups] < at_once:
        before, earlier, cut = found, cut, WHOLE
        solved = [_nothing(given.runs[run, 1] - given.runs[run, 0]) for run in range(runs)]
        starts = starts_of(given, row) if given.coupled else np.full(1, -1, np.int64)
        for run in range(runs):
            if not given.coupled or 0 < run < runs - 1:
                solved[run] = _of_run(given, chains, row, run, begins[run], ends[run], musts[run], most, capacity)
                cut = max(cut, solved[run][2])
        for start in starts:
            if found - before == most or cut == FULL:
                cut = max(cut, CUT)
                break
            if given.coupled:
                empty_front = not given.bare and start == given.low[row]
                begins[0] = musts[0] = start
                ends[runs - 1] = reach[start]
                for run in range(0, runs, max(runs - 1, 1)):
                    if run == 0 and runs > 1 and empty_front:
                        solved[0] = _nothing(given.runs[0, 1] - given.runs[0, 0])
                    else:
                        solved[run] = _of_run(
                            given, chains, row, run, begins[run], ends[run], musts[run], most, capacity
                        )
                cut = max(cut, solved[0][2], solved[runs - 1][2])
            combinations = 1
            for run in range(runs):
                count = (len(solved[run][0]) - 1) // (given.runs[run, 1] - given.runs[run, 0])
                combinations = NEVER if count and combinations > NEVER // count else combinations * count
            for number in range(combinations):
                if found - before == most or cut == FULL:
                    cut = max(cut, CUT)
                    break
                if given.coupled and not _complete(given, row, start, number, solved, reach):
                    continue
                size = 0
                rest = number
                for run in range(runs - 1, -1, -1):
                    width = given.runs[run, 1] - given.runs[run, 0]
                    count = (len(solved[run][0]) - 1) // width
                    at = rest % count
                    chosen[run] = at
                    rest //= count
                    size += solved[run][0][(at + 1) * width] - solved[run][0][at * width]
                if given.bare and size == 0:
                    continue
                if found == len(row_of):
                    row_of = np.concatenate((row_of, np.empty(found, np.int64)))
                while (found + 1) * groups + 1 > len(offsets):
                    offsets = np.concatenate((offsets, np.empty(len(offsets), np.int64)))
                used = offsets[found * groups]
                if used + size - offsets[before * groups] > capacity:
                    cut = FULL
                    break
                while used + size > len(kept):
                    kept = np.concatenate((kept, np.empty(len(kept), np.int64)))
                for run in range(runs):
                    width, at = given.runs[run, 1] - given.runs[run, 0], chosen[run]
                    for inner in range(width):
                        low, high = solved[run][0][at * width + inner], solved[run][0][at * width + inner + 1]
                        kept[used : used + high - low] = solved[run][1][low:high]
                        used += high - low
                        offsets[found * groups + given.runs[run, 0] + inner + 1] = used
                row_of[found] = row
                found += 1
        # What one run was cut at may be all that fits the window of another.
        if (first and cut != WHOLE) or (cut == CUT and found - before < most):
            found, cut = before, OPEN
            break
        cut = max(cut, earlier)
        row += 1
    size = offsets[found * groups]
    return row_of[:found].copy(), offsets[: found * groups + 1].copy(), kept[:size].copy(), row, cut


@njit(cache=True)
def neighbours(given: Candidates, chains: Chains, group: int) -> tuple[IntArray, IntArray]:
    """The candidates of a group that are kept one after another, where it has a run of its own and nothing is coupled.

    Returns
    -------
    (int64[r + 1], int64[e])
        Offsets by row, and events.
    """
    rows = given.offsets.shape[1] - 1
    offsets = np.zeros(rows + 1, np.int64)
    kept = np.empty(given.offsets[group, rows] - given.offsets[group, 0], np.int64)
    used = 0
    for row in range(rows):
        low, high = given.offsets[group, row], given.offsets[group, row + 1]
        at = low
        for place in range(low, high):
            if place == low or follows(chains, group, row, low, high - low, at, place, given.events):
                at = place
                kept[used] = given.events[place]
                used += 1
        offsets[row + 1] = used
    return offsets, kept[:used].copy()


@subkernel
def _nothing(width: int) -> tuple[IntArray, IntArray, int]:
    """One solution of a run in which no group collects anything."""
    return np.zeros(width + 1, np.int64), np.empty(0, np.int64), WHOLE


@subkernel
def starts_of(given: Candidates, row: int) -> IntArray:
    """The first events that a match of a row may have, where both ends are groups."""
    size = 0
    for group in range(given.runs[0, 0], given.runs[0, 1]):
        size += given.offsets[group, row + 1] - given.offsets[group, row]
    starts = np.empty(size + 1, np.int64)
    size = 0
    optional = True
    for group in range(given.runs[0, 0], given.runs[0, 1]):
        optional = optional and given.least[group] == 0
        for place in range(given.offsets[group, row], given.offsets[group, row + 1]):
            event = given.events[place]
            if not given.bare or given.begin <= event < given.end:
                starts[size] = event
                size += 1
    if optional and not given.bare:
        starts[size] = given.low[row]
        size += 1
    return np.unique(starts[:size])


@subkernel
def _complete(
    given: Candidates, row: int, start: int, number: int, solved: list[tuple[IntArray, IntArray, int]], reach: IntArray
) -> bool:
    """Whether nothing can be added before the first event without leaving the window."""
    runs = len(given.runs)
    rest = number
    last = -1 if given.bare else given.high[row]
    width = given.runs[0, 1] - given.runs[0, 0]
    foremost = width - 1
    for run in range(runs - 1, -1, -1):
        inside = given.runs[run, 1] - given.runs[run, 0]
        count = (len(solved[run][0]) - 1) // inside
        at = rest % count
        rest //= count
        low, high = solved[run][0][at * inside], solved[run][0][(at + 1) * inside]
        if run == runs - 1 and high > low:
            last = solved[run][1][high - 1]
        if run == 0:
            for inner in range(inside):
                if solved[0][0][at * inside + inner + 1] > solved[0][0][at * inside + inner]:
                    foremost = inner
                    break
    for group in range(given.runs[0, 0], given.runs[0, 0] + foremost + 1):
        low, high = given.offsets[group, row], given.offsets[group, row + 1]
        place = low + np.searchsorted(given.events[low:high], start)
        if place > low and last < reach[given.events[place - 1]]:
            return False
    return True


@subkernel
def follows(
    chains: Chains, group: int, row: int, begin: int, size: int, earlier: int, later: int, events: IntArray
) -> bool:
    """Whether a candidate may be the next one kept after another; both by their place in `events`."""
    for number in range(chains.offsets[group], chains.offsets[group + 1]):
        if not holds(chains.comparisons, number, events[later], events[earlier]):
            return False
    if chains.judged[group]:
        return bool(chains.pairs[chains.pair_offsets[group, row] + (earlier - begin) * size + later - begin])
    return True


@subkernel
def _of_run(
    given: Candidates, chains: Chains, row: int, run: int, start: int, stop: int, must: int, most: int, capacity: int
) -> tuple[IntArray, IntArray, int]:
    """What the groups of a run may collect between `start` (inclusive) and `stop` (exclusive), in no order that counts.

    Where `must` is not negative, the run begins with that event. Returns offsets for each solution and group, events,
    and what has cut them: there are `most` solutions, with `capacity` events, at most.
    """
    base, width = given.runs[run, 0], given.runs[run, 1] - given.runs[run, 0]
    longest = 1
    for group in range(base, base + width):
        inside = given.events[given.offsets[group, row] : given.offsets[group, row + 1]]
        longest = max(longest, int(np.searchsorted(inside, stop)) - int(np.searchsorted(inside, start)))
    path = np.empty((width, longest), np.int64)
    length = np.zeros(width, np.int64)
    taken = np.zeros(width, np.int64)
    first = np.zeros(width, np.int64)
    last = np.empty(width + 1, np.int64)
    addable = np.empty(width + 1, np.int64)
    begun = np.zeros(width + 1, np.bool_)
    offsets, kept = np.zeros(4 * width + 1, np.int64), np.empty(longest * width, np.int64)
    found, used, cut = 0, 0, WHOLE
    depth = 0
    last[0], addable[0] = start - 1, NEVER
    entering = True
    while depth >= 0:
        group = base + depth
        if entering:
            entering = False
            low, high = given.offsets[group, row], given.offsets[group, row + 1]
            place = low + np.searchsorted(given.events[low:high], last[depth] + 1)
            exists = place < high and given.events[place] < stop
            first[depth] = given.events[place] if exists else NEVER
            length[depth] = 0
            fits = must < 0 or begun[depth] or first[depth] == must
            if exists and first[depth] <= addable[depth] and fits:
                at = place
                path[depth, 0] = at
                length[depth] = 1
                for later in range(place + 1, high):
                    if given.events[later] >= stop:
                        break
                    if follows(chains, group, row, low, high - low, at, later, given.events):
                        at = later
                        path[depth, length[depth]] = at
                        length[depth] += 1
            taken[depth] = -1
        taken[depth] += 1
        count = taken[depth]
        if count == 0:
            if given.least[group] > 0:
                continue
            after, open_event = last[depth], min(addable[depth], first[depth])
        elif count <= length[depth]:
            after = given.events[path[depth, count - 1]]
            open_event = given.events[path[depth, count]] if count < length[depth] else NEVER
        else:
            depth -= 1
            continue
        if depth < width - 1:
            begun[depth + 1] = begun[depth] or count > 0
            last[depth + 1], addable[depth + 1] = after, open_event
            depth += 1
            entering = True
            continue
        if open_event != NEVER or (must >= 0 and not (begun[depth] or count > 0)):
            continue
        size = taken.sum()
        if found == most or used + size > capacity:
            cut = CUT if found == most else FULL
            break
        while (found + 1) * width + 1 > len(offsets):
            offsets = np.concatenate((offsets, np.empty(len(offsets), np.int64)))
        while used + size > len(kept):
            kept = np.concatenate((kept, np.empty(len(kept), np.int64)))
        for inner in range(width):
            for at in range(taken[inner]):
                kept[used] = given.events[path[inner, at]]
                used += 1
            offsets[found * width + inner + 1] = used
        found += 1
    return offsets[: found * width + 1].copy(), kept[:used].copy(), cut
