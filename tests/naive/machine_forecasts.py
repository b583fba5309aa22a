"""State machines of a subscription, their training and their forecasts, slow and obviously right (SPEC 6).

A sequence is a machine with a state before each of its items and one behind the last; an item that is an ``&`` or a
``|`` has a child machine for each of its parts. Before each event all live assignments are found anew.

How SPEC is read where it leaves room:

- Instances are live assignments: one that no continuation can complete holds no state, and an event that would make
  an assignment one of these does not match.
- N0 of the whole subscription is occupied once per key, whatever is bound in a Boolean first item. A child machine is
  active in a live assignment that its item is the next step of; in one that took another alternative it is not. Its N0
  is occupied as long as any of its siblings is active, by the join values bound outside the item.
- Waiting belongs to the state, as its self link does: N0 and states followed by ``;`` wait at any event that does not
  advance them, the one included that comes too late for the instance, which then is gone. Elsewhere a state waits
  only where an instance goes on inside a Boolean item.
- A discarded copy finds the join values of another instance the same as its own if they are among its own, since a
  state further back may have bound fewer variables.
- Forecasts of a ``|`` count all its alternatives: one that has not begun stands in its N0 (paper, section 5.2.3).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
from naive.machines import (
    And,
    Assignment,
    Event,
    Live,
    Node,
    Or,
    Partition,
    Primitive,
    Seq,
    Subscription,
    Value,
    begun,
    done,
    live,
    names,
    partitions,
)
from numpy.typing import NDArray

DEAD = -1
Path = tuple[int, ...]
"""Where a machine stands: item, child, item, child, … from the whole subscription's, which is ()."""
Joins = frozenset[tuple[str, Value]]
Counts = dict[tuple[Path, int], Counter[int]]
"""(machine, state) to how often each next state, or `DEAD`, followed it."""


@dataclass(frozen=True)
class Machine:
    """A sequence of steps; `direct` says for each but the first whether ``,`` stands before it."""

    path: Path
    steps: tuple[Node, ...]
    direct: tuple[bool, ...]

    @property
    def final(self) -> int:
        return len(self.steps)

    @property
    def boundaries(self) -> list[int]:
        """The states followed by ``;``."""
        return [state for state, direct in enumerate(self.direct, 1) if not direct]

    def waits(self, state: int) -> bool:
        return state == 0 or state in self.boundaries

    def state(self, bound: Iterable[str]) -> int:
        """How many steps are completely bound."""
        bound = set(bound)
        return sum(done(step, bound) for step in self.steps)

    def children(self, state: int) -> list[Machine]:
        """The machines inside a Boolean step; none of a primitive."""
        step = self.steps[state]
        if isinstance(step, Primitive):
            return []
        return [machine_of(item, (*self.path, state, at)) for at, item in enumerate(step.items)]

    def behind(self, state: int) -> list[int]:
        """Where a discarded copy can go but for death, the furthest first."""
        return [at for at in range(state, 0, -1) if self.boundaries and at >= self.boundaries[0]]

    def moves(self, state: int) -> list[int]:
        """All moves that a state can make."""
        if self.waits(state):
            return [state + 1, state]
        inside = [] if isinstance(self.steps[state], Primitive) else [state]
        return list(dict.fromkeys([state + 1, *inside, *self.behind(state), DEAD]))


def machine_of(node: Node, path: Path = ()) -> Machine:
    """A machine for a part of the pattern; sequences inside sequences are one."""
    steps, direct = flat(node)
    return Machine(path, tuple(steps), tuple(direct))


def flat(node: Node) -> tuple[list[Node], list[bool]]:
    """The steps of a sequence and what stands between them."""
    if not isinstance(node, Seq):
        return [node], []
    steps, direct = flat(node.items[0])
    for item, sign in zip(node.items[1:], node.direct, strict=True):
        inner, signs = flat(item)
        steps, direct = [*steps, *inner], [*direct, sign, *signs]
    return steps, direct


