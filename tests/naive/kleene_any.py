"""skip_till_any by its definition: every assignment of events to the slots of every order is tried (SPEC 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count, pairwise

from naive.kleene_absence import absent
from naive.kleene_asked import Asked, Kept, Taken, numbers_of
from naive.kleene_orders import Absence, Order, Slot, TooManyError, orders_of

MOST_TRIED = 200_000
Assignment = dict[Slot, tuple[int, ...]]
"""Numbers of the events of each slot, in order."""


def kept_of(order: Order, assignment: Assignment) -> Kept:
    """What each operand takes, all rounds together."""
    kept: Kept = {}
    for slot in order.slots:
        kept[slot.name] = (*kept.get(slot.name, ()), *(Taken(number, slot.rounds) for number in assignment[slot]))
    return kept


def numbers_at(slots: Sequence[Slot] | frozenset[Slot], assignment: Assignment) -> list[int]:
    return sorted(number for slot in slots for number in assignment[slot])


def in_order(asked: Asked, order: Order, assignment: Assignment) -> bool:
    """Order, neighbours, what ends repetitions, rounds, and the window."""
    numbers = [number for slot in order.slots for number in assignment[slot]]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        return False
    for first, second in order.adjacent:
        ends, begins = numbers_at(first, assignment), numbers_at(second, assignment)
        if ends and begins and begins[0] != ends[-1] + 1:
            return False
    for slots, until in order.untils:
        run = numbers_at(slots, assignment)
        if run and any(asked.ends(until, number) for number in range(run[0] + 1, run[-1] + 1)):
            return False
    if any(not numbers_at(slots, assignment) for slots in order.rounds):
        return False
    return not numbers or asked.in_window(numbers[0], numbers[-1])


def valid(asked: Asked, order: Order, assignment: Assignment, only: tuple[str, int] | None = None) -> bool:
    """Order, neighbours, window and predicates."""
    if not in_order(asked, order, assignment):
        return False
    kept = kept_of(order, assignment)
    judged = [part for part in asked.conjuncts if part.operands <= order.names]
    return asked.equal(numbers_of(kept)) and all(asked.holds(part, kept, only) for part in judged)


def assignments(asked: Asked, order: Order, tried: Iterator[int] | None = None) -> Iterator[Assignment]:
    """Everything that takes events in order, within the window; `tried` counts the steps of several orders together."""
    tried = tried or count()

    def go(at: int, low: int, chosen: Assignment) -> Iterator[Assignment]:
        if next(tried) > MOST_TRIED:
            raise TooManyError(f"more than {MOST_TRIED} steps")
        if at == len(order.slots):
            yield dict(chosen)
            return
        slot = order.slots[at]
        taken = [number for number in range(low, len(asked.events)) if asked.takes(slot.name, number)]
        most = len(taken) if slot.most is None else slot.most
        for size in range(slot.least, min(most, len(taken)) + 1):
            for some in combinations(taken, size):
                begun = [*(number for run in chosen.values() for number in run), *some]
                if not begun or asked.in_window(begun[0], begun[-1]):
                    yield from go(at + 1, some[-1] + 1 if some else low, {**chosen, slot: some})

    yield from go(0, 0, {})


def can_grow(asked: Asked, order: Order, assignment: Assignment) -> bool:
    """Whether some event can be added to a repeated operand that has room."""
    for slot in order.slots:
        if slot.most is not None and len(assignment[slot]) >= slot.most:
            continue
        for number in range(len(asked.events)):
            if number not in assignment[slot] and asked.takes(slot.name, number):
                more = {**assignment, slot: tuple(sorted((*assignment[slot], number)))}
                if valid(asked, order, more, (slot.name, number)):
                    return True
    return False


def every(asked: Asked, repetition: str) -> list[tuple[Kept, tuple[Absence, ...]]]:
    """All matches, each with the absences of its order."""
    found, tried = [], count()
    for order in dict.fromkeys(orders_of(asked, asked.pattern)):
        for assignment in assignments(asked, order, tried):
            if not any(assignment.values()) or not valid(asked, order, assignment):
                continue
            if repetition == "maximal" and can_grow(asked, order, assignment):
                continue
            kept = kept_of(order, assignment)
            free = all(absent(asked, absence, order.names, kept) for absence in order.absences)
            if free and all(asked.totalled(conjunct, kept) for conjunct in asked.totals):
                found.append((kept, order.absences))
    return found
