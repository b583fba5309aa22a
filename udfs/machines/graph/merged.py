"""The states of many subscriptions in one graph, equal prefixes shared.

Source: Muthusamy et al. 2010, section 4.3: two states are one if the same links lead to both from states that are one
(and both, or neither, have a self link). So ``a;b;c``, ``a;b;d`` and ``a`` share two states, and the ``a`` that ends
a subscription is not the ``a`` that waits for ``b``.

Departures from the paper: two states are one only if later conditions, joins and window let their instances live
equally long as well. So whoever shares a state shares what is counted of it, and a merged state never keeps an instance
for one subscription that another has lost. Where instances count moves of their own, their number and ages are the same
only if later conditions tell the same instances apart and the same lower bounds are pending, and the counted move only
if all alternatives are the same; so that is asked for too. Sequences whose instances count together share all else.

Only subscriptions with the same partition, the same window and the same decay of counts can share states.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from patternlake.udfs.language.predicate.expressions import Parameter
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves, pending
from patternlake.udfs.machines.graph.links import steps_into
from patternlake.udfs.machines.graph.liveness import CompletionPath
from patternlake.udfs.machines.graph.requirements import ALWAYS, Requirements, requirements_of
from patternlake.udfs.machines.query import Primitive, Subscription
from patternlake.udfs.machines.time_conditions import TimeCondition


@dataclass(frozen=True, slots=True)
class Link:
    """A link: from state `source` to `target` by an event that the primitive takes as operand `operand`.

    Attributes
    ----------
    primitive
        Number in `Graph.primitives`.
    direct
        The event directly follows the last one that was bound.
    bounds
        Time conditions that name `operand` and else what is bound before it.
    """

    source: int
    target: int
    primitive: int
    operand: int
    direct: bool
    bounds: tuple[TimeCondition, ...]


@dataclass
class Graph:
    """The states of subscriptions.

    Attributes
    ----------
    primitives
        All primitives, each once.
    links
        All links; those into a state come before those out of it.
    waits
        For each state whether it has a self link. State 0 is the initial one, and waits.
    bound
        For each state the operands that may be bound.
    asked
        For each state the operands whose times later links ask for.
    earliest
        For each state those of them of which later links and completion paths ask only that they be early enough.
    completion_paths
        For each state the ways in which its instances may be completed; none of a complete one.
    opens
        For each state (operand, microseconds): lower bounds on what comes after operands.
    timed
        For each state whether a deadline or a lower bound is pending on its instances.
    by_instance
        For each state whether each of its instances counts moves of its own: they have ages, or go back to some that
        have, or the subscription has ``&`` or ``|``.
    ids
        For each state a name that does not depend on what other subscriptions there are.
    final
        For each state the subscriptions that it matches.
    states
        For each subscription its states by composite state.
    """

    primitives: list[Primitive] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    waits: list[bool] = field(default_factory=lambda: [True])
    bound: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    asked: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    earliest: list[frozenset[int]] = field(default_factory=list)
    completion_paths: list[frozenset[CompletionPath]] = field(default_factory=lambda: [frozenset({ALWAYS})])
    opens: list[tuple[tuple[int, int], ...]] = field(default_factory=lambda: [()])
    timed: list[bool] = field(default_factory=lambda: [False])
    by_instance: list[bool] = field(default_factory=lambda: [False])
    ids: list[str] = field(default_factory=lambda: ["0"])
    final: list[list[int]] = field(default_factory=lambda: [[]])
    states: list[dict[CompositeState, int]] = field(default_factory=list)


def graph_of(subscriptions: Sequence[Subscription], *, root: str = "0", merge: bool = True) -> Graph:
    """The graph of subscriptions that have one partition and one window.

    Parameters
    ----------
    subscriptions
        Compiled.
    root
        Id of the initial state: those of all others follow from it.
    merge
        False: no state but the initial one is shared, for comparison.

    Raises
    ------
    UnsupportedOperatorError
        A subscription has more than `links.MOST_COMPOSITE_STATES` states.
    """
    builder = _Builder(merge, root)
    for number, subscription in enumerate(subscriptions):
        builder.add(number, subscription)
    made = builder.made
    made.earliest = [asked - exactly for asked, exactly in zip(made.asked, builder.exactly, strict=True)]
    return made


class _Builder:
    def __init__(self, merge: bool, root: str) -> None:
        self.merge = merge
        self.made = Graph(ids=[root])
        self.primitives: dict[Hashable, int] = {}
        self.states: dict[Hashable, int] = {}
        self.exactly: list[frozenset[int]] = [frozenset()]
        """For each state the operands of whose times an earlier one is not always as good."""

    def primitive(self, given: Primitive) -> int:
        """The number of a primitive; equal ones have one, whatever they are called."""
        own = (given.takes if given.define is None else given.define, given.joins)
        if own not in self.primitives:
            self.primitives[own] = len(self.made.primitives)
            self.made.primitives.append(given)
        return self.primitives[own]

    def add(self, number: int, subscription: Subscription) -> None:
        """Add the states and links of one subscription."""
        chain, made = subscription.master, self.made
        numbers = [self.primitive(primitive) for primitive in subscription.primitives]
        into = steps_into(subscription)
        requirements = requirements_of(subscription, into)
        states = {START: 0}
        for composite_state, steps in into.items():
            waits = not pending(chain, composite_state) and not complete(chain, composite_state)
            links = [
                (states[step.source], numbers[step.operand], step.operand, step.direct, step.bounds) for step in steps
            ]
            ahead = None if complete(chain, composite_state) else requirements[composite_state].ahead
            by_instance = not complete(chain, composite_state) and (
                requirements[composite_state].timed
                or subscription.boolean
                # What goes back to what counts one by one does so too.
                or (not waits and any(made.by_instance[states[step.source]] for step in steps))
            )
            alone = self.alone(subscription, composite_state, requirements[composite_state]) if by_instance else ()
            signature: Hashable = (waits, frozenset(links), ahead, alone) if self.merge else (number, composite_state)
            if signature not in self.states:
                state = self.states[signature] = len(made.waits)
                made.waits.append(waits)
                made.bound.append(requirements[composite_state].bound)
                made.completion_paths.append(ahead or frozenset())
                made.opens.append(requirements[composite_state].opens)
                made.timed.append(requirements[composite_state].timed)
                made.by_instance.append(by_instance)
                made.ids.append(self.identity(waits, links, ahead, alone))
                made.final.append([])
                made.asked.append(frozenset())
                self.exactly.append(frozenset())
                made.links += [
                    Link(source, state, primitive, operand, direct, bounds)
                    for source, primitive, operand, direct, bounds in links
                ]
            states[composite_state] = self.states[signature]
            if complete(chain, composite_state):
                made.final[states[composite_state]].append(number)
        for composite_state, state in states.items():
            made.asked[state] |= requirements[composite_state].asked
            self.exactly[state] |= requirements[composite_state].exactly
        made.states.append(states)

    def alone(
        self, subscription: Subscription, composite_state: CompositeState, requirements: Requirements
    ) -> tuple[Hashable, ...]:
        """All that decides how many instances a state has, what ages they have, and which of their moves count."""
        told = (
            subscription.boolean,
            requirements.opens,
            tuple(sorted(requirements.asked)),
            tuple(sorted(requirements.exactly & requirements.asked)),
        )
        if not subscription.boolean or len(moves(subscription.master, composite_state)) < 2:
            return told
        # Which of several moves counts is decided among those of one subscription.
        texts = tuple(_text(primitive) for primitive in subscription.primitives)
        return (*told, subscription.master, texts, subscription.bounds)

    def identity(
        self,
        waits: bool,
        links: Sequence[_LinkSignature],
        ahead: frozenset[CompletionPath] | None,
        alone: tuple[Hashable, ...],
    ) -> str:
        """A digest of all that makes a state what it is."""
        made = self.made
        parts = [
            repr((made.ids[source], _text(made.primitives[primitive]), operand, direct, bounds))
            for source, primitive, operand, direct, bounds in links
        ]
        shown = [
            repr((one.bounds, one.missing, [(sorted(a), sorted(b)) for a, b in one.joined])) for one in ahead or ()
        ]
        told: tuple[object, ...] = (waits, sorted(parts), ahead is not None, sorted(shown))
        whole = repr((*told, *alone))
        return blake2b(whole.encode(), digest_size=12).hexdigest()


_LinkSignature = tuple[int, int, int, bool, tuple[TimeCondition, ...]]


def _text(primitive: Primitive) -> str:
    """What a primitive takes, whatever it is called."""
    if primitive.define is None:
        return repr((primitive.takes, primitive.joins))
    # Its text names parameters, whose values may differ from subscription to subscription.
    values = [part.text for part in primitive.define.root.walk() if isinstance(part, Parameter)]
    return repr(((primitive.define.sql(), *values), primitive.joins))
