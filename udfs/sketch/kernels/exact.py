"""Patterns matched on events: the exact answer of ``verify => true``.

Source: SPEC section 2 (verify) and section 3 (how conjuncts steer skip_till_next). A start takes the nearest next
events; an event serves one operand; ``past_last`` goes on after the last event; ``strict`` means directly next in the
partition. Under both policies the ways of ORs are tried in the order of the text, and the first that gives a match
counts. An AND takes the events with the earliest end, then the least positions in text order. A conjunct is judged
once all its operands are bound; a negated name is judged when everything is bound, and rejects.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.limits import too_many
from patternlake.udfs.policies import check_arguments
from patternlake.udfs.sketch.conditions import Condition, conditions
from patternlake.udfs.sketch.events import TokenEvents
from patternlake.udfs.sketch.kernels.conditional import Problem, conditional_matches, past_last
from patternlake.udfs.sketch.kernels.hits import Matches
from patternlake.udfs.sketch.kernels.matching import Flag, first_choices, flag_columns, labels_of, search, span_of_rows
from patternlake.udfs.sketch.kernels.search import Rows
from patternlake.udfs.sketch.query import Alternative, SketchPattern
from patternlake.udfs.sketch.windows import Window

MOST_WAYS = 1000
"""Greatest number of ways of a pattern's ORs that are tried one after another."""


def match_events(
    pattern: SketchPattern,
    events: TokenEvents,
    *,
    policy: str = "skip_till_next",
    after_match: str = "past_last",
    max_matches: int = 1_000_000,
    truncate: bool = False,
    window: Window | None = None,
) -> Matches:
    """Match a pattern on events, exactly.

    Parameters
    ----------
    pattern
        Compiled with verify.
    events
        All events, or those of `candidates.candidate_ranges`.
    policy, after_match, max_matches, truncate
        As for `matching.match_nodes_by_key`; first rows are by (key, first position).
    window
        Hides events outside of it; it does not change which events are neighbours, nor what WITHIN counts.

    Returns
    -------
    Matches
        One row per match; `level` and `fp_bound` are 0.

    Raises
    ------
    ArgumentError
        An argument has no such value, a column is missing, or there are too many matches. Under WHERE over several
        operands and ``skip_till_any`` the message says "at least" so many. Under other policies ORs give more than
        `MOST_WAYS` ways.
    """
    check_arguments(policy, after_match, max_matches)
    events, ordinals = _visible(events, window)
    judged = conditions(pattern)
    truths = _Truths(pattern, events, judged)
    rows = _event_rows(pattern, events, ordinals, truths)
    constant = [condition for condition in judged if not condition.slots and condition.negated is None]
    possible = all(events.truth(condition.predicate).all() for condition in constant)
    if not possible:
        rows.flags[:] = False
    asked = _Search(pattern, policy, rows, truths, judged, events, possible)
    ways = [len(slot.alternatives) for slot in pattern.slots]
    if policy == "skip_till_any" or max(ways) == 1:
        total, key, found, choice = asked.matches(truths.slots, rows, after_match, max_matches, truncate)
    else:
        total, key, found, choice = asked.by_ways(after_match, max_matches, truncate)
    return _matches(pattern, events, key, found, choice, total)


@dataclass(frozen=True)
class _Search:
    """What is searched, as a whole or way by way."""

    pattern: SketchPattern
    policy: str
    rows: Rows
    truths: _Truths
    judged: tuple[Condition, ...]
    events: TokenEvents
    possible: bool

    def matches(
        self, slots: list[list[Flag]], rows: Rows, after_match: str, max_matches: int, truncate: bool
    ) -> tuple[int, IntArray, IntArray, IntArray]:
        """How many matches there are, and of the first ones key, event of each slot and alternative of each."""
        layout = self.pattern.layout(self.policy)
        several = tuple(c for c in self.judged if len(c.slots) + (c.negated is not None) > 1)
        if not several:
            total, key, found = search(rows, layout, self.policy, after_match, max_matches, truncate)
            return total, key, found, first_choices(slots, found)
        gaps = [
            [(choice, accepted) for choice, (_, accepted) in zip(gap, flags, strict=True) if self.policy != "strict"]
            for gap, flags in zip(self.pattern.gaps, self.truths.gaps, strict=True)
        ]
        accepted = [[held for _, held in flags] for flags in slots]
        problem = Problem(rows, layout, accepted, gaps, several, self.events)
        return conditional_matches(problem, self.policy, after_match, max_matches, truncate)

    def by_ways(self, after_match: str, max_matches: int, truncate: bool) -> tuple[int, IntArray, IntArray, IntArray]:
        """The same under policies that give a start one match: that of the first way of the ORs, in text order, that
        has one.
        """
        count = prod(len(flags) for flags in self.truths.slots)
        if count > MOST_WAYS:
            raise ArgumentError(
                f"'|' gives this pattern {count:,} ways, which policy {self.policy} tries one after another on events; "
                f"{MOST_WAYS:,} are the most that it takes; split it into several patterns, or ask with verify => false"
            )
        n = len(self.rows.lo)
        nothing = np.zeros(n, np.bool_)
        width = len(self.truths.slots)
        key, found, choice = (np.zeros(shape, np.int64) for shape in ((0,), (0, width), (0, width)))
        begun = np.zeros(n, np.bool_)
        for way in product(*(range(len(flags)) for flags in self.truths.slots)):
            slots = [
                [flag if index == taken else (("none",), nothing) for index, flag in enumerate(flags)]
                for flags, taken in zip(self.truths.slots, way, strict=True)
            ]
            flags, slot, gap = flag_columns(slots, self.truths.gaps)
            rows = self.rows._replace(flags=flags & self.possible, slot=slot, gap=gap)
            _, keys, bound, chosen = self.matches(slots, rows, "next", n, True)
            first, _ = span_of_rows(self.pattern, bound)
            new = ~begun[first]
            begun[first] = True
            key, found = np.concatenate([key, keys[new]]), np.concatenate([found, bound[new]])
            choice = np.concatenate([choice, chosen[new]])
        first, last = span_of_rows(self.pattern, found)
        order = np.argsort(first, kind="stable")
        if after_match == "past_last":
            order = order[past_last(first[order], last[order])]
        total = len(order)
        if total > max_matches and not truncate:
            raise too_many(total, max_matches)
        order = order[:max_matches]
        return total, key[order], found[order], choice[order]


