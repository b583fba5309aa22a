"""Conditions that bound when a negated event counts, such as ``t(C) - t(B) < 1 SEC``: its deadline.

Source: SPEC section 3. Such a condition holds for a range of times around an event of the match, so that it is looked
up and not judged event by event.
"""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.time_gaps import UNBOUNDED, bounds, gap
from patternlake.udfs.language.query import extents


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a negated event counts, by the time of an operand of the match.

    Attributes
    ----------
    operand
        Number of the operand.
    low, high
        Microseconds from its event to the negated one, both included, no more than between any two moments; None: no
        bound.
    own
        Whether it stands behind ``!`` as ``@( … )``: on the side that it bounds it stands in place of WITHIN.
    """

    operand: int
    low: int | None
    high: int | None
    own: bool


def deadline_of(conjunct: Predicate, negated: str, operand: str, number: int, *, own: bool) -> Deadline | None:
    """What a conjunct over a negated operand and another one says of the time between them; None where it says more.

    Parameters
    ----------
    conjunct
        Bound.
    negated, operand
        Names of the two operands that it names.
    number, own
        The number of `operand`, and where the conjunct stands.

    Examples
    --------
    ``t(C) - t(B) < 1 SEC`` gives ``Deadline(number of B, None, 999_999, own)``.
    """

    def event_of(reference: Reference) -> object:
        return reference.operand if reference.index in (None, "i") else reference

    found = gap(conjunct.root, event_of)
    if found is None or found.operator == "<>" or {found.later, found.earlier} != {negated, operand}:
        return None
    low, high = bounds(found.operator, found.microseconds)
    if found.later != negated:
        low, high = -high, -low
    most = extents.MOST_MICROS
    low_, high_ = (None if abs(bound) >= UNBOUNDED - 1 else max(-most, min(most, bound)) for bound in (low, high))
    return Deadline(number, low_, high_, own)
