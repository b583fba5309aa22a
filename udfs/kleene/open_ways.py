"""From which events the ways of a pattern may still go on, under the policies that scan.

Source: SPEC section 3. A scan never goes back, so that a way has ended where an event is settled directly behind what
it has taken, which only the event directly next could have carried on: under ``strict`` always, under
``skip_till_next`` where it awaits what ``,`` joins.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import Stream, stream_of
from patternlake.udfs.kleene.kernels.bindings import SmallArray
from patternlake.udfs.kleene.kernels.scanning import taken_from
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.ways import Way
from patternlake.udfs.partitions import ranks

NEVER = 1 << 62
"""Stands for the place of an event that there is not."""


def is_followed(events: Events, settled: BoolArray, last: IntArray) -> BoolArray:
    """bool[k]: the events directly behind which another one is settled."""
    ordinals = ranks(events.keys) if events.ordinals is None else events.ordinals
    greatest = np.full(int(events.keys.max(initial=0)) + 1, -1, np.int64)
    np.maximum.at(greatest, events.keys[settled], ordinals[settled])
    return np.asarray(ordinals[last] < greatest[events.keys[last]])


def awaits_next(pattern: KleenePattern, order: Linearization, last: SmallArray, awaited: IntArray) -> BoolArray:
    """bool[r]: where only the event directly behind the last one can carry on what has begun.

    Parameters
    ----------
    pattern, order
        What is looked for, in which order.
    last, awaited
        int8[r], int64[r]: the operands that have the last event, and that are awaited.
    """
    found = np.zeros(len(last), np.bool_)
    for left, right in order.adjacent:
        if all(pattern.operands[one].most == 1 for one in left):
            found |= np.isin(last, list(left)) & np.isin(awaited, list(right))
    return found


class OpenWays:
    """From which events the ways of a pattern may still go on.

    Attributes
    ----------
    settled
        bool[n]: the events that no later one could come before.
    strict
        Whether a way must take each event.
    """

    def __init__(self, pattern: KleenePattern, events: Events, settled: BoolArray, *, strict: bool) -> None:
        self.pattern, self.events, self.settled, self.strict = pattern, events, settled, strict

    @cached_property
    def stream(self) -> Stream:
        """The events by operand."""
        return stream_of(self.pattern, self.events)

    @cached_property
    def followed(self) -> BoolArray:
        """bool[n]: as of `is_followed`, of all events; each way asks for it."""
        return is_followed(self.events, self.settled, np.arange(len(self.events)))

    def going_on(self, way: Way, starts: BoolArray) -> BoolArray:
        """bool[n]: those of some events that a way begins with and may go on from."""
        stream = self.stream
        begins = np.zeros(len(stream), np.bool_)
        for operand in way.beginnings:
            begins[stream.members[operand]] = True
        begins &= starts[stream.source]
        if begins.any() and (self.strict or way.order.adjacent):
            rows, awaited = taken_from(self.pattern, way, stream, begins, strict=self.strict)
            ends = rows.offsets[1:] - 1
            ended = self.followed[stream.source[rows.events[ends]]]
            if not self.strict:
                ended &= awaits_next(self.pattern, way.order, rows.operands[ends], awaited)
            begins[:] = False
            begins[rows.events[rows.offsets[:-1]][~ended]] = True
        found = np.zeros(len(self.events), np.bool_)
        found[stream.source[begins]] = True
        return found

    def are_ended(self, operand: int, first: IntArray) -> BoolArray:
        """bool[k]: whether UNTIL has ended what an operand takes from its first event on; `NEVER` where it has none."""
        keys = self.events.keys
        rows = np.sort(self.stream.source[self.stream.endings[operand]])
        rows = rows[self.settled[rows]]
        known = np.flatnonzero(first < NEVER)
        behind = np.searchsorted(rows, first[known], side="right")
        known, behind = known[behind < len(rows)], behind[behind < len(rows)]
        found = np.zeros(len(first), np.bool_)
        found[known] = keys[rows[behind]] == keys[first[known]]
        return found
