"""What of machines is counted together: places that instances hold, and slots, which tell who advanced from them.

Source: SPEC section 6 (training) and Muthusamy et al. 2010, section 5.2.1. Per event, each occupied state counts one
move. Where no deadline is pending all instances of a state with the same join values have the same future: they hold
the **place** of their state together, and it counts. A **slot** is one way of leaving a place by an advance;
subscriptions that share a place but go on differently have slots of their own. So what chains share is counted once.

Instances that have ages, and all of subscriptions with ``&`` or ``|``, count one by one (`counting`), and hold nothing;
but the initial state of a subscription is a place always: it is occupied once per partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patternlake.udfs.machines.composite_states import START, CompositeState, fallback_states, moves
from patternlake.udfs.machines.graph import Graph
from patternlake.udfs.machines.subscription import Subscription

EVERYTHING = -1
"""As `Role.without`: join values of all that is bound tell instances apart."""
NOTHING = -2
"""As `Role.without`: they are not told apart, which is so in the initial state of a whole subscription."""


@dataclass(frozen=True, slots=True)
class Role:
    """What an instance of a state of the graph is to one place: `place` is its number."""

    place: int
    without: int = EVERYTHING


@dataclass(frozen=True, slots=True)
class Move:
    """What a link does to a role of its source: it advances through `slot`."""

    role: int
    slot: int


@dataclass
class Places:
    """Places and slots of a graph.

    Attributes
    ----------
    waits
        For each place whether it waits at events that don't advance it.
    fallback_states
        For each place the places that a discarded copy may go to, the furthest first.
    slot_place
        For each slot the place that it leaves.
    roles
        For each state of the graph what its instances are.
    moves
        For each link of the graph.
    slots
        For each subscription the slot of each move, by the composite state and the operand; of places alone.
    state_of
        For each place its state of the graph.
    """

    waits: list[bool] = field(default_factory=list)
    fallback_states: list[tuple[int, ...]] = field(default_factory=list)
    slot_place: list[int] = field(default_factory=list)
    roles: list[list[Role]] = field(default_factory=list)
    moves: list[list[Move]] = field(default_factory=list)
    slots: list[dict[tuple[CompositeState, int], int]] = field(default_factory=list)
    state_of: list[int] = field(default_factory=list)

    def place(self, state: int, waits: bool, fallback_states: tuple[int, ...]) -> int:
        """A new place."""
        self.waits.append(waits)
        self.fallback_states.append(fallback_states)
        self.state_of.append(state)
        return len(self.waits) - 1

    def slot(self, place: int) -> int:
        """A new slot."""
        self.slot_place.append(place)
        return len(self.slot_place) - 1


def places_of(graph: Graph, subscriptions: Sequence[Subscription]) -> Places:
    """The places of a graph.

    Parameters
    ----------
    graph
        Of the same subscriptions.
    subscriptions
        Compiled.
    """
    made = Places(roles=[[] for _ in graph.waits], moves=[[] for _ in graph.links])
    onward = onward_of(graph)
    shared: dict[int, int] = {}
    slots: dict[int, int] = {}
    for number, subscription in enumerate(subscriptions):
        states = graph.states[number]
        if subscription.boolean:
            made.slots.append(_initial(made, states, subscription, onward))
        else:
            made.slots.append(_chain(made, graph, states, subscription, onward, shared, slots))
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
    made: Places,
    graph: Graph,
    states: Mapping[CompositeState, int],
    subscription: Subscription,
    onward: Sequence[Onward],
    shared: dict[int, int],
    slots: dict[int, int],
) -> dict[tuple[CompositeState, int], int]:
    """Places and slots of a chain of primitives; `shared` and `slots`: those of states and links so far."""
    chain = subscription.master
    found: dict[tuple[CompositeState, int], int] = {}
    for done, item in enumerate(chain.items):
        composite_state = CompositeState(done)
        state = states[composite_state]
        if graph.by_instance[state]:
            continue
        role = Role(shared.get(state, len(made.waits)), NOTHING if done == 0 else EVERYTHING)
        if state not in shared:
            shared[state] = role.place
            among = [states[one] for one in fallback_states(chain, composite_state)]
            made.place(state, graph.waits[state], tuple(shared[one] for one in among if one in shared))
            made.roles[state].append(role)
        link = onward[state][states[CompositeState(done + 1)], item.primitive]
        if link not in slots:
            slots[link] = made.slot(role.place)
            made.moves[link].append(Move(made.roles[state].index(role), slots[link]))
        found[composite_state, item.primitive] = slots[link]
    return found


def _initial(
    made: Places, states: Mapping[CompositeState, int], subscription: Subscription, onward: Sequence[Onward]
) -> dict[tuple[CompositeState, int], int]:
    """The place and the slots of the initial state of a subscription with Boolean machines, of its own."""
    role = Role(made.place(0, True, ()), NOTHING)
    made.roles[0].append(role)
    found: dict[tuple[CompositeState, int], int] = {}
    for move in moves(subscription.master, START):
        slot = found[START, move.primitive] = made.slot(role.place)
        link = onward[0][states[move.target], move.primitive]
        made.moves[link].append(Move(len(made.roles[0]) - 1, slot))
    return found
