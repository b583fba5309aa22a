"""Exact matching of a pattern on the events of many partitions.

Source: SPEC section 3 and Behravesh et al. (FAEM). For each linearization of the pattern partial matches of the plain
operands are joined along the plan's tree; then ``+``, ``*`` and ``[n]`` take their events; negated events are tested;
last come the combinations of ``[n]``. Work goes through ranges of first events, so that what is held at once does not
grow with the stream: a range that gives too many partial matches is cut in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from patternlake.udfs.kleene.events import BoolArray, Events, Stream, agreeing_pairs, stream_of
from patternlake.udfs.kleene.kernels import aggregates, bindings, combining
from patternlake.udfs.kleene.kernels.bindings import Matches, Rows
from patternlake.udfs.kleene.kernels.collecting import EVENTS_AT_ONCE, MOST_WAYS, Collected, Limits, collected, counted
from patternlake.udfs.kleene.kernels.comparisons import Comparison
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner, TooManyRowsError
from patternlake.udfs.kleene.kernels.scanning import per_start
from patternlake.udfs.kleene.kernels.tables import Table
from patternlake.udfs.kleene.layout import Layout, layout_of
from patternlake.udfs.kleene.plans.replanning import Replanning, replanned
from patternlake.udfs.kleene.plans.trees import Join, Plan, left_deep, operands_in, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import COLLECTED, MATCHES, Work, held, tried
from patternlake.udfs.limits import TooManyMatchesError, too_many
from patternlake.udfs.policies import check_arguments

FIRST_EVENTS_AT_ONCE = 1 << 16
"""First events of one range, before it is cut."""
FIRST_TRIED = 1 << 12
"""First events of the first range, where the plan may change."""
SMALL_RANGE = 1 << 10
"""First events of a range that is joined from its first operand on where the plan gives too many."""
MOST_COUNTED = 1 << 40
"""Rows that can be counted where they must be listed for it: more than fit anywhere."""
ROWS_AT_ONCE = 1 << 21
"""Partial matches that a join may give before the range is cut."""
EVERY = Limits(MOST_COUNTED, enough=False, first=False, events=MOST_COUNTED)
"""Of all matches none is left out."""


def match_events(
    pattern: KleenePattern,
    events: Events,
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
    plan: Plan | None = None,
    max_matches: int = 1_000_000,
    truncate: bool = False,
    work: Work | None = None,
    begins: BoolArray | None = None,
    takes: Mapping[int, BoolArray] | None = None,
    replanning: Replanning | None = None,
) -> Matches:
    """Match a pattern.

    Parameters
    ----------
    pattern
        Compiled for `policy`.
    events
        All events of each partition that the pattern can take; with ``ordinals`` where others are left out and windows
        or ``strict`` count events.
    policy
        ``skip_till_any``, ``skip_till_next`` or ``strict``.
    after_match
        ``next`` or ``past_last``; it means nothing under ``skip_till_any``.
    plan
        Which tree to join along (`planning.planned`, `trees.forced_plan`); None: left-deep. Rows do not depend on it.
    max_matches
        Greatest number of rows.
    truncate
        True: beyond it the first rows, in order, are the answer; False: an error.
    work
        Filled with what the run did, along all plans that it had; under other policies than ``skip_till_any`` with how
        often conditions over one event held.
    begins
        bool[n]: only matches whose first event is one of these are wanted; None: all. Not with ``past_last``, and not
        of a pattern with `KleenePattern.choice_first`.
    takes
        By number of an operand of `KleenePattern.always_one` bool[n]: only matches in which it takes one of these are
        wanted. Under ``skip_till_any``.
    replanning
        How `plan` may be changed on the way; None: it stays.

    Returns
    -------
    Matches
        Each match once.

    Raises
    ------
    ArgumentError
        An argument has no such value; events are not in order; there are more than `max_matches` rows (the message says
        how many so far); one first event alone begins too many partial matches to hold.
    """
    check_arguments(policy, after_match, max_matches)
    stream = stream_of(pattern, events)
    if takes is not None:
        stream = stream.taking(takes)
    if work is not None:
        _note_classes(pattern, stream, len(events), work)
    keeper = _Keeper(events, max_matches, truncate)
    if policy == "skip_till_any":
        _every(pattern, stream, keeper, plan, begins, work, replanning)
    else:
        rows = per_start(pattern, stream, strict=policy == "strict", past_last=after_match == "past_last")
        keeper.add(rows if begins is None else rows.take(np.flatnonzero(begins[rows.events[rows.offsets[:-1]]])))
    names = [pattern.operands[number].name for number in pattern.positive]
    rows, total = keeper.result()
    return bindings.answer(names, pattern.positive, rows, events, total)


def observed(
    pattern: KleenePattern, events: Events, *, plan: Plan | None = None, begins: BoolArray | None = None
) -> Work:
    """What `match_events` does under ``skip_till_any``, measured; its rows are counted and let go.

    Parameters
    ----------
    pattern, events, plan, begins
        As for `match_events`.

    Notes
    -----
    Combinations of ``[n]`` are counted, not listed, but where `_may_repeat`.
    """
    work, begun = Work(), perf_counter()
    stream = stream_of(pattern, events)
    _note_classes(pattern, stream, len(events), work)
    linearizations = _linearizations(pattern, plan, begins)
    work.add(MATCHES, _total(pattern, events, stream, linearizations, work), 0.0)
    work.add(MATCHES, 0, perf_counter() - begun)
    return work


def _note_classes(pattern: KleenePattern, stream: Stream, events: int, work: Work) -> None:
    """Tell how often what is asked of events held before they are joined: filters of those that would be taken, DEFINEs
    of all, each ``[attr]`` of all pairs in a window, as if several had an equal part in it.
    """
    found: dict[str, tuple[int, int]] = {}
    for number, operand in enumerate(pattern.operands):
        if operand.define is not None:
            found[operand.define.sql()] = events, stream.unfiltered[number]
        if operand.filter is not None:
            found[operand.filter.sql()] = stream.unfiltered[number], len(stream.members[number])
    if pattern.along:
        pairs, agreeing = agreeing_pairs(pattern, stream)
        share = (agreeing / max(1, pairs)) ** (1 / len(pattern.along))
        found |= {f"[{name}]": (pairs, round(pairs * share)) for name in pattern.along}
    for text, (judged, holding) in found.items():
        work.add(tried(text), judged, 0.0)
        work.add(held(text), holding, 0.0)


def _total(
    pattern: KleenePattern,
    events: Events,
    stream: Stream,
    linearizations: list[_PlannedLinearization],
    work: Work | None,
) -> int:
    """How many rows there are, by finding all of them."""
    if _may_repeat(pattern):
        everything = _Keeper(events, MOST_COUNTED, truncate=False)
        return sum(len(rows) for rows in _listed_ranges(stream, linearizations, work, everything))
    return sum(
        combining.total_of(found, linearization.picks)
        for linearization in linearizations
        for begin, end in _ranges(stream)
        for found in _matches_of(linearization, stream, begin, end, work, EVERY)
    )


def count_matches(pattern: KleenePattern, events: Events, *, plan: Plan | None = None) -> int:
    """How many rows `match_events` gives under ``skip_till_any``, without listing the combinations of ``[n]``.

    Parameters
    ----------
    pattern, events, plan
        As for `match_events`.

    Returns
    -------
    int
        Exact, however great.

    Notes
    -----
    Where ``*`` stands beside ``|`` or ``&``, orders of the pattern may share rows; the rows are listed to be counted.
    """
    stream = stream_of(pattern, events)
    linearizations = _linearizations(pattern, plan, None)
    if _may_repeat(pattern):
        return _total(pattern, events, stream, linearizations, None)
    return sum(
        _counted(linearization, stream, begin, end)
        for linearization in linearizations
        for begin, end in _ranges(stream)
    )


@dataclass(frozen=True)
class _PlannedLinearization:
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


class _Keeper:
    """The rows so far, no more than can be asked for."""

    def __init__(self, events: Events, most: int, truncate: bool) -> None:
        self.events = events
        self.most = most
        self.truncate = truncate
        self.kept: list[Rows] = []
        self.total = 0

    def add(self, rows: Rows) -> None:
        """Count and keep rows that are not among the earlier ones."""
        self.count(len(rows))
        self.keep(rows)

    def count(self, rows: int) -> None:
        """Count rows; fail where there are too many and they may not be cut."""
        self.total += rows
        if self.total > self.most and not self.truncate:
            raise too_many(self.total, self.most, complete=False)

    def keep(self, rows: Rows) -> None:
        """Keep rows, as long as they may be among the first."""
        self.kept.append(rows)
        if sum(len(part) for part in self.kept) > 2 * self.most:
            self.kept = [self.first()]
        if sum(len(part.events) for part in self.kept) > bindings.MOST_BOUND:
            raise bindings.too_long()

    def limits(self, linearization: _PlannedLinearization, in_order: bool) -> Limits:
        """How many matches of one partial match of a linearization are wanted.

        One more than the rows asked for says that there are too many, and holds the first ones where matches are found
        in the order of the answer and none is taken away later.
        """
        kept_all = not linearization.filtered and linearization.begins is None
        first = in_order and linearization.layout.total and not linearization.layout.pairs
        if kept_all and (first or not self.truncate):
            return Limits(self.most + 1, enough=True, first=self.truncate, events=bindings.MOST_BOUND)
        return Limits(max(MOST_WAYS, self.most + 1), enough=False, first=False, events=bindings.MOST_BOUND)

    @property
    def limit(self) -> int | None:
        """How many rows of one match can be wanted; None for all."""
        return self.most if self.truncate else None

    def first(self) -> Rows:
        """The first rows in order."""
        return bindings.first_rows(self.kept, self.events, self.most)

    def result(self) -> tuple[Rows, int]:
        """The rows and their number."""
        return self.first(), self.total


def _linearizations(pattern: KleenePattern, plan: Plan | None, begins: BoolArray | None) -> list[_PlannedLinearization]:
    tree = left_deep(pattern.positive) if plan is None else plan
    found = []
    for number, linearization in enumerate(pattern.linearizations):
        layout = layout_of(pattern, linearization)
        own = restricted(tree, frozenset(linearization.operands))
        assert own is not None
        picks = {slot: layout.slots[slot].count for slot in layout.of_kind("pick")}
        found.append(_PlannedLinearization(number, pattern, layout, own, picks, begins))
    return found


def _may_repeat(pattern: KleenePattern) -> bool:
    """Whether two linearizations may give one row: only where an operand of theirs may be without events."""
    optional = any(operand.least == 0 for operand in pattern.operands if not operand.negated)
    return len(pattern.linearizations) > 1 and optional


def _every(
    pattern: KleenePattern,
    stream: Stream,
    keeper: _Keeper,
    plan: Plan | None,
    begins: BoolArray | None,
    work: Work | None,
    replanning: Replanning | None,
) -> None:
    """skip_till_any."""
    linearizations = _linearizations(pattern, plan, begins)
    if _may_repeat(pattern):
        for rows in _listed_ranges(stream, linearizations, work, keeper):
            keeper.add(rows)
        return
    in_order = _in_order(stream)
    rising = _rising(pattern, stream, linearizations)
    course = None if replanning is None or plan is None else _Course(pattern, stream, plan, replanning)
    for begin, end in _ranges(stream) if course is None else course.ranges():
        own = work if course is None else course.work
        for linearization in linearizations:
            for found in _matches_of(linearization, stream, begin, end, own, keeper.limits(linearization, in_order)):
                keeper.count(combining.total_of(found, linearization.picks))
                for rows in _combined(linearization, stream, found, keeper.limit):
                    keeper.keep(rows)
        done = end == len(stream) or stream.key[stream.part[end]] != stream.key[stream.part[end - 1]]
        # What comes later is behind everything that is kept.
        if keeper.total > keeper.most and (rising or done):
            break
        if course is not None and end < len(stream) and course.turned(end):
            linearizations = _linearizations(pattern, course.plan, begins)
    if course is not None and work is not None:
        work.take(course.whole)


class _Course:
    """The plan of a run, and whether it turns out as expected."""

    def __init__(self, pattern: KleenePattern, stream: Stream, plan: Plan, replanning: Replanning) -> None:
        self.pattern = pattern
        self.stream = stream
        self.plan = plan
        self.replanning = replanning
        self.work = Work()
        self.earlier = Work()
        self.classes = {number: len(members) for number, members in enumerate(stream.members)}
        self.since = 0

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of first events: a small one tells what to expect of the others."""
        first = min(FIRST_TRIED, len(self.stream))
        yield from _ranges(self.stream, 0, first)
        yield from _ranges(self.stream, first)

    def turned(self, end: int) -> bool:
        """Whether there is another plan for the first events from `end` on."""
        done = (end - self.since) / len(self.stream)
        found = replanned(self.pattern, self.plan, self.replanning, self.classes, self.work, done)
        if found is None:
            return False
        before = self.plan
        self.plan, self.replanning = found
        self.earlier, self.work, self.since = self.whole, Work(), end
        return self.plan != before

    @property
    def whole(self) -> Work:
        """What was done along all plans."""
        found = Work()
        found.take(self.earlier)
        found.take(self.work)
        return found


