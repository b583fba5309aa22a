"""One linearization of a pattern on a range of first events: partial matches, what they collect, and rows.

Source: SPEC section 3 and Behravesh et al. (FAEM). A range that gives too many partial matches is cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import aggregates, bindings, combining
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import (
    EVENTS_AT_ONCE,
    Collected,
    Limits,
    chain_comparison,
    collected,
)
from patternlake.udfs.kleene.kernels.comparisons import Comparison
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner, TooManyRowsError
from patternlake.udfs.kleene.kernels.picks import Pick, pick_of
from patternlake.udfs.kleene.kernels.pieces import (
    Piece,
    RowOrder,
    leading_slots,
    orders_of,
    possible_events,
    row_order,
    slot_order,
)
from patternlake.udfs.kleene.kernels.screening import screened
from patternlake.udfs.kleene.kernels.tables import Table
from patternlake.udfs.kleene.layout import Layout, layouts_of
from patternlake.udfs.kleene.plans.trees import Join, Plan, left_deep, operands_in, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import COLLECTED, Work

SMALL_RANGE = 1 << 10
"""First events of a range that is joined from its first operand on where the plan gives too many."""
MOST_ORDERS = 24
"""Orders of plain operands that are looked at one by one where the first rows are wanted."""
MOST_COUNTED = 1 << 40
"""Rows that can be counted where they must be listed for it: more than fit anywhere."""
ROWS_AT_ONCE = 1 << 21
"""Partial matches that a join may give before its piece is cut."""
EVERY = Limits(MOST_COUNTED, enough=False, first=False, events=MOST_COUNTED, rows=MOST_COUNTED)
"""Of all matches none is left out."""


@dataclass(frozen=True)
class PlannedLinearization:
    """A linearization, ready to be matched."""

    number: int
    pattern: KleenePattern
    layout: Layout
    plan: Plan
    picks: Mapping[int, Pick]
    begins: BoolArray | None
    order: RowOrder
    compared: dict[int, Comparison | None] = field(default_factory=dict)

    @property
    def operands(self) -> tuple[int, ...]:
        """Its operands, in an order that their events allow."""
        return tuple(dict.fromkeys(self.layout.slots[slot].operand for slot in slot_order(self.layout)))

    @property
    def filtered(self) -> bool:
        """Whether some of what is collected may be no match in the end."""
        return bool(self.layout.linearization.gaps or self.pattern.aggregate_conditions or self.layout.screened)


def planned_linearizations(
    pattern: KleenePattern, stream: Stream, plan: Plan | None, begins: BoolArray | None, *, first: bool = False
) -> list[PlannedLinearization]:
    """The linearizations of a pattern, each with what a plan leaves of its operands; without a plan left-deep.

    Parameters
    ----------
    pattern, stream
        What is matched.
    plan, begins
        As of `matching.match_events`.
    first
        Whether the first rows are wanted. Then each order of plain operands is a linearization of its own, up to
        `MOST_ORDERS`: of one order it is known where its first rows are.
    """
    tree = left_deep(pattern.positive) if plan is None else plan
    found = []
    for number, linearization in enumerate(pattern.linearizations):
        for given in layouts_of(pattern, linearization):
            own = restricted(tree, frozenset(given.linearization.operands))
            assert own is not None
            for layout in orders_of(given, MOST_ORDERS) if first else [given]:
                picks = {slot: pick_of(layout, slot) for slot in layout.of_kind("pick")}
                order = row_order(pattern, layout, stream) if first else RowOrder()
                found.append(PlannedLinearization(number, pattern, layout, own, picks, begins, order))
    return found


def matches_of(
    linearization: PlannedLinearization,
    stream: Stream,
    begin: int,
    end: int,
    work: Work | None,
    limits: Limits,
    enough: Callable[[], bool] = lambda: False,
    beyond: Callable[[tuple[int, ...]], bool] = lambda lower: False,
) -> Iterator[Collected]:
    """The matches of a linearization whose first plain event (without such: first event) lies in a range.

    Parameters
    ----------
    linearization, stream, begin, end, work, limits
        As above.
    enough
        Whether those so far hold as many rows as are asked for; then no later ones are looked for.
    beyond
        Whether no rows are asked for that begin with a partition and positions, or with later ones.
    """

    def join(joiner: Joiner, plan: Plan) -> Table:
        if work is None:
            return _joined(plan, joiner)
        # What is done of a piece that is cut is done again.
        joiner.work = counts = Work()
        table = _joined(plan, joiner, _Counting(linearization, stream, counts))
        work.take(counts)
        return table

    order = linearization.order
    for piece, joiner, joined in _Pieces(linearization, stream, begin, end, limits.rows, beyond).joined(join):
        table = joined
        if table.rowless:
            table = joiner.base(table.waiting)
        else:
            table = table.take(_in_range(joiner, table))
        if order.whole:
            columns = [table.columns[slot] for slot in slot_order(linearization.layout) if slot in table.columns]
            table = table.take(np.lexsort(columns[::-1]))
        for low, high in _shares(joiner, table):
            begun = perf_counter()
            for some in collected(joiner, table.take(slice(low, high)), limits):
                found = some
                if linearization.begins is not None:
                    found = some.take(linearization.begins[stream.source[some.first()]])
                if work is not None:
                    work.add(COLLECTED, len(found), perf_counter() - begun)
                if linearization.layout.screened:
                    found = screened(joiner, found)
                if linearization.layout.linearization.gaps:
                    found = found.take(free_of_negated(joiner, found, work))
                if linearization.pattern.aggregate_conditions:
                    held = aggregates.holding(linearization.pattern, stream, linearization.layout, found, work)
                    found = found.take(held)
                yield found
                begun = perf_counter()
            if order.whole and enough():
                return
        if piece.closed and enough():
            return


def combined(
    linearization: PlannedLinearization, stream: Stream, found: Collected, limit: int | None
) -> Iterator[Rows]:
    """Matches with their combinations as rows; of each match `limit` at most."""
    if not linearization.picks:
        yield bindings.rows_of(linearization.layout, stream, found)
        return
    begin, size = 0, 0
    positions = stream.events.positions[stream.source]
    counts = combining.combinations_of(found, linearization.picks)
    bound = np.full(len(found), len(found.ones), np.int64)
    for slot, (offsets, _) in found.lists.items():
        lengths = np.diff(offsets)
        most = linearization.picks[slot].most if slot in linearization.picks else None
        bound += lengths if most is None else np.minimum(lengths, most)
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


@dataclass
class _Pieces:
    """The pieces of a range, in order; each is joined, or cut, before the next one is taken.

    Attributes
    ----------
    rows
        Partial matches that a join may give; more with each piece that is joined, as few of them may be matches.
    beyond
        As of `matches_of`.
    """

    linearization: PlannedLinearization
    stream: Stream
    begin: int
    end: int
    rows: int
    beyond: Callable[[tuple[int, ...]], bool]

    def __post_init__(self) -> None:
        self.rows = min(self.rows, ROWS_AT_ONCE)
        layout = self.linearization.layout
        self.waiting = [
            (Piece(self.begin, self.end, closed=self.linearization.order.by_first), self.linearization.plan)
        ]
        self.slots = tuple(slot for slot in slot_order(layout) if layout.slots[slot].kind == "one")
        self.leading = leading_slots(layout)
        self.members: dict[int, IntArray] | None = None

    def joined(self, join: Callable[[Joiner, Plan], Table]) -> Iterator[tuple[Piece, Joiner, Table]]:
        """Each piece with what joins it, and with what it is joined to; `join` may raise `TooManyRowsError`."""
        while self.waiting:
            piece, plan = self.waiting.pop()
            joiner = Joiner(
                self.stream,
                self.linearization.layout,
                piece.begin,
                piece.end,
                self.rows,
                self.linearization.compared,
                held=piece.held,
                members=self.members,
            )
            lower = piece.lower_bound(joiner, self.leading)
            if lower is not None and self.beyond(lower):
                continue
            if piece.step is not None and piece.size(joiner, self.slots) > piece.step:
                self.put_back(piece, plan, joiner, piece.step)
                continue
            try:
                made = join(joiner, plan)
            except TooManyRowsError as error:
                self.cut(piece, plan, joiner, error.share)
                continue
            yield piece, joiner, made
            self.rows = min(2 * self.rows, ROWS_AT_ONCE)

    def put_back(self, piece: Piece, plan: Plan, joiner: Joiner, step: int) -> None:
        """Take a piece in two instead."""
        head, tail = piece.cut(joiner, self.slots, self.linearization.order, step)
        self.waiting += [(tail, plan), (head, plan)]

    def cut(self, piece: Piece, plan: Plan, joiner: Joiner, share: float) -> None:
        """Go on where a piece gives too many partial matches; about a share of it would not.

        Joins from the first slot on are as small as their piece; those of another tree need not be. So a small range is
        joined in that way, whatever the plan.
        """
        size = piece.size(joiner, self.slots)
        step = min(max(1, int(size * share)), max(1, size // 2))
        first = left_deep(self.linearization.operands)
        if plan != first and (piece.held or step < SMALL_RANGE):
            self.members = possible_events(self.stream, self.linearization.layout)
            self.waiting.append((piece, first))
            return
        if self.members is None and plan == first:
            self.members = possible_events(self.stream, self.linearization.layout)
        self.put_back(piece, plan, joiner, step)


def _in_range(joiner: Joiner, table: Table) -> BoolArray:
    """The rows whose first event lies in the joiner's range."""
    return (table.low >= joiner.begin) & (table.low < joiner.end)


def _shares(joiner: Joiner, table: Table) -> Iterator[tuple[int, int]]:
    """Runs of rows around which about `ROWS_AT_ONCE` events, or pairs of them, are collected at once."""
    if not len(table):
        return
    counts = np.ones(len(table), np.int64)
    chains = joiner.layout.chains
    squared = bool(joiner.layout.pairs) or any(chain_comparison(joiner, part) is None for part in chains)
    for slot in (slot for kind in ("group", "choice", "pick") for slot in joiner.layout.of_kind(kind)):
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
