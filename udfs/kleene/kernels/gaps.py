"""``!X``: whether a negated event lies where it must not.

Source: SPEC section 3: between the last event of everything before it and the first of everything behind it there is no
X that satisfies its predicates for all kept events; tested last, never steering what is collected.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.tables import expanded
from patternlake.udfs.kleene.query import Condition
from patternlake.udfs.kleene.work import Work, absence
from patternlake.udfs.language.predicate.references import Reference

NEVER = 1 << 62


def free_of_negated(joiner: Joiner, matches: Collected, work: Work | None = None) -> BoolArray:
    """bool[k]: the matches in whose gaps no negated event lies; `work` is told how many are left at each."""
    free = np.ones(len(matches), np.bool_)
    for gap in joiner.layout.linearization.gaps:
        low = _extreme(joiner, matches, gap.left, last=True) + 1
        high = _extreme(joiner, matches, gap.right, last=False)
        # Where a side has no event there is no "between".
        bounded = (low > 0) & (high < NEVER)
        for negated in gap.negated:
            begun = perf_counter()
            _rule_out(joiner, matches, negated, np.flatnonzero(free & bounded), low, high, free)
            if work is not None:
                work.add(absence(negated), int(free.sum()), perf_counter() - begun)
    return free


def _rule_out(
    joiner: Joiner, matches: Collected, negated: int, rows: IntArray, low: IntArray, high: IntArray, free: BoolArray
) -> None:
    """Mark those of some rows of `free` between whose bounds an event of a negated operand lies."""
    members = joiner.stream.members[negated]
    first = np.searchsorted(members, low[rows])
    last = np.searchsorted(members, high[rows])
    conditions = [part for part in joiner.layout.negations if part.negated == negated]
    if not conditions:
        free[rows[last > first]] = False
        return
    inside, at = expanded(first, last)
    counts = np.ones(len(inside), np.bool_)
    for condition in conditions:
        counts &= _for_all_kept(joiner, matches, condition, rows[inside], members[at])
    free[rows[inside[counts]]] = False


def _extreme(joiner: Joiner, matches: Collected, operands: Iterable[int], *, last: bool) -> IntArray:
    """The last, or first, event of some operands in each match; -1, or `NEVER`, where there is none."""
    result = np.full(len(matches), -1 if last else NEVER, np.int64)
    pick = np.maximum if last else np.minimum
    for operand in operands:
        for slot in joiner.layout.of_operand.get(operand, ()):
            if slot in matches.ones:
                result = pick(result, matches.ones[slot])
                continue
            offsets, events = matches.lists[slot]
            some = np.flatnonzero(offsets[1:] > offsets[:-1])
            place = offsets[some + 1] - 1 if last else offsets[some]
            result[some] = pick(result[some], events[place])
    return result


def _for_all_kept(
    joiner: Joiner, matches: Collected, condition: Condition, rows: IntArray, negated: IntArray
) -> BoolArray:
    """Whether a condition holds between each negated event and all events of its match that the condition names."""
    pair = np.arange(len(rows), dtype=np.int64)
    event_of: dict[int, IntArray] = {}
    for operand in condition.operands:
        pieces = [_events_of(matches, slot, rows[pair]) for slot in joiner.layout.of_operand[operand]]
        inside = np.concatenate([piece[0] for piece in pieces])
        found = np.concatenate([piece[1] for piece in pieces])
        event_of = {other: events[inside] for other, events in event_of.items()}
        event_of[operand] = found
        pair = pair[inside]
    number_of = dict(zip(condition.names, condition.operands, strict=True))
    resolved: dict[Reference, IntArray] = {}
    for reference in condition.predicate.references:
        number = number_of.get(reference.operand or "")
        resolved[reference] = negated[pair] if number is None else event_of[number]
    holds = joiner.judged(condition.predicate, resolved, len(pair))
    # An operand without events leaves a pair without combinations: the condition does not apply to it.
    return np.asarray(np.bincount(pair[~holds], minlength=len(rows)) == 0)


def _events_of(matches: Collected, slot: int, rows: IntArray) -> tuple[IntArray, IntArray]:
    """(place in `rows`, event) of all events that a slot has in some matches."""
    if slot in matches.ones:
        return np.arange(len(rows), dtype=np.int64), matches.ones[slot][rows]
    offsets, events = matches.lists[slot]
    inside, at = expanded(offsets[rows], offsets[rows + 1])
    return inside, events[at]
