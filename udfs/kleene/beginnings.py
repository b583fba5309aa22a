"""How far starts come under ``skip_till_any``: the beginnings of a pattern, and the nearest choice of events for each.

Source: SPEC section 3. A beginning is what some operands of a way ask for, none of which comes behind one that is left
out; what comes last may have fewer events than it needs. Beginnings are looked for from the furthest on, each from the
starts that came to none before it. A start from which some choice of events is complete is no near miss, whether it is
a match or something rules it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, product

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import bindings
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.walking import nearest_of_each
from patternlake.udfs.kleene.linearizations import MOST_LINEARIZATIONS, Gap, Linearization
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.rounds import repeated_groups
from patternlake.udfs.kleene.ways import ALL, EVENT, Step, Way, join_steps, ways_of
from patternlake.udfs.language.query import operands

WHOLE = -1
"""Stands for the operand that a whole match awaits."""
ENDLESS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Beginning:
    """Some operands of a way with which it may begin, or all of them.

    Attributes
    ----------
    way
        These operands as a way of their own.
    awaited
        The operand that is awaited behind them; `WHOLE` where there is none.
    came
        How far the last of them stands in the text of the whole way.
    short
        The operand among them that has fewer events than it needs, so that nothing comes behind it; or None.
    """

    way: Way
    awaited: int
    came: int
    short: int | None = None

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """What comes further goes first."""
        return self.awaited != WHOLE, -self.came, -len(self.way.operands), -self.awaited


def beginnings_of(pattern: KleenePattern) -> list[Beginning]:
    """The beginnings of a pattern and its whole ways, these first, then from the furthest on.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MOST_LINEARIZATIONS`; the pattern has a repeated group.
    """
    query = pattern.query
    for group in repeated_groups(query.pattern):
        span, message = group.item.span, "partial => true with skip_till_any does not take a repeated group"
        advice = "ask with policy => 'skip_till_next' or 'strict'"
        raise UnsupportedOperatorError(f"{message}; {advice}", query.text, span.start, span.end)
    number_of = {id(one.event): one.number - 1 for one in operands.number(query)}
    repeated = frozenset(n for n, one in enumerate(pattern.operands) if one.repeated and not one.negated)
    found: list[Beginning] = []
    for way in ways_of(query, number_of, repeated):
        written = sorted(way.order.operands)
        # What is complete is no near miss, whatever must be absent.
        found.append(Beginning(replace(way, order=replace(way.order, gaps=())), WHOLE, len(written)))
        for part in _begun(way.root):
            inside = [step.operand for step in part.step.walk() if step.kind == EVENT]
            order = replace(
                way.order,
                operands=tuple(one for one in way.order.operands if one in inside),
                gaps=gaps_at(way.order, frozenset(inside), part.awaited),
            )
            came = 1 + written.index(max(inside))
            found.append(Beginning(Way(order, frozenset(), part.step), part.awaited, came, part.short))
            if len(found) > MOST_LINEARIZATIONS:
                _refuse(pattern)
    return sorted(found, key=lambda one: one.rank)


def gaps_at(order: Linearization, inside: frozenset[int], awaited: int) -> tuple[Gap, ...]:
    """What rules out operands with events as long as one is awaited, whatever comes.

    What must be absent behind operands that are complete counts to the end of the window, as long as what follows it
    has not come; of other absences nothing is known yet.
    """
    return tuple(
        replace(gap, left=gap.left & inside, right=gap.right & inside)
        for gap in order.gaps
        if (gap.left & inside and awaited not in gap.left if gap.left else gap.right & inside or not gap.right)
        and (gap.right & inside or not gap.ahead)
    )


def reached(pattern: KleenePattern, stream: Stream, begins: BoolArray) -> tuple[Rows, IntArray]:
    """How far each start came from which nothing is complete.

    Of all choices of events that fit a beginning of the pattern, the one that is told has its last operand furthest in
    the text of its way; then the most operands; then it awaits the operand that stands furthest; then it is the
    nearest, see `walking.nearest_of_each`; then the first by operands.

    Parameters
    ----------
    pattern, stream
        What is matched.
    begins
        bool[n]: the starts that are wanted.

    Returns
    -------
    (Rows, int64[r])
        And the operand that each awaits.
    """
    judged = replace(pattern, aggregate_conditions=())
    left = np.zeros(len(begins), np.bool_)
    for number in pattern.beginnings:
        left[stream.source[stream.members[number]]] = True
    left &= begins
    parts, awaited = [bindings.no_rows()], [np.zeros(0, np.int64)]
    for _, alike in groupby(beginnings_of(pattern), key=lambda one: one.rank):
        if not left.any():
            break
        beginnings = list(alike)
        rows = _nearest(bindings.stacked([_rows(judged, one, stream, left) for one in beginnings]))
        left[rows.events[rows.offsets[:-1]]] = False
        if beginnings[0].awaited != WHOLE:
            parts.append(rows)
            awaited.append(np.full(len(rows), beginnings[0].awaited))
    return bindings.stacked(parts), np.concatenate(awaited)


def _rows(pattern: KleenePattern, beginning: Beginning, stream: Stream, begins: BoolArray) -> Rows:
    """Of each start the nearest choices for a beginning."""

    def fits(rows: Rows) -> BoolArray:
        if beginning.short is None:
            return np.ones(len(rows), np.bool_)
        # Under '&' something may have come behind what has too few, which ends it.
        match = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        own = rows.operands == beginning.short
        first = np.full(len(rows), ENDLESS)
        np.minimum.at(first, match[own], rows.events[own])
        holds = np.ones(len(rows), np.bool_)
        holds[match[~own & (rows.events > first[match])]] = False
        return holds

    return nearest_of_each(pattern, beginning.way, stream, begins, fits)


def _nearest(rows: Rows) -> Rows:
    """The nearest row of each start."""
    # With an end that is behind all events, what begins with a row comes before it.
    events = np.insert(rows.events, rows.offsets[1:], ENDLESS)
    labels = np.insert(rows.operands, rows.offsets[1:], 0)
    places = np.arange(len(rows), dtype=np.int64)
    first = rows.events[rows.offsets[:-1]]
    order, _ = bindings.sort_rows(places, first, rows.offsets + np.arange(len(rows) + 1), events, labels)
    begins = np.append(True, np.diff(first[order]) != 0)[: len(order)]
    return rows.take(order[begins])


@dataclass(frozen=True)
class _Part:
    """Steps that a way may begin with, the operand awaited behind them, and the one that has too few, or None."""

    step: Step
    awaited: int
    short: int | None = None


def _begun(step: Step) -> Iterator[_Part]:
    """What a step begins with that is not all of it, some of it at least."""
    if step.kind == EVENT:
        if step.least > 1:
            yield _Part(replace(step, most=step.least - 1, least=1), step.operand, step.operand)
        return
    if step.kind == ALL:
        yield from _begun_beside(step)
        return
    for at, part in enumerate(step.parts):
        before = step.parts[:at]
        for one in _begun(part):
            yield replace(one, step=join_steps(step.kind, (*before, one.step)))
        awaited = _first_needed(step.parts[at:])
        if before and awaited != WHOLE:
            yield _Part(join_steps(step.kind, before), awaited)


def _begun_beside(step: Step) -> Iterator[_Part]:
    """The same of parts in any order: of each nothing, something or all."""
    # So many are refused in any case.
    begun_of = (islice(_begun(part), MOST_LINEARIZATIONS) for part in step.parts)
    choices = [[None, _Part(part, WHOLE), *begun] for part, begun in zip(step.parts, begun_of, strict=True)]
    for chosen in product(*choices):
        begun = [one for one in chosen if one is not None]
        short = [one.short for one in begun if one.short is not None]
        awaits = [
            _first_needed([part]) if one is None else one.awaited for part, one in zip(step.parts, chosen, strict=True)
        ]
        awaited = next((one for one in awaits if one != WHOLE), WHOLE)
        # What has too few comes last, which no two of them can.
        if begun and awaited != WHOLE and len(short) < 2:
            yield _Part(join_steps(ALL, [one.step for one in begun]), awaited, next(iter(short), None))


def _first_needed(steps: Sequence[Step]) -> int:
    """The first operand that steps need which have not begun."""
    events = (one for step in steps for one in step.walk() if one.kind == EVENT)
    return next((one.operand for one in events if not one.optional), WHOLE)


def _refuse(pattern: KleenePattern) -> None:
    span = pattern.query.pattern.span
    raise UnsupportedOperatorError(
        f"'&', OF, '|' and '?' let this pattern begin in more than {MOST_LINEARIZATIONS} ways, each of which "
        "partial => true with skip_till_any looks for; ask with policy => 'skip_till_next' or 'strict', or split it",
        pattern.query.text,
        span.start,
        span.end,
    )
