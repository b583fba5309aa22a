"""Which copies do all that the instance can do which they are copies of, so that it need not be followed beside them.

Source: Muthusamy et al. 2010, section 4.1: at a match an instance takes two transitions, one to the next state and one
back to its own. In a sequence without deadlines the first dominates the second: what completes the instance
completes its copy.
"""

from __future__ import annotations

from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves, pending
from patternlake.udfs.machines.graph.links import bound_of, steps_into
from patternlake.udfs.machines.graph.liveness import NOW, completion_paths
from patternlake.udfs.machines.query import Subscription
from patternlake.udfs.machines.time_conditions import TimeChoice


def find_uncovered(subscription: Subscription) -> frozenset[tuple[CompositeState, CompositeState]]:
    """The pairs of a state that waits and one after it, where an instance of the first goes on beside its copy.

    That is so if the copy lost what the instance may still take, as alternatives are, or if a deadline of the copy runs
    from the event that made it. What lasts for one event goes back to what it is a copy of, so it is never so.
    """
    chain = subscription.master
    bound = bound_of(steps_into(subscription))
    found = set()
    for composite_state in bound:
        if composite_state == START or complete(chain, composite_state) or pending(chain, composite_state):
            continue
        onward = moves(chain, composite_state)
        for move in onward:
            if complete(chain, move.target) or pending(chain, move.target):
                continue
            takes = {one.primitive for one in moves(chain, move.target)}
            lost = [one for one in onward if one.target != move.target and one.primitive not in takes]
            if lost or _begins(subscription, move.target, bound[move.target], move.primitive):
                found.add((composite_state, move.target))
    return frozenset(found)


def _begins(subscription: Subscription, composite_state: CompositeState, bound: frozenset[int], operand: int) -> bool:
    """Whether a deadline of a state runs from an operand, or a choice between conditions depends on its time."""
    naming = [condition for condition in subscription.bounds if operand in condition.operands]
    if not naming:
        return False
    chosen = any(isinstance(condition, TimeChoice) for condition in naming)
    return any(
        other == operand and (one == NOW or chosen)
        for completion_path in completion_paths(subscription, composite_state, bound)
        for one, other, _ in completion_path.bounds
    )
