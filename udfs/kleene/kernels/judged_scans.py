"""The scan of ``skip_till_next`` and ``strict`` with conditions that only the evaluator can judge.

Source: SPEC section 3. Scans of many starts go on side by side. Each goes as far as comparisons alone can tell, and
asks about the events that come next; the evaluator judges what all of them ask at once. An event that is not taken
leaves a scan as it is: so after a refusal the scan asks about twice as many events ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.awaiting import NOTHING, awaited_step
from patternlake.udfs.kleene.kernels.joins import PAIRS_AT_ONCE, shares
from patternlake.udfs.kleene.kernels.scans import Scan, has_ended, qualifies
from patternlake.udfs.kleene.kernels.steps import (
    ENDLESS,
    State,
    begin_of,
    copy_state,
    go_on,
    is_dropped,
    is_whole,
    must_go_on,
    new_state,
    settle,
    state_of,
    stop,
    take,
    undecided,
)
from patternlake.udfs.language.predicate.aggregates import aggregated, place_of
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Aggregate
from patternlake.udfs.language.predicate.predicates import Predicate, evaluate
from patternlake.udfs.language.predicate.references import Reference

STARTS_AT_ONCE = 1 << 14
"""So many scans go on side by side."""
ASKED_AT_ONCE = 1 << 19
"""About so many questions they ask at once."""
MOST_KEPT = 1 << 24
"""Where they keep more events together, fewer go on side by side."""

FIRST_JUDGED = 8
"""With so many of the events that one operand keeps an event is judged first."""


@dataclass(frozen=True)
class JudgedCondition:
    """A condition that the evaluator judges, over steps of a way.

    Attributes
    ----------
    predicate
        The conjunct; what aggregates events in it is a column of its own.
    step_of
        The step of each reference to an event.
    earlier
        The step whose kept event before is compared, or -1.
    scope
        The group in whose rounds events are compared; -1: in all.
    aggregates
        What stands behind each other reference: an aggregate, and the step of whose events it is, -1 for none.
    steers
        The steps of which it judges events, each with those that let an event pass while they have taken none and the
        condition is unknown.
    """

    predicate: Predicate
    step_of: Mapping[Reference, int]
    earlier: int
    scope: int
    aggregates: Mapping[Reference, tuple[Aggregate, int]]
    steers: Mapping[int, frozenset[int]]


class Scans(NamedTuple):
    """Scans of some starts, with room for more: s is as many as find room.

    Attributes
    ----------
    used
        int64[2]: how many scans there are, and how many events find room in what they keep together.
    open
        bool[s]: which go on.
    changed
        bool[s]: which have taken an event since it was looked at where they may stop.
    event, limit
        int64[s]: the next event to look at, and one behind the last that may be.
    ahead
        int64[s]: how many events to ask about next.
    base, room
        int64[s]: where the events that they keep lie among those of all scans, and how many find room there.
    states
        What each has taken: `State` with a row for each scan.
    """

    used: IntArray
    open: BoolArray
    changed: BoolArray
    event: IntArray
    limit: IntArray
    ahead: IntArray
    base: IntArray
    room: IntArray
    states: State


SCANS, KEPT = 0, 1
"""Places in `Scans.used`."""

QUESTION = 5
"""Columns of a question: scan, number of who asks in its state, step, the group of which it begins a round, event."""


def scanned(
    scan: Scan, stream: Stream, rest: Sequence[JudgedCondition], most: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """As `scans.scanned`, with conditions that only the evaluator can judge.

    `Scan.apart` is not looked at: matches inside of others are found as well.
    """
    program = scan.program
    asking = np.zeros(len(scan.mask), np.bool_)
    for condition in rest:
        asking[program.place[list(condition.steers)]] = True
    starts = _starts(scan)
    nothing = np.zeros(0, np.int64)
    sizes, events, places, awaited = [nothing], [nothing], [nothing], [nothing]
    total, begin, at_once = 0, 0, STARTS_AT_ONCE
    while begin < len(starts):
        own = starts[begin : begin + at_once]
        scans, kept = _begun(scan, own), np.empty((4 * len(own), 3), np.int64)
        if program.every:
            scans, kept = _divided(scan, scans, kept)
        while scans.open.any() and (len(kept) <= MOST_KEPT or len(own) == 1):
            asked = _ask(scan, scans, kept, asking, max(1, ASKED_AT_ONCE // int(scans.open.sum())))
            holds = np.ones(len(asked), np.bool_)
            for condition in rest:
                _judge(holds, asked, scan, scans, kept, condition, stream)
            kept = _go_on(scan, scans, kept, asked, holds)
            if program.every:
                scans, kept = _divided(scan, scans, kept)
        if scans.open.any():
            at_once = max(1, len(own) // 4)
            continue
        begin += len(own)
        size, event, place, missing = _matched(scan, scans, kept)
        total += len(event)
        if total > most:
            return nothing, nothing, nothing, nothing
        sizes.append(size)
        events.append(event)
        places.append(place)
        awaited.append(missing)
    offsets = np.concatenate([np.zeros(1, np.int64), *sizes]).cumsum()
    return offsets, np.concatenate(events), np.concatenate(places), np.concatenate(awaited)


@njit(cache=True)
def _starts(scan: Scan) -> IntArray:
    """The events that a match may begin with."""
    state, kept = new_state(scan.program), np.empty((0, 3), np.int64)
    settle(scan.program, state, kept, scan.ordinal, scan.strict)
    found = np.zeros(scan.mask.shape[1], np.bool_)
    if scan.program.every:
        # What a repetition that takes nothing lets go first is not known yet.
        found[:] = True
    for ask in range(state.sizes[1]):
        found |= scan.mask[scan.program.place[state.ask[ask]]]
    return np.flatnonzero(found & scan.starts).astype(np.int64)


@njit(cache=True)
def _begun(scan: Scan, starts: IntArray) -> Scans:
    s, n, e = len(starts), len(scan.program.kind), len(scan.program.ask)
    states = State(
        np.empty((s, n), np.int64), np.empty((s, n), np.int64), np.empty((s, n), np.int64), np.empty((s, n), np.int64),
        np.empty((s, n), np.int64), np.empty((s, n), np.int64), np.empty((s, n), np.int64), np.empty((s, n), np.int64),
        np.empty((s, n), np.int64), np.empty((s, e), np.int64), np.empty((s, e), np.int64), np.empty((s, e), np.int64),
        np.empty((s, 2), np.int64),
    )  # fmt: skip
    scans = Scans(
        np.array([s, 4 * s]),
        np.ones(s, np.bool_),
        np.ones(s, np.bool_),
        starts.copy(),
        np.minimum(scan.reach[starts], scan.stop[starts]),
        np.ones(s, np.int64),
        np.arange(s) * 4,
        np.full(s, 4),
        states,
    )
    fresh = new_state(scan.program)
    settle(scan.program, fresh, np.empty((0, 3), np.int64), scan.ordinal, scan.strict)
    states.ask_round[:] = -1
    for row in range(s):
        copy_state(scan.program, state_of(scans.states, row), fresh)
    return scans


@njit(cache=True)
def _ask(scan: Scan, scans: Scans, kept: IntArray, asking: BoolArray, most_ahead: int) -> IntArray:
    """What the open scans ask next, int64[q, `QUESTION`], by scan and event and who goes first; those end that find no
    event to ask about.

    `asking`: of which operands the evaluator judges anything; the others take what qualifies by comparisons.
    """
    asked = np.empty((1024, QUESTION), np.int64)
    found = 0
    for row in range(scans.used[SCANS]):
        if not scans.open[row]:
            continue
        state = state_of(scans.states, row)
        own = kept[scans.base[row] : scans.base[row] + scans.room[row]]
        event, limit = scans.event[row], scans.limit[row]
        only = state.sizes[0] == 0
        left = 1 if only else min(scans.ahead[row], most_ahead)
        before = found
        while event < limit and left > 0:
            nearest, any_asked, sure = ENDLESS, False, False
            if found + state.sizes[1] > len(asked):
                asked = np.concatenate((asked, np.empty((len(asked) + state.sizes[1], QUESTION), np.int64)))
            for ask in range(state.sizes[1]):
                step = state.ask[ask]
                if scan.program.has_until and has_ended(scan, state, own, ask, event):
                    continue
                place = scan.program.place[step]
                if state.ask_ordinal[ask] < 0:
                    nearest = min(nearest, scan.following[place, event + 1])
                elif state.ask_ordinal[ask] != scan.ordinal[event]:
                    continue
                if not sure and scan.mask[place, event] and qualifies(scan, state, own, ask, event):
                    asked[found, 0], asked[found, 1], asked[found, 2] = row, ask, step
                    asked[found, 3], asked[found, 4] = state.ask_round[ask], event
                    found += 1
                    any_asked = True
                    sure = not asking[place]
            event = nearest
            if any_asked:
                left -= 1
            if sure or only:
                break
        scans.event[row] = event
        if found == before:
            scans.open[row] = False
    return asked[:found].copy()


@njit(cache=True)
def _go_on(scan: Scan, scans: Scans, kept: IntArray, asked: IntArray, holds: BoolArray) -> IntArray:
    """Take the first event of each scan that may be taken, by who goes first; gives where events are kept."""
    at = 0
    while at < len(asked):
        row, taken = asked[at, 0], -1
        while at < len(asked) and asked[at, 0] == row:
            if holds[at] and taken < 0:
                taken = at
            at += 1
        state = state_of(scans.states, row)
        if taken < 0:
            scans.ahead[row] *= 2
            # A scan begins with its first event or not at all.
            if state.sizes[0] == 0:
                scans.open[row] = False
            continue
        size = state.sizes[0]
        if size == scans.room[row]:
            used = scans.used[KEPT]
            while used + 2 * size > len(kept):
                kept = np.concatenate((kept, np.empty((len(kept), 3), np.int64)))
            kept[used : used + size] = kept[scans.base[row] : scans.base[row] + size]
            scans.base[row], scans.room[row] = used, 2 * size
            scans.used[KEPT] = used + 2 * size
        own = kept[scans.base[row] : scans.base[row] + scans.room[row]]
        step, event = asked[taken, 2], asked[taken, 4]
        take(scan.program, state, own, scan.ordinal, scan.strict, step, asked[taken, 3], event)
        scans.ahead[row] = 1
        scans.changed[row] = True
        scans.event[row] = event + 1
        if state.sizes[1] == 0 or event + 1 >= scans.limit[row]:
            scans.open[row] = False
    return kept


def _divided(scan: Scan, scans: Scans, kept: IntArray) -> tuple[Scans, IntArray]:
    """The scans, and behind them one for each repetition that may stop; with where events are kept."""
    row = 0
    while (row := _divide(scan, scans, kept, row)) < scans.used[SCANS]:
        # Twice the room each time: what is there is not copied once for each that comes to it.
        if scans.used[SCANS] == len(scans.open):
            scans = _with_room(scans)
        else:
            kept = np.concatenate((kept, np.empty_like(kept)))
    return scans, kept


@njit(cache=True)
def _divide(scan: Scan, scans: Scans, kept: IntArray, row: int) -> int:
    """Divide the scans from one on in which a repetition may stop: it goes on in the scan, and stops in a new one.

    Gives the scan for which there is no room, or, where all are divided, their number.
    """
    used = scans.used
    while row < used[SCANS]:
        state = state_of(scans.states, row)
        while scans.changed[row]:
            own = kept[scans.base[row] : scans.base[row] + scans.room[row]]
            step = must_go_on(scan.program, state)
            while step >= 0:
                go_on(scan.program, state, own, scan.ordinal, scan.strict, step)
                step = must_go_on(scan.program, state)
            room, size = scans.room[row], state.sizes[0]
            if used[SCANS] == len(scans.open) or used[KEPT] + room > len(kept):
                return row
            step = undecided(scan.program, state)
            if step < 0:
                scans.changed[row] = False
            else:
                new, base = used[SCANS], used[KEPT]
                used[SCANS], used[KEPT] = new + 1, base + room
                scans.base[new], scans.room[new] = base, room
                scans.event[new], scans.limit[new] = scans.event[row], scans.limit[row]
                scans.ahead[new], scans.changed[new] = scans.ahead[row], True
                other = state_of(scans.states, new)
                copy_state(scan.program, other, state)
                kept[base : base + size] = own[:size]
                stop(scan.program, other, kept[base : base + room], scan.ordinal, scan.strict, step)
                scans.open[new] = other.sizes[1] > 0 and scans.event[new] < scans.limit[new]
                go_on(scan.program, state, own, scan.ordinal, scan.strict, step)
            scans.open[row] = state.sizes[1] > 0 and scans.event[row] < scans.limit[row]
        row += 1
    return row


def _with_room(scans: Scans) -> Scans:
    """The same scans with twice the room."""

    def doubled(array: Any) -> Any:
        return np.concatenate((array, np.zeros_like(array)))

    parts: list[Any] = [scans.used, *map(doubled, scans[1:-1]), State(*map(doubled, scans.states))]
    return Scans(*parts)


@njit(cache=True)
def _matched(scan: Scan, scans: Scans, kept: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The sizes, events, places and awaited steps of the scans that are matches, or that are not complete."""
    count = scans.used[SCANS]
    sizes, found, used = np.zeros(count, np.int64), 0, 0
    awaited, noted = np.full(count, NOTHING, np.int64), np.empty((2, len(scan.program.kind)), np.int64)
    total = scans.states.sizes[:count, 0].sum()
    events, places = np.empty(total, np.int64), np.empty(total, np.int64)
    for row in range(count):
        state = state_of(scans.states, row)
        own = kept[scans.base[row] : scans.base[row] + scans.room[row]]
        if scan.begun:
            awaited[found] = awaited_step(scan.program, scan.awaits, state, noted)
            if awaited[found] == NOTHING or state.sizes[0] == 0:
                continue
        elif not is_whole(scan.program, state, own):
            continue
        before = used
        for at in range(state.sizes[0]):
            if own[at, 1] >= 0:
                events[used], places[used] = own[at, 0], scan.program.place[own[at, 1]]
                used += 1
        sizes[found] = used - before
        found += 1
    return sizes[:found].copy(), events[:used].copy(), places[:used].copy(), awaited[:found].copy()


