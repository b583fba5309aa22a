"""From which states instances come, as far as they go back there: what a discarded copy goes back to, and rival links.

Source: SPEC section 6: a discarded copy moves to the most advanced state, from the first boundary up to its own, that
is still held. Where instances count moves of their own, that is by its own kin: the instance in the last state that
waits, of which it is a copy, and what else has come of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternlake.udfs.machines.graph.composite_states import moves
from patternlake.udfs.machines.graph.counted_states import onward_of
from patternlake.udfs.machines.graph.merged import Graph
from patternlake.udfs.machines.query import Subscription


@dataclass(frozen=True)
class Lineages:
    """Of a graph.

    Attributes
    ----------
    boundaries
        For each state that lasts for one event the last states before it that wait, the initial one left out.
    falls
        For each state that lasts for one event itself and those of that kind that lead to it, the furthest first.
    rival
        For each link whether a subscription has another one out of the same state.
    """

    boundaries: list[list[int]]
    falls: list[list[int]]
    rival: list[bool]


def lineages_of(graph: Graph, subscriptions: Sequence[Subscription]) -> Lineages:
    """The lineages of a graph of some subscriptions."""
    boundaries: list[list[int]] = [[] for _ in graph.waits]
    falls: list[list[int]] = [[] for _ in graph.waits]
    for link in graph.links:
        target = link.target
        if graph.waits[target] or graph.final[target]:
            continue
        before = [link.source] if graph.waits[link.source] else boundaries[link.source]
        boundaries[target] = list(dict.fromkeys([*boundaries[target], *before]))
        falls[target] = sorted({target, *falls[target], *falls[link.source]}, reverse=True)
    rival = [False] * len(graph.links)
    onward = onward_of(graph)
    for number, subscription in enumerate(subscriptions):
        if not subscription.boolean:
            continue
        states = graph.states[number]
        for composite_state, state in states.items():
            some = [
                onward[state][states[move.target], move.primitive]
                for move in moves(subscription.master, composite_state)
            ]
            for link_number in some if len(some) > 1 else ():
                rival[link_number] = True
    return Lineages([[state for state in some if state] for some in boundaries], falls, rival)