def _visible(events: TokenEvents, window: Window | None) -> tuple[TokenEvents, IntArray]:
    """The events inside the window, and their numbers within their partitions, counted before the cut."""
    if events.offsets is None:
        ordinals = events.positions
        offsets = np.array([0, len(ordinals)], np.int64)
    else:
        offsets = np.ascontiguousarray(events.offsets, np.int64)
        ordinals = np.arange(len(events.positions), dtype=np.int64) - np.repeat(offsets[:-1], np.diff(offsets))
    kept = np.ones(len(ordinals), np.bool_) if window is None else window.of_events(events.positions, events.times)
    if not kept.all():
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        offsets, ordinals = before[offsets], ordinals[kept]
        events = events.take(kept)
    return replace(events, offsets=offsets), np.ascontiguousarray(ordinals, np.int64)


class _Truths:
    """Which events each alternative accepts, with the conditions over it alone."""

    def __init__(self, pattern: SketchPattern, events: TokenEvents, judged: tuple[Condition, ...]) -> None:
        self.pattern, self.events = pattern, events
        self.known: dict[tuple[Hashable, ...], BoolArray] = {}
        alone = [condition for condition in judged if len(condition.slots) + (condition.negated is not None) == 1]
        self.slots = [
            [
                self.flag(choice, [c for c in alone if c.slots == {place} and _judges(c, place, index)])
                for index, choice in enumerate(slot.alternatives)
            ]
            for place, slot in enumerate(pattern.slots)
        ]
        self.gaps = [
            [self.flag(choice, [c for c in alone if c.negated == choice]) for choice in gap] for gap in pattern.gaps
        ]

    def flag(self, choice: Alternative, judged: list[Condition]) -> Flag:
        """The events that an alternative accepts."""
        key = (choice.name, *(condition.predicate for condition in judged))
        if key not in self.known:
            if choice.primitive:
                accepted = self.events.truth(self.pattern.define[choice.name])
            else:
                accepted = self.events.named(choice.name)
            for condition in judged:
                accepted = accepted & self.events.truth(condition.predicate)
            self.known[key] = accepted
        return key, self.known[key]


def _judges(condition: Condition, slot: int, index: int) -> bool:
    """True where a condition over one slot applies to this alternative of it."""
    return not condition.taken or condition.taken == ((slot, index),)


def _event_rows(pattern: SketchPattern, events: TokenEvents, ordinals: IntArray, truths: _Truths) -> Rows:
    """The events as rows of the kernels."""
    flags, slot, gap = flag_columns(truths.slots, truths.gaps)
    span = ordinals if pattern.counted else events.times
    assert events.offsets is not None
    return Rows(
        offsets=events.offsets,
        lo=ordinals,
        hi=ordinals,
        span_lo=span,
        span_hi=span,
        within=np.int64(pattern.within.amount if pattern.within else -1),
        flags=flags,
        slot=slot,
        gap=gap,
        exclusive=True,
    )


def _matches(
    pattern: SketchPattern, events: TokenEvents, key: IntArray, found: IntArray, choice: IntArray, total: int
) -> Matches:
    """Rows of the answer from the rows of the search."""
    first, last = span_of_rows(pattern, found)
    positions = events.positions[found]
    return Matches(
        key=key,
        operand=labels_of(pattern, choice),
        step_lo=positions,
        step_hi=positions,
        first_position=events.positions[first],
        last_position=events.positions[last],
        first_time=events.times[first],
        last_time=events.times[last],
        level=np.zeros(len(key), np.int8),
        fp_bound=np.zeros(len(key), np.float64),
        total=total,
        truncated=len(key) < total,
    )
