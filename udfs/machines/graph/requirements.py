"""What the rest of a subscription asks of the instances of each of its states, from the last states back.

Source: SPEC section 6. Two subscriptions may share a state only if they ask the same of its instances, as far as that
decides which instances there are, how long they live and what they count (`graph`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from patternlake.udfs.language.predicate.time_gaps import UNBOUNDED
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete
from patternlake.udfs.machines.graph.links import Step, bound_of
from patternlake.udfs.machines.graph.liveness import FIRST, NOW, CompletionPath, completion_paths
from patternlake.udfs.machines.query import Subscription
from patternlake.udfs.machines.time_conditions import TimeBound, TimeChoice

ALWAYS = CompletionPath((), 0, ())
"""The completion path that nothing ends."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What is asked of the instances of a state.

    Attributes
    ----------
    bound
        Operands that may be bound.
    ahead
        The ways in which instances may be completed; none of a complete one.
    asked
        Operands whose times later links ask for.
    exactly
        Operands of whose times an earlier one is not always as good to later links and completion paths.
    opens
        (operand, microseconds): lower bounds on what comes after operands.
    timed
        A deadline, a lower bound or a choice between conditions is pending.
    """

    bound: frozenset[int]
    ahead: frozenset[CompletionPath]
    asked: frozenset[int]
    exactly: frozenset[int]
    opens: tuple[tuple[int, int], ...]
    timed: bool


def requirements_of(
    subscription: Subscription, into: Mapping[CompositeState, Sequence[Step]]
) -> dict[CompositeState, Requirements]:
    """What is asked in each state of a subscription; `into`: its links, as `links.steps_into` gives them."""
    bound = bound_of(into)
    ahead = {composite_state: _ahead(subscription, composite_state, bound[composite_state]) for composite_state in into}
    ahead[START] = frozenset({ALWAYS})
    asked: dict[CompositeState, set[int]] = {composite_state: set() for composite_state in bound}
    exactly = {
        composite_state: {operand for one in ahead[composite_state] for operand in _measured_from(one)}
        for composite_state in bound
    }
    opens: dict[CompositeState, dict[int, int]] = {composite_state: {} for composite_state in bound}
    chosen: dict[CompositeState, set[TimeChoice]] = {composite_state: set() for composite_state in bound}
    for composite_state in reversed(list(into)):
        for step in into[composite_state]:
            named = {operand for one in step.bounds for operand in one.operands}
            parts = [part for one in step.bounds for choice in one.choices for part in choice]
            exact = {operand for part in parts for operand in _exactly(part, step.operand)}
            asked[step.source] |= (asked[composite_state] | named) - {step.operand}
            exactly[step.source] |= (exactly[composite_state] | exact) - {step.operand}
            passed_on = (*opens[composite_state].items(), *_lows(step))
            _raise(opens[step.source], (one for one in passed_on if one[0] != step.operand))
            choices = chosen[composite_state].union(one for one in step.bounds if isinstance(one, TimeChoice))
            chosen[step.source] |= {one for one in choices if one.operands & bound[step.source]}
    for composite_state, lows in opens.items():
        _raise(lows, _chosen_lows(chosen[composite_state], bound[composite_state]))
    return {
        composite_state: Requirements(
            bound[composite_state],
            ahead[composite_state],
            frozenset(asked[composite_state]),
            frozenset(exactly[composite_state]),
            tuple(sorted(opens[composite_state].items())),
            _has_deadline(subscription, ahead[composite_state])
            or bool(opens[composite_state])
            or bool(chosen[composite_state]),
        )
        for composite_state in bound
    }


def _ahead(
    subscription: Subscription, composite_state: CompositeState, bound: frozenset[int]
) -> frozenset[CompletionPath]:
    """The completion paths of a state, as far as instances could tell them apart."""
    if complete(subscription.master, composite_state):
        return frozenset()
    counted = subscription.within is not None and subscription.within.counted
    found = frozenset(
        one if counted else replace(one, missing=0) for one in completion_paths(subscription, composite_state, bound)
    )
    return frozenset({ALWAYS}) if ALWAYS in found else found


def _has_deadline(subscription: Subscription, ahead: frozenset[CompletionPath]) -> bool:
    """Whether a deadline is pending, in time or in events."""
    within = subscription.within
    window = within.amount if within is not None and within.counted else 0
    return any(
        window > one.missing or any(first == NOW and most >= 0 for first, _, most in one.bounds) for one in ahead
    )


def _measured_from(completion_path: CompletionPath) -> set[int]:
    """The operands that an earlier time could end: those that others are measured from."""
    return {reference for _, reference, _ in completion_path.bounds} - {NOW, FIRST}


def _exactly(bound: TimeBound, operand: int) -> set[int]:
    """The operands of a link's bound, its own left out, of which an earlier time is not always as good."""
    found = set()
    if bound.high < UNBOUNDED or bound.absolute:
        found.add(bound.earlier)
    if bound.low > -UNBOUNDED or bound.absolute:
        found.add(bound.later)
    return found - {operand}


def _raise(lows: dict[int, int], others: Iterable[tuple[int, int]]) -> None:
    """Let the lower bound of each operand be the greatest."""
    for operand, low in others:
        lows[operand] = max(low, lows.get(operand, low))


def _chosen_lows(conditions: Iterable[TimeChoice], bound: frozenset[int]) -> Iterator[tuple[int, int]]:
    """How long at least what is missing comes after operands that are bound, in some choice of a condition."""
    for part in (part for one in conditions for choice in one.choices for part in choice):
        turned = part.low if part.absolute else -part.high
        for earlier, later, low in ((part.earlier, part.later, part.low), (part.later, part.earlier, turned)):
            if earlier in bound and later not in bound and 0 < low < UNBOUNDED:
                yield earlier, low


def _lows(step: Step) -> Iterator[tuple[int, int]]:
    """How long at least a link's event comes after operands that are bound before it."""
    for bound in step.bounds:
        if isinstance(bound, TimeChoice):
            continue
        if bound.later == step.operand or bound.absolute:
            other, low = (bound.earlier if bound.later == step.operand else bound.later), bound.low
        else:
            other, low = bound.later, -bound.high
        if 0 < low < UNBOUNDED:
            yield other, low