def _judge(
    holds: BoolArray,
    asked: IntArray,
    scan: Scan,
    scans: Scans,
    kept: IntArray,
    condition: JudgedCondition,
    stream: Stream,
) -> None:
    """Clear `holds` where a condition does not hold for an event and some of what is kept of the other operands."""
    for step in condition.steers:
        chosen = np.flatnonzero(holds & (asked[:, 2] == step))
        others = sorted({*condition.step_of.values()} - {step})
        # Most events fail against the last few that are kept: only those that do not meet the others.
        for newest in (FIRST_JUDGED, ENDLESS) if others else (ENDLESS,):
            false, partly = _failing(asked[chosen], step, newest, scan, scans, kept, condition, stream)
            holds[chosen[false]] = False
            chosen = chosen[~false & partly]
            if not len(chosen):
                break


def _failing(
    asked: IntArray,
    step: int,
    newest: int,
    scan: Scan,
    scans: Scans,
    kept: IntArray,
    condition: JudgedCondition,
    stream: Stream,
) -> tuple[BoolArray, BoolArray]:
    """Which questions of a step fail against some of the `newest` that is kept of each other step; and for which there
    is more.
    """
    failing, partly = np.zeros(len(asked), np.bool_), np.zeros(len(asked), np.bool_)
    ranges: dict[int, tuple[IntArray, IntArray, IntArray]] = {}
    for other in sorted({*condition.step_of.values(), condition.earlier} - {-1}):
        earlier = other == condition.earlier
        if other == step and not earlier:
            continue
        scope = -1 if other == step else condition.scope
        # The first of a round has one before it, too: the last of an earlier round.
        further = earlier and other != step
        offsets, events = _kept_of(asked, scan, scans, kept, other, scope, 1 if other == step else newest, further)
        partly |= (np.diff(offsets) >= newest) & (other != step)
        # Of neighbours each kept event but the first has one before it.
        ranges[other] = offsets[:-1] + (earlier and other != step), np.maximum(offsets[1:], offsets[:-1]), events
    applies, lenient = np.ones(len(asked), np.bool_), np.zeros(len(asked), np.bool_)
    collected: dict[Reference, tuple[IntArray, IntArray]] = {}
    for reference, (one, of) in condition.aggregates.items():
        collected[reference] = _kept_of(asked, scan, scans, kept, of, -1, ENDLESS, False)
        counts = np.diff(collected[reference][0])
        place = place_of(one)
        if place is not None:
            applies &= counts >= max(1, place)
        if of in condition.steers[step]:
            lenient |= counts == 0
    pairs = np.ones(len(asked), np.int64)
    for low, high, _ in ranges.values():
        pairs *= np.maximum(high - low, 0)
    for offsets, _ in collected.values():
        pairs += np.diff(offsets)
    for begin, end in shares(pairs, PAIRS_AT_ONCE):
        number = np.arange(begin, end, dtype=np.int64)
        at: dict[int, IntArray] = {}
        for other, (low, high, _) in ranges.items():
            new, found = expanded(low[number], high[number])
            number, at = number[new], {each: column[new] for each, column in at.items()} | {other: found}
        columns: dict[Reference, Column] = {}
        for reference, own in condition.step_of.items():
            before = reference.index == "i-1"
            if own != step:
                events = ranges[own][2][at[own] - before]
            else:
                events = ranges[own][2][at[own]] if before else asked[number, 4]
            columns[reference] = stream.column(reference.column, events)
        for reference, (one, _) in condition.aggregates.items():
            offsets, events = collected[reference]
            group = np.repeat(np.arange(end - begin), np.diff(offsets[begin : end + 1]))
            column_at = partial(stream.column, numbers=events[offsets[begin] : offsets[end]])
            made = aggregated(one, column_at, group, end - begin)
            columns[reference] = Column(made.values[number - begin], made.known[number - begin], made.type)
        truth = evaluate(condition.predicate, columns.__getitem__)
        holds = truth.true | (lenient[number] & ~truth.known)
        failing[number[~np.broadcast_to(holds, number.shape)]] = True
    return failing & applies, partly


