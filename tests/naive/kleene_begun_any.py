"""Near misses under skip_till_any by their definition: every choice of events for every beginning is tried (SPEC 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from naive.kleene_any import assignments, kept_of, valid
from naive.kleene_asked import Asked, Event, Row, numbers_of
from naive.kleene_begun import ruled_out
from naive.kleene_orders import Order, orders_of


def near_misses(text: str, events: Sequence[Event], types: Mapping[str, str]) -> list[tuple[Row, str]]:
    """What each start has chosen from which nothing is complete, and the operand that it awaits.

    A beginning of an order has its first slots, of which the last one may have too few events. Of all choices of a
    start that nothing rules out the one is told whose last operand is furthest in the text of its order; then with the
    most operands; then that awaits the furthest operand; then the nearest, which takes the earlier event where two
    differ first and goes on where another one ends; then the first by operands.
    """
    asked = Asked(text, events, types)
    complete: set[int] = set()
    best: dict[int, tuple[Any, Row, str]] = {}
    for order in dict.fromkeys(orders_of(asked, asked.pattern)):
        names = sorted(order.names, key=asked.names.index)
        for size in range(1, len(order.slots) + 1):
            *before, last = order.slots[:size]
            begun = Order((*before, replace(last, least=min(1, last.least))))
            for chosen in assignments(asked, begun):
                assignment = {**dict.fromkeys(order.slots, ()), **dict(zip(order.slots, chosen.values(), strict=False))}
                kept = {name: run for name, run in kept_of(order, assignment).items() if run}
                if not kept or not valid(asked, order, assignment):
                    continue
                least = {slot.name: slot.least for slot in order.slots}
                few = [name for name in names if len(kept.get(name, ())) < least[name]]
                start = numbers_of(kept)[0]
                if not few:
                    complete.add(start)
                elif not ruled_out(asked, order.absences, order.names, kept, few[0]):
                    came = 1 + max(names.index(name) for name in kept)
                    numbers = [*numbers_of(kept), inf]
                    rank = -came, -len(kept), -asked.names.index(few[0]), numbers, asked.rank(kept)
                    if start not in best or rank < best[start][0]:
                        best[start] = rank, asked.row(kept), few[0]
    return [(row, missing) for start, (_, row, missing) in sorted(best.items()) if start not in complete]
