"""One linearization of a pattern on a range of first events: partial matches, what they collect, rows, or their number.

Source: SPEC section 3 and Behravesh et al. (FAEM). A range that gives too many partial matches is cut in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from patternlake.udfs.kleene.events import BoolArray, Stream
from patternlake.udfs.kleene.kernels import aggregates, bindings, combining
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import EVENTS_AT_ONCE, Collected, Limits, collected, counted
from patternlake.udfs.kleene.kernels.comparisons import Comparison
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner, TooManyRowsError
from patternlake.udfs.kleene.kernels.tables import Table
from patternlake.udfs.kleene.layout import Layout, layout_of
from patternlake.udfs.kleene.plans.trees import Join, Plan, left_deep, operands_in, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import COLLECTED, Work
from patternlake.udfs.limits import TooManyMatchesError

SMALL_RANGE = 1 << 10
"""First events of a range that is joined from its first operand on where the plan gives too many."""
MOST_COUNTED = 1 << 40
"""Rows that can be counted where they must be listed for it: more than fit anywhere."""
ROWS_AT_ONCE = 1 << 21
"""Partial matches that a join may give before the range is cut."""
EVERY = Limits(MOST_COUNTED, enough=False, first=False, events=MOST_COUNTED)
"""Of all matches none is left out."""


@dataclass(frozen=True)
class PlannedLinearization:
    """A linearization, ready to be matched."""

    number: int
    pattern: KleenePattern
    layout: Layout
    plan: Plan
    picks: Mapping[int, int]
    begins: BoolArray | None
    compared: dict[int, Comparison | None] = field(default_factory=dict)

    @property
    def filtered(self) -> bool:
        """Whether some of what is collected may be no match in the end."""
        return bool(self.layout.linearization.gaps or self.pattern.aggregate_conditions)


def planned_linearizations(
    pattern: KleenePattern, plan: Plan | None, begins: BoolArray | None
) -> list[PlannedLinearization]:
    """The linearizations of a pattern, each with what a plan leaves of its operands; without a plan left-deep."""
    tree = left_deep(pattern.positive) if plan is None else plan
    found = []
    for number, linearization in enumerate(pattern.linearizations):
        layout = layout_of(pattern, linearization)
        own = restricted(tree, frozenset(linearization.operands))
        assert own is not None
        picks = {slot: layout.slots[slot].count for slot in layout.of_kind("pick")}
        found.append(PlannedLinearization(number, pattern, layout, own, picks, begins))
    return found


def matches_of(
    linearization: PlannedLinearization, stream: Stream, begin: int, end: int, work: Work | None, limits: Limits
) -> Iterator[Collected]:
    """The matches of a linearization whose first plain event (without such: first event) lies in a range."""
    counts = Work()
    told = None if work is None else counts
    joiner = Joiner(stream, linearization.layout, begin, end, ROWS_AT_ONCE, linearization.compared, told)
    counting = None if work is None else _Counting(linearization, stream, counts)
    try:
        table = _joined(linearization.plan, joiner, counting)
    except TooManyRowsError:
        for part, low, high in _cut(linearization, stream, begin, end):
            yield from matches_of(part, stream, low, high, work, limits)
        return
    if work is not None:
        work.take(counts)
    if table.rowless:
        table = joiner.base(table.waiting)
    else:
        table = table.take(_in_range(joiner, table))
    for low, high in _shares(joiner, table):
        begun = perf_counter()
        for some in collected(joiner, table.take(slice(low, high)), limits):
            found = some
            if linearization.begins is not None:
                found = some.take(linearization.begins[stream.source[some.first()]])
            if work is not None:
                work.add(COLLECTED, len(found), perf_counter() - begun)
            if linearization.layout.linearization.gaps:
                found = found.take(free_of_negated(joiner, found, work))
            if linearization.pattern.aggregate_conditions:
                found = found.take(aggregates.holding(linearization.pattern, stream, linearization.layout, found, work))
            yield found
            begun = perf_counter()


def combined(
    linearization: PlannedLinearization, stream: Stream, found: Collected, limit: int | None
) -> Iterator[Rows]:
    """Matches with their combinations as rows; of each match `limit` at most."""
    if not linearization.picks:
        yield bindings.rows_of(linearization.layout, stream, found)
        return
    begin, size = 0, 0
    positions = stream.columns.events.positions[stream.source]
    counts = combining.combinations_of(found, linearization.picks)
    bound = np.full(len(found), len(found.ones) + sum(linearization.picks.values()), np.int64)
    for slot, (offsets, _) in found.lists.items():
        if slot not in linearization.picks:
            bound += np.diff(offsets)
    held = 0
    for number, (count, events) in enumerate(zip(counts, bound.tolist(), strict=True)):
        rows = count if limit is None else min(count, limit)
        if rows * events > bindings.MOST_BOUND:
            raise bindings.too_long()
        size, held = size + rows, held + rows * events
        if size >= ROWS_AT_ONCE or held >= EVENTS_AT_ONCE or number == len(counts) - 1:
            some = combining.listed(found.take(np.arange(begin, number + 1)), linearization.picks, positions, limit)
            yield bindings.rows_of(linearization.layout, stream, some)
            begin, size, held = number + 1, 0, 0


def _cut(
    linearization: PlannedLinearization, stream: Stream, begin: int, end: int
) -> list[tuple[PlannedLinearization, int, int]]:
    """How to go on where a range gives too many partial matches.

    Joins from the first operand on are as small as their range; those of another tree need not be. So a small range is
    joined in that way, whatever the plan.
    """
    first = left_deep(linearization.layout.linearization.operands)
    if linearization.plan != first and end - begin <= SMALL_RANGE:
        return [(replace(linearization, plan=first), begin, end)]
    if end - begin == 1:
        raise TooManyMatchesError(
            f"event at position {_position(stream, begin)} alone begins more than {ROWS_AT_ONCE:,} partial matches; "
            "narrow the pattern with WITHIN, PARTITION BY or conditions"
        )
    middle = (begin + end) // 2
    return [(linearization, begin, middle), (linearization, middle, end)]


def counted_in(linearization: PlannedLinearization, stream: Stream, begin: int, end: int) -> int:
    """How many rows a linearization has whose first event lies in a range."""
    if linearization.pattern.aggregate_conditions:
        listed = matches_of(linearization, stream, begin, end, None, EVERY)
        return sum(combining.total_of(found, linearization.picks) for found in listed)
    joiner = Joiner(stream, linearization.layout, begin, end, ROWS_AT_ONCE, linearization.compared)
    try:
        if isinstance(linearization.plan, Join):
            left, right = (
                _joined(linearization.plan.left, joiner),
                _joined(linearization.plan.right, joiner),
            )
            total = joiner.counted(left.take(_in_range(joiner, left)), right)
            if total is not None:
                return total
            table = joiner.join(left, right)
        else:
            table = _joined(linearization.plan, joiner)
    except TooManyRowsError:
        return sum(counted_in(part, stream, low, high) for part, low, high in _cut(linearization, stream, begin, end))
    if not table.rowless:
        found = counted(joiner, table.take(_in_range(joiner, table)))
        if found is not None:
            return found
    listed = matches_of(linearization, stream, begin, end, None, EVERY)
    return sum(combining.total_of(found, linearization.picks) for found in listed)


def _in_range(joiner: Joiner, table: Table) -> BoolArray:
    """The rows whose first event lies in the joiner's range."""
    return (table.low >= joiner.begin) & (table.low < joiner.end)


