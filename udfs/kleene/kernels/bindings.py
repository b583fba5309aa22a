"""Rows of an answer: what each match binds, in the order of the answer, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray, expanded
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.layout import Layout
from patternlake.udfs.limits import TooManyMatchesError
from patternlake.udfs.subkernels import subkernel

SmallArray = NDArray[np.int8]

MOST_BOUND = 1 << 26
"""Events that all rows of an answer may bind together."""


def too_long() -> TooManyMatchesError:
    """The error for rows that bind too many events."""
    return TooManyMatchesError(
        f"the matches bind more than {MOST_BOUND:,} events together; narrow the pattern with WITHIN, PARTITION BY or "
        "conditions, or the question with from_time and to_time, or ask for fewer rows with a smaller max_matches and "
        "truncate => true"
    )


@dataclass(frozen=True)
class Rows:
    """Matches as runs of events, each in the order of events.

    Attributes
    ----------
    offsets
        int64[k + 1].
    events
        int64[e]: rows of `Events`.
    operands
        int8[e]: the operand that binds each.
    """

    offsets: IntArray
    events: IntArray
    operands: SmallArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: IntArray) -> Rows:
        """Some of the matches."""
        counts = self.offsets[rows + 1] - self.offsets[rows]
        _, at = expanded(self.offsets[rows], self.offsets[rows + 1])
        return Rows(_offsets(counts), self.events[at], self.operands[at])


@dataclass(frozen=True)
class Matches:
    """Rows of an answer, ordered by key and positions: row i is match number i + 1.

    Attributes
    ----------
    operands, numbers
        Names and numbers of the operands that bind events, in text order; p of them.
    rows
        The r matches.
    source
        The events that they are of.
    total
        How many rows there are; more than r where the answer is truncated, and then perhaps only counted so far.
    truncated
        True where rows beyond `max_matches` were left out.
    """

    operands: tuple[str, ...]
    numbers: tuple[int, ...]
    rows: Rows
    source: Events
    total: int
    truncated: bool

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def first_events(self) -> IntArray:
        """int64[r]: the row of `Events` that each row begins with."""
        return self.rows.events[self.rows.offsets[:-1]]

    @property
    def last_events(self) -> IntArray:
        """int64[r]: the row of `Events` that each row ends with."""
        return self.rows.events[self.rows.offsets[1:] - 1]

    @property
    def key(self) -> IntArray:
        """int64[r]: the partition, as `Events.keys` calls it."""
        return self.source.keys[self.first_events].astype(np.int64)

    @property
    def first_position(self) -> IntArray:
        """int64[r]: the position of the first event."""
        return self.source.positions[self.first_events]

    @property
    def last_position(self) -> IntArray:
        """int64[r]: the position of the last event, in the order of events."""
        return self.source.positions[self.last_events]

    @property
    def first_time(self) -> IntArray:
        """int64[r]: when the first event was, in microseconds since the epoch."""
        return self.source.times[self.first_events]

    @property
    def last_time(self) -> IntArray:
        """int64[r]: when the last event was."""
        return self.source.times[self.last_events]

    @property
    def event_offsets(self) -> IntArray:
        """int64[r + 1]: match i has the events ``event_offsets[i]:event_offsets[i + 1]``, in order."""
        return self.rows.offsets

    @property
    def bound_operands(self) -> SmallArray:
        """int8[b]: the number of the operand that takes each of these."""
        return self.rows.operands

    @property
    def bound_positions(self) -> IntArray:
        """int64[b]: the position of each of the rows' events."""
        return self.source.positions[self.rows.events]

    @property
    def offsets(self) -> IntArray:
        """int64[r·p + 1]: operand o of row i binds ``positions[offsets[i·p + o]:offsets[i·p + o + 1]]``."""
        return self._by_operand[0]

    @property
    def bound(self) -> IntArray:
        """int64[b]: the rows of `Events` behind `positions`."""
        return self._by_operand[1]

    @cached_property
    def positions(self) -> IntArray:
        """int64[b]: positions, each operand's in the order of events."""
        return self.source.positions[self.bound]

    @cached_property
    def _by_operand(self) -> tuple[IntArray, IntArray]:
        """The events of each row by operand: their offsets, and the events."""
        offsets, bound = self.rows.offsets, self.rows.events
        k, p = len(self), len(self.numbers)
        if p == 1:  # all events of a match are its one operand's
            return offsets, bound
        rank = np.zeros(max(self.numbers, default=0) + 1, np.int64)
        rank[list(self.numbers)] = np.arange(p)
        match = np.repeat(np.arange(k), np.diff(offsets))
        place = match * p + rank[self.rows.operands]
        if (place[1:] < place[:-1]).any():
            bound = bound[np.argsort(place, kind="stable")]
        return _offsets(np.bincount(place, minlength=k * p)), bound

    def take(self, rows: IntArray) -> Matches:
        """Some of the rows."""
        return replace(self, rows=self.rows.take(rows))


