"""Which matches are final: no event that may still come can change them.

Source: SPEC section 3, ``final``. Events that may still come stand behind all that are **settled**: those whose time is
at or below the watermark, which are a prefix of the stream in the order of (time, position). So a match whose events
are settled changes only

- where a last ``+`` or ``*`` can still take an event, which ends with the window of its first event;
- where its start gives way to a match of another linearization, which ends there, too;
- where something must be absent behind it, until its deadline, or the end of that window, has passed;
- under ``past_last``, ``first b`` and ``last b``, where a start before it that has no match yet may still get one that
  goes over it. A start that lies between the first event of a match and where the search goes on has none of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import stream_of
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.partitions import ranks
from patternlake.udfs.policies import operand_after, resumes

NEVER = 1 << 62


@dataclass(frozen=True)
class Moment:
    """What was known of a stream at a publication.

    Attributes
    ----------
    watermark
        Microseconds since the epoch.
    position
        The last position that was given then; None: the greatest of all events that are given.
    """

    watermark: int
    position: int | None = None

    def settled(self, events: Events) -> BoolArray:
        """bool[n]: the events that no later one could come before."""
        below = events.times <= self.watermark
        return below if self.position is None else below & (events.positions <= self.position)


def ends_with_window(pattern: KleenePattern, policy: str) -> bool:
    """Whether a match whose events are settled may change as long as the window of its first event is open."""
    return pattern.open_end or (policy != "skip_till_any" and pattern.rivalling)


def waits(pattern: KleenePattern, policy: str, *, resumes: bool) -> frozenset[int]:
    """Microseconds from an event of a match, or of what comes before one, after which the match may become final."""
    found = {part.deadline.high + 1 for part in pattern.conditions if part.deadline and part.deadline.high is not None}
    within = pattern.within
    open_ = resumes or ends_with_window(pattern, policy) or any(not gap.right for gap in pattern.gaps)
    if within is not None and not within.counted and open_:
        found.add(within.amount)
    return frozenset(found)


def final(
    pattern: KleenePattern,
    matches: Matches,
    events: Events,
    moment: Moment | None,
    *,
    policy: str,
    after_match: str,
) -> BoolArray:
    """Which matches are final.

    Parameters
    ----------
    pattern, policy, after_match
        What was looked for.
    matches, events
        All matches of the events, r of them.
    moment
        When; None: nothing is ever settled.

    Returns
    -------
    bool[r]
    """
    if moment is None:
        return np.zeros(len(matches), np.bool_)
    settled = moment.settled(events)
    expired = _is_expired(pattern, events, moment, settled)
    own = expired[matches.first_events] if ends_with_window(pattern, policy) else settled[matches.last_events]
    own = own & absences_over(pattern, matches, events, moment, settled, expired)
    if not resumes(policy, after_match):
        return np.asarray(own)
    first, key = matches.first_events, matches.key
    depth = np.zeros(len(events) + 1, np.int64)
    np.add.at(depth, first, 1)
    np.add.at(depth, _rows_resumed_at(matches, after_match), -1)
    stream = stream_of(pattern, events)
    starts = np.zeros(len(events), np.bool_)
    for operand in pattern.beginnings:
        starts[stream.source[stream.members[operand]]] = True
    waiting = np.flatnonzero(starts & ~expired & (np.cumsum(depth)[:-1] == 0))
    blocked = np.full(int(events.keys.max(initial=0)) + 1, len(events), np.int64)
    np.minimum.at(blocked, events.keys[waiting], waiting)
    np.minimum.at(blocked, key[~own], first[~own])
    return np.asarray(own & (first < blocked[key]))


def _rows_resumed_at(matches: Matches, after_match: str) -> IntArray:
    """int64[r]: the row of `Events` at which the search goes on behind each match."""
    named = operand_after(after_match)
    if named is None:
        return matches.last_events + 1
    word, name = named
    width = len(matches.operands)
    place = np.arange(len(matches)) * width + matches.operands.index(name)
    return matches.bound[matches.offsets[place] if word == "first" else matches.offsets[place + 1] - 1]


def absences_over(
    pattern: KleenePattern,
    matches: Matches,
    events: Events,
    moment: Moment,
    settled: BoolArray,
    expired: BoolArray,
) -> BoolArray:
    """bool[r]: the matches behind which nothing can come any more that must be absent.

    Parameters
    ----------
    pattern, matches, events, moment
        As of `final`.
    settled, expired
        bool[n]: the events that no later one could come before, and those whose window none can lie in.
    """
    over = np.ones(len(matches), np.bool_)
    ending = [line for line in pattern.linearizations if any(not gap.right for gap in line.gaps)]
    if not ending or not len(matches):
        return over
    bound = _Bound(pattern, matches, events)
    for linearization in ending:
        rows = np.flatnonzero(over & bound.may_be_of(linearization))
        for gap in linearization.gaps:
            if gap.right:
                continue
            ended = np.ones(len(rows), np.bool_)
            for absent in gap.negated:
                ended &= _find_ended(bound, absent.operands[-1], rows, moment, expired)
            if gap.left:
                # Where no operand before it has an event, it has no place, and nothing is absent.
                last = bound.extreme(gap.left, last=True)[rows]
                ended |= last < 0
                if gap.behind:
                    ended |= is_followed(events, settled, np.maximum(last, 0))
            over[rows[~ended]] = False
    return over


def _find_ended(bound: _Bound, negated: int, rows: IntArray, moment: Moment, expired: BoolArray) -> BoolArray:
    """bool[k]: the rows for which no event of a negated operand can come any more."""
    pattern, events = bound.pattern, bound.events
    deadline = np.full(len(rows), NEVER)
    for condition in pattern.conditions:
        one = condition.deadline
        if one is None or not one.own or one.high is None or condition.absent != (negated,):
            continue
        # It counts from the first of the kept events, and is the first moment that lies outside.
        event = bound.extreme((one.operand,), last=False)[rows]
        known = np.flatnonzero(event < NEVER)
        deadline[known] = np.minimum(deadline[known], events.times[event[known]] + one.high + 1)
    ended = deadline <= moment.watermark
    return np.where(deadline < NEVER, ended, expired[bound.matches.first_events[rows]])


def window_over(pattern: KleenePattern, events: Events, moment: Moment) -> BoolArray:
    """bool[n]: the events whose window no later event can lie in."""
    return _is_expired(pattern, events, moment, moment.settled(events))


def is_followed(events: Events, settled: BoolArray, last: IntArray) -> BoolArray:
    """bool[k]: the events directly behind which another one is settled."""
    ordinals = ranks(events.keys) if events.ordinals is None else events.ordinals
    greatest = np.full(int(events.keys.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(greatest, events.keys[settled], ordinals[settled])
    return np.asarray(ordinals[last] < greatest[events.keys[last]])


class _Bound:
    """Which events the operands of matches have."""

    def __init__(self, pattern: KleenePattern, matches: Matches, events: Events) -> None:
        self.pattern, self.matches, self.events = pattern, matches, events
        self.match = np.repeat(np.arange(len(matches)), np.diff(matches.event_offsets))

    def extreme(self, operands: Collection[int], *, last: bool) -> IntArray:
        """int64[r]: the last, or first, event of some operands; -1, or `NEVER`, where there is none."""
        own = np.isin(self.matches.bound_operands, list(operands))
        found = np.full(len(self.matches), -1 if last else NEVER, np.int64)
        (np.maximum if last else np.minimum).at(found, self.match[own], self.matches.events[own])
        return found

    def may_be_of(self, linearization: Linearization) -> BoolArray:
        """bool[r]: the matches that a linearization may have given, by their operands and the order of these."""
        matches, pattern = self.matches, self.pattern
        fits = np.ones(len(matches), np.bool_)
        if len(pattern.linearizations) == 1:
            return fits
        fits[self.match[~np.isin(matches.bound_operands, list(linearization.operands))]] = False
        for operand in linearization.operands:
            if pattern.operands[operand].always:
                fits &= self.extreme((operand,), last=False) < NEVER
        for first, second in linearization.before:
            fits &= self.extreme((first,), last=True) < self.extreme((second,), last=False)
        return fits


def _is_expired(pattern: KleenePattern, events: Events, moment: Moment, settled: BoolArray) -> BoolArray:
    """bool[n]: the events whose window no event that is not settled can lie in."""
    if pattern.within is None:
        return np.zeros(len(events), np.bool_)
    amount = pattern.within.amount
    if not pattern.within.counted:
        return np.asarray(events.times + amount <= moment.watermark)
    ordinals = ranks(events.keys) if events.ordinals is None else events.ordinals
    greatest = np.full(int(events.keys.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(greatest, events.keys[settled], ordinals[settled])
    return np.asarray(ordinals + amount - 1 <= greatest[events.keys])
