"""Patterns matched on events: the exact answer of ``verify => true``.

Source: SPEC section 2 (verify) and section 3 (how conjuncts steer skip_till_next). A start takes the nearest next
events; an event serves one operand; ``past_last`` goes on after the last event; ``strict`` means directly next in the
partition. An AND takes the events with the earliest end, then the least positions in text order. A conjunct is judged
once all its operands are bound; a negated name is judged when everything is bound, and rejects.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.policies import check_arguments
from patternlake.udfs.sketch.conditions import Columns, Condition, conditions
from patternlake.udfs.sketch.events import Events
from patternlake.udfs.sketch.kernels.conditional import Problem, conditional_matches
from patternlake.udfs.sketch.kernels.hits import Matches
from patternlake.udfs.sketch.kernels.matching import Flag, first_choices, flag_columns, labels_of, search, span_of_rows
from patternlake.udfs.sketch.kernels.search import BoolArray, Rows
from patternlake.udfs.sketch.query import Alternative, IntArray, SketchPattern
from patternlake.udfs.sketch.windows import Window


def match_events(
    pattern: SketchPattern,
    events: Events,
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
        operands and ``skip_till_any`` the message says "at least" so many.
    """
    check_arguments(policy, after_match, max_matches)
    events, ordinals = _visible(events, window)
    columns = Columns(events.positions, events.times, events.columns)
    judged = conditions(pattern)
    truths = _Truths(pattern, events, columns, judged)
    rows = _event_rows(pattern, events, ordinals, truths)
    constant = [condition for condition in judged if not condition.slots and condition.negated is None]
    if not all(columns.truth(condition.predicate, 1).all() for condition in constant):
        rows.flags[:] = False
    layout = pattern.layout(policy)
    several = tuple(c for c in judged if len(c.slots) + (c.negated is not None) > 1)
    if several:
        gaps = [
            [(choice, accepted) for choice, (_, accepted) in zip(gap, flags, strict=True) if policy != "strict"]
            for gap, flags in zip(pattern.gaps, truths.gaps, strict=True)
        ]
        accepted = [[held for _, held in flags] for flags in truths.slots]
        problem = Problem(rows, layout, accepted, gaps, several, columns)
        total, key, found, choice = conditional_matches(problem, policy, after_match, max_matches, truncate)
    else:
        total, key, found = search(rows, layout, policy, after_match, max_matches, truncate)
        choice = first_choices(truths.slots, found)
    return _matches(pattern, events, key, found, choice, total)


def _visible(events: Events, window: Window | None) -> tuple[Events, IntArray]:
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
    return (
        Events(
            positions=np.ascontiguousarray(events.positions[kept], np.int64),
            times=np.ascontiguousarray(events.times[kept], np.int64),
            present=events.present[kept],
            columns={
                name: Column(column.values[kept], np.broadcast_to(column.known, kept.shape)[kept], column.type)
                for name, column in events.columns.items()
            },
            offsets=offsets,
        ),
        np.ascontiguousarray(ordinals, np.int64),
    )


class _Truths:
    """Which events each alternative accepts, with the conditions over it alone."""

    def __init__(self, pattern: SketchPattern, events: Events, columns: Columns, judged: tuple[Condition, ...]) -> None:
        self.pattern, self.events, self.columns = pattern, events, columns
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
            n = len(self.events.positions)
            if choice.primitive:
                accepted = self.columns.truth(self.pattern.define[choice.name], n)
            else:
                accepted = self.events.present[:, self.pattern.names.index(choice.name)]
            for condition in judged:
                accepted = accepted & self.columns.truth(condition.predicate, n)
            self.known[key] = accepted
        return key, self.known[key]


def _judges(condition: Condition, slot: int, index: int) -> bool:
    """True where a condition over one slot applies to this alternative of it."""
    return not condition.taken or condition.taken == ((slot, index),)


def _event_rows(pattern: SketchPattern, events: Events, ordinals: IntArray, truths: _Truths) -> Rows:
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
    pattern: SketchPattern, events: Events, key: IntArray, found: IntArray, choice: IntArray, total: int
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
