"""DEFINE and WHERE of a pattern, ready to judge events.

A conjunct of WHERE becomes one or more **conditions**: one for each choice of events of the repeated operands that it
names. A condition over one slot alone becomes part of what the slot accepts; the others are judged as soon as all
their slots are filled (SPEC section 3, skip_till_next). A conjunct that names an OR's alternative applies only where
that alternative was taken. ``[attr]`` holds between neighbouring slots, and between the first slot and a negated event
(an event of another value breaks nothing).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Call, EqualAlong, Field
from patternlake.udfs.language.predicate.predicates import (
    Predicate,
    Reference,
    evaluate,
    refuse_neighbours,
    refuse_variables,
)
from patternlake.udfs.sketch.query import Alternative, SketchPattern

NEGATED = -1
"""Stands for the negated event where a slot is expected."""


@dataclass(frozen=True)
class Condition:
    """A predicate over the events of some slots, and perhaps of one negated name.

    Attributes
    ----------
    predicate
        What must be true.
    slot_of
        The slot of each reference; `NEGATED` for the negated event.
    taken
        (slot, index of the alternative): where another one was taken, the condition does not apply.
    negated
        The negated alternative that it judges, else None.
    """

    predicate: Predicate
    slot_of: Mapping[Reference, int]
    taken: tuple[tuple[int, int], ...] = ()
    negated: Alternative | None = None

    @property
    def slots(self) -> frozenset[int]:
        """The slots that must be filled before it can be judged."""
        return frozenset(self.slot_of.values()) - {NEGATED}

    def holds(self, events: Events, bound: IntArray, choice: IntArray, negated: IntArray | None = None) -> BoolArray:
        """Judge many partial matches at once.

        Parameters
        ----------
        events
            All events.
        bound, choice
            int64[r, slots]: the event of each slot, and which alternative it was taken for.
        negated
            int64[r]: the negated event, where the condition has one.

        Returns
        -------
        bool[r]
            NULL counts as false.
        """
        applies = np.ones(len(bound), np.bool_)
        for slot, index in self.taken:
            applies &= choice[:, slot] == index
        result = ~applies
        rows = np.flatnonzero(applies)

        def resolve(reference: Reference) -> Column:
            slot = self.slot_of[reference]
            if slot != NEGATED:
                return events.column(reference.column, bound[rows, slot])
            assert negated is not None
            return events.column(reference.column, negated[rows])

        if len(rows):
            result[rows] = np.broadcast_to(evaluate(self.predicate, resolve).true, rows.shape)
        return result


def conditions(pattern: SketchPattern) -> tuple[Condition, ...]:
    """All conditions of a pattern's WHERE, in text order."""
    if pattern.where is None:
        return ()
    found: list[Condition] = []
    for conjunct in pattern.where.conjuncts:
        refuse_variables(conjunct)
        if isinstance(conjunct.root, EqualAlong):
            found += _equal_along(pattern, conjunct.root.attribute)
        else:
            found += _instances(pattern, conjunct)
    return tuple(found)


def _equal_along(pattern: SketchPattern, attribute: str) -> Iterator[Condition]:
    left, right = Reference("left", None, attribute), Reference("right", None, attribute)
    equal = Predicate(Call(operator="=", arguments=(Field(reference=left), Field(reference=right))))
    for slot in range(len(pattern.slots) - 1):
        yield Condition(equal, {left: slot, right: slot + 1})
    for negated in (alternative for gap in pattern.gaps for alternative in gap):
        yield Condition(equal, {left: 0, right: NEGATED}, negated=negated)


def _instances(pattern: SketchPattern, conjunct: Predicate) -> Iterator[Condition]:
    """The conditions of one conjunct: all events of a repeated operand, or all its neighbours for ``[i-1]``."""
    places = {name: _places(pattern, name) for name in sorted(conjunct.operands)}
    backward = {reference.operand or "" for reference in conjunct.references if reference.index == "i-1"}
    for name in sorted(backward):
        if len(places[name]) < 2:
            refuse_neighbours(conjunct, name, negated=not places[name])
    negated = [gap for gap in (g for gs in pattern.gaps for g in gs) if gap.operand in conjunct.operands]
    positive = {name: found for name, found in places.items() if found}
    if len(negated) > 1:
        raise conjunct.error("a conjunct can name one negated operand; write one conjunct for each")
    if len(positive) + len(negated) < len(places):
        return  # It is about an event between direct neighbours, and there is none.
    ranges = [range(1 if name in backward else 0, len(found)) for name, found in positive.items()]
    for combination in product(*ranges):
        chosen = dict(zip(positive, combination, strict=True))
        slot_of: dict[Reference, int] = {}
        taken: dict[tuple[int, int], None] = {}
        for reference in conjunct.references:
            name = reference.operand or ""
            if name not in positive:
                slot_of[reference] = NEGATED
                continue
            slot, index = positive[name][chosen[name] - (1 if reference.index == "i-1" else 0)]
            slot_of[reference] = slot
            if len(pattern.slots[slot].alternatives) > 1:
                taken[slot, index] = None
        yield Condition(conjunct, slot_of, tuple(taken), negated[0] if negated else None)


def _places(pattern: SketchPattern, operand: str) -> list[tuple[int, int]]:
    """The slots of an operand (several inside ``A[n]``), each with the index of its alternative there."""
    return [
        (place, index)
        for place, slot in enumerate(pattern.slots)
        for index, alternative in enumerate(slot.alternatives)
        if alternative.operand == operand
    ]
