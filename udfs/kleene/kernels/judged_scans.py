"""The scan of ``skip_till_next`` and ``strict`` with conditions that only the evaluator can judge.

Source: SPEC section 3. Scans of many starts go on side by side. Each goes as far as comparisons alone can tell, and
asks about the events that come next; the evaluator judges what all of them ask at once. An event that is not taken
leaves a scan as it is: so after a refusal the scan asks about twice as many events ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.joins import PAIRS_AT_ONCE, Joiner, shares
from patternlake.udfs.kleene.kernels.scans import ENDLESS, Scan, qualifies
from patternlake.udfs.kleene.kernels.tables import expanded
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import Condition
from patternlake.udfs.language.predicate.references import Reference

STARTS_AT_ONCE = 1 << 14
"""So many scans go on side by side."""
ASKED_AT_ONCE = 1 << 19
"""About so many questions they ask at once."""
MOST_KEPT = 1 << 24
"""Where they keep more events together, fewer go on side by side."""

FIRST_JUDGED = 8
"""With so many of the events that one operand keeps an event is judged first."""


class Scans(NamedTuple):
    """Scans of some starts.

    Attributes
    ----------
    open
        bool[s]: which go on.
    at
        int64[s]: the place of the operand that took the last event.
    event, limit
        int64[s]: the next event to look at, and one behind the last that may be.
    ahead
        int64[s]: how many events to ask about next.
    begin, counts
        int64[s, k]: what each operand keeps, as a range of the scan's kept events.
    size
        int64[s]: how many events are kept.
    base, room
        int64[s]: where they lie among those of all scans, and how many find room there.
    """

    open: BoolArray
    at: IntArray
    event: IntArray
    limit: IntArray
    ahead: IntArray
    begin: IntArray
    counts: IntArray
    size: IntArray
    base: IntArray
    room: IntArray


class Asked(NamedTuple):
    """Whether an operand may take an event, as scans ask it: int64[q] each, by scan and event and place, rising."""

    scan: IntArray
    place: IntArray
    event: IntArray


def scanned(
    scan: Scan, joiner: Joiner, linearization: Linearization, rest: Sequence[Condition], most: int
) -> tuple[IntArray, IntArray, IntArray]:
    """As `scans.scanned`, with conditions that only the evaluator can judge.

    `Scan.apart` is not looked at: matches inside of others are found as well.
    """
    place_of = {number: place for place, number in enumerate(linearization.operands)}
    asking = np.zeros(len(place_of), np.bool_)
    asking[[place_of[number] for condition in rest for number in condition.operands]] = True
    first = int(np.argmax(scan.least > 0))
    starts = np.flatnonzero(scan.mask[: first + 1].any(axis=0)).astype(np.int64)
    nothing = np.zeros(0, np.int64)
    sizes, events, places = [nothing], [nothing], [nothing]
    total, begin, at_once = 0, 0, STARTS_AT_ONCE
    while begin < len(starts):
        own = starts[begin : begin + at_once]
        scans, kept = _begun(scan, own), np.empty(4 * len(own), np.int64)
        while scans.open.any() and (len(kept) <= MOST_KEPT or len(own) == 1):
            asked = Asked(*_ask(scan, scans, kept, asking, max(1, ASKED_AT_ONCE // int(scans.open.sum()))))
            holds = np.ones(len(asked.scan), np.bool_)
            for condition in rest:
                _judge(holds, asked, scans, kept, condition, joiner, place_of)
            kept = _go_on(scan, scans, kept, asked.scan, asked.place, asked.event, holds)
        if scans.open.any():
            at_once = max(1, len(own) // 4)
            continue
        begin += len(own)
        whole = np.flatnonzero((scans.counts >= scan.least).all(axis=1) & (scans.size > 0))
        size = scans.size[whole]
        total += int(size.sum())
        if total > most:
            return nothing, nothing, nothing
        sizes.append(size)
        events.append(kept[expanded(scans.base[whole], scans.base[whole] + size)[1]])
        # Operands keep their events in the order of their places.
        counts = scans.counts[whole].ravel()
        places.append(np.repeat(np.tile(np.arange(len(place_of)), len(whole)), counts))
    offsets = np.concatenate([np.zeros(1, np.int64), *sizes]).cumsum()
    return offsets, np.concatenate(events), np.concatenate(places)


def _begun(scan: Scan, starts: IntArray) -> Scans:
    s, k = len(starts), len(scan.mask)
    return Scans(
        open=np.ones(s, np.bool_),
        at=np.zeros(s, np.int64),
        event=starts.copy(),
        limit=np.minimum(scan.reach[starts], scan.stop[starts]),
        ahead=np.ones(s, np.int64),
        begin=np.zeros((s, k), np.int64),
        counts=np.zeros((s, k), np.int64),
        size=np.zeros(s, np.int64),
        base=np.arange(s, dtype=np.int64) * 4,
        room=np.full(s, 4, np.int64),
    )


@njit(cache=True)
def _ask(
    scan: Scan, scans: Scans, kept: IntArray, asking: BoolArray, most_ahead: int
) -> tuple[IntArray, IntArray, IntArray]:
    """What the open scans ask next, as `Asked`; those that find no event to ask about end.

    `asking`: of which operands the evaluator judges anything; the others take what qualifies by comparisons.
    """
    operands = len(asking)
    rows, places, events = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    for row in range(len(scans.open)):
        if not scans.open[row]:
            continue
        own = kept[scans.base[row] : scans.base[row] + scans.size[row]]
        begin, count = scans.begin[row], scans.counts[row]
        event, limit = scans.event[row], scans.limit[row]
        only = scan.strict or scans.size[row] == 0
        left = 1 if only else min(scans.ahead[row], most_ahead)
        before = found
        while event < limit and left > 0:
            nearest, asked, sure = ENDLESS, False, False
            if found + operands > len(rows):
                rows = np.concatenate((rows, np.empty(len(rows), np.int64)))
                places = np.concatenate((places, np.empty(len(places), np.int64)))
                events = np.concatenate((events, np.empty(len(events), np.int64)))
            for place in range(scans.at[row], operands):
                if count[place] < scan.most[place]:
                    nearest = min(nearest, scan.following[place, event + 1])
                    if qualifies(scan, own, begin, count, place, event):
                        rows[found], places[found], events[found] = row, place, event
                        found += 1
                        asked = True
                        sure = sure or not asking[place]
                if count[place] < scan.least[place]:
                    break
            event = nearest
            if asked:
                left -= 1
            if sure or only:
                break
        scans.event[row] = event
        if found == before:
            scans.open[row] = False
    return rows[:found].copy(), places[:found].copy(), events[:found].copy()


@njit(cache=True)
def _go_on(
    scan: Scan, scans: Scans, kept: IntArray, rows: IntArray, places: IntArray, events: IntArray, holds: BoolArray
) -> IntArray:
    """Take the first event of each scan that may be taken, by the last place that may; gives where events are kept."""
    operands = len(scan.mask)
    used = scans.base.max() + scans.room[scans.base.argmax()]
    at = 0
    while at < len(rows):
        row, end, taken = rows[at], at, -1
        while end < len(rows) and rows[end] == row:
            if holds[end] and (taken < 0 or events[end] == events[taken]):
                taken = end
            end += 1
        at = end
        if taken < 0:
            scans.ahead[row] *= 2
            # Under these an event that is not taken ends the scan; `_ask` asks about no more than one.
            if scan.strict or scans.size[row] == 0:
                scans.open[row] = False
            continue
        place, event, size = places[taken], events[taken], scans.size[row]
        if place != scans.at[row] or scans.counts[row, place] == 0:
            scans.begin[row, place] = size
        if size == scans.room[row]:
            while used + 2 * size > len(kept):
                kept = np.concatenate((kept, np.empty(len(kept), np.int64)))
            kept[used : used + size] = kept[scans.base[row] : scans.base[row] + size]
            scans.base[row], scans.room[row] = used, 2 * size
            used += 2 * size
        kept[scans.base[row] + size] = event
        scans.size[row] = size + 1
        scans.at[row] = place
        scans.counts[row, place] += 1
        scans.ahead[row] = 1
        scans.event[row] = event + 1
        full = place == operands - 1 and scans.counts[row, place] == scan.most[place]
        apart = event + 1 >= scans.limit[row] or (scan.strict and scan.ordinal[event + 1] != scan.ordinal[event] + 1)
        if full or apart:
            scans.open[row] = False
    return kept


def _judge(
    holds: BoolArray,
    asked: Asked,
    scans: Scans,
    kept: IntArray,
    condition: Condition,
    joiner: Joiner,
    place_of: dict[int, int],
) -> None:
    """Clear `holds` where a condition does not hold for an event and some of what is kept of the other operands."""
    own = [place_of[number] for number in condition.operands]
    before = None if condition.before is None else place_of[condition.before]
    for place in own:
        chosen = np.flatnonzero(holds & (asked.place == place))
        rows = asked.scan[chosen]
        low: dict[int, IntArray] = {}
        high: dict[int, IntArray] = {}
        for other in own:
            first = scans.base[rows] + scans.begin[rows, other]
            end = first + scans.counts[rows, other]
            if other != place:
                low[other] = first + 1 if other == before else first
                high[other] = np.maximum(end, low[other])
            elif other == before:
                # The event's neighbour is the last that its operand keeps, if it keeps any.
                low[other], high[other] = end - 1, np.where(end > first, end, end - 1)
            else:
                low[other], high[other] = np.zeros_like(end), np.ones_like(end)
        widest = max(own, key=lambda other: int((high[other] - low[other]).max(initial=0)))
        end, width = high[widest], FIRST_JUDGED
        # Most events fail against the first few that are kept: only those that do not meet the others.
        while len(chosen):
            high[widest] = np.minimum(end, low[widest] + width)
            false = _failing(asked.event[chosen], place, own, low, high, kept, condition, joiner)
            holds[chosen[false]] = False
            going = ~false & (high[widest] < end)
            chosen, end = chosen[going], end[going]
            low = {other: (high if other == widest else low)[other][going] for other in own}
            high = {other: column[going] for other, column in high.items()}
            width *= 8


def _failing(
    events: IntArray,
    place: int,
    own: Sequence[int],
    low: dict[int, IntArray],
    high: dict[int, IntArray],
    kept: IntArray,
    condition: Condition,
    joiner: Joiner,
) -> BoolArray:
    """Which events, taken at a place, fail against some of what lies in the ranges of `kept`, by place."""
    failing = np.zeros(len(events), np.bool_)
    pairs = np.prod([high[other] - low[other] for other in own], axis=0, dtype=np.int64)
    for begin, end in shares(pairs, PAIRS_AT_ONCE):
        number = np.arange(begin, end, dtype=np.int64)
        at: dict[int, IntArray] = {}
        for other in own:
            new, found = expanded(low[other][number], high[other][number])
            number, at = number[new], {each: column[new] for each, column in at.items()} | {other: found}
        event_of: dict[Reference, IntArray] = {}
        for reference in condition.predicate.references:
            other = own[condition.names.index(reference.operand or "")]
            earlier = reference.index == "i-1"
            if other != place:
                event_of[reference] = kept[at[other] - 1] if earlier else kept[at[other]]
            else:
                event_of[reference] = kept[at[other]] if earlier else events[number]
        failing[number[~joiner.judged(condition.predicate, event_of, len(number))]] = True
    return failing