def machines(subscription: Subscription) -> list[Machine]:
    """All machines, parents first."""
    found = [machine_of(subscription.root)]
    for machine in found:
        found += [child for state in range(machine.final) for child in machine.children(state)]
    return found


def active(machine: Machine, bound: frozenset[str]) -> Iterator[tuple[Machine, frozenset[str]]]:
    """A machine and those active below it, each with the bound operands whose join values tell its instances apart."""
    yield machine, bound
    state = machine.state(bound)
    if state == machine.final:
        return
    step = machine.steps[state]
    outside = bound - names(step)
    taken = [child for child in machine.children(state) if any(begun(item, bound) for item in child.steps)]
    for child in machine.children(state):
        if isinstance(step, And) or not taken or child in taken:
            yield from active(child, bound)
        yield from active(child, outside)


def states(subscription: Subscription, bound: Iterable[str]) -> dict[Path, int]:
    """The states of a set of bound operands: of the whole, and of the machines inside the item under way."""
    bound = frozenset(bound)
    return {
        machine.path: machine.state(bound)
        for machine, own in active(machine_of(subscription.root), bound)
        if own == bound
    }


def train(subscription: Subscription, events: Iterable[Event]) -> Counts:
    """How often each state moved where, over all keys."""
    counts: Counts = defaultdict(Counter)
    for taken in partitions(subscription, events).values():
        before = Partition(subscription, [])
        for size in range(1, len(taken) + 1):
            after = Partition(subscription, taken[:size])
            for path, state, target in Moment(before, after).moves():
                counts[path, state][target] += 1
            before = after
    return dict(counts)


class Moment:
    """One event of a partition: what was live before it, and what is after it."""

    def __init__(self, before: Partition, after: Partition) -> None:
        self.root = machine_of(after.asked.root)
        self.before, self.after = before, after
        self.rank = len(before.events)
        self.grown: dict[frozenset[tuple[str, int]], list[Assignment]] = defaultdict(list)
        for bound in after.live + after.full:
            if self.rank in bound.values():
                old = frozenset((name, rank) for name, rank in bound.items() if rank != self.rank)
                self.grown[old].append(bound)

    def joins(self, partition: Partition, bound: Assignment, own: Iterable[str]) -> Joins:
        return frozenset(partition.joined({name: bound[name] for name in own}))

    def occupied(self) -> dict[tuple[Machine, int, Joins], list[Assignment]]:
        """The states that are occupied before the event, each with its instances."""
        found: dict[tuple[Machine, int, Joins], list[Assignment]] = {(self.root, 0, frozenset()): []}
        for bound in [*self.before.live, *([] if {} in self.before.live else [{}])]:
            for machine, own in active(self.root, frozenset(bound)):
                state = machine.state(own)
                if state < machine.final:
                    once = machine == self.root and state == 0
                    joins = frozenset() if once else self.joins(self.before, bound, own)
                    instances = found.setdefault((machine, state, joins), [])
                    if own == frozenset(bound):
                        instances.append(bound)
        return found

    def moves(self) -> Iterator[tuple[Path, int, int]]:
        """One move for each occupied state, as (machine, state, next state)."""
        for (machine, state, joins), instances in self.occupied().items():
            yield machine.path, state, self.target(machine, state, joins, instances)

    def target(self, machine: Machine, state: int, joins: Joins, instances: list[Assignment]) -> int:
        grown = [more for bound in instances for more in self.grown[frozenset(bound.items())]]
        if any(machine.state(more) == state + 1 for more in grown):
            return state + 1
        goes_on = [more for more in [*instances, *grown] if more in self.after.live]
        if machine.waits(state) or any(machine.state(more) == state for more in goes_on):
            return state
        held = {at for at, others in self.held(machine) if others <= joins}
        return next((at for at in machine.behind(state) if at in held), DEAD)

    def held(self, machine: Machine) -> Iterator[tuple[int, Joins]]:
        """The states of a machine that are held after the event, with the join values of who holds them."""
        for bound in self.after.live:
            for other, own in active(self.root, frozenset(bound)):
                if other == machine and own == frozenset(bound):
                    yield machine.state(bound), self.joins(self.after, bound, own)