def _position(stream: Stream, event: int) -> int:
    return int(stream.columns.events.positions[stream.source[event]])


def _shares(joiner: Joiner, table: Table) -> Iterator[tuple[int, int]]:
    """Runs of rows around which about `ROWS_AT_ONCE` events, or pairs of them, are collected at once."""
    if not len(table):
        return
    counts = np.ones(len(table), np.int64)
    squared = bool(joiner.layout.chains or joiner.layout.pairs)
    for slot in (*joiner.layout.of_kind("group"), *joiner.layout.of_kind("pick")):
        first, last = joiner.range_of(table, slot)
        size = last - first
        counts += size * size if squared and not table.whole else size
    share = (np.cumsum(counts) - counts) // ROWS_AT_ONCE
    cuts = [0, *(np.flatnonzero(share[1:] != share[:-1]) + 1).tolist(), len(table)]
    yield from pairwise(cuts)


@dataclass(frozen=True)
class _Counting:
    """Where the nodes of a linearization's plan are counted."""

    linearization: PlannedLinearization
    stream: Stream
    work: Work

    def add(self, plan: Plan, joiner: Joiner, table: Table, seconds: float) -> None:
        """Count the rows of a node that begin in the joiner's range; without rows the events there that wait."""
        if table.rowless:
            operands = {joiner.layout.slots[slot].operand for slot in table.waiting}
            firsts = [self.stream.members[operand] for operand in operands]
        else:
            firsts = [table.low]
        rows = 0
        for first in firsts:
            inside = first[(first >= joiner.begin) & (first < joiner.end)]
            begins = self.linearization.begins
            rows += len(inside) if begins is None else int(begins[self.stream.source[inside]].sum())
        self.work.add((self.linearization.number, *operands_in(plan)), rows, seconds)


def _joined(plan: Plan, joiner: Joiner, counting: _Counting | None = None) -> Table:
    """The partial matches of a node of the plan."""
    begun = perf_counter()
    if isinstance(plan, Join):
        table = joiner.join(_joined(plan.left, joiner, counting), _joined(plan.right, joiner, counting))
    else:
        slots = joiner.layout.of_operand[plan]
        table = joiner.leaf(slots[0])
        for slot in slots[1:]:
            table = joiner.join(table, joiner.leaf(slot))
    if counting is not None:
        counting.add(plan, joiner, table, perf_counter() - begun)
    return table