def _in_order(stream: Stream) -> bool:
    """Whether positions rise inside every part, so that the order of events is that of the answer."""
    positions = stream.columns.events.positions[stream.source]
    return bool(((stream.part[1:] != stream.part[:-1]) | (positions[1:] > positions[:-1])).all())


def _rising(pattern: KleenePattern, stream: Stream, linearizations: list[_PlannedLinearization]) -> bool:
    """Whether matches of later first events always come later in the answer."""
    plain = all(linearization.layout.slots[0].kind == "one" for linearization in linearizations)
    keys, positions = stream.key[stream.part], stream.columns.events.positions[stream.source]
    rises = (keys[1:] != keys[:-1]) | (positions[1:] > positions[:-1])
    return plain and not pattern.along and bool(rises.all())


def _combined(
    linearization: _PlannedLinearization, stream: Stream, found: Collected, limit: int | None
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


def _listed_ranges(
    stream: Stream, linearizations: list[_PlannedLinearization], work: Work | None, keeper: _Keeper
) -> Iterator[Rows]:
    """The distinct rows of all linearizations, a range of partitions at a time; no more than show that there are too
    many.
    """
    most = keeper.most + 1
    in_order = _in_order(stream)
    for begin, end in _whole_parts(stream):
        parts = [bindings.no_rows()]
        for linearization in linearizations:
            for low, high in _ranges(stream, begin, end):
                for found in _matches_of(
                    linearization, stream, low, high, work, keeper.limits(linearization, in_order)
                ):
                    for rows in _combined(linearization, stream, found, most):
                        parts.append(rows)
                        if sum(len(part) for part in parts) > 4 * most:
                            parts = [bindings.first_rows(parts, keeper.events, most)]
        yield bindings.first_rows(parts, keeper.events, most)


def _whole_parts(stream: Stream) -> Iterator[tuple[int, int]]:
    """Ranges of events that cut no part in two."""
    begin = 0
    for end in stream.offsets[1:].tolist():
        if end - begin >= FIRST_EVENTS_AT_ONCE or end == len(stream):
            yield begin, end
            begin = end


def _ranges(stream: Stream, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of first events."""
    stop = len(stream) if end is None else end
    for low in range(begin, stop, FIRST_EVENTS_AT_ONCE):
        yield low, min(low + FIRST_EVENTS_AT_ONCE, stop)


def _matches_of(
    linearization: _PlannedLinearization, stream: Stream, begin: int, end: int, work: Work | None, limits: Limits
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
            yield from _matches_of(part, stream, low, high, work, limits)
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


def _cut(
    linearization: _PlannedLinearization, stream: Stream, begin: int, end: int
) -> list[tuple[_PlannedLinearization, int, int]]:
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


def _counted(linearization: _PlannedLinearization, stream: Stream, begin: int, end: int) -> int:
    """How many rows a linearization has whose first event lies in a range."""
    if linearization.pattern.aggregate_conditions:
        listed = _matches_of(linearization, stream, begin, end, None, EVERY)
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
        return sum(_counted(part, stream, low, high) for part, low, high in _cut(linearization, stream, begin, end))
    if not table.rowless:
        found = counted(joiner, table.take(_in_range(joiner, table)))
        if found is not None:
            return found
    listed = _matches_of(linearization, stream, begin, end, None, EVERY)
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

    linearization: _PlannedLinearization
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
