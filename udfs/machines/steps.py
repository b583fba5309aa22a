"""The links of one subscription, by the cuts that they lead to, and which time conditions each one judges."""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.tree import Conjunction
from patternlake.udfs.machines.cuts import START, Cut, moves
from patternlake.udfs.machines.subscription import Subscription, TimeBound

MOST_CUTS = 4_096
"""Greatest number of states of one subscription; only ``&`` multiplies them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A link of one subscription before its states have numbers.

    Attributes
    ----------
    source
        The cut that it leaves.
    operand, direct, bounds
        As of `graph.Link`.
    """

    source: Cut
    operand: int
    direct: bool
    bounds: tuple[TimeBound, ...]


def steps_into(subscription: Subscription) -> dict[Cut, list[Step]]:
    """For each cut but the first the links into it; all that lead to a cut come before it.

    Raises
    ------
    UnsupportedOperatorError
        The subscription has more than `MOST_CUTS` states.
    """
    chain = subscription.master
    onward = {START: moves(chain, START)}
    missing: dict[Cut, int] = {}
    found = [START]
    for cut in found:
        for move in onward[cut]:
            if move.target not in onward:
                onward[move.target] = moves(chain, move.target)
                found.append(move.target)
            missing[move.target] = missing.get(move.target, 0) + 1
        if len(found) > MOST_CUTS:
            raise _too_many(subscription)
    into: dict[Cut, list[Step]] = {cut: [] for cut in missing}
    bound: dict[Cut, frozenset[int]] = {START: frozenset()}
    ready, order = [START], []
    for cut in ready:
        order.append(cut)
        for move in onward[cut]:
            target, operand = move.target, move.primitive
            into[target].append(Step(cut, operand, move.direct, _bounds(subscription, operand, bound[cut])))
            bound[target] = bound.get(target, frozenset()) | bound[cut] | {operand}
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return {cut: into[cut] for cut in order[1:]}


def _bounds(subscription: Subscription, operand: int, before: frozenset[int]) -> tuple[TimeBound, ...]:
    """The time conditions that can be judged when an operand is bound after some of these."""
    return tuple(
        bound
        for bound in subscription.bounds
        if (bound.later == operand and bound.earlier in before) or (bound.earlier == operand and bound.later in before)
    )


def _too_many(subscription: Subscription) -> UnsupportedOperatorError:
    query = subscription.query
    place = next(node.sign for node in query.pattern.walk() if isinstance(node, Conjunction))
    message = f"'&' gives this subscription more than {MOST_CUTS:,} states; join fewer operands by it"
    return UnsupportedOperatorError(message, query.text, place.start, place.end)
