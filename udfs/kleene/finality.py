"""Which matches are final: no event that may still come can change them.

Source: SPEC section 3, ``final``. Events that may still come stand behind all that are **settled**: those whose time is
at or below the watermark, which are a prefix of the stream in the order of (time, position). So a match whose events
are settled changes only

- where a last ``+`` or ``*`` can still take an event, which ends with the window of its first event;
- where its start gives way to a match of another linearization, which ends there, too;
- under ``past_last``, where a start before it that has no match yet may still get one that goes over it. A start that
  lies inside a match has none of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import stream_of
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.partitions import ranks
from patternlake.udfs.policies import resumes


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
    expired = _expired(pattern, events, moment, settled)
    own = expired[matches.first_events] if ends_with_window(pattern, policy) else settled[matches.last_events]
    if not resumes(policy, after_match):
        return np.asarray(own)
    first, last, key = matches.first_events, matches.last_events, matches.key
    depth = np.zeros(len(events) + 1, np.int64)
    np.add.at(depth, first, 1)
    np.add.at(depth, last + 1, -1)
    stream = stream_of(pattern, events)
    starts = np.zeros(len(events), np.bool_)
    for operand in pattern.beginnings:
        starts[stream.source[stream.members[operand]]] = True
    waiting = np.flatnonzero(starts & ~expired & (np.cumsum(depth)[:-1] == 0))
    blocked = np.full(int(events.keys.max(initial=0)) + 1, len(events), np.int64)
    np.minimum.at(blocked, events.keys[waiting], waiting)
    np.minimum.at(blocked, key[~own], first[~own])
    return np.asarray(own & (first < blocked[key]))


def _expired(pattern: KleenePattern, events: Events, moment: Moment, settled: BoolArray) -> BoolArray:
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
