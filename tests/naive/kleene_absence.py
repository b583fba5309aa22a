"""Absence: what must not lie in the place of a negation (SPEC 3, ROWS part 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from naive.kleene_asked import Asked, Kept, moment, numbers_of
from naive.kleene_orders import Absence, Order, orders_of
from naive.predicates import judge

from patternlake.udfs.language.predicate.predicates import Predicate

FAR = 10**15
"""More microseconds than any deadline of the tests has."""


def absent(asked: Asked, absence: Absence, names: frozenset[str], kept: Kept) -> bool:
    """Whether nothing that a negation forbids stands in its place; `names` are the operands of the match's order."""
    sides = [sorted(t.number for name in side for t in kept.get(name, ())) for side in (absence.left, absence.right)]
    if any(side and not numbers for side, numbers in zip((absence.left, absence.right), sides, strict=True)):
        return True
    left, right = sides
    low = left[-1] + 1 if left else 0
    high = right[0] if right else len(asked.events)
    if absence.directly == "after":
        high = min(high, low + 1)
    if absence.directly == "before":
        low = max(low, high - 1)
    own = numbers_of(kept)
    places = [number for number in range(low, high) if number not in own]
    return not any(forbidden(asked, absence, names, kept, places, order) for order in forbidden_orders(asked, absence))


def forbidden_orders(asked: Asked, absence: Absence) -> list[Order]:
    """The orders of all that a negation names."""
    return [order for item in absence.node.items for order in orders_of(asked, item)]


def forbidden(
    asked: Asked, absence: Absence, names: frozenset[str], kept: Kept, places: list[int], order: Order
) -> bool:
    """Whether an order of what is negated has a match among some events that the match would fit."""
    # What tries assignments judges absences, too.
    from naive.kleene_any import assignments, in_order, kept_of

    conjuncts = [
        part for part in asked.conjuncts if part.operands & order.names and part.operands <= names | order.names
    ]
    own = numbers_of(kept)
    for assignment in assignments(asked, order):
        numbers = [number for run in assignment.values() for number in run]
        if not numbers or not set(numbers) <= set(places) or not in_order(asked, order, assignment):
            continue
        both = {**kept, **kept_of(order, assignment)}
        # A deadline of its own stands in the place of the window.
        first = min(own) if bounded(asked, absence, order, kept, -FAR) else min(*own, *numbers)
        last = max(own) if bounded(asked, absence, order, kept, FAR) else max(*own, *numbers)
        if (
            asked.in_window(first, last)
            and all(asked.equal([number, other]) for number in numbers for other in [*own, *numbers] if other != number)
            and all(asked.holds(part, both) for part in conjuncts)
            and all(absent(asked, inner, names | order.names, both) for inner in order.absences)
        ):
            return True
    return False


def own_conditions(asked: Asked, absence: Absence, order: Order, late: bool) -> Iterator[tuple[Predicate, str]]:
    """The conditions ``@`` over one negated operand, the last or the first of an order, and that operand."""
    name = order.slots[-1 if late else 0].name
    for condition in asked.deadlines[absence.key]:
        if condition.operands & asked.negated == {name}:
            yield condition, name


def holds_at(asked: Asked, condition: Predicate, name: str, time: int, kept: Kept) -> bool:
    """Whether a condition on times would hold for all kept events, were the negated event at some time."""
    others = sorted(condition.operands - {name})
    rows: list[Mapping[Any, Any]] = list(asked.choices(condition, others, kept, None)) if others else [{}]
    own = {reference: moment(time) for reference in condition.references if reference.operand == name}
    return all(judge(condition.root, {**row, **own}) is True for row in rows)


def bounded(asked: Asked, absence: Absence, order: Order, kept: Kept, far: int) -> bool:
    """Whether a condition of its own says how late, or with a negative `far` how early, what is negated may stand."""
    base = asked.events[numbers_of(kept)[0]].time
    conditions = own_conditions(asked, absence, order, far > 0)
    return any(not holds_at(asked, condition, name, base + far, kept) for condition, name in conditions)


def deadline(asked: Asked, absence: Absence, order: Order, kept: Kept) -> int | None:
    """The first moment at which an event can no longer be forbidden, by a condition of its own; None without one."""
    numbers = numbers_of(kept)
    found = []
    for condition, name in own_conditions(asked, absence, order, True):
        low, high = asked.events[numbers[0]].time - FAR, asked.events[numbers[-1]].time + FAR
        if holds_at(asked, condition, name, high, kept):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds_at(asked, condition, name, middle, kept) else (low, middle)
        found.append(high)
    return min(found, default=None)
