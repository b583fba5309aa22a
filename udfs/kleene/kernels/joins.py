"""How two sets of partial matches join.

Source: Behravesh et al., Algorithms 1 and 2. There a join loops over all pairs of two buffers. Here partial matches are
rows of event numbers; order and window bound where in the other side's sorted rows partners lie, so a binary search
finds them, inside the rows of equal value where an equality is among the conditions. Partners of a group or a pick are
not listed: a row stays one row ("the number of composite events never exceeds …") as long as enough of its events lie
within its bounds.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.comparisons import Comparison, comparison
from patternlake.udfs.kleene.kernels.tables import Table, stacked
from patternlake.udfs.kleene.layout import Layout, SlotCondition
from patternlake.udfs.kleene.work import Work, held, tried
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Predicate, evaluate
from patternlake.udfs.language.predicate.references import Reference

PAIRS_AT_ONCE = 1 << 21
"""So many pairs are judged at once."""


FEWEST_PAIRS_AT_ONCE = 1 << 16
"""So many are judged at once where few rows are asked for."""


class TooManyRowsError(Exception):
    """A join gives more rows than may be held at once: fewer events must be joined.

    Attributes
    ----------
    share
        About this share of the left rows gives as many as may be held.
    """

    def __init__(self, share: float) -> None:
        self.share = share


class Joiner:
    """Joins tables of one linearization.

    Parameters
    ----------
    stream, layout
        The events, and the linearization.
    begin, end
        Only rows whose first event lies in this range are wanted.
    most_rows
        A table has so many rows at most.
    held
        By slot of kind ``one`` the range of events that it is held to; others take any.
    members
        By slot of kind ``one`` the events that it may take, where some are known to be in no match.
    compared
        Comparisons of this linearization that were made before, by the ``id`` of their condition; filled as they are
        needed.
    work
        Is told how often conditions hold.
    """

    def __init__(
        self,
        stream: Stream,
        layout: Layout,
        begin: int,
        end: int,
        most_rows: int,
        compared: dict[int, Comparison | None] | None = None,
        work: Work | None = None,
        held: Mapping[int, tuple[int, int]] | None = None,
        members: Mapping[int, IntArray] | None = None,
    ) -> None:
        self.stream = stream
        self.layout = layout
        self.begin, self.end = begin, end
        self.limit = int(stream.reach[end - 1]) if end > begin else begin
        self.most_rows = most_rows
        self.compared = {} if compared is None else compared
        self.work = work
        self.held = {} if held is None else held
        self.members = {} if members is None else members
        self.clear = layout.clear
        ones = layout.of_kind("one")
        self.beginnings = frozenset(
            slot for slot in ones if not any((other, slot) in layout.before for other in ones if other != slot)
        )

    def leaf(self, slot: int) -> Table:
        """The events of one slot."""
        if self.layout.slots[slot].kind != "one":
            return Table(waiting=(slot,), rowless=True)
        events = self.events_of(slot)
        return Table({slot: events}, self.stream.part[events], events, events)

    def events_of(self, slot: int) -> IntArray:
        """The events that a slot of kind ``one`` may take here; an only beginning takes one of the first events."""
        members = self.members.get(slot)
        if members is None:
            members = self.stream.members[self.layout.slots[slot].operand]
        low, high = self.begin, self.end if self.beginnings == {slot} else self.limit
        if slot in self.held:
            low, high = max(low, self.held[slot][0]), min(high, self.held[slot][1])
        first, last = np.searchsorted(members, [low, high])
        return members[first:last]

    def base(self, waiting: tuple[int, ...]) -> Table:
        """One row per part that begins in the range, for a linearization without plain operands."""
        starts = self.stream.offsets[:-1]
        if self.stream.windowed:
            first, last = np.searchsorted(starts, [self.begin, self.end - 1], side="right")
            parts = np.arange(max(first - 1, 0), last, dtype=np.int64)
        else:
            parts = np.flatnonzero((starts >= self.begin) & (starts < self.end)).astype(np.int64)
        table = Table({}, parts, starts[parts], starts[parts], waiting, whole=True)
        for slot in waiting:
            table = self.with_enough(table, slot)
        return table

    def join(self, left: Table, right: Table) -> Table:
        """All pairs of rows that fit together.

        Raises
        ------
        TooManyRowsError
            There are more than `most_rows`.
        """
        waiting = (*left.waiting, *right.waiting)
        if left.rowless and right.rowless:
            return Table(waiting=waiting, rowless=True)
        if left.rowless or right.rowless:
            rows = right if left.rowless else left
            new: tuple[int, ...] = left.waiting if left.rowless else right.waiting
            table = Table(rows.columns, rows.part, rows.low, rows.high, waiting)
        else:
            table, new = self.paired(left, right, waiting), waiting
        for slot in new:
            table = self.with_enough(table, slot)
        return table

    def paired(self, left: Table, right: Table, waiting: tuple[int, ...]) -> Table:
        """All pairs of rows that fit in order, window and conditions."""
        before = self.layout.before
        if all((b, a) in before for a in left.columns for b in right.columns):
            left, right = right, left
        conditions = self.ready(left, right)
        equal = {id(part): keys for part in conditions if (keys := self.equality(part, left, right)) is not None}
        group_left, group_right = left.part, right.part
        for keys in equal.values():
            group_left, group_right = _grouped(group_left, group_right, *keys)
        low, high = self.bounds(left, right)
        if equal:
            # A group and a first event as one number: rows of one group lie together, in order.
            size = np.int64(len(self.stream) + 1)
            order = np.lexsort((right.low, group_right))
            places = (group_right * size + right.low)[order]
            first = np.searchsorted(places, group_left * size + low)
            last = np.searchsorted(places, group_left * size + np.maximum(high, low))
        else:
            # Events of one part have neighbouring numbers, and the bounds lie inside the part. Leaves are in order.
            rises = bool((right.low[1:] >= right.low[:-1]).all())
            order = np.arange(len(right)) if rises else np.argsort(right.low, kind="stable")
            places = right.low if rises else right.low[order]
            first, last = np.searchsorted(places, low), np.searchsorted(places, np.maximum(high, low))
        if self.work is not None and equal:
            events = np.sort(right.low)
            pairs = int((np.searchsorted(events, np.maximum(high, low)) - np.searchsorted(events, low)).sum())
            # Values are looked up together: each condition is taken to have an equal part in what is left.
            share = (int((last - first).sum()) / max(1, pairs)) ** (1 / len(equal))
            for part in conditions:
                if id(part) in equal:
                    self.note(part, pairs, round(pairs * share))
        tables: list[Table] = []
        total = 0
        at_once = min(PAIRS_AT_ONCE, max(FEWEST_PAIRS_AT_ONCE, 4 * self.most_rows))
        for begin, end in shares(last - first, at_once):
            rows, at = expanded(first[begin:end], last[begin:end])
            rows += begin
            table = self.fitting(left, right, rows, order[at], conditions, waiting, equal)
            total += len(table)
            if total > self.most_rows:
                done = int((last - first)[:end].sum()) / max(1, int((last - first).sum()))
                raise TooManyRowsError(done * self.most_rows / total)
            tables.append(table)
        return stacked(tables, tuple(sorted((*left.columns, *right.columns))), waiting)

    def bounds(self, left: Table, right: Table) -> tuple[IntArray, IntArray]:
        """For each left row where the first event of a right row may lie, as a half-open range."""
        before = self.layout.before
        low, high = self.stream.floor[left.high], self.stream.reach[left.low]
        for slot, events in left.columns.items():
            if all((slot, other) in before for other in right.columns):
                low = np.maximum(low, events + 1)
            if all((other, slot) in before for other in right.columns):
                high = np.minimum(high, events)
        for a, b in self.layout.next_to:
            if a in left.columns and b in right.columns and all((b, c) in before for c in right.columns if c != b):
                high = np.minimum(high, left.columns[a] + 2)
            elif b in left.columns and right.columns.keys() == {a}:
                low = np.maximum(low, left.columns[b] - 1)
        for a, b, negated in self.clear:
            # Where only what is absent bounds it, an event would be joined to all that come later.
            absent = self.stream.members[negated]
            if not len(absent):
                continue
            if a in left.columns and b in right.columns:
                at = np.searchsorted(absent, left.columns[a], side="right")
                up_to = absent[np.minimum(at, len(absent) - 1)] + 1
                high = np.where(at < len(absent), np.minimum(high, up_to), high)
            elif b in left.columns and right.columns.keys() == {a}:
                at = np.searchsorted(absent, left.columns[b])
                low = np.where(at > 0, np.maximum(low, absent[np.maximum(at, 1) - 1]), low)
        if self.beginnings <= left.columns.keys() | right.columns.keys():
            # The first event of a pair is settled, and is one of those that are wanted.
            high = np.where(left.low >= self.end, np.minimum(high, self.end), high)
        return low, high

    def ready(self, left: Table, right: Table) -> list[SlotCondition]:
        """The conditions that can be judged now and could not before: this is their lowest node."""
        both = left.columns.keys() | right.columns.keys()
        return [
            part
            for part in self.layout.joins
            if part.slots <= both and not part.slots <= left.columns.keys() and not part.slots <= right.columns.keys()
        ]

    def equality(
        self, condition: SlotCondition, left: Table, right: Table
    ) -> tuple[IntArray, BoolArray, IntArray, BoolArray] | None:
        """Keys of both sides of a condition that says ``=`` between one event of each."""
        own = sorted(condition.slots & left.columns.keys())
        other = sorted(condition.slots & right.columns.keys())
        if len(own) != 1 or len(other) != 1:
            return None
        slot = min(condition.slots)
        if id(condition) not in self.compared:
            found = comparison(condition.predicate, lambda r: condition.slot_of[r] == slot, self.stream)
            self.compared[id(condition)] = found
        made = self.compared[id(condition)]
        if made is None or made.operator != "=":
            return None
        a, b = left.columns[own[0]], right.columns[other[0]]
        if own[0] == slot:
            return made.left[a], made.left_known[a], made.right[b], made.right_known[b]
        return made.right[a], made.right_known[a], made.left[b], made.left_known[b]

    def fitting(
        self,
        left: Table,
        right: Table,
        rows: IntArray,
        partners: IntArray,
        conditions: Sequence[SlotCondition],
        waiting: tuple[int, ...],
        noted: Container[int],
    ) -> Table:
        """The pairs that fit in order, window and conditions; those in `noted`, by their ``id``, have been told of."""
        before = self.layout.before
        fits = np.ones(len(rows), np.bool_)
        for a, first in left.columns.items():
            for b, second in right.columns.items():
                one, two = first[rows], second[partners]
                if (a, b) in before:
                    fits &= one < two
                elif (b, a) in before:
                    fits &= two < one
                else:
                    fits &= one != two
        for a, b in self.layout.next_to:
            if a in left.columns and b in right.columns:
                fits &= self.stream.meets(left.columns[a][rows], right.columns[b][partners])
            elif b in left.columns and a in right.columns:
                fits &= self.stream.meets(right.columns[a][partners], left.columns[b][rows])
        low = np.minimum(left.low[rows], right.low[partners])
        high = np.maximum(left.high[rows], right.high[partners])
        fits &= high < self.stream.reach[low]
        rows, partners = rows[fits], partners[fits]
        columns = {slot: column[rows] for slot, column in left.columns.items()}
        columns |= {slot: column[partners] for slot, column in right.columns.items()}
        table = Table(columns, left.part[rows], low[fits], high[fits], waiting)
        for condition in conditions:
            judged = len(table)
            table = table.take(self.truth(condition, table.columns, judged))
            if id(condition) not in noted:
                self.note(condition, judged, len(table))
        return table

    def note(self, condition: SlotCondition, judged: int, holding: int) -> None:
        """Tell how often a condition was judged, and how often it held."""
        if self.work is not None:
            text = condition.predicate.sql()
            self.work.add(tried(text), judged, 0.0)
            self.work.add(held(text), holding, 0.0)

    def truth(self, condition: SlotCondition, columns: Mapping[int, IntArray], n: int) -> BoolArray:
        """Whether a condition holds for the events in `columns`: bool[n]."""
        return self.judged(condition.predicate, {r: columns[slot] for r, slot in condition.slot_of.items()}, n)

    def judged(self, predicate: Predicate, event_of: Mapping[Reference, IntArray], n: int) -> BoolArray:
        """Whether a predicate holds for the given event of each reference: bool[n]."""
        if n == 0:
            return np.zeros(0, np.bool_)

        def resolve(reference: Reference) -> Column:
            return self.stream.column(reference.column, event_of[reference])

        return np.broadcast_to(evaluate(predicate, resolve).true, (n,))

    def range_of(self, table: Table, slot: int) -> tuple[IntArray, IntArray]:
        """For each row where in `Stream.members` the events of a group or pick lie, as a half-open range."""
        stream, before = self.stream, self.layout.before
        if table.whole:
            low, high = stream.offsets[table.part], stream.offsets[table.part + 1]
        else:
            low, high = stream.floor[table.high], stream.reach[table.low]
        for other, events in table.columns.items():
            if (other, slot) in before:
                low = np.maximum(low, events + 1)
            if (slot, other) in before:
                high = np.minimum(high, events)
        operand = self.layout.slots[slot].operand
        first = stream.rank(operand, low)
        return first, np.maximum(stream.rank(operand, high), first)

    def candidates(self, table: Table, slot: int) -> tuple[IntArray, IntArray]:
        """The events of a group or pick that fit each row, by the conditions that can be judged.

        Returns
        -------
        (int64[r + 1], int64[c])
            Offsets by row, and events in order.
        """
        first, last = self.range_of(table, slot)
        members = self.stream.members[self.layout.slots[slot].operand]
        conditions = [
            part for part in self.layout.candidates if slot in part.slots and part.slots <= {slot, *table.columns}
        ]
        counts: list[IntArray] = []
        found: list[IntArray] = []
        for begin, end in shares(last - first, PAIRS_AT_ONCE):
            rows, at = expanded(first[begin:end], last[begin:end])
            rows += begin
            events = members[at]
            for condition in conditions:
                columns = {other: column[rows] for other, column in table.columns.items()}
                holds = self.truth(condition, {**columns, slot: events}, len(rows))
                self.note(condition, len(rows), int(holds.sum()))
                rows, events = rows[holds], events[holds]
            counts.append(np.bincount(rows - begin, minlength=end - begin).astype(np.int64))
            found.append(events)
        offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
        return offsets, np.concatenate([np.zeros(0, np.int64), *found])

    def with_enough(self, table: Table, slot: int) -> Table:
        """The rows within whose bounds a group or pick has as many events as it needs."""
        needed = self.layout.needed[slot]
        if needed == 0:
            return table
        judged = any(slot in part.slots and part.slots <= {slot, *table.columns} for part in self.layout.candidates)
        if judged:
            counts = np.diff(self.candidates(table, slot)[0])
        else:
            first, last = self.range_of(table, slot)
            counts = last - first
        return table.take(counts >= needed)


def shares(counts: IntArray, at_once: int) -> list[tuple[int, int]]:
    """Ranges of rows with about `at_once` pairs each."""
    if not len(counts):
        return []
    share = (np.cumsum(counts) - counts) // at_once
    cuts = [0, *(np.flatnonzero(share[1:] != share[:-1]) + 1).tolist(), len(counts)]
    return list(pairwise(cuts))


def _grouped(
    left: IntArray,
    right: IntArray,
    left_key: IntArray,
    left_known: BoolArray,
    right_key: IntArray,
    right_known: BoolArray,
) -> tuple[IntArray, IntArray]:
    """Groups of rows that agree in one more key; a row without a key agrees with none."""
    size = len(left)
    group, groups = pd.factorize(np.concatenate([left, right]))
    key, _ = pd.factorize(np.concatenate([left_key, right_key]))
    code, codes = pd.factorize(key.astype(np.int64) * len(groups) + group)
    code = code.astype(np.int64)
    code[:size][~left_known] = len(codes)
    code[size:][~right_known] = len(codes) + 1
    return code[:size], code[size:]