@dataclass(frozen=True)
class Forecast:
    """A row of predict_match; `trained_on` is how often the state of the whole was counted."""

    row: Live
    states: dict[Path, int]
    alpha: float
    probability: float
    trained_on: int
    is_best: bool


class Chain:
    """The Markov chains of a subscription."""

    def __init__(self, subscription: Subscription, counts: Counts, smoothing: float = 0.0) -> None:
        self.root = machine_of(subscription.root)
        self.counts = counts
        self.smoothing = smoothing

    def matrix(self, machine: Machine) -> NDArray[np.float64]:
        """Probabilities of moves between states; the matched row is zero, and death is left out."""
        found = np.zeros((machine.final + 1, machine.final + 1))
        for state in range(machine.final):
            seen = self.counts.get((machine.path, state), Counter())
            possible = machine.moves(state)
            total = seen.total() + self.smoothing * len(possible)
            for target in possible:
                if target != DEAD and total > 0:
                    found[state, target] = (seen[target] + self.smoothing) / total
        return found

    def passage(self, machine: Machine, state: int, n: int) -> float:
        """From a state to the matched one at exactly the n-th event, by the machine's own counts."""
        return float(np.linalg.matrix_power(self.matrix(machine), n)[state, machine.final])

    def exactly(self, machine: Machine, bound: frozenset[str], n: int) -> float:
        """α: from where a set of bound operands stands to the matched state at exactly the n-th event."""
        state = machine.state(bound)
        if state == machine.final or isinstance(machine.steps[state], Primitive):
            return self.passage(machine, state, n)
        item = [self.item(machine, state, bound, p) for p in range(n + 1)]
        return sum((item[p] - item[p - 1]) * self.passage(machine, state + 1, n - p) for p in range(1, n + 1))

    def within(self, machine: Machine, bound: frozenset[str], n: int) -> float:
        """β: the same within n events; 1 where it is matched already."""
        return sum(self.exactly(machine, bound, k) for k in range(n + 1))

    def item(self, machine: Machine, state: int, bound: frozenset[str], n: int) -> float:
        """How probable a Boolean step, not complete yet, is complete within n events."""
        chances = [self.within(child, bound, n) for child in machine.children(state)]
        if isinstance(machine.steps[state], Or):
            return 1 - prod(1 - chance for chance in chances)
        return prod(chances) if n >= missing(machine.steps[state], bound) else 0.0


def missing(node: Node, bound: frozenset[str]) -> int:
    """How many events a part still needs at least."""
    if isinstance(node, Primitive):
        return int(node.name not in bound)
    return (min if isinstance(node, Or) else sum)(missing(item, bound) for item in node.items)


def forecasts(
    subscription: Subscription,
    events: Iterable[Event],
    counts: Counts,
    lookahead: int,
    *,
    smoothing: float = 0.0,
    threshold: float = -1.0,
) -> list[Forecast]:
    """predict_match: the live rows whose probability is above the threshold.

    The best of a key is its most probable row, of several the first in text order by (time, position).
    """
    events = list(events)
    chain = Chain(subscription, counts, smoothing)
    order = {event.position: (event.time, event.position) for event in events}

    def forecast(row: Live) -> Forecast:
        bound = frozenset(row.bindings)
        trained = counts.get(((), chain.root.state(bound)), Counter()).total()
        alpha, beta = chain.exactly(chain.root, bound, lookahead), chain.within(chain.root, bound, lookahead)
        return Forecast(row, states(subscription, bound), alpha, beta, trained, is_best=False)

    def rank(one: Forecast) -> tuple[float, list[tuple[float, int]]]:
        shown = one.row.bindings
        return -one.probability, [order[shown[name]] if name in shown else (inf, 0) for name in subscription.primitives]

    best: dict[tuple[Value, ...], Forecast] = {}
    found = sorted((forecast(row) for row in live(subscription, events)), key=rank)
    for one in found:
        best.setdefault(one.row.key, one)
    return [replace(one, is_best=one is best[one.row.key]) for one in found if one.probability > threshold]
