"""What of machines is counted: places that instances hold, and slots, which tell who advanced from them.

Source: SPEC section 6 (training) and Muthusamy et al. 2010, sections 5.2.1 to 5.2.3. Per event, each occupied state
of each machine counts one move. A **place** is a state of a machine as far as subscriptions share it; whoever is in a
place holds it as an *instance* of its machine, or only keeps it occupied (the initial states of child machines, as
long as a sibling is active). A **slot** is one way of leaving a place by an advance; subscriptions that share a place
but go on differently have slots of their own.

In a chain of primitives every state of the graph is a place and every link a slot, so what chains share is counted
once. A subscription with ``&`` or ``|`` has places of its own, one for each state of each of its machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patternlake.udfs.machines.cuts import START, Cut
from patternlake.udfs.machines.forecasting import Machine, Path, machines_of
from patternlake.udfs.machines.graph import Graph
from patternlake.udfs.machines.subscription import Chain, Subscription

EVERYTHING = -1
"""As `Role.without`: join values of all that is bound tell instances apart."""
NOTHING = -2
"""As `Role.without`: they are not told apart, which is so in the initial state of a whole subscription."""


@dataclass(frozen=True, slots=True)
class Role:
    """What an instance of a state of the graph is to one place.

    Attributes
    ----------
    place
        Number of the place.
    instance
        It is an instance of the place's machine; False: it only keeps the place occupied.
    without
        Operands, as bits, whose join values don't count; or `EVERYTHING` or `NOTHING`.
    subscription
        Whose operands these are; -1 where it does not matter.
    """

    place: int
    instance: bool
    without: int = EVERYTHING
    subscription: int = -1


@dataclass(frozen=True, slots=True)
class Move:
    """What a link does to a role of its source: `advances` through `slot`, or goes on inside of the place's state."""

    role: int
    slot: int
    advances: bool


@dataclass
class Places:
    """Places and slots of a graph.

    Attributes
    ----------
    waits
        For each place whether it waits at events that don't advance it.
    behind
        For each place the places that a discarded copy may go to, the furthest first.
    slot_place
        For each slot the place that it leaves.
    roles
        For each state of the graph what its instances are.
    moves
        For each link of the graph.
    slots
        For each subscription the slot of each (machine, state).
    """

    waits: list[bool] = field(default_factory=list)
    behind: list[tuple[int, ...]] = field(default_factory=list)
    slot_place: list[int] = field(default_factory=list)
    roles: list[list[Role]] = field(default_factory=list)
    moves: list[list[Move]] = field(default_factory=list)
    slots: list[dict[tuple[Path, int], int]] = field(default_factory=list)

    def place(self, waits: bool, behind: tuple[int, ...]) -> int:
        """A new place."""
        self.waits.append(waits)
        self.behind.append(behind)
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
    onward: list[_Onward] = [{} for _ in graph.waits]
    for number, link in enumerate(graph.links):
        onward[link.source][link.target, link.operand] = number
    chains: dict[int, int] = {}
    chain_slots: dict[int, int] = {}
    for number, subscription in enumerate(subscriptions):
        if all(item.primitive >= 0 for item in subscription.master.items):
            made.slots.append(_chain(made, graph.states[number], subscription, onward, chains, chain_slots))
        else:
            made.slots.append(_Boolean(made, graph.states[number], subscription, number, onward).slots())
    return made


_Onward = dict[tuple[int, int], int]
"""Links of a state by number: the state that each leads to, and the operand that it binds."""


def _chain(
    made: Places,
    states: Mapping[Cut, int],
    subscription: Subscription,
    onward: Sequence[_Onward],
    chains: dict[int, int],
    chain_slots: dict[int, int],
) -> dict[tuple[Path, int], int]:
    """Places and slots of a chain of primitives; `chains` and `chain_slots`: those of states and links so far."""
    machine = Machine((), subscription.master)
    found: dict[tuple[Path, int], int] = {}
    for done, item in enumerate(subscription.master.items):
        state = states[Cut(done)]
        if state not in chains:
            behind = tuple(chains.get(states[Cut(at)], -1) for at in machine.behind(done))
            place = chains[state] = made.place(machine.waits(done), behind)
            # Its own place may be among those behind, which had no number yet.
            made.behind[place] = tuple(place if at < 0 else at for at in behind)
            made.roles[state].append(Role(place, True, NOTHING if done == 0 else EVERYTHING))
        link = onward[state][states[Cut(done + 1)], item.primitive]
        if link not in chain_slots:
            chain_slots[link] = made.slot(chains[state])
            role = made.roles[state].index(Role(chains[state], True, NOTHING if done == 0 else EVERYTHING))
            made.moves[link].append(Move(role, chain_slots[link], advances=True))
        found[(), done] = chain_slots[link]
    return found


