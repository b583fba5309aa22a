"""Matches on events under conditions over several operands.

Source: SPEC section 3, skip_till_next. Conditions are judged by the vectorised evaluator, so the search is not a loop
per event: all starts advance together, slot by slot, over candidate events; a term that is not found near by is looked
for in a window four times as wide, and so on. Work is bounded by the number of candidate tuples that are judged
(equalities are looked up, see `narrowing`), memory by `partials.MOST_ROWS` of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.limits import too_many
from patternlake.udfs.sketch.conditions import Condition
from patternlake.udfs.sketch.kernels.combinations import MOST, stops
from patternlake.udfs.sketch.kernels.narrowing import Candidates
from patternlake.udfs.sketch.kernels.partials import MOST_ROWS, Partial, concatenated, once, ragged
from patternlake.udfs.sketch.kernels.search import Rows, greatest, held_any, least, next_table
from patternlake.udfs.sketch.query import Alternative, Layout

FIRST_WIDTH = 16


@dataclass(frozen=True)
class Problem:
    """What is searched.

    Attributes
    ----------
    rows, layout
        As for the kernels.
    truths
        For each slot, which events each of its alternatives accepts: bool[n] each.
    gaps
        For each gap, the negated alternatives with the events that they accept: bool[n] each.
    conditions
        Those over several events.
    events
        All events.
    """

    rows: Rows
    layout: Layout
    truths: list[list[BoolArray]]
    gaps: list[list[tuple[Alternative, BoolArray]]]
    conditions: tuple[Condition, ...]
    events: Events


def conditional_matches(
    problem: Problem, policy: str, after_match: str, max_matches: int, truncate: bool
) -> tuple[int, IntArray, IntArray, IntArray]:
    """Search under conditions.

    Returns
    -------
    (total, int64[r], int64[r, slots], int64[r, slots])
        How many there are (under ``skip_till_any`` at least), key, event of each slot, index of the alternative taken.

    Raises
    ------
    ArgumentError
        More than `max_matches`, and not `truncate`.
    """
    search = _Search(problem)
    if policy == "skip_till_any":
        bound, choice = search.all(max_matches + 1)
    else:
        bound, choice = search.nearest_per_start()
        if after_match == "past_last":
            kept = past_last(*search.ends(bound))
            bound, choice = bound[kept], choice[kept]
    total = len(bound)
    if total > max_matches and not truncate:
        raise too_many(total, max_matches, complete=policy != "skip_till_any")
    bound, choice = bound[:max_matches], choice[:max_matches]
    key = np.searchsorted(problem.rows.offsets, bound[:, 0], side="right").astype(np.int64) - 1
    return total, key, bound, choice


@njit(cache=True)
def past_last(first: IntArray, last: IntArray) -> IntArray:
    """Of matches in the order of their starts, those that begin behind the last event of the one kept before."""
    kept = np.empty(len(first), np.int64)
    count, taken = 0, -1
    for match in range(len(first)):
        if first[match] > taken:
            kept[count] = match
            count += 1
            taken = last[match]
    return kept[:count]


class _Search:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows, self.layout = problem.rows, problem.layout
        self.slots = int(self.layout.block[-1])
        self.terms = len(self.layout.term) - 1
        self.judged: list[list[Condition]] = [[] for _ in range(self.slots)]
        for condition in problem.conditions:
            if condition.negated is None:
                self.judged[max(condition.slots)].append(condition)
        self.candidates = [
            Candidates(slot, np.flatnonzero(self.rows.flags[:, column]), self.judged[slot], problem.events)
            for slot, column in enumerate(self.rows.slot)
        ]
        self.rejecting: list[list[tuple[BoolArray, list[Condition]]]] = []
        for gap in problem.gaps:
            self.rejecting.append([(held, [c for c in problem.conditions if c.negated == name]) for name, held in gap])
        plain = [
            np.logical_or.reduce([accepted for accepted, judges in gap if not judges] or [np.zeros(self.n, np.bool_)])
            for gap in self.rejecting
        ]
        flags = np.stack(plain, axis=1) if plain else np.zeros((self.n, 0), np.bool_)
        self.forbidden = next_table(np.ascontiguousarray(flags), self.rows.offsets)
        self.run_length = _run_lengths(self.rows)
        self.stop_of = stops(self.rows)
        self.choosy = any(condition.taken for condition in problem.conditions)
        self.ambiguous = False

    @property
    def n(self) -> int:
        return len(self.rows.lo)

    # -- whole matches -----------------------------------------------------------------------------------------------

    def starts(self) -> Partial:
        """One empty partial match per event that can start one."""
        start = np.flatnonzero(held_any(self.rows, self.layout)).astype(np.int64)
        empty = np.full((len(start), self.slots), -1, np.int64)
        return Partial(start, empty, empty.copy(), start, self.stop_of[start], start)

    def ends(self, bound: IntArray) -> tuple[IntArray, IntArray]:
        """First and last event of each match."""
        return self.term_first(bound, 0), self.term_last(bound, self.terms - 1)

    def term_slots(self, term: int) -> slice:
        """The slots of a term."""
        block, after = self.layout.term[term], self.layout.term[term + 1]
        return slice(int(self.layout.block[block]), int(self.layout.block[after]))

    def term_first(self, bound: IntArray, term: int) -> IntArray:
        """The first event of a term in each match."""
        return least(bound[:, self.term_slots(term)])

    def term_last(self, bound: IntArray, term: int) -> IntArray:
        """The last event of a term in each match."""
        return greatest(bound[:, self.term_slots(term)])

    def nearest_per_start(self) -> tuple[IntArray, IntArray]:
        """The match of each start that has one."""
        everything = self.starts()
        found: list[Partial] = []
        for begin in range(0, len(everything.parent), MOST_ROWS):
            partial = everything.take(np.arange(begin, min(begin + MOST_ROWS, len(everything.parent))))
            for term in range(self.terms):
                partial = self.advanced(self.nearest(partial, term), term)
            found.append(self.accepted(partial))
        whole = concatenated(found, self.slots)
        return whole.bound, whole.choice

    def all(self, most: int) -> tuple[IntArray, IntArray]:
        """Every match, up to `most`."""
        bound = choice = np.empty((0, self.slots), np.int64)
        self.ambiguous = self.choosy
        for piece in self.continued(self.starts(), 0):
            partial = self.accepted(piece)
            bound = np.concatenate([bound, partial.bound])
            choice = np.concatenate([choice, partial.choice])
            if self.ambiguous and len(bound) >= most:
                bound, choice = once(bound, choice)
            if len(bound) >= most:
                break
        if self.ambiguous:
            bound, choice = once(bound, choice)
        return bound[:most], choice[:most]

    def continued(self, partial: Partial, term: int) -> Iterator[Partial]:
        """All ways to complete partial matches, in order, in pieces."""
        if not len(partial.parent):
            return
        if term == self.terms:
            yield partial
            return
        for piece in self.placed(partial, term):
            yield from self.continued(self.advanced(piece, term), term + 1)

    def advanced(self, partial: Partial, term: int) -> Partial:
        """After a term: drop what a gap forbids, and look behind the term for the next one."""
        if term and len(partial.parent):
            before = self.term_last(partial.bound, term - 1) + 1
            first = self.term_first(partial.bound, term)
            # Events lie strictly between only where `before` is still inside the key.
            between = self.forbidden[np.minimum(before, self.n - 1), term - 1] < first
            partial = partial.take(~(between & (before < first)))
        return replace(partial, low=self.term_last(partial.bound, term) + 1)

    def accepted(self, partial: Partial) -> Partial:
        """Those inside the window, and without a negated event that meets its conditions."""
        if self.rows.within >= 0 and len(partial.parent):
            high, low = self.rows.span_lo[partial.bound].max(axis=1), self.rows.span_hi[partial.bound].min(axis=1)
            partial = partial.take(high - low < self.rows.within)
        for gap, named in enumerate(self.rejecting):
            for accepted, judges in named:
                if judges and len(partial.parent):
                    partial = partial.take(~self.broken(partial, gap, np.flatnonzero(accepted), judges))
        return partial

    def broken(self, partial: Partial, gap: int, events: IntArray, judges: list[Condition]) -> BoolArray:
        """The matches with one of the events in a gap that meets all conditions."""
        low = np.searchsorted(events, self.term_last(partial.bound, gap), side="right")
        high = np.searchsorted(events, self.term_first(partial.bound, gap + 1), side="left")
        result = np.zeros(len(low), np.bool_)
        for match, place in ragged(low, high):
            meets = np.ones(len(match), np.bool_)
            for condition in judges:
                meets &= condition.holds(
                    self.problem.events, partial.bound[match], partial.choice[match], events[place]
                )
            result[match[meets]] = True
        return result

    # -- one term ----------------------------------------------------------------------------------------------------

    def nearest(self, partial: Partial, term: int) -> Partial:
        """For each partial match, the nearest place of a term: earliest end, then least events in text order."""
        done: list[Partial] = []
        waiting, width = partial, FIRST_WIDTH
        single_try = term == 0 and not self.is_wide(term)
        slots = self.term_slots(term)
        alone = self.candidates[slots.start] if term and slots.stop - slots.start == 1 else None
        if alone is not None:
            waiting = waiting.take(~alone.hopeless(waiting.bound, waiting.low))
        self.ambiguous = self.choosy and bool(self.layout.run[term])
        while len(waiting.parent):
            high = waiting.stop if single_try else np.minimum(waiting.low + width, waiting.stop)
            best = self.best(replace(waiting, stop=high), term)
            found = best.parent
            done.append(replace(best, parent=waiting.parent[found], stop=waiting.stop[found]))
            missing = np.ones(len(waiting.parent), np.bool_)
            missing[found] = False
            missing &= high < waiting.stop
            if alone is not None:
                waiting = replace(waiting, low=high)
                missing &= ~alone.hopeless(waiting.bound, waiting.low)
            waiting = waiting.take(missing)
            width *= 4
        whole = concatenated(done, self.slots)
        return whole.take(np.argsort(whole.parent, kind="stable"))

    def is_wide(self, term: int) -> bool:
        """True where a term that begins at a fixed event may still end at any later one: an AND outside of a run."""
        block, after = self.layout.term[term], self.layout.term[term + 1]
        return bool(not self.layout.run[term] and self.layout.block[after] - self.layout.block[block] > 1)

    def best(self, partial: Partial, term: int) -> Partial:
        """The best place of a term inside ``low:stop``; `parent` becomes the row of `partial`."""
        n = len(partial.parent)
        numbered = replace(partial, parent=np.arange(n, dtype=np.int64))
        end = np.full(n, MOST, np.int64)
        bound, choice = partial.bound.copy(), partial.choice.copy()
        for piece in self.placed(numbered, term):
            last = self.term_last(piece.bound, term)
            order = np.lexsort((np.arange(len(last)), last, piece.parent))
            parents, first = np.unique(piece.parent[order], return_index=True)
            best = order[first]
            better = last[best] < end[parents]
            parents, best = parents[better], best[better]
            end[parents] = last[best]
            bound[parents], choice[parents] = piece.bound[best], piece.choice[best]
        found = np.flatnonzero(end < MOST)
        return Partial(found, bound[found], choice[found], partial.low[found], partial.stop[found], partial.run[found])

    def placed(self, partial: Partial, term: int) -> Iterator[Partial]:
        """All places of a term inside ``low:stop``, in order, in pieces; the first term begins at ``low``."""
        block, slots = int(self.layout.term[term]), self.term_slots(term)
        if not self.layout.run[term]:
            yield from self.filled(partial, term, slots.start, slots.start, slots.stop, None)
            return
        length = slots.stop - slots.start
        for piece in self.begun(partial, term, block):
            fits = (self.run_length[piece.run] >= length) & (piece.run + length <= piece.stop)
            yield from self.filled(piece.take(fits), term, slots.start, slots.start, slots.stop, block)

    def begun(self, partial: Partial, term: int, block: int) -> Iterator[Partial]:
        """Partial matches with each event at which a run can begin."""
        if term == 0:
            yield replace(partial, run=partial.low)
            return
        inside = range(int(self.layout.block[block]), int(self.layout.block[block + 1]))
        events = np.flatnonzero(np.logical_or.reduce([self.rows.flags[:, self.rows.slot[slot]] for slot in inside]))
        low, high = np.searchsorted(events, partial.low), np.searchsorted(events, partial.stop)
        for row, place in ragged(low, high):
            yield replace(partial.take(row), run=events[place])

    def filled(
        self, partial: Partial, term: int, base: int, slot: int, stop: int, block: int | None
    ) -> Iterator[Partial]:
        """Fill the slots ``slot:stop``; `base` is the first of the current block, `block` its number inside a run."""
        if not len(partial.parent):
            return
        if slot == stop:
            yield partial
            return
        if block is not None and slot == self.layout.block[block + 1]:
            block, base = block + 1, slot
        if block is not None:
            low = partial.run + (base - int(self.layout.block[self.layout.term[term]]))
            high = low + (int(self.layout.block[block + 1]) - base)
        else:
            low, high = partial.low, partial.stop
            if term == 0 and slot == stop - 1:
                # Some slot takes the event at which the match begins: the last one, where no other has.
                begun = (partial.bound[:, base:slot] == low[:, None]).any(axis=1)
                high = np.where(begun, high, low + 1)
        for row, event in self.candidates[slot].between(partial.bound, low, high):
            free = np.ones(len(row), np.bool_)
            for other in range(base, slot):
                free &= partial.bound[row, other] != event
            piece = partial.take(row[free])
            piece.bound[:, slot] = event[free]
            yield from self.filled(self.chosen(piece, slot), term, base, slot + 1, stop, block)

    def chosen(self, partial: Partial, slot: int) -> Partial:
        """Take the first alternative of a slot under which its conditions hold; drop where there is none.

        In a run, and under skip_till_any, where later conditions may tell, each such alternative gets a row of its own.
        """
        event = partial.bound[:, slot]
        undecided = np.ones(len(event), np.bool_)
        kept: list[Partial] = []
        origins: list[IntArray] = []
        for index, accepted in enumerate(self.problem.truths[slot]):
            rows = np.flatnonzero(undecided & accepted[event])
            piece = partial.take(rows)
            piece.choice[:, slot] = index
            for condition in self.judged[slot]:
                if len(rows):
                    holds = condition.holds(self.problem.events, piece.bound, piece.choice)
                    rows, piece = rows[holds], piece.take(holds)
            kept.append(piece)
            origins.append(rows)
            if not self.ambiguous:
                undecided[rows] = False
        if len(kept) == 1:
            return kept[0]
        return concatenated(kept, self.slots).take(np.argsort(np.concatenate(origins), kind="stable"))


@njit(cache=True)
def _run_lengths(rows: Rows) -> IntArray:
    """How many events, from each one on, are directly next to each other: int64[n]."""
    result = np.ones(len(rows.lo), np.int64)
    for key in range(len(rows.offsets) - 1):
        for row in range(rows.offsets[key + 1] - 2, rows.offsets[key] - 1, -1):
            if rows.hi[row] + 1 == rows.lo[row + 1]:
                result[row] = result[row + 1] + 1
    return result
