"""Which matches are final: no event that may still come can change them.

Source: SPEC section 3, ``final``. Events that may still come stand behind all that are **settled**: those whose time is
at or below the watermark, which are a prefix of the stream in the order of (time, position). So a match whose events
are settled changes only

- where a last operand that grows can still take an event: it has not as many as it may have, no event behind it, and
  has met no end of its own (UNTIL); under ``strict``, until another event is settled directly behind the match; always
  until the window of its first event ends;
- where its start gives way to a match of a way that is tried earlier, which goes on until that window ends, or, under
  ``strict``, until an event is settled behind what it has taken that it did not take; where every choice of how many
  is asked for and the search goes on behind a match, also where its start may have further ones;
- where something must be absent behind it, until a deadline, or the end of that window, has passed;
- under ``past_last``, ``first b`` and ``last b``, where a start before it that has no match yet may still get one that
  goes over it. A start that lies between the first event of a match and where the search goes on has none of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.kernels.scanning import rank_ways
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.open_ways import NEVER, OpenWays, is_followed
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.partitions import ranks
from patternlake.udfs.policies import operand_after, resumes


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


def ends_with_window(pattern: KleenePattern, policy: str, *, resumes: bool) -> bool:
    """Whether a match whose events are settled may change as long as the window of its first event is open.

    With `resumes` further matches of its start count as a change: all of them together say where the search goes on.
    """
    # Where every choice of how many is asked for, more events make more matches of a start, and change none.
    apart = pattern.every and not resumes
    tried = pattern.linearizations if apart else pattern.ways
    return bool(pattern.growing_ends and not apart) or (policy != "skip_till_any" and len(tried) > 1)


def waits(pattern: KleenePattern, policy: str, *, resumes: bool) -> frozenset[int]:
    """Microseconds from an event of a match, or of what comes before one, after which the match may become final."""
    found = {part.deadline.high + 1 for part in pattern.conditions if part.deadline and part.deadline.high is not None}
    within = pattern.within
    open_ = resumes or ends_with_window(pattern, policy, resumes=False) or any(not gap.right for gap in pattern.gaps)
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
    first, key = matches.first_events, matches.key
    own = settled[matches.last_events] & absences_over(pattern, matches, events, moment, settled, expired)
    ways = OpenWays(pattern, events, settled, strict=policy == "strict")
    resuming = resumes(policy, after_match)
    inside = np.flatnonzero(own & ~expired[first])
    if ends_with_window(pattern, policy, resumes=resuming) and len(inside):
        bound = _Bound(pattern, matches.take(inside), events)
        grows = np.full(len(inside), resuming) if pattern.every else _may_grow(bound, ways)
        own[inside] = ~(grows if policy == "skip_till_any" else _may_go_on(bound, ways, grows))
    if not resuming:
        return np.asarray(own)
    open_ = ~expired & ~mark_passed(matches, events, after_match)
    waiting = np.flatnonzero(np.logical_or.reduce([ways.going_on(way, open_) for way in pattern.ways]))
    blocked = np.full(int(events.keys.max(initial=0)) + 1, len(events), np.int64)
    np.minimum.at(blocked, events.keys[waiting], waiting)
    np.minimum.at(blocked, key[~own], first[~own])
    return np.asarray(own & (first < blocked[key]))


def _may_grow(bound: _Bound, ways: OpenWays) -> BoolArray:
    """bool[r]: the matches that an event may still join at their end."""
    pattern = bound.pattern
    found = np.zeros(len(bound.matches), np.bool_)
    for linearization, operand in pattern.growing_ends:
        grows = bound.may_be_of(linearization) & (bound.counts(operand) < (pattern.operands[operand].most or NEVER))
        if behind := linearization.behind(operand):
            grows &= bound.extreme(behind, last=True) < 0
        if pattern.operands[operand].until:
            grows &= ~ways.are_ended(operand, bound.extreme((operand,), last=False))
        found |= grows
    return found


def _may_go_on(bound: _Bound, ways: OpenWays, grows: BoolArray) -> BoolArray:
    """bool[r]: the matches that may still grow in their own way, or give way to one that is tried earlier.

    Under ``strict`` a way also ends where an event was not taken; a round at hand may have taken some behind the match.
    """
    first, tried = bound.matches.first_events, rank_ways(bound.pattern)
    rank = bound.ranks(tried)
    found = np.zeros(len(first), np.bool_) if ways.strict else grows.copy()
    for way, own in zip(bound.pattern.ways, tried, strict=True):
        asked = ~found & ((rank > own) | (grows & (rank == own)))
        starts = np.zeros(len(bound.events), np.bool_)
        starts[first[asked]] = True
        if starts.any():
            found |= asked & ways.going_on(way, starts)[first]
    return found


def mark_passed(matches: Matches, events: Events, after_match: str) -> BoolArray:
    """bool[n]: the events at which no search begins: those from a match's first one up to where the search goes on."""
    depth = np.zeros(len(events) + 1, np.int64)
    np.add.at(depth, matches.first_events, 1)
    np.add.at(depth, _rows_resumed_at(matches, after_match), -1)
    return np.asarray(np.cumsum(depth)[:-1] > 0)


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
    ended, has_own = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    for condition in pattern.conditions:
        one = condition.deadline
        if one is None or one.high is None or condition.absent != (negated,):
            continue
        # It counts from the first of the kept events, and is the first moment that lies outside.
        event = bound.extreme((one.operand,), last=False)[rows]
        known = np.flatnonzero(event < NEVER)
        ended[known] |= events.times[event[known]] + one.high + 1 <= moment.watermark
        has_own[known] |= one.own
    return ended | (expired[bound.matches.first_events[rows]] & ~has_own)


def window_over(pattern: KleenePattern, events: Events, moment: Moment) -> BoolArray:
    """bool[n]: the events whose window no later event can lie in."""
    return _is_expired(pattern, events, moment, moment.settled(events))


class _Bound:
    """Which events the operands of matches have."""

    def __init__(self, pattern: KleenePattern, matches: Matches, events: Events) -> None:
        self.pattern, self.matches, self.events = pattern, matches, events
        self.match = np.repeat(np.arange(len(matches)), np.diff(matches.event_offsets))

    def extreme(self, operands: Collection[int], *, last: bool) -> IntArray:
        """int64[r]: the last, or first, event of some operands; -1, or `NEVER`, where there is none."""
        own = np.isin(self.matches.bound_operands, list(operands))
        found = np.full(len(self.matches), -1 if last else NEVER, np.int64)
        (np.maximum if last else np.minimum).at(found, self.match[own], self.matches.rows.events[own])
        return found

    def counts(self, operand: int) -> IntArray:
        """int64[r]: how many events an operand has."""
        return np.bincount(self.match[self.matches.bound_operands == operand], minlength=len(self.matches))

    def ranks(self, tried: Sequence[int]) -> IntArray:
        """int64[r]: of the ways that may have given each match, by its operands, when the last one is tried."""
        operands = self.matches.bound_operands.astype(np.uint64)
        taken = np.bitwise_or.reduceat(np.left_shift(np.uint64(1), operands), self.matches.event_offsets[:-1])
        kinds, kind = np.unique(taken, return_inverse=True)
        last = np.zeros(len(kinds), np.int64)
        for way, rank in zip(self.pattern.ways, tried, strict=True):
            may, must = (np.uint64(sum(1 << one for one in each)) for each in (way.operands, way.needed))
            fits = (kinds & ~may == 0) & (kinds & must == must)
            last[fits] = np.maximum(last[fits], rank)
        return last[kind]

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