class _Boolean:
    """Places and slots of a subscription with child machines."""

    def __init__(
        self,
        made: Places,
        states: Mapping[Cut, int],
        subscription: Subscription,
        number: int,
        onward: Sequence[_Onward],
    ) -> None:
        self.made, self.states, self.number, self.onward = made, states, number, onward
        self.cuts = {state: cut for cut, state in states.items()}
        self.machines = {machine.path: machine for machine in machines_of(subscription)}
        self.place: dict[tuple[Path, int], int] = {}
        self.slot: dict[tuple[Path, int], int] = {}

    def slots(self) -> dict[tuple[Path, int], int]:
        """Make them all."""
        for machine in self.machines.values():
            for state in range(machine.final):
                # States behind have smaller numbers, but for the state itself.
                behind = tuple(self.place.get((machine.path, at), -1) for at in machine.behind(state))
                place = self.made.place(machine.waits(state), behind)
                self.made.behind[place] = tuple(place if at < 0 else at for at in behind)
                self.place[machine.path, state] = place
                self.slot[machine.path, state] = self.made.slot(place)
        # The states of a Boolean subscription may be shared with others, whose roles are there already.
        for cut, state in self.states.items():
            taken = len(self.made.roles[state])
            found = list(dict.fromkeys(self.active((), cut, 0, begun=True)))
            self.made.roles[state] += [role for _, _, role in found]
            numbered = enumerate(found, taken)
            self.follow(state, [(path, at, role) for role, (path, at, what) in numbered if what.instance])
        return self.slot

    def active(self, path: Path, cut: Cut, without: int, *, begun: bool) -> Iterator[tuple[Path, int, Role]]:
        """The machines active at a cut, with their states; `begun` False: of instances outside of the item."""
        machine = self.machines[path]
        if cut.done == machine.final:
            return
        once = not path and cut.done == 0
        kept = NOTHING if once else EVERYTHING if begun else without
        yield path, cut.done, Role(self.place[path, cut.done], begun, kept, self.number)
        item = machine.chain.items[cut.done]
        inside = without | _bits(operand for child in item.children for operand in _operands(child))
        for number in range(len(item.children)):
            child = (*path, cut.done, number)
            if not cut.children:
                yield from self.active(child, START, without, begun=begun)
                continue
            if item.every or cut.alternative == number:
                part = cut.children[number if item.every else 0]
                yield from self.active(child, part, without, begun=begun)
            yield from self.active(child, START, inside, begun=False)

    def follow(self, state: int, instances: Sequence[tuple[Path, int, int]]) -> None:
        """What links from a state do to its roles as instances: (machine, state, number of the role)."""
        for (target, operand), link in self.onward[state].items():
            if target not in self.cuts:
                continue
            for path, at, role in instances:
                machine = self.machines[path]
                inside = operand in _operands(machine.chain)
                after = _state_in(machine, self.cuts[target]) if inside else at
                if after in (at, at + 1):
                    self.made.moves[link].append(Move(role, self.slot[path, at], after == at + 1))


def _operands(chain: Chain) -> Iterator[int]:
    """Numbers of all operands below a chain."""
    for item in chain.items:
        if item.primitive >= 0:
            yield item.primitive
        for child in item.children:
            yield from _operands(child)


def _bits(operands: Iterator[int]) -> int:
    found = 0
    for operand in operands:
        found |= 1 << operand
    return found


def _state_in(machine: Machine, cut: Cut) -> int:
    """The state of a machine at a cut of the whole subscription, right after one of the machine's operands came."""
    path = machine.path
    while path:
        if cut.done > path[0]:
            return machine.final
        cut = cut.children[path[1] if cut.alternative < 0 else 0]
        path = path[2:]
    return cut.done
