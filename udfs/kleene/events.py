"""Events of many partitions, prepared for matching: who can take part, in which order, how far a window reaches.

Source: SPEC section 3 (order by time and position, windows by count or time, ``[attr]``) and Behravesh et al.,
"Implementation" (one buffer per event class, single-class predicates in the buffer). ``[attr]`` says that all events of
a match agree, so a partition falls into one **part** per value, each matched on its own; an event without a value is a
part of its own. Without ``[attr]`` parts are partitions. Inside a part an event's number is its place in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.query import KleenePattern, Operand
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Predicate, evaluate
from patternlake.udfs.partitions import ranks
from patternlake.udfs.sort_keys import order_keys


@dataclass(frozen=True)
class Stream:
    """The events that can take part, m of them, in the order of (key, part, time, position).

    Attributes
    ----------
    source
        int64[m]: their rows in `Events`.
    part
        int64[m]: the part of each; rises.
    offsets
        int64[parts + 1]: part p has the events ``offsets[p]:offsets[p + 1]``.
    key
        int64[parts]: the partition of each part.
    ordinal
        int64[m]: rank inside the partition.
    span
        int64[m]: what a window measures: ordinal or time.
    reach
        int64[m]: one behind the last event of the part within the window that begins at each.
    floor
        int64[m]: the first event of the part whose window reaches each.
    members
        For each operand int64[k]: the events that it takes, with its filter, in order.
    endings
        For each operand with UNTIL int64[k]: the events that end its collecting, in order.
    unfiltered
        For each operand: how many events it would take without its filter.
    events
        All events, those that can't take part among them.
    windowed
        True where the pattern has a window.
    ranks
        What `rank` has looked up; filled as it is needed.
    grouped
        Events of negated operands by value, as `kernels.gaps` has looked them up; filled as it is needed.
    """

    source: IntArray
    part: IntArray
    offsets: IntArray
    key: IntArray
    ordinal: IntArray
    span: IntArray
    reach: IntArray
    floor: IntArray
    members: tuple[IntArray, ...]
    endings: Mapping[int, IntArray]
    unfiltered: tuple[int, ...]
    events: Events
    windowed: bool
    ranks: dict[int, IntArray] = field(default_factory=dict, compare=False)
    grouped: dict[tuple[int, int], object] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.source)

    def column(self, name: str, numbers: IntArray) -> Column:
        """A column's values for some of these events."""
        return self.events.column(name, self.source[numbers])

    @cached_property
    def times(self) -> IntArray:
        """int64[m]: microseconds since the epoch."""
        return np.ascontiguousarray(self.events.times[self.source], np.int64)

    def rank(self, operand: int, events: IntArray) -> IntArray:
        """How many events of an operand come before each of some events (m itself stands behind all)."""
        if operand not in self.ranks:
            taken = np.zeros(len(self) + 1, np.int64)
            taken[self.members[operand] + 1] = 1
            self.ranks[operand] = np.cumsum(taken)
        return self.ranks[operand][events]

    def ending_rows(self, operand: int) -> IntArray:
        """int64[k]: the rows of `Events` that end an operand's collecting, in order; as these are no part of a match,
        also those that ``[attr]`` tells apart from it.
        """
        return np.sort(self.source[self.endings[operand]])

    def meets(self, first: IntArray, second: IntArray) -> BoolArray:
        """bool[n]: whether the second of two events of one part comes directly after the first in the partition."""
        return np.asarray(self.ordinal[second] == self.ordinal[first] + 1)

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.key)

    def taking(self, takes: Mapping[int, BoolArray]) -> Stream:
        """The same, with operands that take only some of their events: by number, bool over the rows of `Events`."""
        members = list(self.members)
        for number, mask in takes.items():
            members[number] = members[number][mask[self.source[members[number]]]]
        return replace(self, members=tuple(members), ranks={})


