"""The links of one subscription, by the composite states that they lead to, and which time conditions each one
judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.query.tree import Conjunction
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, moves
from patternlake.udfs.machines.query import Subscription
from patternlake.udfs.machines.time_conditions import TimeCondition

MOST_COMPOSITE_STATES = 4_096
"""Greatest number of states of one subscription; only ``&`` multiplies them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A link of one subscription before its states have numbers.

    Attributes
    ----------
    source
        The composite state that it leaves.
    operand, direct, bounds
        As of `graph.Link`.
    """

    source: CompositeState
    operand: int
    direct: bool
    bounds: tuple[TimeCondition, ...]


def steps_into(subscription: Subscription) -> dict[CompositeState, list[Step]]:
    """For each composite state but the first the links into it; all that lead to a composite state come before it.

    Raises
    ------
    UnsupportedOperatorError
        The subscription has more than `MOST_COMPOSITE_STATES` states.
    """
    chain = subscription.master
    onward = {START: moves(chain, START)}
    missing: dict[CompositeState, int] = {}
    found = [START]
    for composite_state in found:
        for move in onward[composite_state]:
            if move.target not in onward:
                onward[move.target] = moves(chain, move.target)
                found.append(move.target)
            missing[move.target] = missing.get(move.target, 0) + 1
        if len(found) > MOST_COMPOSITE_STATES:
            raise _too_many(subscription)
    into: dict[CompositeState, list[Step]] = {composite_state: [] for composite_state in missing}
    bound: dict[CompositeState, frozenset[int]] = {START: frozenset()}
    ready, order = [START], []
    for composite_state in ready:
        order.append(composite_state)
        for move in onward[composite_state]:
            target, operand = move.target, move.primitive
            into[target].append(
                Step(composite_state, operand, move.direct, _bounds(subscription, operand, bound[composite_state]))
            )
            bound[target] = bound.get(target, frozenset()) | bound[composite_state] | {operand}
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return {composite_state: into[composite_state] for composite_state in order[1:]}


def bound_of(into: Mapping[CompositeState, Sequence[Step]]) -> dict[CompositeState, frozenset[int]]:
    """The operands that may be bound in each composite state; `into`: as `steps_into` gives it."""
    bound: dict[CompositeState, frozenset[int]] = {START: frozenset()}
    for composite_state, steps in into.items():
        bound[composite_state] = frozenset().union(*(bound[step.source] | {step.operand} for step in steps))
    return bound


def _bounds(subscription: Subscription, operand: int, before: frozenset[int]) -> tuple[TimeCondition, ...]:
    """The time conditions that can be judged when an operand is bound after some of these."""
    return tuple(
        condition
        for condition in subscription.bounds
        if operand in condition.operands and condition.operands - {operand} <= before
    )


def _too_many(subscription: Subscription) -> UnsupportedOperatorError:
    query = subscription.query
    place = next(node.sign for node in query.pattern.walk() if isinstance(node, Conjunction))
    message = f"'&' gives this subscription more than {MOST_COMPOSITE_STATES:,} states; join fewer operands by it"
    return UnsupportedOperatorError(message, query.text, place.start, place.end)
