"""Every match of a pattern with repeated groups under ``skip_till_any``: a walk through the tree of what can be taken.

Source: SPEC section 3, ``repetition => 'all'``. A node of the tree is a set of events in order, the first one taken
first, with each way in which operands take exactly these. From a node the walk goes down with one event more, the next
one first: so matches come in the order of their events, a match before those that begin with it. Which operands may
take the next event, `steps` say; here a round is never left incomplete.

Where an event may go on with a complete round as well as begin the next one, as in ``(A+ | B)+``, operands may take the
same events in several rounds. A match is its bindings, so of such ways those that go on alike are one (`_is_alike`),
and of those that are matches one is written.

The walk keeps no more than the path that it stands on, so it can stop after any number of matches. It goes down only
where a match can still end inside the window: `earliest_ends` tells, but for conditions and counts of repetitions.

Where the nearest matches of each start are wanted, a match comes behind those that begin with it, so that repetitions
collect on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.scans import Scan, has_ended, qualifies
from patternlake.udfs.kleene.kernels.steps import (
    ENDLESS,
    Program,
    State,
    copy_state,
    ends,
    new_state,
    settle,
    state_of,
    take,
)
from patternlake.udfs.kleene.ways import ALL, ANY, EVENT, NEXT, ROUNDS, Step
from patternlake.udfs.subkernels import subkernel, uncounted

DONE, FULL, WAYS, LANES, LONGER, LOST = range(6)
"""What a walk comes back for: it is done; `Found` must be emptied, or be greater; `Path` must have room for more ways,
more lanes or more events; it has gone too many steps without a match."""

START, DEPTH, WRITING, NODES, ROWS, FOUND = range(6)
"""Places of a walk's progress: the number of its start; how many events it has taken, -1 before a start; whether the
node is still to be written; nodes and matches of this start; matches in `Found`."""

CERTAIN, FORGOTTEN, PLACED, REMEMBERED = range(4)
"""What tells ways apart in which operands take the same events in other rounds: there are none such; what they may
still take; where the last round began, too; where each round began, so that none of them is left out."""

UNASKED, UNTOUCHED, SHORT, ENOUGH = range(-1, 3)
"""What an operand is to have taken in a round: anything, nothing, fewer events than it needs, or enough."""

STEPS_A_MATCH = 64
"""So many nodes are not too many where they lead to a match."""


class Follows(NamedTuple):
    """Which operand may take an event behind that of which, whatever else is asked, by place.

    Attributes
    ----------
    later, directly
        bool[k, k]: any later event; the one directly behind.
    first, last
        bool[k]: operands that may take the first event, and the last one.
    """

    later: BoolArray
    directly: BoolArray
    first: BoolArray
    last: BoolArray


class Path(NamedTuple):
    """The nodes from a start down to where a walk stands.

    Attributes
    ----------
    states
        `State` with a row for each way in which the events of a node are taken, the nodes one behind the other.
    lanes
        int64[s]: of each such row the lane that has its events.
    writes
        bool[s]: which of the rows of the last node are written.
    kept
        int64[l, d, 3]: `kept` of `steps`, by lane.
    begun
        int64[l, d]: the group of which each event begins a new round, or -1.
    stack
        int64[d + 1, 4]: of each node its first row, one behind its last row, the last event with which the walk went on
        from it, and how many lanes are taken.
    """

    states: State
    lanes: IntArray
    writes: BoolArray
    kept: IntArray
    begun: IntArray
    stack: IntArray


class Found(NamedTuple):
    """Matches.

    Attributes
    ----------
    offsets
        int64[r + 1].
    events, places, begun
        int64[e]: events, the operand's place of each, and `Path.begun`.
    """

    offsets: IntArray
    events: IntArray
    places: IntArray
    begun: IntArray


def follows_of(root: Step, place_of: Mapping[int, int]) -> Follows:
    """What the steps of a way say of events one after another."""
    size = len(place_of)
    later, directly = np.zeros((size, size), np.bool_), np.zeros((size, size), np.bool_)
    first, last = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    begins, stops = _ends_of(root, place_of, later, directly)
    first[begins] = last[stops] = True
    return Follows(later, directly, first, last)


def says_all(root: Step) -> bool:
    """Whether `Follows` says all that the steps of a way ask: nothing is counted, and nothing goes on by itself."""
    return all(
        step.kind != ALL and step.until < 0 and (step.least, step.most) in ((0, None), (1, None), (0, 1), (1, 1))
        for step in root.walk()
        if step.kind in (EVENT, ROUNDS, ALL)
    )


def _ends_of(
    step: Step, place_of: Mapping[int, int], later: NDArray[np.bool_], directly: NDArray[np.bool_]
) -> tuple[list[int], list[int]]:
    """Places that may take the first event of a step, and its last one; what follows what inside of it is marked."""
    if step.kind == EVENT:
        place = place_of[step.operand]
        later[place, place] = step.most != 1
        return [place], [place]
    first: list[int] = []
    last: list[int] = []
    before: list[int] = []
    empty = True
    for part in step.parts:
        begins, stops = _ends_of(part, place_of, later, directly)
        if step.kind in (ALL, ANY):
            first, last = first + begins, last + stops
            inside = [place_of[one.operand] for one in part.walk() if one.kind == EVENT]
            if step.kind == ALL:
                # The sides go on by themselves.
                later[np.ix_(before, inside)] = later[np.ix_(inside, before)] = True
            before += inside
            continue
        (directly if step.kind == NEXT else later)[np.ix_(last, begins)] = True
        first = first + begins if empty else first
        last = stops + last if part.can_be_empty else stops
        empty = empty and part.can_be_empty
    if step.kind == ROUNDS and step.most != 1:
        later[np.ix_(last, first)] = True
    return first, last


@njit(cache=True)
def earliest_ends(mask: BoolArray, stop: IntArray, ordinal: IntArray, follows: Follows) -> IntArray:
    """int64[k, m]: the last event of the match that ends first behind an operand's event; ENDLESS where none does.

    Parameters
    ----------
    mask
        bool[k, m]: which events each operand takes.
    stop, ordinal
        int64[m]: as of `Scan`.
    follows
        What may follow what.
    """
    operands, m = mask.shape
    earliest = np.full((operands, m), ENDLESS, np.int64)
    # Of each operand the end behind any of its events from the next one on.
    behind = np.full(operands, ENDLESS, np.int64)
    for event in range(m - 1, -1, -1):
        inside = event + 1 < stop[event]
        if not inside:
            behind[:] = ENDLESS
        meets = inside and ordinal[event + 1] == ordinal[event] + 1
        for operand in range(operands):
            if not mask[operand, event]:
                continue
            end = event if follows.last[operand] else ENDLESS
            for other in range(operands):
                if follows.later[operand, other]:
                    end = min(end, behind[other])
                elif meets and follows.directly[operand, other]:
                    end = min(end, earliest[other, event + 1])
            earliest[operand, event] = end
        for operand in range(operands):
            behind[operand] = min(behind[operand], earliest[operand, event])
    return earliest


MOST_COUNTED = 1 << 62
"""Where there are more matches, so many are counted."""


@njit(cache=True)
def count_rows(scan: Scan, follows: Follows, starts: IntArray, windowed: bool, most: int) -> int:
    """How many matches a way has of which `Follows` says all; where there are more than `most`, at least so many.

    Of the matches that end with an event there are as many as of those that end with one that it may follow. In a
    window they are counted start by start, else those of all starts of a part together.
    """
    operands = scan.mask.shape[0]
    total, number = 0, 0
    while number < len(starts) and total <= most:
        start = starts[number]
        stop = min(scan.reach[start], scan.stop[start])
        # Matches so far by the operand of their last event, and those of which it is the event before this one.
        ending, newest = np.zeros(operands, np.int64), np.zeros(operands, np.int64)
        for event in range(start, stop):
            begins = number < len(starts) and starts[number] == event
            number += begins and (event == start or not windowed)
            begins = begins and (event == start or not windowed)
            meets = event > start and scan.ordinal[event] == scan.ordinal[event - 1] + 1
            own = np.zeros(operands, np.int64)
            for operand in range(operands):
                if not scan.mask[operand, event]:
                    continue
                count = int(begins and follows.first[operand])
                for other in range(operands):
                    if follows.later[other, operand]:
                        count = min(MOST_COUNTED, count + ending[other])
                    elif meets and follows.directly[other, operand]:
                        count = min(MOST_COUNTED, count + newest[other])
                own[operand] = count
                if follows.last[operand]:
                    total = min(MOST_COUNTED, total + count)
            for operand in range(operands):
                ending[operand] = min(MOST_COUNTED, ending[operand] + own[operand])
            newest = own
            if total > most and windowed:
                break
    return total


def new_path(program: Program, rows: int, lanes: int, depth: int) -> Path:
    """Room for a path of so many ways and events."""
    n, e = len(program.kind), len(program.ask)
    widths = (*[n] * 9, *[e] * 3, 2)
    states = State(*(np.zeros((rows, width), np.int64) for width in widths))
    states.ask_round[:] = -1
    return Path(
        states,
        np.zeros(rows, np.int64),
        np.zeros(rows, np.bool_),
        np.zeros((lanes, depth, 3), np.int64),
        np.full((lanes, depth), -1, np.int64),
        np.zeros((depth + 1, 4), np.int64),
    )


def wider(path: Path, wanted: int) -> Path:
    """The same path with twice the room for `WAYS`, `LANES` or events (`LONGER`)."""

    def doubled(array: IntArray, axis: int, fill: int = 0) -> IntArray:
        return np.concatenate((array, np.full_like(array, fill)), axis)

    if wanted == WAYS:
        states = State(*(doubled(array, 0, -1 if array is path.states.ask_round else 0) for array in path.states))
        return path._replace(
            states=states, lanes=doubled(path.lanes, 0), writes=np.zeros(2 * len(path.writes), np.bool_)
        )
    axis = 0 if wanted == LANES else 1
    path = path._replace(kept=doubled(path.kept, axis), begun=doubled(path.begun, axis, -1))
    return path if wanted == LANES else path._replace(stack=np.concatenate((path.stack, path.stack[1:])))


def new_found(rows: int, events: int) -> Found:
    """Room for so many matches."""
    return Found(
        np.zeros(rows + 1, np.int64), np.empty(events, np.int64), np.empty(events, np.int64), np.empty(events, np.int64)
    )


@njit(cache=True)
def walk_on(
    scan: Scan,
    earliest: IntArray,
    starts: IntArray,
    path: Path,
    found: Found,
    progress: IntArray,
    most_lost: int,
    doubt: int,
    collecting: BoolArray,
    at_hand: IntArray,
    each: int,
) -> int:
    """Go on with a walk until it is done, or comes back for something.

    Parameters
    ----------
    scan
        The way and its events.
    earliest
        As `earliest_ends` gives it.
    starts
        int64[s]: the events that a match may begin with.
    path, progress
        Where the walk stands.
    found
        Matches are written behind those that `progress` counts.
    most_lost
        So many nodes of one start, at most, lead to no match.
    doubt
        See `CERTAIN`.
    collecting
        bool[k]: operands, by place, that pass over no event that they may take; there are such where `each` is above 0.
    at_hand
        int64[n]: `SHORT` for the one group whose last round is to be left incomplete, if any, and what each operand in
        it is to have taken there; `UNASKED` for all other steps.
    each
        So many matches of each start are wanted, about, and those that begin with a match come before it; 0: all.
    """
    program = scan.program
    fresh = new_state(program)
    settle(program, fresh, path.kept[0], scan.ordinal, False)
    while True:
        if progress[DEPTH] < 0:
            if progress[START] >= len(starts):
                return DONE
            state = state_of(path.states, 0)
            copy_state(program, state, fresh)
            state.enough[0] = fresh.enough[0]
            path.lanes[0] = 0
            path.stack[0, 0], path.stack[0, 1], path.stack[0, 3] = 0, 1, 1
            path.stack[0, 2] = starts[progress[START]] - 1
            progress[DEPTH], progress[WRITING], progress[NODES], progress[ROWS] = 0, 0, 0, 0
        start, depth = starts[progress[START]], progress[DEPTH]
        limit = min(scan.reach[start], scan.stop[start])
        if progress[WRITING]:
            if each == 0 and not _write(program, path, found, progress, CERTAIN < doubt < REMEMBERED, at_hand):
                return FULL
            progress[WRITING] = 0
        event = _next_event(scan, path, depth, limit)
        if event >= (limit if depth > 0 else start + 1):
            written = each == 0 or depth == 0
            if not (written or _write(program, path, found, progress, CERTAIN < doubt < REMEMBERED, at_hand)):
                return FULL
            progress[DEPTH] -= 1
            if depth == 0 or 0 < each <= progress[ROWS]:
                progress[START] += 1
                progress[DEPTH] = -1
            continue
        ways = (path.stack[depth, 1] - path.stack[depth, 0]) * len(program.ask)
        if path.stack[depth, 1] + ways > len(path.lanes):
            return WAYS
        if path.stack[depth, 3] + ways > len(path.kept):
            return LANES
        if depth == path.kept.shape[1]:
            return LONGER
        if progress[NODES] - STEPS_A_MATCH * progress[ROWS] > most_lost:
            return LOST
        made, lanes, collected = _go_down(scan, earliest, path, depth, event, limit, doubt, collecting)
        path.stack[depth, 2] = limit - 1 if collected else event
        # A node that nothing can take counts as well: it was looked at.
        progress[NODES] += 1
        if made > path.stack[depth, 1]:
            path.stack[depth + 1, 0], path.stack[depth + 1, 1] = path.stack[depth, 1], made
            path.stack[depth + 1, 2], path.stack[depth + 1, 3] = event, lanes
            progress[DEPTH], progress[WRITING] = depth + 1, 1


@subkernel
def _next_event(scan: Scan, path: Path, depth: int, limit: int) -> int:
    """The next event that some operand may take behind a node, as far as its name and place tell."""
    tried = path.stack[depth, 2]
    nearest = ENDLESS
    for row in range(path.stack[depth, 0], path.stack[depth, 1]):
        state = state_of(path.states, row)
        for ask in range(state.sizes[1]):
            place = scan.program.place[state.ask[ask]]
            if state.ask_ordinal[ask] < 0:
                nearest = min(nearest, scan.following[place, tried + 1])
                continue
            # What is directly behind an event of the match is so behind the last one, or never.
            after = path.kept[path.lanes[row], depth - 1, 0] + 1
            if tried < after < limit and scan.ordinal[after] == state.ask_ordinal[ask] and scan.mask[place, after]:
                nearest = min(nearest, after)
    return nearest


@subkernel
def _go_down(
    scan: Scan,
    earliest: IntArray,
    path: Path,
    depth: int,
    event: int,
    limit: int,
    doubt: int,
    collecting: BoolArray,
) -> tuple[int, int, bool]:
    """Take an event in every way that there is; one behind the last row, how many lanes are taken, and whether no way
    passes over the event.
    """
    program = scan.program
    behind, collected = path.stack[depth, 1], 0
    made, lanes = path.stack[depth, 1], path.stack[depth, 3]
    for row in range(path.stack[depth, 0], path.stack[depth, 1]):
        state, lane = state_of(path.states, row), path.lanes[row]
        own = path.kept[lane]
        # The first way goes on in the lane that it comes from: what it writes there lies behind this node's events.
        shared = False
        for ask in range(state.sizes[1]):
            step, begins = state.ask[ask], state.ask_round[ask]
            place = program.place[step]
            if not scan.mask[place, event] or earliest[place, event] >= limit:
                continue
            if state.ask_ordinal[ask] >= 0 and state.ask_ordinal[ask] != scan.ordinal[event]:
                continue
            if program.has_rounds and _leaves_open(program, state, step, begins):
                continue
            if program.has_until and has_ended(scan, state, own, ask, event):
                continue
            if scan.compared[place] < scan.compared[place + 1] and not qualifies(scan, state, own, ask, event):
                continue
            target = lane
            if shared:
                target = lanes
                lanes += 1
                for at in range(depth):
                    path.kept[target, at, 0] = path.kept[lane, at, 0]
                    path.kept[target, at, 1] = path.kept[lane, at, 1]
                    path.kept[target, at, 2] = path.kept[lane, at, 2]
                    path.begun[target, at] = path.begun[lane, at]
            shared = True
            # Nothing before it in the sequence can take one more: those of its own that follow may as well follow this.
            collected += collecting[place] and ask == state.sizes[1] - 1
            more = state_of(path.states, made)
            copy_state(program, more, state)
            more.enough[0] = state.enough[0]
            path.lanes[made] = target
            path.begun[target, depth] = begins
            take(program, more, path.kept[target], scan.ordinal, False, step, begins, event)
            other = behind if CERTAIN < doubt < REMEMBERED else made
            while other < made and not (
                _binds_alike(path, depth + 1, other, made) and _goes_on_alike(scan, path, other, made, doubt)
            ):
                other += 1
            if other < made:
                # The lane is free again.
                shared = target != lane
                lanes -= shared
            else:
                made += 1
    return made, lanes, collected == behind - path.stack[depth, 0]


@uncounted
def _binds_alike(path: Path, depth: int, one: int, other: int) -> bool:
    """Whether the operands of two ways of a node take the same events."""
    first, second = path.lanes[one], path.lanes[other]
    at = depth - 1
    while at >= 0 and path.kept[first, at, 1] == path.kept[second, at, 1]:
        at -= 1
    return bool(at < 0)


@uncounted
def _goes_on_alike(scan: Scan, path: Path, one: int, other: int, doubt: int) -> bool:
    """Whether two ways that bind alike go on alike: what has as much as it needs, and may take any number, is one."""
    program, states = scan.program, path.states
    for step in range(len(program.kind)):
        first, second = states.taken[one, step], states.taken[other, step]
        if program.most[step] == ENDLESS:
            first, second = min(first, program.least[step]), min(second, program.least[step])
        if (
            first != second
            or states.begun[one, step] != states.begun[other, step]
            or states.closed[one, step] != states.closed[other, step]
        ):
            return False
        # Conditions of a round, and UNTIL, look back at where it began.
        if doubt != FORGOTTEN and (
            states.mark[one, step] != states.mark[other, step] or states.first[one, step] != states.first[other, step]
        ):
            return False
    return True


@uncounted
def _leaves_open(program: Program, state: State, step: int, begins: int) -> bool:
    """Whether a step that takes an event would leave the round of some group incomplete."""
    for group in range(len(program.kind)):
        if program.kind[group] == ROUNDS and ends(program, state, group, step, begins):
            return True
    return False


@uncounted
def _is_match(program: Program, state: State, at_hand: IntArray) -> bool:
    if state.enough[0] == 0:
        return False
    for step in range(len(program.kind)):
        if program.kind[step] == ROUNDS:
            incomplete = state.begun[step + 1] == 1 and state.enough[step + 1] == 0
            if incomplete != (at_hand[step] != UNASKED):
                return False
        elif at_hand[step] != UNASKED:
            taken = state.taken[step]
            came = UNTOUCHED if taken == 0 else (SHORT if taken < program.least[step] else ENOUGH)
            if came != at_hand[step]:
                return False
    return True


@subkernel
def _write(program: Program, path: Path, found: Found, progress: IntArray, once: bool, at_hand: IntArray) -> bool:
    """Write the matches of a node, all or, where there is no room, none; `once`: one of those that bind alike."""
    depth = progress[DEPTH]
    first, behind = path.stack[depth, 0], path.stack[depth, 1]
    count = 0
    for row in range(first, behind):
        state = state_of(path.states, row)
        own = _is_match(program, state, at_hand)
        other = first if once and own else row
        while other < row and not (path.writes[other] and _binds_alike(path, depth, other, row)):
            other += 1
        path.writes[row] = own and other == row
        count += path.writes[row]
    used = found.offsets[progress[FOUND]]
    if progress[FOUND] + count >= len(found.offsets) or used + count * depth > len(found.events):
        return False
    for row in range(first, behind):
        if not path.writes[row]:
            continue
        lane = path.lanes[row]
        for at in range(depth):
            found.events[used + at] = path.kept[lane, at, 0]
            found.places[used + at] = program.place[path.kept[lane, at, 1]]
            found.begun[used + at] = path.begun[lane, at]
        used += depth
        progress[FOUND] += 1
        found.offsets[progress[FOUND]] = used
    progress[ROWS] += count
    return True
