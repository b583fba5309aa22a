"""Which of the matches that were collected are matches: by their numbers of events, ``,``, UNTIL, and what could be
added to an operand without events.

Source: SPEC section 3. What is collected obeys order, window and conditions, and holds all that can be added to it. An
event that could be added inside a repeated operand changes neither its first event nor its last one; and in front of
what comes directly next, or behind what it comes after, there is no room. So ``,`` is judged of what is collected, and
so is UNTIL where an operand takes any of the events that fit. Only an operand without events asks for itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.kernels.joins import PAIRS_AT_ONCE, Joiner, shares
from patternlake.udfs.kleene.kernels.runs import NEVER
from patternlake.udfs.kleene.query import Condition
from patternlake.udfs.language.predicate.references import Reference


def screened(joiner: Joiner, matches: Collected) -> Collected:
    """Those that are matches, negations and aggregates apart."""
    layout = joiner.layout
    for slot in layout.sized:
        size = np.diff(matches.lists[slot][0])
        most = layout.slots[slot].most
        fits = size >= layout.slots[slot].count
        matches = matches.take(fits if most is None else fits & (size <= most))
    for left, right in layout.touching:
        last, first = matches.extreme(left, last=True), matches.extreme(right, last=False)
        apart = np.flatnonzero((last >= 0) & (first < NEVER))
        meets = np.ones(len(matches), np.bool_)
        meets[apart] = joiner.stream.meets(last[apart], first[apart])
        matches = matches.take(meets)
    for operand in sorted(layout.ending):
        matches = matches.take(_unbroken(joiner, matches, operand))
    for operand in layout.left_out:
        matches = matches.take(_none_can_be_added(joiner, matches, operand))
    return matches


def _unbroken(joiner: Joiner, matches: Collected, operand: int) -> BoolArray:
    """bool[k]: no event that ends the collecting of an operand lies behind its first event, up to its last one."""
    slots = joiner.layout.of_operand[operand]
    first, last = matches.extreme(slots, last=False), matches.extreme(slots, last=True)
    endings, source = joiner.stream.ending_rows(operand), joiner.stream.source
    ended = np.searchsorted(endings, source, side="right")
    return np.asarray(ended[last] <= ended[first])


def _none_can_be_added(joiner: Joiner, matches: Collected, operand: int) -> BoolArray:
    """bool[k]: no event can be added to an operand without events."""
    layout, stream = joiner.layout, joiner.stream
    of = layout.of_operand
    whole = layout.whole.before

    def slots(operands: Iterable[int]) -> list[int]:
        return [slot for number in operands for slot in of.get(number, ())]

    every = slots(of)
    begin, end = matches.extreme(every, last=False), matches.extreme(every, last=True)
    low, high = stream.floor[end], stream.reach[begin]
    low = np.maximum(low, matches.extreme(slots(a for a, b in whole if b == operand), last=True) + 1)
    high = np.minimum(high, matches.extreme(slots(b for a, b in whole if a == operand), last=False))
    first = stream.rank(operand, low)
    last = np.maximum(stream.rank(operand, np.maximum(high, low)), first)
    # The first event of an operand has none before it.
    conditions = [part for part in layout.outside if operand in part.operands and part.before != operand]
    meeting = [pair for pair in layout.whole.adjacent if operand in pair[0] | pair[1]]
    if not conditions and not meeting:
        return np.asarray(first == last)
    members = stream.members[operand]
    found = np.zeros(len(matches), np.bool_)
    for start, stop in shares(last - first, PAIRS_AT_ONCE):
        rows, at = expanded(first[start:stop], last[start:stop])
        rows += start
        events = members[at]
        for left, right in meeting:
            before = matches.extreme(slots(left), last=True)[rows]
            behind = matches.extreme(slots(right), last=False)[rows]
            if operand in left:
                before = np.maximum(before, events)
            else:
                behind = np.minimum(behind, events)
            apart = np.flatnonzero((before >= 0) & (behind < NEVER))
            meets = np.ones(len(rows), np.bool_)
            meets[apart] = stream.meets(before[apart], behind[apart])
            rows, events = rows[meets], events[meets]
        for condition in conditions:
            holds = _holds_for_all(joiner, matches, condition, operand, rows, events)
            rows, events = rows[holds], events[holds]
        found[rows] = True
    return ~found


def _holds_for_all(
    joiner: Joiner, matches: Collected, condition: Condition, operand: int, rows: IntArray, events: IntArray
) -> BoolArray:
    """bool[r]: whether a condition holds between an event of an operand and all events that other operands have in its
    match; neighbours where it compares such.

    It does not apply where one of them has no event.
    """
    of = joiner.layout.of_operand
    pair = np.arange(len(rows), dtype=np.int64)
    earlier: dict[int, IntArray] = {}
    later: dict[int, IntArray] = {}
    for other in condition.operands:
        if other == operand:
            continue
        at, one, two = _events_of(matches, of.get(other, ()), rows[pair], neighbours=other == condition.before)
        earlier = {number: kept[at] for number, kept in earlier.items()}
        later = {number: kept[at] for number, kept in later.items()}
        earlier[other], later[other], pair = one, two, pair[at]
    number_of = dict(zip(condition.names, condition.operands, strict=True))
    event_of: dict[Reference, IntArray] = {}
    for reference in condition.predicate.references:
        number = number_of[reference.operand or ""]
        if number == operand:
            event_of[reference] = events[pair]
        else:
            event_of[reference] = (earlier if reference.index == "i-1" else later)[number]
    holds = joiner.judged(condition.predicate, event_of, len(pair))
    return np.asarray(np.bincount(pair[~holds], minlength=len(rows)) == 0)


def _events_of(
    matches: Collected, slots: Iterable[int], rows: IntArray, *, neighbours: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """(place in `rows`, event, event) of all events that some slots have in some matches; or of each but the last and
    the one behind it.
    """
    place, event = matches.events_of(slots, rows)
    if not neighbours:
        return place, event, event
    order = np.lexsort((event, place))
    place, event = place[order], event[order]
    same = np.flatnonzero(place[1:] == place[:-1])
    return place[same], event[same], event[same + 1]
