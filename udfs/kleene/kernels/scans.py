"""The scan of ``skip_till_next`` and ``strict`` itself: comparisons of two values are judged inside.

Source: SPEC section 3; see `steps` for which operands may take an event. Of those that may and that it suits, the
first one takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.awaiting import NOTHING, awaited_step
from patternlake.udfs.kleene.kernels.comparisons import Comparisons, holds
from patternlake.udfs.kleene.kernels.steps import (
    ENDLESS,
    Program,
    State,
    begin_of,
    copy_state,
    is_dropped,
    is_whole,
    new_state,
    settle,
    take,
)
from patternlake.udfs.subkernels import uncounted


class Scan(NamedTuple):
    """A way and its events, as the kernel takes them.

    Attributes
    ----------
    program
        The steps.
    mask
        bool[k, m]: which events each operand takes.
    starts
        bool[m]: the events that may be first, as far as all operands that a match needs have some in the window.
    following
        int64[k, m + 1]: the next such event from each one on, else `ENDLESS`.
    ends
        int64[k, m]: how many events that end its collecting come before or at each event; no column without UNTIL.
    compared
        int64[k + 1]: where the comparisons of each operand begin.
    comparing
        int64[., 4]: of each its number, the step that it compares with, the group in whose rounds it does, or -1, and
        whether the event that is taken is on the left.
    neighbours
        bool[c]: which compare an event with the last one only.
    comparisons
        The comparisons.
    reach, stop
        int64[m]: `Stream.reach`, and one behind the last event of the part.
    ordinal
        int64[m].
    strict
        Whether events follow one another directly.
    apart
        Whether a match begins behind the last event of the one before it in its part.
    begun
        Whether what is not complete is asked for, not matches.
    awaits
        int64[n]: see `awaiting.first_awaited`.
    """

    program: Program
    mask: BoolArray
    starts: BoolArray
    following: IntArray
    ends: IntArray
    compared: IntArray
    comparing: IntArray
    neighbours: BoolArray
    comparisons: Comparisons
    reach: IntArray
    stop: IntArray
    ordinal: IntArray
    strict: bool
    apart: bool
    begun: bool
    awaits: IntArray


@njit(cache=True)
def following_of(mask: BoolArray) -> IntArray:
    """`Scan.following`."""
    operands, m = mask.shape
    following = np.full((operands, m + 1), ENDLESS, np.int64)
    for operand in range(operands):
        for event in range(m - 1, -1, -1):
            following[operand, event] = event if mask[operand, event] else following[operand, event + 1]
    return following


@uncounted
def has_ended(scan: Scan, state: State, kept: IntArray, ask: int, event: int) -> bool:
    """Whether UNTIL keeps a step from an event: what ends it is the event, or stands between its first one and it."""
    # Inside of a round that begins nothing has a first event yet.
    step = state.ask[ask] if state.ask_round[ask] < 0 else state.ask_round[ask]
    while step >= 0:
        place, first = scan.program.until[step], state.first[step]
        if place >= 0 and first >= 0 and scan.ends[place, event] > scan.ends[place, kept[first, 0]]:
            return True
        step = scan.program.parent[step]
    return False


@uncounted
def qualifies(scan: Scan, state: State, kept: IntArray, ask: int, event: int) -> bool:
    """Whether comparisons let the operand that asks take an event: they hold against everything kept."""
    step, begins = state.ask[ask], state.ask_round[ask]
    place = scan.program.place[step]
    for own in range(scan.compared[place], scan.compared[place + 1]):
        number, other, scope = scan.comparing[own, 0], scan.comparing[own, 1], scan.comparing[own, 2]
        low = begin_of(scan.program, state, scope, begins)
        at = state.head[other]
        while at >= low:
            if not is_dropped(scan.program, state, kept, at, step, begins):
                a, b = (event, kept[at, 0]) if scan.comparing[own, 3] else (kept[at, 0], event)
                if not holds(scan.comparisons, number, a, b):
                    return False
                if scan.neighbours[number]:
                    break
            at = kept[at, 2]
    return True


def scanned(scan: Scan, most: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The match of each start, or with `Scan.begun` what is not complete: offsets, events, the operand's place of each,
    and for each start the step that it awaits (`awaiting.NOTHING` for a match); no offsets beyond `most` events.

    Not of a program with `Program.every`.
    """
    offsets, events, places = np.zeros(1025, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    awaited = np.full(1024, NOTHING, np.int64)
    kept = np.empty((1024, 3), np.int64)
    progress = np.zeros(3, np.int64)
    while not _scan_starts(scan, kept, offsets, events, places, awaited, progress):
        # Something is full: it begins again with the start at which it was.
        used = int(offsets[progress[1]])
        if used > most:
            break
        if 2 * used > len(events):
            events = np.concatenate((events, np.empty_like(events)))
            places = np.concatenate((places, np.empty_like(places)))
        elif progress[1] + 2 > len(offsets):
            offsets = np.concatenate((offsets, np.empty_like(offsets)))
            awaited = np.concatenate((awaited, np.full(len(offsets), NOTHING, np.int64)))
        else:
            events = np.concatenate((events, np.empty(len(kept), np.int64)))
            places = np.concatenate((places, np.empty(len(kept), np.int64)))
            kept = np.concatenate((kept, np.empty_like(kept)))
    found = int(progress[1])
    used = int(offsets[found])
    if used > most:
        return offsets[:0], events[:0], places[:0], awaited[:0]
    return offsets[: found + 1], events[:used], places[:used], awaited[:found]


@njit(cache=True)
def _scan_starts(
    scan: Scan,
    kept: IntArray,
    offsets: IntArray,
    events: IntArray,
    places: IntArray,
    awaited: IntArray,
    progress: IntArray,
) -> bool:
    """Go on with the scans until all are done, or some array is full; `progress` is the next start, how many matches
    there are, and where the next one may begin.
    """
    fresh, state = new_state(scan.program), new_state(scan.program)
    settle(scan.program, fresh, kept, scan.ordinal, scan.strict)
    noted = np.empty((2, len(scan.program.kind)), np.int64)
    return _scan_on(scan, fresh, state, noted, kept, offsets, events, places, awaited, progress)


@uncounted
def _scan_on(
    scan: Scan,
    fresh: State,
    state: State,
    noted: IntArray,
    kept: IntArray,
    offsets: IntArray,
    events: IntArray,
    places: IntArray,
    awaited: IntArray,
    progress: IntArray,
) -> bool:
    program = scan.program
    m = scan.mask.shape[1]
    found, resume = progress[1], progress[2]
    for start in range(progress[0], m):
        begins = False
        for ask in range(fresh.sizes[1]):
            begins = begins or scan.mask[program.place[fresh.ask[ask]], start]
        if not begins or not scan.starts[start] or (scan.apart and start < resume):
            continue
        copy_state(program, state, fresh)
        event = start
        limit = min(scan.reach[start], scan.stop[start])
        while event < limit:
            taken, nearest = -1, ENDLESS
            for ask in range(state.sizes[1]):
                step = state.ask[ask]
                if program.has_until and has_ended(scan, state, kept, ask, event):
                    continue
                place = program.place[step]
                if state.ask_ordinal[ask] >= 0 and state.ask_ordinal[ask] != scan.ordinal[event]:
                    continue
                if scan.mask[place, event] and (
                    scan.compared[place] == scan.compared[place + 1] or qualifies(scan, state, kept, ask, event)
                ):
                    taken = ask
                    break
                if state.ask_ordinal[ask] < 0:
                    nearest = min(nearest, scan.following[place, event + 1])
            if taken < 0:
                if state.sizes[0] == 0:
                    break
                event = nearest
                continue
            if state.sizes[0] == len(kept):
                progress[0], progress[1], progress[2] = start, found, resume
                return False
            step, begins_round = state.ask[taken], state.ask_round[taken]
            take(program, state, kept, scan.ordinal, scan.strict, step, begins_round, event)
            event += 1
        missing = NOTHING
        if scan.begun:
            # The round at hand is part of what has begun: nothing is dropped.
            missing = awaited_step(program, scan.awaits, state, noted)
            if missing == NOTHING or state.sizes[0] == 0:
                continue
        elif state.enough[0] == 0 or not is_whole(program, state, kept):
            continue
        size, used = state.sizes[0], offsets[found]
        if used + size > len(events) or found + 2 > len(offsets):
            progress[0], progress[1], progress[2] = start, found, resume
            return False
        for at in range(size):
            if kept[at, 1] >= 0:
                events[used], places[used] = kept[at, 0], program.place[kept[at, 1]]
                used += 1
        awaited[found] = missing
        found += 1
        offsets[found] = used
        resume = events[used - 1] + 1
    progress[0], progress[1], progress[2] = m, found, resume
    return True