@njit(cache=True)
def _kept_of(
    asked: IntArray, scan: Scan, scans: Scans, kept: IntArray, other: int, scope: int, newest: int, further: bool
) -> tuple[IntArray, IntArray]:
    """The last events, `newest` at most, that a step keeps for each question, and with `further` one before them:
    offsets and events, in order.
    """
    offsets, found = np.zeros(len(asked) + 1, np.int64), np.empty(max(len(asked), 16), np.int64)
    for number in range(len(asked)):
        row, step, begins = asked[number, 0], asked[number, 2], asked[number, 3]
        state = state_of(scans.states, row)
        own = kept[scans.base[row] : scans.base[row] + scans.room[row]]
        low = begin_of(scan.program, state, scope, begins)
        begin = used = offsets[number]
        if other < 0:
            offsets[number + 1] = used
            continue
        at = state.head[other]
        left = newest
        while at >= 0 and (further or (at >= low and left > 0)):
            last = at < low or left == 0
            if not is_dropped(scan.program, state, own, at, step, begins):
                if used == len(found):
                    found = np.concatenate((found, np.empty(used, np.int64)))
                found[used] = own[at, 0]
                used += 1
                left -= 1
                if last:
                    break
            at = own[at, 2]
        found[begin:used] = found[begin:used][::-1].copy()
        offsets[number + 1] = used
    return offsets, found[: offsets[-1]].copy()