def _offsets(counts: IntArray) -> IntArray:
    """Where runs of so many begin, and the last one ends."""
    return np.append(np.zeros(1, np.int64), np.cumsum(counts)).astype(np.int64)


def no_rows() -> Rows:
    """No match."""
    return Rows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int8))


def rows_of(layout: Layout, stream: Stream, matches: Collected) -> Rows:
    """The matches of a linearization as rows."""
    k = len(matches)
    every = np.arange(k + 1, dtype=np.int64)
    lists = [matches.lists.get(number) or (every, matches.ones[number]) for number in range(len(layout.slots))]
    counts = [np.diff(offsets) for offsets, _ in lists]
    offsets = np.append(np.zeros(1, np.int64), np.cumsum(np.sum(counts, axis=0))).astype(np.int64)
    events = np.empty(int(offsets[-1]), np.int64)
    operands = np.empty(len(events), np.int8)
    begin = offsets[:-1].copy()
    for slot, (own, found), count in zip(layout.slots, lists, counts, strict=True):
        at = np.repeat(begin - own[:-1], count) + np.arange(len(found))
        events[at] = found
        operands[at] = slot.operand
        begin += count
    if not layout.total:
        order = np.lexsort((events, np.repeat(every[:-1], np.diff(offsets))))
        events, operands = events[order], operands[order]
    return Rows(offsets, stream.source[events], operands)


def stacked(parts: Sequence[Rows]) -> Rows:
    """Rows one below the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.cumsum([0, *(len(part.events) for part in parts)])
    offsets = [part.offsets[1:] + size for part, size in zip(parts, sizes[:-1], strict=True)]
    return Rows(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([np.zeros(0, np.int64), *(part.events for part in parts)]),
        np.concatenate([np.zeros(0, np.int8), *(part.operands for part in parts)]),
    )


def first_rows(parts: Sequence[Rows], events: Events, most: int) -> Rows:
    """The first distinct rows by key, then positions in the order of events, then operands."""
    rows = stacked([no_rows(), *parts])
    if not len(rows):
        return rows
    key = events.keys[rows.events[rows.offsets[:-1]]]
    positions = events.positions[rows.events]
    first = positions[rows.offsets[:-1]]
    if np.all((key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (first[1:] > first[:-1]))):
        return rows if len(rows) <= most else rows.take(np.arange(most))  # each begins behind the one before
    order = np.lexsort((first, key))
    sorted_, distinct = sort_rows(order, key, rows.offsets, positions, rows.operands)
    wanted = sorted_[distinct[:most]]
    return rows if np.array_equal(wanted, np.arange(len(rows))) else rows.take(wanted)


def answer(names: Sequence[str], numbers: Sequence[int], rows: Rows, events: Events, total: int) -> Matches:
    """The answer that rows give.

    Parameters
    ----------
    names, numbers
        The positive operands, in text order.
    rows
        k rows, in order.
    events
        The events that they are of.
    total
        How many rows there are.
    """
    return Matches(tuple(names), tuple(numbers), rows, events, total, truncated=total > len(rows))


@subkernel
def _compare(
    a: int, b: int, key: IntArray, offsets: IntArray, positions: IntArray, operands: SmallArray | IntArray
) -> int:
    """Below, at or above zero as row a comes before, with or behind row b."""
    if key[a] != key[b]:
        return -1 if key[a] < key[b] else 1
    first, second = offsets[a], offsets[b]
    size, other = offsets[a + 1] - first, offsets[b + 1] - second
    for at in range(min(size, other)):
        if positions[first + at] != positions[second + at]:
            return -1 if positions[first + at] < positions[second + at] else 1
    if size != other:
        return -1 if size < other else 1
    for at in range(size):
        if operands[first + at] != operands[second + at]:
            return -1 if operands[first + at] < operands[second + at] else 1
    return 0


@njit(cache=True)
def sort_rows(
    order: IntArray, key: IntArray, offsets: IntArray, positions: IntArray, operands: SmallArray | IntArray
) -> tuple[IntArray, IntArray]:
    """The rows in order by merging, from an order that is nearly right; and the places of the distinct ones."""
    n = len(order)
    source, target = order.copy(), np.empty(n, np.int64)
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            left, right = begin, middle
            for at in range(begin, end):
                take_left = left < middle
                if take_left and right < end:
                    take_left = _compare(source[left], source[right], key, offsets, positions, operands) <= 0
                if take_left:
                    target[at] = source[left]
                    left += 1
                else:
                    target[at] = source[right]
                    right += 1
        source, target = target, source
        width *= 2
    distinct = np.empty(n, np.int64)
    count = 0
    for at in range(n):
        if at == 0 or _compare(source[at - 1], source[at], key, offsets, positions, operands) != 0:
            distinct[count] = at
            count += 1
    return source, distinct[:count].copy()