def stream_of(pattern: KleenePattern, events: Events) -> Stream:
    """Prepare events for a pattern.

    Raises
    ------
    ArgumentError
        The events are not in order, arrays have different lengths, or a column that the pattern reads is missing.
    """
    _check(events)
    ordinals = ranks(events.keys) if events.ordinals is None else np.ascontiguousarray(events.ordinals, np.int64)
    masks, unfiltered = _masks(pattern, pattern.operands, events)
    endings = _endings(pattern, events)
    taken = [*masks, *endings.values()]
    kept = np.flatnonzero(np.logical_or.reduce(taken)) if taken else np.zeros(0, np.int64)
    part = _parts(pattern, events, kept)
    order = np.argsort(part, kind="stable")
    kept, part = kept[order], part[order]
    starts = np.flatnonzero(np.concatenate([[True], part[1:] != part[:-1]])) if len(part) else np.zeros(0, np.int64)
    offsets = np.append(starts, len(part)).astype(np.int64)
    ordinal = ordinals[kept]
    counted = pattern.within is not None and pattern.within.counted
    span = ordinal if counted else np.ascontiguousarray(events.times[kept], np.int64)
    amount = -1 if pattern.within is None else pattern.within.amount
    reach, floor = _windows(span, offsets, amount)
    return Stream(
        source=kept,
        part=np.repeat(np.arange(len(starts)), np.diff(offsets)).astype(np.int64),
        offsets=offsets,
        key=events.keys[kept[starts]].astype(np.int64),
        ordinal=ordinal,
        span=span,
        reach=reach,
        floor=floor,
        members=tuple(np.flatnonzero(mask[kept]).astype(np.int64) for mask in masks),
        endings={number: np.flatnonzero(mask[kept]).astype(np.int64) for number, mask in endings.items()},
        unfiltered=unfiltered,
        events=events,
        windowed=pattern.within is not None,
    )


def may_begin(pattern: KleenePattern, events: Events) -> BoolArray:
    """bool[n]: the events that a match may begin with, or that must not come before it, by what is asked of one alone.

    Parameters
    ----------
    pattern
        The pattern.
    events
        In any order; of their columns those that `beginning_columns` names.
    """
    masks, _ = _masks(pattern, _first_operands(pattern), events)
    return np.logical_or.reduce([np.zeros(len(events), np.bool_), *masks])


def candidates(pattern: KleenePattern, number: int, events: Events) -> IntArray:
    """The events that an operand takes, with its filter: their numbers, ascending."""
    (mask,), _ = _masks(pattern, [pattern.operands[number]], events)
    return np.flatnonzero(mask)


def agreeing_pairs(pattern: KleenePattern, stream: Stream) -> tuple[int, int]:
    """How many pairs of events of one partition lie in one window, and of how many `[attr]` holds."""
    partition = stream.key[stream.part]
    order = np.lexsort((stream.span, partition))
    ends = np.flatnonzero(np.diff(partition[order], append=-1)) + 1
    offsets = np.append(np.zeros(1, np.int64), ends).astype(np.int64)
    amount = -1 if pattern.within is None else pattern.within.amount
    reach, _ = _windows(stream.span[order], offsets, amount)
    behind = np.arange(len(stream), dtype=np.int64) + 1
    return int((reach - behind).sum()), int((stream.reach - behind).sum())


def beginning_columns(pattern: KleenePattern) -> frozenset[str]:
    """The columns of events that tell which ones a match may begin with, but for ``position`` and ``time``."""
    asked = [part for one in _first_operands(pattern) for part in (one.define, one.filter) if part is not None]
    return frozenset(reference.column for part in asked for reference in part.references) - {"position", "time"}


def _first_operands(pattern: KleenePattern) -> list[Operand]:
    return [pattern.operands[number] for number in sorted(pattern.beginnings | pattern.looked_at_first)]


