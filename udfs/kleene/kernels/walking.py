"""``skip_till_any`` by ways: of a pattern with repeated groups (``repetition => 'all'``) all matches, and of what any
pattern begins with the nearest that each start has.

Source: SPEC section 3. Each way is walked by itself (`walks`). Comparisons of two values are judged on the way down, as
in `scans`; conditions of other forms, absences and aggregates of what comes out, a share at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import bindings, walks
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import MOST_WAYS, too_many_ways
from patternlake.udfs.kleene.kernels.joins import PAIRS_AT_ONCE, shares
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.kernels.ranges import positions_rise
from patternlake.udfs.kleene.kernels.scanning import (
    StepsOfWay,
    comparison_of,
    conditions_of,
    keep_holding,
    layout_of_way,
    scan_of,
)
from patternlake.udfs.kleene.kernels.steps import ENDLESS
from patternlake.udfs.kleene.query import Condition, KleenePattern
from patternlake.udfs.kleene.rounds import has_rounds_in_doubt
from patternlake.udfs.kleene.ways import EVENT, THEN, Step, Way
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import evaluate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.limits import too_many

FEWEST_ROWS, MOST_ROWS = 1 << 12, 1 << 17
"""Matches that a walk writes before they are judged."""
MOST_LOST = 20_000_000
"""Nodes of one start that lead to no match."""
MOST_ABREAST = 1 << 18
"""Ways in which the events on one path of a walk are taken."""
LONGEST = 1 << 18
"""Events of one match."""
MORE_EACH = 8
"""So many times more matches of a start are looked for where none of those before counts."""


def walk_ways(pattern: KleenePattern, stream: Stream, keeper: Keeper, begins: BoolArray | None) -> None:
    """Find the matches of all ways of a pattern.

    Parameters
    ----------
    pattern, stream
        What is matched.
    keeper
        Is given the matches, at least those that it asks for.
    begins
        As of `matching.match_events`.

    Raises
    ------
    ArgumentError
        There are more matches than the keeper takes; one event begins too many of which few count, or goes on in too
        many ways that lead to no match.
    """
    alike: dict[frozenset[int], list[Way]] = {}
    for way in dict.fromkeys(pattern.ways):
        alike.setdefault(frozenset(way.operands), []).append(way)
    in_order = positions_rise(stream)
    for ways in alike.values():
        found = (rows for way in ways for rows in _Walk(pattern, way, stream, keeper, begins, in_order).matches())
        if len(ways) == 1:
            for rows in found:
                keeper.add(rows)
            continue
        # Ways with the same operands differ in what must be absent: they may share matches.
        parts, held, most = [bindings.no_rows()], 0, keeper.most + 1
        for rows in found:
            parts.append(rows)
            held += len(rows)
            if held > 4 * most:
                parts = [bindings.first_rows(parts, keeper.events, most)]
                held = len(parts[0])
        keeper.add(bindings.first_rows(parts, keeper.events, most))


def nearest_of_each(
    pattern: KleenePattern,
    way: Way,
    stream: Stream,
    begins: BoolArray,
    fits: Callable[[Rows], BoolArray],
    at_hand: Mapping[int, int],
) -> Rows:
    """Of each start that has any a match of a way, or several, and the nearest is among them: of two that one which has
    the earlier event where they differ first, and before any match those that begin with it.

    Parameters
    ----------
    pattern, stream
        What is matched.
    way
        The way.
    begins
        As of `matching.match_events`.
    fits
        Which of some matches count.
    at_hand
        For operands of a repeated group, what each is to have taken in its last round (`walks.SHORT`), which is not
        complete; empty: all rounds are.

    Raises
    ------
    ArgumentError
        As of `walk_ways`.
    """
    walk = _Walk(pattern, way, stream, Keeper(stream.events, 1, truncate=False), begins, False, at_hand)
    walk.collecting = _collecting(way, walk.conditions)
    walk.each = 1
    parts, bound = [bindings.no_rows()], 0
    while len(walk.starts):
        walk.written = np.zeros(len(stream), np.int64)
        done = np.zeros(len(stream.events), np.bool_)
        for found in walk.matches():
            rows = found.take(np.flatnonzero(fits(found)))
            parts.append(rows)
            bound += len(rows.events)
            if bound > bindings.MOST_BOUND:
                raise bindings.too_long()
            done[rows.events[rows.offsets[:-1]]] = True
        # Where what was written is ruled out, there may be more.
        walk.starts = walk.starts[(walk.written[walk.starts] >= walk.each) & ~done[stream.source[walk.starts]]]
        walk.each *= MORE_EACH
    return bindings.stacked(parts)


def _collecting(way: Way, conditions: list[Condition]) -> BoolArray:
    """bool[k]: the operands, by place, that need not pass over an event that they may take: with it, whatever is a
    match stays one.
    """
    order = way.order
    apart = {number for gap in order.gaps if gap.behind or gap.ahead for number in gap.left | gap.right}
    # What judges neighbours, or what comes later, may hold only without the event.
    for condition in (part for part in conditions if part.negated is None):
        apart |= {
            one
            for one in condition.operands
            if condition.before is not None
            or any(one != other and (other, one) not in order.before for other in condition.operands)
        }
    found = {
        step.operand
        for step in _in_sequence(way.root)
        if step.kind == EVENT and step.most is None and step.until < 0 and step.operand not in apart
    }
    return np.array([number in found for number in way.operands], np.bool_)


def _in_sequence(step: Step) -> Iterator[Step]:
    """The parts that come one after another."""
    if step.kind != THEN:
        yield step
        return
    for part in step.parts:
        yield from _in_sequence(part)


class _Walk:
    """The walk of one way."""

    def __init__(
        self,
        pattern: KleenePattern,
        way: Way,
        stream: Stream,
        keeper: Keeper,
        begins: BoolArray | None,
        in_order: bool,
        at_hand: Mapping[int, int] | None = None,
    ) -> None:
        self.pattern, self.way, self.stream, self.keeper = pattern, way, stream, keeper
        numbers = way.operands
        self.conditions = conditions = conditions_of(pattern, numbers)
        self.layout = layout_of_way(way, conditions)
        self.steps = StepsOfWay(way, every=False)
        judged = [(part, comparison_of(part, stream)) for part in conditions if part.negated is None]
        self.rest = [part for part, made in judged if made is None]
        self.filtered = bool(way.order.gaps or pattern.aggregate_conditions or self.rest)
        # The first matches are the first in the answer.
        self.stops = keeper.truncate and in_order
        mask = np.zeros((len(numbers), len(stream)), np.bool_)
        for place, number in enumerate(numbers):
            mask[place, stream.members[number]] = True
        self.follows = walks.follows_of(way.root, {number: place for place, number in enumerate(numbers)})
        self.at_hand = np.full(len(self.steps.program.kind), walks.UNASKED)
        for number, taken in (at_hand or {}).items():
            self.at_hand[self.steps.step_of[number]] = taken
            self.at_hand[self.steps.groups(self.steps.step_of[number])[0]] = walks.SHORT
            self.follows.last[numbers.index(number)] = True
        stop = stream.offsets[stream.part + 1]
        self.earliest = walks.earliest_ends(mask, stop, np.ascontiguousarray(stream.ordinal), self.follows)
        mask &= self.earliest < ENDLESS
        compared = [made for _, made in judged if made is not None]
        self.scan = scan_of(self.steps, stream, mask, compared, False, False, False)
        self.counted = not (self.filtered or compared) and walks.says_all(way.root)
        self.doubt = self.doubt_of([part for part, made in judged if made is None])
        # Who else begins a match is found at the root of its walk.
        starts = mask.any(axis=0)
        if begins is not None:
            starts &= begins[stream.source]
        self.starts = np.flatnonzero(starts).astype(np.int64)
        # Where the nearest of each start are wanted: see `walks.walk_on`, and how many were found by first event.
        self.collecting, self.each = np.zeros(len(numbers), np.bool_), 0
        self.written = np.zeros(0, np.int64)

    def doubt_of(self, rest: list[Condition]) -> int:
        """What tells apart ways that differ in rounds alone, see `walks.CERTAIN`."""
        if not has_rounds_in_doubt(self.pattern.query):
            return walks.CERTAIN
        if any(self.steps.scope(part.operands) >= 0 for part in rest):
            # Conditions that are judged of whole matches look at all of their rounds.
            return walks.REMEMBERED
        looks_back = self.steps.program.has_until or bool((self.scan.comparing[:, 2] >= 0).any())
        return walks.PLACED if looks_back else walks.FORGOTTEN

    def matches(self) -> Iterator[Rows]:
        """The matches that count, in the order of first events; at least those that are asked for."""
        if self.counted and not self.keeper.truncate and not self.each:
            # Too many are refused before any is listed.
            total = self.count()
            if total > self.keeper.most:
                raise too_many(total, self.keeper.most, complete=False)
        rows = min(MOST_ROWS, max(FEWEST_ROWS, self.keeper.most + 1))
        path = walks.new_path(self.steps.program, rows=256, lanes=64, depth=64)
        found = walks.new_found(rows, 16 * rows)
        progress = np.zeros(6, np.int64)
        progress[walks.DEPTH] = -1
        counts = np.zeros(self.stream.parts, np.int64)
        while True:
            came_for = walks.walk_on(
                self.scan,
                self.earliest,
                self.starts,
                path,
                found,
                progress,
                MOST_LOST,
                self.doubt,
                self.collecting,
                self.at_hand,
                self.each,
            )
            if came_for == walks.LOST:
                raise self.lost(int(progress[walks.START]), f"{MOST_LOST:,} that lead to no match")
            if came_for in (walks.WAYS, walks.LANES, walks.LONGER):
                path = walks.wider(path, came_for)
                if len(path.lanes) > MOST_ABREAST:
                    raise self.lost(int(progress[walks.START]), f"{MOST_ABREAST:,} that take the same events")
                if path.kept.shape[1] > LONGEST or path.kept.size > bindings.MOST_BOUND:
                    raise bindings.too_long()
                continue
            count = int(progress[walks.FOUND])
            if came_for == walks.FULL and not count:
                found = walks.new_found(2 * len(found.offsets), 2 * len(found.events))
                if len(found.events) > bindings.MOST_BOUND:
                    raise bindings.too_long()
                continue
            if self.each:
                np.add.at(self.written, found.events[found.offsets[:count]], 1)
            some = self.counting(found, count)
            if self.doubt == walks.REMEMBERED and len(some):
                # Those of a node, which differ in rounds alone, are written together.
                order = np.arange(len(some), dtype=np.int64)
                order, distinct = bindings.sort_rows(
                    order, np.zeros(len(some), np.int64), some.offsets, some.events, some.operands
                )
                some = some.take(order[distinct])
            progress[walks.FOUND] = 0
            np.add.at(counts, self.stream.part[some.events[some.offsets[:-1]]], 1)
            yield Rows(some.offsets, self.stream.source[some.events], some.operands)
            if came_for == walks.DONE:
                return
            if self.stops:
                self.skip(progress, counts)
            elif (self.filtered or self.keeper.truncate) and progress[walks.ROWS] > max(MOST_WAYS, self.keeper.most):
                raise too_many_ways()

    def count(self) -> int:
        """How many matches a walk has that is `counted`; beyond those that are asked for, at least so many."""
        return walks.count_rows(self.scan, self.follows, self.starts, self.stream.windowed, self.keeper.most)

    def skip(self, progress: IntArray, counts: IntArray) -> None:
        """Leave the part that the walk stands in, where it has as many matches as are asked for."""
        stream, number = self.stream, int(progress[walks.START])
        if number == len(self.starts):
            return
        part = stream.part[self.starts[number]]
        if counts[part] <= self.keeper.most:
            if self.filtered and progress[walks.ROWS] > max(MOST_WAYS, self.keeper.most):
                raise too_many_ways()
            return
        # Other parts of the partition are beside it, other partitions behind it.
        behind = np.searchsorted(stream.key[stream.part[self.starts]], stream.key[part], side="right")
        self.starts = self.starts[:behind]
        progress[walks.START] = np.searchsorted(self.starts, stream.offsets[part + 1])
        progress[walks.DEPTH] = -1

    def counting(self, found: walks.Found, count: int) -> Rows:
        """Those of some matches that meet what is still to be judged; events by number in the stream."""
        offsets = found.offsets[: count + 1].copy()
        events, places, begun = (part[: offsets[-1]].copy() for part in (found.events, found.places, found.begun))
        operands = np.array(self.way.operands, np.int8)[places]
        holds = np.ones(count, np.bool_)
        for condition in self.rest:
            self.judge(holds, condition, offsets, events, operands, begun)
        rows = Rows(offsets, events, operands).take(np.flatnonzero(holds))
        return keep_holding(self.pattern, self.way, self.layout, self.stream, rows)

    def judge(
        self,
        holds: BoolArray,
        condition: Condition,
        offsets: IntArray,
        events: IntArray,
        operands: IntArray,
        begun: IntArray,
    ) -> None:
        """Clear `holds` where a condition fails for some of the events that it compares: those of one round of the
        group that holds all its operands, or of the match.
        """
        match = np.repeat(np.arange(len(holds)), np.diff(offsets))
        scope, program = self.steps.scope(condition.operands), self.steps.program
        new = np.zeros(len(events), np.bool_)
        new[offsets[:-1]] = True
        if scope >= 0:
            new |= (begun >= 0) & (begun <= scope) & (scope < program.end[begun])
        together = np.cumsum(new) - 1
        count = int(new.sum())
        match_of = match[new]
        whole: list[tuple[str, IntArray, IntArray, IntArray]] = []
        for name, operand in zip(condition.names, condition.operands, strict=True):
            at = np.flatnonzero(operands == operand)
            if operand == condition.before:
                # Of neighbours the later one says in which round they are.
                pair = np.flatnonzero(match[at[1:]] == match[at[:-1]])
                earlier, at = at[pair], at[pair + 1]
            else:
                earlier = at
            bounds = np.searchsorted(together[at], np.arange(count + 1))
            whole.append((name, bounds, events[at], events[earlier]))
        sizes = np.ones(count, np.int64)
        for _, bounds, _, _ in whole:
            sizes *= np.diff(bounds)
        for begin, end in shares(sizes, PAIRS_AT_ONCE):
            number = np.arange(begin, end, dtype=np.int64)
            columns: dict[tuple[str, bool], IntArray] = {}
            for name, bounds, own, earlier in whole:
                kept, at = expanded(bounds[number], bounds[number + 1])
                number, columns = number[kept], {each: column[kept] for each, column in columns.items()}
                columns[name, False], columns[name, True] = own[at], earlier[at]

            def column(reference: Reference, of: dict[tuple[str, bool], IntArray] = columns) -> Column:
                return self.stream.column(reference.column, of[reference.operand or "", reference.index == "i-1"])

            truth = evaluate(condition.predicate, column)
            holds[match_of[number[~np.broadcast_to(truth.true, number.shape)]]] = False

    def lost(self, number: int, ways: str) -> ArgumentError:
        position = int(self.stream.events.positions[self.stream.source[self.starts[number]]])
        return ArgumentError(
            f"the pattern goes on in too many ways behind the event at position {position} "
            f"(more than {ways}); narrow the pattern with WITHIN, PARTITION BY or "
            "conditions"
        )
