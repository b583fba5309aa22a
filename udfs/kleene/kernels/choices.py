"""The sets of events that an operand may take under ``repetition => 'all'``, where each set must be known.

Source: SPEC section 3. Neighbours in a set satisfy what the pattern asks of them, and all of it lies in one window.
Sets are met by a walk through their tree, in which each leads to those with one event more at its end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.runs import CUT, FULL, WHOLE, Chains, follows


@njit(cache=True)
def choose(
    offsets: IntArray,
    events: IntArray,
    chains: Chains,
    reach: IntArray,
    sizes: tuple[int, int],
    begins: tuple[int, int],
    last: bool,
    from_row: int,
    limits: tuple[int, int, int],
) -> tuple[IntArray, IntArray, IntArray, int, int]:
    """The sets of some rows, those of one row in the order of the answer.

    Parameters
    ----------
    offsets, events
        int64[r + 1], int64[c]: what each row chooses from, in order.
    chains
        What must hold between neighbours; one group.
    reach
        int64[m]: `Stream.reach`.
    sizes
        Least and greatest number of events.
    begins
        The first event of a set lies in this range.
    last
        Whether nothing of the match stands behind them: then a set comes before those that begin with it.
    from_row
        The first row.
    limits
        One row gives so many sets, with so many events together, at most; the row at which the sets have so many events
        together is the last one.

    Returns
    -------
    (int64[k], int64[k + 1], int64[e], row, cut)
        The row of each set; offsets, and events; the row to go on with; what has cut a row, as of `runs.collect`.
    """
    rows = len(offsets) - 1
    most, capacity, at_once = limits
    row_of, ends, kept = np.empty(1024, np.int64), np.zeros(1025, np.int64), np.empty(1024, np.int64)
    found, cut, row = 0, WHOLE, from_row
    while row < rows and cut != FULL and ends[found] < at_once:
        begin, end = offsets[row], offsets[row + 1]
        path = np.empty(end - begin + 1, np.int64)
        size, entering, before = 0, True, found
        while True:
            if size >= sizes[0] and entering == last:
                used = ends[found]
                if found - before == most:
                    cut = max(cut, CUT)
                    break
                if used + size - ends[before] > capacity:
                    cut = FULL
                    break
                if found == len(row_of):
                    row_of = np.concatenate((row_of, np.empty(found, np.int64)))
                    ends = np.concatenate((ends, np.empty(found, np.int64)))
                while used + size > len(kept):
                    kept = np.concatenate((kept, np.empty(len(kept), np.int64)))
                for at in range(size):
                    kept[used + at] = events[path[at]]
                row_of[found] = row
                found += 1
                ends[found] = used + size
            # On the way down a set grows at its end; on the way back its last event gives way to a later one.
            if entering and size == sizes[1]:
                entering = False
                continue
            start = begin if size == 0 else path[size - 1] + 1
            if not entering:
                if size == 0:
                    break
                size -= 1
                start = path[size] + 1
            place = -1
            for at in range(start, end):
                if size == 0:
                    fits = begins[0] <= events[at] < begins[1]
                else:
                    if events[at] >= reach[events[path[0]]]:
                        break
                    fits = follows(chains, 0, row, begin, end - begin, path[size - 1], at, events)
                if fits:
                    place = at
                    break
            entering = place >= 0
            if entering:
                path[size] = place
                size += 1
        row += 1
    return row_of[:found].copy(), ends[: found + 1].copy(), kept[: ends[found]].copy(), row, cut
