"""How far starts come under ``skip_till_any``: the beginnings of a pattern, and the nearest choice of events for each.

Source: SPEC section 3. A beginning is what some operands of a way ask for, none of which comes behind one that is left
out; what comes last may have fewer events than it needs. Beginnings are looked for from the furthest on, each from the
starts that came to none before it. A start from which some choice of events is complete is no near miss, whether it is
a match or something rules it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, product
from typing import NoReturn

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import bindings
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.walking import nearest_of_each
from patternlake.udfs.kleene.kernels.walks import ENOUGH, SHORT, UNTOUCHED
from patternlake.udfs.kleene.linearizations import MOST_LINEARIZATIONS, Gap, Linearization
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.ways import ALL, ANY, EVENT, ROUNDS, Step, Way, join_steps, ways_of
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
    last
        Operands of a repetition among them that has too few events, or rounds, so that nothing comes behind it.
    at_hand
        As of `walking.nearest_of_each`.
    """

    way: Way
    awaited: int
    came: int
    last: frozenset[int] = frozenset()
    at_hand: Mapping[int, int] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """What comes further goes first."""
        return self.awaited != WHOLE, -self.came, -len(self.way.operands), -self.awaited


def beginnings_of(pattern: KleenePattern) -> list[Beginning]:
    """The beginnings of a pattern and its whole ways, these first, then from the furthest on.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MOST_LINEARIZATIONS`; a round of a repeated group may leave out an operand.
    """
    query = pattern.query
    number_of = {id(one.event): one.number - 1 for one in operands.number(query)}
    repeated = frozenset(n for n, one in enumerate(pattern.operands) if one.repeated and not one.negated)
    found: list[Beginning] = []
    for way in ways_of(query, number_of, repeated):
        if any(_may_leave_out(step.parts[0]) for step in way.root.walk() if step.kind == ROUNDS):
            _refuse(
                pattern,
                "partial => true with skip_till_any takes no '|', OF, '?', '*' and no further group in a repeated "
                "group",
            )
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
            own = Way(order, part.step)
            found.append(Beginning(own, part.awaited, came, part.last, part.at_hand))
            if len(found) > MOST_LINEARIZATIONS:
                _refuse(
                    pattern,
                    f"'&', OF, '|' and '?' let this pattern begin in more than {MOST_LINEARIZATIONS} ways, each of "
                    "which partial => true with skip_till_any looks for",
                )
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


def choose_furthest(pattern: KleenePattern, stream: Stream, begins: BoolArray) -> tuple[Rows, IntArray]:
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
        if not beginning.last:
            return np.ones(len(rows), np.bool_)
        # Under '&' something may have come behind what has too few, which ends it.
        match = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        own = np.isin(rows.operands, list(beginning.last))
        first = np.full(len(rows), ENDLESS)
        np.minimum.at(first, match[own], rows.events[own])
        holds = np.ones(len(rows), np.bool_)
        holds[match[~own & (rows.events > first[match])]] = False
        return holds

    return nearest_of_each(pattern, beginning.way, stream, begins, fits, beginning.at_hand)


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
    """Steps that a way may begin with, the operand awaited behind them, and what is in `Beginning`."""

    step: Step
    awaited: int
    last: frozenset[int] = frozenset()
    at_hand: Mapping[int, int] = field(default_factory=dict)


def _begun(step: Step) -> Iterator[_Part]:
    """What a step begins with that is not all of it, some of it at least."""
    if step.kind == EVENT:
        if step.least > 1:
            short = replace(step, most=step.least - 1, least=1, optional=False)
            yield _Part(short, step.operand, frozenset({step.operand}))
        return
    if step.kind == ROUNDS:
        yield from _begun_in_rounds(step)
        return
    if step.kind == ALL:
        yield from _begun_beside(step)
        return
    for at, part in enumerate(step.parts):
        before = step.parts[:at]
        for one in _begun(part):
            yield replace(one, step=join_steps(step.kind, (*before, one.step)))
        awaited = _find_needed(step.parts[at:])
        if before and awaited != WHOLE:
            yield _Part(join_steps(step.kind, before), awaited)


def _begun_in_rounds(step: Step) -> Iterator[_Part]:
    """The same of a repeated group: too few rounds, a first one that is not complete, or such a one behind others."""
    (inner,) = step.parts
    least = {one.operand: one.least for one in inner.walk() if one.kind == EVENT}
    everything = frozenset(least)
    if step.least > 1:
        yield _Part(replace(step, least=1, most=step.least - 1, optional=False), _find_needed([inner]), everything)
    for one in _begun(inner):
        taken = {part.operand: part.least == least[part.operand] for part in one.step.walk() if part.kind == EVENT}
        until = min(taken) if step.until >= 0 else -1
        first = replace(step, parts=(one.step,), least=1, most=1, until=until, optional=False)
        yield _Part(first, one.awaited, everything)
        if step.most != 1:
            at_hand = {
                number: UNTOUCHED if number not in taken else ENOUGH if taken[number] else SHORT for number in least
            }
            yield _Part(replace(step, least=1, optional=False), one.awaited, everything, at_hand)


def _begun_beside(step: Step) -> Iterator[_Part]:
    """The same of parts in any order: of each nothing, something or all."""
    # So many are refused in any case.
    begun_of = (islice(_begun(part), MOST_LINEARIZATIONS) for part in step.parts)
    choices = [[None, _Part(part, WHOLE), *begun] for part, begun in zip(step.parts, begun_of, strict=True)]
    for chosen in product(*choices):
        begun = [one for one in chosen if one is not None]
        last = [one for one in begun if one.last]
        awaits = [
            _find_needed([part]) if one is None else one.awaited for part, one in zip(step.parts, chosen, strict=True)
        ]
        awaited = next((one for one in awaits if one != WHOLE), WHOLE)
        # What has too few comes last, which no two of them can.
        if begun and awaited != WHOLE and len(last) < 2:
            made = join_steps(ALL, [one.step for one in begun])
            yield replace(last[0] if last else begun[0], step=made, awaited=awaited)


def _find_needed(steps: Sequence[Step]) -> int:
    """The first operand that steps need which have not begun."""
    for step in steps:
        if not step.optional:
            found = step.operand if step.kind == EVENT else _find_needed(step.parts)
            if found != WHOLE:
                return found
    return WHOLE


def _may_leave_out(inner: Step) -> bool:
    """Whether a round may have no event of some operand, or has rounds of its own."""
    return any(
        step.kind in (ANY, ROUNDS) or (step.kind == ALL and step.least < len(step.parts)) or step.least == 0
        for step in inner.walk()
    )


def _refuse(pattern: KleenePattern, why: str) -> NoReturn:
    raise pattern.query.unsupported(f"{why}; ask with policy => 'skip_till_next' or 'strict'")
