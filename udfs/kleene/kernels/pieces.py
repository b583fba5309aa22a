"""A range of first events in pieces, each of which gives no more partial matches than may be held at once.

A piece holds the first event to a range, and where one event alone begins too many, the slots that take one event,
one after another. Pieces come in the order of these events. Where that is the order of rows, too, and no more of them
are asked for, the pieces behind need not be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.layout import Layout
from patternlake.udfs.kleene.query import KleenePattern


@dataclass(frozen=True)
class Piece:
    """Some of the matches of a linearization.

    Attributes
    ----------
    begin, end
        Their first plain event (without such: first event) lies in this range.
    held
        By slot the range of events that it takes.
    closed
        Whether the rows of all later pieces come behind those of this one and of all before, by their events.
    step
        So many events of what is cut next are about as many as may be joined; None: all are tried.
    """

    begin: int
    end: int
    held: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    closed: bool = False
    step: int | None = None

    def cut(self, joiner: Joiner, slots: tuple[int, ...], order: RowOrder, step: int) -> tuple[Piece, Piece]:
        """The piece with so many of the events that it is cut by, and the one with the others, which are more at once.

        Parameters
        ----------
        joiner
            Of the piece.
        slots
            The slots that take one event, in an order that their events allow.
        order
            What is known of the order of rows.
        step
            So many events, if there are more.
        """
        head, tail = replace(self, step=None), replace(self, step=2 * step)
        if self.end - self.begin > 1:
            middle = self.begin + min(step, self.end - self.begin - 1)
            return replace(head, end=middle, closed=order.by_first), replace(tail, begin=middle)
        for place, slot in enumerate(slots):
            events = joiner.events_of(slot)
            if len(events) > 1:
                low, middle, high = int(events[0]), int(events[min(step, len(events) - 1)]), int(events[-1]) + 1
                return (
                    replace(head, held={**self.held, slot: (low, middle)}, closed=place < order.by_slots),
                    replace(tail, held={**self.held, slot: (middle, high)}),
                )
        raise AssertionError("slots with one event each give one row")

    def size(self, joiner: Joiner, slots: tuple[int, ...]) -> int:
        """How many events there are of what it is cut by."""
        if self.end - self.begin > 1:
            return self.end - self.begin
        return next((size for slot in slots if (size := len(joiner.events_of(slot))) > 1), 1)

    def lower_bound(self, joiner: Joiner, leading: tuple[int, ...]) -> tuple[int, ...] | None:
        """Partition and positions that its rows begin with, or with later ones; None where that is not known.

        Parameters
        ----------
        joiner
            Of the piece.
        leading
            As `leading_slots` gives them.
        """
        stream = joiner.stream
        key = int(stream.key[stream.part[self.begin]])
        if not leading or key != stream.key[stream.part[self.end - 1]]:
            return None
        positions = stream.events.positions
        if self.end - self.begin > 1:
            return key, int(positions[stream.source[self.begin : self.end]].min())
        lower = [key, int(positions[stream.source[self.begin]])]
        for slot in leading[1:]:
            events = joiner.events_of(slot)
            if not len(events):
                break
            lower.append(int(positions[stream.source[events]].min()))
            if len(events) > 1:
                break
        return tuple(lower)


@dataclass(frozen=True)
class RowOrder:
    """How the order of a linearization's rows follows from the events of slots that take one: by time, and so by
    positions behind each event that `precedes` marks.

    Attributes
    ----------
    by_first
        Rows with a later first plain event come later.
    by_slots
        By the events of so many slots, in their order, rows come as these do.
    whole
        Whether that says the order of any two rows.
    """

    by_first: bool = False
    by_slots: int = 0
    whole: bool = False


def row_order(pattern: KleenePattern, layout: Layout, stream: Stream) -> RowOrder:
    """What is known of the order of a linearization's rows, where positions rise behind the events that slots take.

    A group that collects all that fits between its neighbours collects more where the next slot takes a later event,
    and what it collected before stays: rows come as that slot's events do. That ends with a pick, with a group whose
    conditions look at what comes behind, with one whose window later slots move, and with one that may collect what
    the next slot takes: of ``B+ ; B ; C`` on B1 B2 B3 C4 C5 the row {1, 2, 3, 4} comes before {1, 2, 5}.
    """
    if pattern.along:
        return RowOrder()
    slots, ones = slot_order(layout), 0
    settled = layout.apart and not layout.pairs
    if not _total(layout, slots):
        return RowOrder(by_first=layout.slots[0].kind == "one")
    for place, slot in enumerate(slots):
        kind = layout.slots[slot].kind
        if kind == "one":
            ones += 1
            continue
        behind = frozenset(slots[place + 1 :])
        looks_behind = any(slot in part.slots and part.slots & behind for part in (*layout.candidates, *layout.chains))
        # Under UNTIL one row of plain events has several groups.
        several = kind in ("pick", "choice") or layout.slots[slot].operand in layout.ending
        # With nothing behind the next slot, the row that takes the earlier event is how the other one begins.
        either = place + 2 < len(slots) and _share_events(stream, layout, slot, slots[place + 1])
        if several or not settled or looks_behind or either or (place == 0 and stream.windowed):
            return RowOrder(ones > 0, ones)
    return RowOrder(ones > 0, ones, whole=ones > 0)


def _share_events(stream: Stream, layout: Layout, slot: int, other: int) -> bool:
    """Whether there are events that either of two slots may take."""
    own, others = (stream.members[layout.slots[each].operand] for each in (slot, other))
    return bool(np.isin(own, others, assume_unique=True, kind="table").any())


def precedes(stream: Stream) -> BoolArray:
    """bool[m]: the events before which no later one stands by its position."""
    positions = stream.events.positions[stream.source]
    least = np.minimum.accumulate(positions[::-1])[::-1]
    return np.append(positions[:-1] < least[1:], np.ones(min(1, len(positions)), np.bool_))


def slot_order(layout: Layout) -> tuple[int, ...]:
    """The slots in an order that their events allow."""
    below = Counter(b for _, b in layout.before)
    return tuple(sorted(range(len(layout.slots)), key=lambda slot: (below[slot], slot)))


def leading_slots(layout: Layout) -> tuple[int, ...]:
    """The slots that take the first events of each match, one each, in order; of several in any order the first one."""
    slots = slot_order(layout)
    ones = [layout.slots[slot].kind == "one" for slot in slots]
    if not ones[0]:
        return ()
    size = (*ones, False).index(False) if _total(layout, slots) else 1
    return slots[:size]


def _total(layout: Layout, slots: tuple[int, ...]) -> bool:
    return all(pair in layout.before for pair in pairwise(slots))


def orders_of(layout: Layout, most: int) -> list[Layout]:
    """A layout once for each order of its slots; itself alone where there are more than `most`."""
    slots = slot_order(layout)
    if _total(layout, slots):
        return [layout]
    found: list[tuple[int, ...]] = [()]
    for _ in slots:
        found = [
            (*placed, slot)
            for placed in found
            for slot in slots
            if slot not in placed and all(a in placed for a, b in layout.before if b == slot)
        ]
        if len(found) > most:
            return [layout]
    return [replace(layout, before=frozenset(combinations(order, 2))) for order in found]


def possible_events(stream: Stream, layout: Layout) -> dict[int, IntArray]:
    """By slot of kind ``one`` the events that have one for each other such slot, by order and window, pair by pair.

    Joins that are cut go from the first slot on, and would follow many beginnings to no end without it.
    """
    slots = tuple(slot for slot in slot_order(layout) if layout.slots[slot].kind == "one")
    events = {slot: stream.members[layout.slots[slot].operand] for slot in slots}
    if not _total(layout, slots):
        return events
    for slot, following in reversed(list(pairwise(slots))):
        at = np.append(events[following], len(stream))[np.searchsorted(events[following], events[slot] + 1)]
        events[slot] = events[slot][at < stream.reach[events[slot]]]
    for before, slot in pairwise(slots):
        at = np.append(np.int64(-1), events[before])[np.searchsorted(events[before], events[slot])]
        events[slot] = events[slot][at >= stream.floor[events[slot]]]
    return events
