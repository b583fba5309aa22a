"""Near misses under skip_till_any by their definition: every choice of events for every beginning is tried (SPEC 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import inf
from typing import Any

from naive.kleene_any import assignments, kept_of, numbers_at, valid
from naive.kleene_asked import Asked, Event, Row, numbers_of
from naive.kleene_begun import ruled_out
from naive.kleene_orders import Order, Slot, orders_of

from patternlake.udfs.language.query import tree


def near_misses(text: str, events: Sequence[Event], types: Mapping[str, str]) -> list[tuple[Row, str]]:
    """What each start has chosen from which nothing is complete, and the operand that it awaits.

    A beginning of an order has its first slots, of which the last one may have too few events, and no rounds that have
    not begun and need not. Of all choices of a
    start that nothing rules out the one is told whose last operand is furthest in the text of its order; then with the
    most operands; then that awaits the furthest operand; then the nearest, which takes the earlier event where two
    differ first and goes on where another one ends; then the first by operands.
    """
    asked = Asked(text, events, types)
    complete: set[int] = set()
    best: dict[int, tuple[Any, Row, str]] = {}
    # Rounds that have not begun are of orders for which there are too few events.
    more = copy(asked)
    more.events = [*asked.events, *asked.events[:1] * needed(asked.pattern)]
    for order in dict.fromkeys(orders_of(more, asked.pattern)):
        names = sorted(order.names, key=asked.names.index)
        for size in range(1, len(order.slots) + 1):
            *before, last = order.slots[:size]
            begun = Order((*before, replace(last, least=min(1, last.least))))
            for chosen in assignments(asked, begun):
                assignment = {**dict.fromkeys(order.slots, ()), **dict(zip(order.slots, chosen.values(), strict=False))}
                kept = {name: run for name, run in kept_of(order, assignment).items() if run}
                # Rounds that have not begun may have no event.
                if not kept or not valid(asked, replace(order, rounds=()), assignment):
                    continue
                if any(is_further(asked, slots) and not numbers_at(slots, assignment) for slots in order.rounds):
                    continue
                few = awaited(asked, [slot for slot in order.slots if len(assignment[slot]) < slot.least])
                start = numbers_of(kept)[0]
                if not few:
                    complete.add(start)
                elif not ruled_out(asked, order.absences, order.names, kept, few):
                    came = 1 + max(names.index(name) for name in kept)
                    numbers = [*numbers_of(kept), inf]
                    rank = -came, -len(kept), -asked.names.index(few), numbers, asked.rank(kept)
                    if start not in best or rank < best[start][0]:
                        best[start] = rank, asked.row(kept), few
    return [(row, missing) for start, (_, row, missing) in sorted(best.items()) if start not in complete]


def is_further(asked: Asked, slots: frozenset[Slot]) -> bool:
    """Whether the slots are of a round that is needed by no match, so that no start awaits it."""
    slot = next(iter(slots))
    groups = {id(node): node for node in asked.pattern.walk() if isinstance(node, tree.Repetition)}
    return slot.rounds[-1] >= groups[asked.groups[slot.name][-1]].minimum


def needed(node: tree.Node) -> int:
    """As many events as the pattern needs, or more."""
    if isinstance(node, tree.Negation):
        return 0
    if isinstance(node, tree.Repetition):
        return max(1, node.minimum) * needed(node.item)
    return isinstance(node, tree.Event) + sum(map(needed, node.children()))


def awaited(asked: Asked, few: Sequence[Slot]) -> str:
    """Which of the slots that have too few events is awaited: of a repeated group one of the first such round; of all
    the first in the text.
    """
    rounds: dict[Any, tuple[int, ...]] = {}
    for slot in few:
        group = asked.groups[slot.name]
        rounds[group] = min(rounds.get(group, slot.rounds), slot.rounds)
    names = [slot.name for slot in few if slot.rounds == rounds[asked.groups[slot.name]]]
    return min(names, key=asked.names.index, default="")
