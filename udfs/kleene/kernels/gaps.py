"""``!X``: whether what must be absent is there.

Source: SPEC section 3. Between the last event of everything before it and the first of everything behind it there is no
X that satisfies its predicates for all kept events; tested last, never steering what is collected. Where nothing stands
on a side, X counts as far as the window of the match reaches; where a deadline of its own bounds it there, as far as
that does. ``!(B ; C)``: no such events, one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from time import perf_counter
from typing import cast

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.kleene.deadlines import Deadline
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.kernels.comparisons import comparison
from patternlake.udfs.kleene.kernels.joins import PAIRS_AT_ONCE, Joiner, shares
from patternlake.udfs.kleene.kernels.runs import NEVER
from patternlake.udfs.kleene.linearizations import Absent, Gap
from patternlake.udfs.kleene.query import Condition
from patternlake.udfs.kleene.work import Work, absence
from patternlake.udfs.language.predicate.references import Reference


def free_of_negated(joiner: Joiner, matches: Collected, work: Work | None = None) -> BoolArray:
    """bool[k]: the matches of which all that must be absent is so; `work` is told how many are left at each."""
    free = np.ones(len(matches), np.bool_)
    if not len(matches):
        return free
    test = _Test(joiner, matches)
    for gap in joiner.layout.linearization.gaps:
        bounds = test.bounds(gap)
        left: dict[int, int] = {}
        for absent in gap.negated:
            begun = perf_counter()
            rows = np.flatnonzero(free & bounds.between)
            free[rows[test.present(gap, absent, bounds.take(rows))]] = False
            # An operand of a group may stand in several, and its step is done with the last of them.
            left |= dict.fromkeys(absent.operands, int(free.sum()))
            if work is not None:
                work.add(absence(absent.operands[0]), 0, perf_counter() - begun)
        if work is not None:
            for operand, rows_left in left.items():
                work.add(absence(operand), rows_left, 0.0)
    return free


@dataclass(frozen=True)
class _Bounds:
    """Where in the order of events something must be absent, for r matches.

    Attributes
    ----------
    rows
        int64[r]: the matches.
    low, high
        int64[r]: events from one, up to another (exclusive).
    open_low, open_high
        int64[r]: the same for what a deadline of its own bounds on that side.
    between
        bool[r]: False where a side that stands in the pattern has no event; then nothing is between.
    """

    rows: IntArray
    low: IntArray
    high: IntArray
    open_low: IntArray
    open_high: IntArray
    between: BoolArray

    def take(self, rows: IntArray) -> _Bounds:
        """Some of them."""
        return _Bounds(
            self.rows[rows],
            self.low[rows],
            self.high[rows],
            self.open_low[rows],
            self.open_high[rows],
            self.between[rows],
        )


class _Test:
    """Looks in matches for what must be absent."""

    def __init__(self, joiner: Joiner, matches: Collected) -> None:
        self.joiner, self.matches = joiner, matches
        self.stream: Stream = joiner.stream
        self.begin, self.end = self.stream.offsets[matches.part], self.stream.offsets[matches.part + 1]

    def bounds(self, gap: Gap) -> _Bounds:
        """Where what a gap forbids must not be."""
        stream, operands = self.stream, self.joiner.layout.linearization.operands
        between = np.ones(len(self.matches), np.bool_)
        if gap.left:
            low = self.extreme(gap.left, last=True) + 1
            between &= low > 0
            open_low = low
        else:
            low, open_low = stream.floor[self.extreme(operands, last=True)], self.begin
        if gap.right:
            high = self.extreme(gap.right, last=False)
            between &= high < NEVER
            open_high = high
        else:
            high, open_high = stream.reach[self.extreme(operands, last=False)], self.end
        rows = np.arange(len(self.matches), dtype=np.int64)
        return _Bounds(rows, low, high, open_low, open_high, between)

    def present(self, gap: Gap, absent: Absent, bounds: _Bounds) -> BoolArray:
        """bool[r]: in which of some matches all that `absent` names is there, one after another."""
        found = np.zeros(len(bounds.rows), np.bool_)
        conditions = [part for part in self.joiner.layout.negations if set(part.absent) <= set(absent.operands)]
        search = _Search(self, gap, absent, conditions, bounds, found)
        search.follow(np.arange(len(found), dtype=np.int64), [])
        return found

    def extreme(self, operands: Iterable[int], *, last: bool) -> IntArray:
        """The last, or first, event of some operands in each match; -1, or `NEVER`, where there is none."""
        of = self.joiner.layout.of_operand
        return self.matches.extreme((slot for operand in operands for slot in of.get(operand, ())), last=last)

    def reached(self, deadline: Deadline, rows: IntArray, *, last: bool) -> tuple[IntArray, IntArray]:
        """The rows that a deadline bounds below (`last`) or above, and the first event that it reaches there.

        It holds for all kept events of its operand: a lower bound counts from the last of them, an upper one from the
        first.
        """
        bound = deadline.low if last else deadline.high
        if bound is None:
            return rows[:0], rows[:0]
        event = self.extreme((deadline.operand,), last=last)[rows]
        known = np.flatnonzero((event >= 0) & (event < NEVER))
        moment = self.stream.times[event[known]] + bound + (not last)
        return known, _first_from(self.stream.times, self.begin[rows[known]], self.end[rows[known]], moment)

    def own_events(self, gap: Gap) -> _Own | None:
        """The events of the match that may lie where a gap forbids others; None where there are none."""
        beside = set(self.joiner.layout.linearization.operands) - gap.left - gap.right
        slots = [slot for operand in beside for slot in self.joiner.layout.of_operand.get(operand, ())]
        every = np.arange(len(self.matches), dtype=np.int64)
        size = np.int64(len(self.stream) + 1)
        row, event = self.matches.events_of(slots, every)
        places = np.sort(row * size + event)
        return _Own(places, size) if len(places) else None

    def only_slot(self, operand: int) -> int | None:
        """The slot of an operand that takes one event."""
        slots = self.joiner.layout.of_operand[operand]
        return slots[0] if len(slots) == 1 and slots[0] in self.matches.ones else None


@dataclass(frozen=True)
class _Own:
    """Events of matches, as one number of match and event each, ascending."""

    places: IntArray
    size: np.int64

    def among(self, rows: IntArray, events: IntArray) -> BoolArray:
        """bool[k]: whether each event is one of its match."""
        wanted = rows * self.size + events
        at = np.minimum(np.searchsorted(self.places, wanted), len(self.places) - 1)
        return np.asarray(self.places[at] == wanted)


@dataclass(frozen=True)
class _Search:
    """Looks for what one `Absent` names.

    Attributes
    ----------
    test, gap, absent
        Where, and for what.
    conditions
        Over its operands.
    bounds
        Of r matches.
    found
        bool[r]: those in which it is there; filled.
    early, late
        bool[r]: where a deadline of its own, and not the window, says how early, and how late, it may begin and end.
    """

    test: _Test
    gap: Gap
    absent: Absent
    conditions: list[Condition]
    bounds: _Bounds
    found: BoolArray

    @cached_property
    def early(self) -> BoolArray:
        return self.bounded(0, last=True)

    @cached_property
    def late(self) -> BoolArray:
        return self.bounded(len(self.absent.operands) - 1, last=False)

    def bounded(self, at: int, *, last: bool) -> BoolArray:
        """bool[r]: where a deadline of its own bounds the event at a place below (`last`) or above."""
        found = np.zeros(len(self.found), np.bool_)
        for deadline in self.deadlines(at):
            if deadline.own:
                found[self.test.reached(deadline, self.bounds.rows, last=last)[0]] = True
        return found

    def follow(self, chosen: IntArray, before: list[IntArray]) -> None:
        """Mark those of `chosen`, numbers of matches, in which what is left comes behind the events in `before`."""
        operands, at = self.absent.operands, len(before)
        some = self.bounds.take(chosen)
        placed, last = set(operands[: at + 1]), at + 1 == len(operands)
        judged = [
            part
            for part in self.conditions
            if part.deadline is None and operands[at] in part.absent and set(part.absent) <= placed
        ]
        low, high = self.reached(chosen, some, before)
        members, first, behind, judged = self.among(some.rows, before, low, high, judged)
        own = self.test.own_events(self.gap)
        if last and not judged and own is None:
            self.found[chosen[behind > first]] = True
            return
        # Where nothing that follows is compared with the events so far, the first one that fits leaves most room.
        rest = set(operands[at + 1 :])
        compared = any(
            len(part.absent) > 1 and placed.intersection(part.absent) and rest.intersection(part.absent)
            for part in self.conditions
        )
        anywhere = not self.gap.left and not self.gap.right
        earliest = not compared and not anywhere and at + 1 not in self.absent.directly
        for begin, end in shares(behind - first, PAIRS_AT_ONCE):
            inside, place = expanded(first[begin:end], behind[begin:end])
            inside += begin
            holds = ~self.found[chosen[inside]]
            inside, events = inside[holds], members[place[holds]]
            if own is not None:
                holds = ~own.among(some.rows[inside], events)
                inside, events = inside[holds], events[holds]
            for condition in judged:
                columns = [*(column[inside] for column in before), events]
                holds = self.for_all_kept(condition, some.rows[inside], columns)
                inside, events = inside[holds], events[holds]
            if last:
                self.found[chosen[inside]] = True
                continue
            if earliest:
                inside, taken = np.unique(inside, return_index=True)
                events = events[taken]
            self.follow(chosen[inside], [*(column[inside] for column in before), events])

    def reached(self, chosen: IntArray, some: _Bounds, before: list[IntArray]) -> tuple[IntArray, IntArray]:
        """Where the next event may be: from one, up to another (exclusive)."""
        gap, at = self.gap, len(before)
        high = self.within_deadlines(some.rows, at, np.where(self.late[chosen], some.open_high, some.high), last=False)
        low = self.within_deadlines(some.rows, at, np.where(self.early[chosen], some.open_low, some.low), last=True)
        if before:
            low = np.maximum(low, before[-1] + 1)
            # They and the match lie in one window.
            alone = self.late[chosen] | self.early[chosen]
            high = np.where(alone, high, np.minimum(high, self.test.stream.reach[before[0]]))
            if at in self.absent.directly:
                low, high = self.next_to(before[-1], low, high)
        elif gap.behind:
            low, high = self.next_to(some.low - 1, low, high)
        if gap.ahead:
            ordinal, event = self.test.stream.ordinal, some.high - 1
            directly = (event >= 0) & (ordinal[event] + 1 == ordinal[some.high])
            low = np.where(directly, np.maximum(event, low), some.high)
        return low, high

    def within_deadlines(self, rows: IntArray, at: int, side: IntArray, *, last: bool) -> IntArray:
        """The lower (`last`) or upper end of the events that may stand at a place, no further than `side`."""
        for deadline in self.deadlines(at):
            known, reached = self.test.reached(deadline, rows, last=last)
            side = side.copy()
            side[known] = (np.maximum if last else np.minimum)(side[known], reached)
        return side

    def deadlines(self, at: int) -> list[Deadline]:
        """The deadlines of the operand at a place."""
        own = (self.absent.operands[at],)
        return [part.deadline for part in self.conditions if part.deadline is not None and part.absent == own]

    def next_to(self, event: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """The event directly behind another one in the partition, where it is one that counts and lies in bounds."""
        ordinal = self.test.stream.ordinal
        following = np.minimum(event + 1, len(ordinal) - 1)
        directly = (ordinal[following] == ordinal[event] + 1) & (following > event)
        return np.maximum(event + 1, low), np.where(directly, np.minimum(event + 2, high), event + 1)

    def among(
        self,
        rows: IntArray,
        before: list[IntArray],
        low: IntArray,
        high: IntArray,
        judged: list[Condition],
    ) -> tuple[IntArray, IntArray, IntArray, list[Condition]]:
        """Events in an order in which those that may be the next one lie together, where they lie, and what is to be
        judged of each.

        An equality with one event is looked up.
        """
        operand = self.absent.operands[len(before)]
        members = self.test.stream.members[operand]
        for condition in judged:
            event = self.other_event(condition, rows, before)
            grouped = None if event is None else _grouped(self.test.joiner, condition, operand)
            if event is None or grouped is None:
                continue
            size = np.int64(len(self.test.stream) + 1)
            key, known = grouped.other_key[event], grouped.other_known[event]
            code = np.searchsorted(grouped.keys, key)
            known = known & (code < len(grouped.keys)) & (np.append(grouped.keys, 0)[code] == key)
            first = np.searchsorted(grouped.places, code * size + low)
            behind = np.searchsorted(grouped.places, code * size + np.maximum(low, high))
            rest = [one for one in judged if one is not condition]
            return grouped.events, first, np.where(known, behind, first), rest
        return members, np.searchsorted(members, low), np.searchsorted(members, np.maximum(low, high)), judged

    def other_event(self, condition: Condition, rows: IntArray, before: list[IntArray]) -> IntArray | None:
        """The event that a condition compares with the next one, where it is one event of each match."""
        operands, at = self.absent.operands, len(before)
        if len(condition.operands) + len(condition.absent) != 2:
            return None
        if condition.operands:
            slot = self.test.only_slot(condition.operands[0])
            return None if slot is None else self.test.matches.ones[slot][rows]
        (other,) = set(condition.absent) - {operands[at]}
        return before[operands.index(other)] if operands[:at].count(other) == 1 else None

    def for_all_kept(self, condition: Condition, rows: IntArray, events: list[IntArray]) -> BoolArray:
        """Whether a condition holds of the last of some absent events, with all events of its match that it names."""
        operands, at = self.absent.operands, len(events) - 1
        of_absent = [
            [
                events[place]
                for place in range(at + 1)
                if operands[place] == number and (number != operands[at] or place == at)
            ]
            for number in condition.absent
        ]
        holds = np.ones(len(rows), np.bool_)
        for chosen in product(*of_absent):
            holds &= self.holding(condition, rows, dict(zip(condition.absent_names, chosen, strict=True)))
        return holds

    def holding(self, condition: Condition, rows: IntArray, absent: Mapping[str, IntArray]) -> BoolArray:
        """Whether a condition holds between absent events and all events of their match that it names."""
        joiner, matches = self.test.joiner, self.test.matches
        pair = np.arange(len(rows), dtype=np.int64)
        event_of: dict[int, IntArray] = {}
        for operand in condition.operands:
            inside, found = matches.events_of(joiner.layout.of_operand[operand], rows[pair])
            event_of = {other: events[inside] for other, events in event_of.items()}
            event_of[operand] = found
            pair = pair[inside]
        number_of = dict(zip(condition.names, condition.operands, strict=True))
        resolved: dict[Reference, IntArray] = {}
        for reference in condition.predicate.references:
            number = number_of.get(reference.operand or "")
            resolved[reference] = absent[reference.operand or ""][pair] if number is None else event_of[number]
        holds = joiner.judged(condition.predicate, resolved, len(pair))
        # An operand without events leaves a pair without combinations: the condition does not apply to it.
        return np.asarray(np.bincount(pair[~holds], minlength=len(rows)) == 0)


@dataclass(frozen=True)
class _Grouped:
    """The events of a negated operand by what a condition says is equal to something of another event.

    Attributes
    ----------
    keys
        int64[g]: the values, ascending.
    events, places
        int64[k]: the events by value, each in order; and place of the value times (m + 1), plus event, ascending.
    other_key, other_known
        int64[m], bool[m]: the value on the other side of every event; False where it is NULL.
    """

    keys: IntArray
    events: IntArray
    places: IntArray
    other_key: IntArray
    other_known: BoolArray


def _grouped(joiner: Joiner, condition: Condition, operand: int) -> _Grouped | None:
    """The events of a negated operand by a condition; None where it is no equality."""
    stream = joiner.stream
    key = id(condition), operand
    if key not in stream.grouped:
        name = condition.absent_names[condition.absent.index(operand)]
        made = comparison(condition.predicate, lambda reference: reference.operand == name, stream)
        found = None
        if made is not None and made.operator == "=":
            members = stream.members[operand]
            members = members[made.left_known[members]]
            keys, code = np.unique(made.left[members], return_inverse=True)
            order = np.argsort(code, kind="stable")
            places = code[order] * np.int64(len(stream) + 1) + members[order]
            found = _Grouped(keys, members[order], places, made.right, made.right_known)
        stream.grouped[key] = found
    return cast("_Grouped | None", stream.grouped[key])


@njit(cache=True)
def _first_from(times: IntArray, begin: IntArray, end: IntArray, moment: IntArray) -> IntArray:
    """For each row the first event of a range, in the order of time, that is not before a moment."""
    found = np.empty(len(begin), np.int64)
    for row in range(len(begin)):
        low, high = begin[row], end[row]
        while low < high:
            middle = (low + high) // 2
            if times[middle] < moment[row]:
                low = middle + 1
            else:
                high = middle
        found[row] = low
    return found