def _check(events: Events) -> None:
    arrays = {"times": events.times, "positions": events.positions, "names": events.names}
    for name, array in arrays.items():
        if len(array) != len(events):
            raise ArgumentError(f"events: keys have {len(events)} values, {name} {len(array)}")
    keys, times, positions = events.keys, events.times, events.positions
    rises = (keys[1:] > keys[:-1]) | (
        (keys[1:] == keys[:-1])
        & ((times[1:] > times[:-1]) | ((times[1:] == times[:-1]) & (positions[1:] > positions[:-1])))
    )
    if not rises.all():
        at = int(np.flatnonzero(~rises)[0]) + 1
        raise ArgumentError(f"events must be in the order of (key, time, position); event number {at} is not")


def _masks(
    pattern: KleenePattern, operands: Sequence[Operand], events: Events
) -> tuple[list[BoolArray], tuple[int, ...]]:
    """For each of some operands bool[n]: the events that it takes; and how many it would take without its filter."""
    nothing = np.zeros(0, np.int64)
    possible = all(
        bool(np.all(evaluate(part, lambda r: events.column(r.column, nothing)).true)) for part in pattern.constants
    )
    made: dict[tuple[str, Predicate | None], tuple[BoolArray, int]] = {}

    def mask(operand: Operand) -> tuple[BoolArray, int]:
        found = np.zeros(len(events), np.bool_)
        if not possible:
            return found, 0
        if operand.define is None:
            rows = np.flatnonzero(events.named(operand.takes))
        else:
            rows = np.flatnonzero(events.truth(operand.define))
        unfiltered = len(rows)
        if operand.filter is not None and len(rows):
            rows = rows[events.truth(operand.filter, rows)]
        found[rows] = True
        return found, unfiltered

    for operand in operands:
        if (operand.takes, operand.filter) not in made:
            made[operand.takes, operand.filter] = mask(operand)
    found = [made[operand.takes, operand.filter] for operand in operands]
    return [masks for masks, _ in found], tuple(count for _, count in found)


def _endings(pattern: KleenePattern, events: Events) -> dict[int, BoolArray]:
    """For each operand with UNTIL bool[n]: the events that end its collecting."""
    found: dict[int, BoolArray] = {}
    for number, operand in enumerate(pattern.operands):
        for ending in operand.until:
            own = events.named(ending.takes) if ending.define is None else events.truth(ending.define)
            found[number] = found.get(number, np.zeros(len(events), np.bool_)) | own
    return found


def _parts(pattern: KleenePattern, events: Events, kept: IntArray) -> IntArray:
    """int64: the part of each kept event; parts of a later partition have greater numbers."""
    part = events.keys[kept].astype(np.int64)
    for name in pattern.along:
        column = events.column(name, kept)
        codes, _ = order_keys(column, column, ordered=False)
        known = np.broadcast_to(column.known, codes.shape)
        value, distinct = pd.factorize(codes)
        part, _ = pd.factorize(part)
        value = np.where(known, value, len(distinct) + np.arange(len(codes)))
        part, _ = pd.factorize(part.astype(np.int64) * (len(distinct) + len(codes) + 1) + value)
    return np.asarray(part, np.int64)


@njit(cache=True)
def _windows(span: IntArray, offsets: IntArray, amount: int) -> tuple[IntArray, IntArray]:
    """`Stream.reach` and `Stream.floor`; an amount below 0 is no window."""
    reach, floor = np.empty(len(span), np.int64), np.empty(len(span), np.int64)
    for part in range(len(offsets) - 1):
        begin, end = offsets[part], offsets[part + 1]
        if amount < 0:
            reach[begin:end] = end
            floor[begin:end] = begin
            continue
        high = begin
        for row in range(begin, end):
            while high < end and span[high] - span[row] < amount:
                high += 1
            reach[row] = max(high, row)
        low = begin
        for row in range(begin, end):
            while span[row] - span[low] >= amount and low < row:
                low += 1
            floor[row] = low
    return reach, floor
