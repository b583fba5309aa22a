"""What of machines is counted together: counted states that instances hold, and advance counters, which tell who
advanced from them.

Source: SPEC section 6 (training) and Muthusamy et al. 2010, section 5.2.1. Per event, each occupied state counts one
move. Where no deadline is pending all instances of a state with the same join values have the same future: they hold
the **counted state** of their state together, and it counts. An **advance counter** is one way of leaving a counted
state by an advance; subscriptions that share a counted state but go on differently have advance counters of their own.
So what chains share is counted once.

Instances that have ages, and all of subscriptions with ``&`` or ``|``, count one by one (`counting`), and hold nothing;
but the initial state of a subscription is a counted state always: it is occupied once per partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patternlake.udfs.machines.graph.composite_states import START, CompositeState, fallback_states, moves
from patternlake.udfs.machines.graph.merged import Graph
from patternlake.udfs.machines.query import Subscription


@dataclass(frozen=True, slots=True)
class Move:
    """What a link does to a role of its source: it advances through `advance_counter`."""

    role: int
    advance_counter: int


@dataclass
class CountedStates:
    """Counted states and advance counters of a graph.

    Attributes
    ----------
    waits
        For each counted state whether it waits at events that don't advance it.
    fallback_states
        For each counted state the counted states that a discarded copy may go to, the furthest first.
    advance_counter_state
        For each advance counter the counted state that it leaves.
    roles
        For each state of the graph the counted states that its instances are in.
    moves
        For each link of the graph.
    advance_counters
        For each subscription the advance counter of each move, by the composite state and the operand; of counted
        states alone.
    state_of
        For each counted state its state of the graph.
    """

    waits: list[bool] = field(default_factory=list)
    fallback_states: list[tuple[int, ...]] = field(default_factory=list)
    advance_counter_state: list[int] = field(default_factory=list)
    roles: list[list[int]] = field(default_factory=list)
    moves: list[list[Move]] = field(default_factory=list)
    advance_counters: list[dict[tuple[CompositeState, int], int]] = field(default_factory=list)
    state_of: list[int] = field(default_factory=list)

    def add_state(self, state: int, waits: bool, fallback_states: tuple[int, ...]) -> int:
        """A new counted state."""
        self.waits.append(waits)
        self.fallback_states.append(fallback_states)
        self.state_of.append(state)
        return len(self.waits) - 1

    def add_advance_counter(self, counted_state: int) -> int:
        """A new advance counter."""
        self.advance_counter_state.append(counted_state)
        return len(self.advance_counter_state) - 1


def counted_states_of(graph: Graph, subscriptions: Sequence[Subscription]) -> CountedStates:
    """The counted states of a graph.

    Parameters
    ----------
    graph
        Of the same subscriptions.
    subscriptions
        Compiled.
    """
    made = CountedStates(roles=[[] for _ in graph.waits], moves=[[] for _ in graph.links])
    onward = onward_of(graph)
    shared: dict[int, int] = {}
    advance_counters: dict[int, int] = {}
    for number, subscription in enumerate(subscriptions):
        states = graph.states[number]
        if subscription.boolean:
            made.advance_counters.append(_initial(made, states, subscription, onward))
        else:
            made.advance_counters.append(_chain(made, graph, states, subscription, onward, shared, advance_counters))
    return made


Onward = dict[tuple[int, int], int]
"""Links of a state by number: the state that each leads to, and the operand that it binds."""


def onward_of(graph: Graph) -> list[Onward]:
    """For each state of a graph the links out of it."""
    onward: list[Onward] = [{} for _ in graph.waits]
    for number, link in enumerate(graph.links):
        onward[link.source][link.target, link.operand] = number
    return onward


def _chain(
    made: CountedStates,
    graph: Graph,
    states: Mapping[CompositeState, int],
    subscription: Subscription,
    onward: Sequence[Onward],
    shared: dict[int, int],
    advance_counters: dict[int, int],
) -> dict[tuple[CompositeState, int], int]:
    """Counted states and advance counters of a chain of primitives; `shared` and `advance_counters`: those of states
    and links so far.
    """
    chain = subscription.master
    found: dict[tuple[CompositeState, int], int] = {}
    for done, item in enumerate(chain.items):
        composite_state = CompositeState(done)
        state = states[composite_state]
        if graph.by_instance[state]:
            continue
        if state not in shared:
            shared[state] = len(made.waits)
            among = [states[one] for one in fallback_states(chain, composite_state)]
            made.add_state(state, graph.waits[state], tuple(shared[one] for one in among if one in shared))
            made.roles[state].append(shared[state])
        link = onward[state][states[CompositeState(done + 1)], item.primitive]
        if link not in advance_counters:
            advance_counters[link] = made.add_advance_counter(shared[state])
            made.moves[link].append(Move(made.roles[state].index(shared[state]), advance_counters[link]))
        found[composite_state, item.primitive] = advance_counters[link]
    return found


def _initial(
    made: CountedStates, states: Mapping[CompositeState, int], subscription: Subscription, onward: Sequence[Onward]
) -> dict[tuple[CompositeState, int], int]:
    """The counted state and the advance counters of the initial state of a subscription with Boolean machines, of its
    own.
    """
    counted_state = made.add_state(0, True, ())
    made.roles[0].append(counted_state)
    found: dict[tuple[CompositeState, int], int] = {}
    for move in moves(subscription.master, START):
        advance_counter = found[START, move.primitive] = made.add_advance_counter(counted_state)
        link = onward[0][states[move.target], move.primitive]
        made.moves[link].append(Move(len(made.roles[0]) - 1, advance_counter))
    return found
