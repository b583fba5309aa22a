"""States of a subscription, their training and their forecasts, slow and obviously right (SPEC 6).

A state is what is done of the whole subscription, as `predict_match` shows it: ``N1(N1, N0)``. Before each event all
live assignments are found anew.

How SPEC is read where it leaves room:

- Instances are live assignments: one that no continuation can complete holds no state, and an event that would make
  an assignment one of these does not match. Of those that bind the same operands, with the same join values and the
  same times of all that later conditions and the window ask for, the smallest is the instance; so it is of those that
  differ in a time of which later conditions ask no more than that it be early.
- In a sequence, a state on whose instances no deadline and no lower bound is pending is occupied once, and moves once,
  for each key and join values. All other instances move one by one, each from its state with what its deadline has
  left at the time of the event, to its state after it with what is left then; of one that is too late nothing is left.
  N0 is occupied once per key.
- Of several operands that one event can bind, the one that completes the subscription counts as the move, else the
  first in text order.
- Where a condition with OR or ``<>`` is pending, of which some operands are bound and some are missing, instances move
  one by one as well; times that it names tell them apart, unless an earlier one is as good in each of its parts.
- An instance that waits, and that no later event can complete, is dead from the first event that shows it.
- A discarded copy of a state that is occupied once moves to the most advanced state that an instance with join values
  among its own holds. One that moves alone goes back to the instance that waits of which it is a copy, or to another
  copy of that one that the event made, if that is further; if that instance is dead, so is the copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from naive.machines import (
    And,
    Assignment,
    Condition,
    Either,
    Event,
    Node,
    Or,
    Partition,
    Primitive,
    Seq,
    Subscription,
    Value,
    begun,
    done,
    in_order,
    orders,
    partitions,
)

Joins = frozenset[tuple[str, Value]]


class Left(NamedTuple):
    """Microseconds, and events, the last of which can complete an instance (None: without end), and microseconds
    until the last lower bound on what comes next is reached.
    """

    time: int | None = None
    events: int | None = None
    closed: int = 0


class Cell(NamedTuple):
    """A state with what is left of its deadlines."""

    state: str
    left: Left = Left()


DEAD = Cell("dead")
Counts = dict[Cell, Counter[Cell]]
"""How often each cell was followed by which."""


def flat(node: Node) -> tuple[list[Node], list[bool]]:
    """The steps of a sequence and what stands between them; sequences inside sequences are one."""
    if not isinstance(node, Seq):
        return [node], []
    steps, direct = flat(node.items[0])
    for item, sign in zip(node.items[1:], node.direct, strict=True):
        inner, signs = flat(item)
        steps, direct = [*steps, *inner], [*direct, sign, *signs]
    return steps, direct


def name_of(node: Node, bound: Iterable[str]) -> str:
    """The state of a part in which some operands are bound."""
    bound = frozenset(bound)
    steps = flat(node)[0]
    whole = sum(done(step, bound) for step in steps)
    if whole == len(steps) or isinstance(steps[whole], Primitive) or not begun(steps[whole], bound):
        return f"N{whole}"
    items = steps[whole].items  # type: ignore[union-attr]
    if isinstance(steps[whole], And):
        return f"N{whole}({', '.join(name_of(item, bound) for item in items)})"
    taken = next(number for number, item in enumerate(items) if begun(item, bound))
    return f"N{whole}({taken + 1}: {name_of(items[taken], bound)})"


FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
Part = tuple[str, str, str, int, bool]
"""(left, right, sign, amount, absolute) of a comparison in a condition."""


class States:
    """All states of a subscription.

    Attributes
    ----------
    of
        Bound operands to their state.
    waiting
        States before which any event may come next, whatever it is.
    before
        State to those from which one more operand leads to it.
    bound
        State to the sets of operands that may be bound in it.
    """

    def __init__(self, subscription: Subscription) -> None:
        self.asked = subscription
        self.root = subscription.root
        self.of: dict[frozenset[str], str] = {}
        self.waiting: set[str] = set()
        self.before: dict[str, set[str]] = defaultdict(set)
        self.bound: dict[str, set[frozenset[str]]] = defaultdict(set)
        for order in orders(self.root, {}):
            if not in_order(self.root, {name: rank for rank, name in enumerate(order)}):
                continue
            names = [frozenset(order[:size]) for size in range(len(order) + 1)]
            self.of |= {some: name_of(self.root, some) for some in names}
            for one, other in pairwise(names):
                self.before[self.of[other]].add(self.of[one])
            for size, some in enumerate(names):
                self.bound[self.of[some]].add(some)
                gap = {name: rank + (rank >= size) for rank, name in enumerate(order)}
                if in_order(self.root, gap):
                    self.waiting.add(self.of[some])

    @cached_property
    def sequence(self) -> bool:
        return all(isinstance(step, Primitive) for step in flat(self.root)[0])

    def missing(self, bound: Iterable[str]) -> set[str]:
        """Operands that may still come."""
        return {name for order in orders(self.root, dict.fromkeys(bound, 0)) for name in order}

    @cached_property
    def parts(self) -> dict[Condition | Either, list[Part]]:
        """The comparisons of each condition; ``<>`` is two of them."""
        absolute = Partition(self.asked, []).absolute
        found: dict[Condition | Either, list[Part]] = defaultdict(list)
        for condition in self.asked.conditions:
            for some in condition.alternatives:
                for part in some:
                    for sign in ("<", ">") if part.sign == "<>" else (part.sign,):
                        found[condition].append((part.left, part.right, sign, part.amount, absolute[part]))
        return found

    def pending(self, bound: Iterable[str]) -> Iterator[Part]:
        """The comparisons of conditions of which some operands are bound, and the others may come."""
        bound = set(bound)
        missing = self.missing(bound)
        for condition, parts in self.parts.items():
            if condition.operands & bound and condition.operands & missing and condition.operands <= bound | missing:
                yield from parts

    def waits_for(self, bound: Iterable[str]) -> Iterator[tuple[str, int | None, int | None]]:
        """(operand, least, most): how many microseconds after a bound operand some missing one may come."""
        bound = set(bound)
        for left, right, sign, amount, absolute in self.pending(bound):
            turned = (sign, amount) if absolute else (FLIPPED[sign], -amount)
            for earlier, later, sign_, amount_ in ((right, left, sign, amount), (left, right, *turned)):
                if earlier in bound and later not in bound:
                    least = {">": amount_ + 1, ">=": amount_, "=": amount_}.get(sign_)
                    most = {"<": amount_ - 1, "<=": amount_, "=": amount_}.get(sign_)
                    yield earlier, least, most

    def asked_of(self, bound: Iterable[str]) -> tuple[set[str], set[str]]:
        """Bound operands whose times pending conditions ask for, and those of them whose earlier times are not always
        as good.
        """
        bound = set(bound)
        asked, exactly = set[str](), set[str]()
        for left, right, sign, _, absolute in self.pending(bound):
            asked |= {left, right} & bound
            if absolute or sign in ("<", "<=", "="):
                exactly.add(right)
            if absolute or sign in (">", ">=", "="):
                exactly.add(left)
        return asked, exactly & bound

    def chosen(self, bound: Iterable[str]) -> bool:
        """Whether a condition with OR or ``<>`` is pending."""
        bound = set(bound)
        missing = self.missing(bound)
        return any(
            len(parts) > 1
            and condition.operands & bound
            and condition.operands & missing
            and condition.operands <= bound | missing
            for condition, parts in self.parts.items()
        )

    def timed(self, state: str) -> bool:
        """Whether a deadline or a lower bound may be pending in a state."""
        return (
            self.asked.within is not None
            or any(
                most is not None or (least is not None and least > 0)
                for bound in self.bound[state]
                for _, least, most in self.waits_for(bound)
            )
            or any(map(self.chosen, self.bound[state]))
        )

    def alone(self, state: str) -> bool:
        """Whether instances of a state move one by one."""
        if state == "N0":
            return False
        if not self.sequence or self.timed(state):
            return True
        if state in self.waiting:
            return False
        # What goes back to what moves alone does so too.
        return any(one != "N0" and self.alone(one) for one in self.before[state])

    def led_by(self, state: str) -> set[str]:
        """A state without waiting and those of that kind that lead to it."""
        found = {state}
        for one in self.before[state] - self.waiting:
            found |= self.led_by(one)
        return found


def joins_of(partition: Partition, bound: Assignment) -> Joins:
    return frozenset(partition.joined(bound))


def instances(states: States, partition: Partition) -> list[Assignment]:
    """The live assignments without those that others stand for; not the empty one."""
    found: list[Assignment] = []
    live = [bound for bound in partition.live if bound]
    order = list(states.asked.primitives)

    def text(bound: Assignment) -> list[float]:
        return [bound.get(name, float("inf")) for name in order]

    def times(bound: Assignment, names: Iterable[str]) -> dict[str, int]:
        return {name: partition.events[bound[name]].time for name in names}

    def stands_for(one: Assignment, other: Assignment) -> bool:
        if one.keys() != other.keys() or joins_of(partition, one) != joins_of(partition, other):
            return False
        asked, exactly = states.asked_of(one)
        if times(one, asked & exactly) != times(other, asked & exactly):
            return False
        early, beside = times(one, asked - exactly), times(other, asked - exactly)
        if any(early[name] > beside[name] for name in early):
            return False
        if states.asked.within is not None:
            first, first_beside = min(one.values()), min(other.values())
            if states.asked.counted and first != first_beside:
                return False
            if partition.events[first].time != partition.events[first_beside].time and not states.asked.counted:
                return False
        return text(one) < text(other)

    for bound in live:
        if not any(stands_for(one, bound) for one in live if one is not bound):
            found.append(bound)
    return found


def left(states: States, partition: Partition, bound: Assignment) -> Left:
    """What is left of the deadlines of a live assignment."""
    if not states.timed(states.of[frozenset(bound)]):
        return Left()
    now = partition.events[-1].time
    amounts = [abs(amount) for parts in states.parts.values() for _, _, _, amount, _ in parts]
    far = now + sum(amounts) + (states.asked.within or 0) + 1
    some = [order for order in orders(states.root, bound) if partition.possible(bound, order)]

    def possible(time: int) -> bool:
        return any(partition.possible(bound, order, time) for order in some)

    time = None
    if not possible(far):
        low, high = now, far
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if possible(middle) else (low, middle)
        time = low - now
    events = None
    if states.asked.counted and states.asked.within is not None:
        rank = len(partition.events) - 1
        events = max(states.asked.within - (rank + len(order) - min(bound.values())) for order in some)
    opens = [partition.events[bound[name]].time + least - now
             for name, least, _ in states.waits_for(bound) if least is not None]  # fmt: skip
    return Left(time, events, max([0, *opens]))


def train(subscription: Subscription, events: Iterable[Event]) -> Counts:
    """How often each state moved where, over all keys."""
    counts: Counts = defaultdict(Counter)
    states = States(subscription)
    for taken in partitions(subscription, events).values():
        before = Partition(subscription, [])
        for size in range(1, len(taken) + 1):
            after = Partition(subscription, taken[:size])
            for cell, target in Moment(states, before, after).moves():
                counts[cell][target] += 1
            before = after
    return dict(counts)


class Moment:
    """One event of a partition: what was live before it, and what is after it."""

    def __init__(self, states: States, before: Partition, after: Partition) -> None:
        self.states = states
        self.before, self.after = before, after
        self.rank = len(before.events)
        self.held = instances(states, before) if before.events else []
        self.grown: dict[frozenset[tuple[str, int]], list[Assignment]] = defaultdict(list)
        for bound in after.live + after.full:
            if self.rank in bound.values():
                old = frozenset((name, rank) for name, rank in bound.items() if rank != self.rank)
                self.grown[old].append(bound)

    def state(self, bound: Assignment) -> str:
        return self.states.of[frozenset(bound)]

    def cell(self, bound: Assignment) -> Cell:
        """Of an assignment after the event."""
        complete = bound in self.after.full
        return Cell(self.state(bound), Left() if complete else left(self.states, self.after, bound))

    def moves(self) -> Iterator[tuple[Cell, Cell]]:
        """All moves at the event."""
        together: dict[tuple[str, Joins], list[Assignment]] = {("N0", frozenset()): [{}]}
        for bound in self.held:
            state = self.state(bound)
            if self.states.alone(state):
                yield Cell(state, self.left_then(bound)), self.alone(bound)
            else:
                together.setdefault((state, joins_of(self.before, bound)), []).append(bound)
        for (state, joins), some in together.items():
            yield Cell(state), self.together(state, joins, some)

    def left_then(self, bound: Assignment) -> Left:
        """What is left at the event of an assignment that was live before it; no time of one that had ended."""
        if bound in self.after.live:
            return left(self.states, self.after, bound)
        before = left(self.states, self.before, bound)
        passed = self.after.events[-1].time - self.before.events[-1].time
        return Left(
            None if before.time is None else max(0, before.time - passed),
            None if before.events is None else max(0, before.events - 1),
            max(0, before.closed - passed),
        )

    def advance(self, some: Iterable[Assignment]) -> Cell | None:
        """What counts of the advances of instances."""
        numbers = {name: number for number, name in enumerate(self.states.asked.primitives)}

        def rank(bound: Assignment) -> tuple[bool, int]:
            operand = next(name for name, rank in bound.items() if rank == self.rank)
            return bound not in self.after.full, numbers[operand]

        grown = [more for bound in some for more in self.grown[frozenset(bound.items())]]
        return self.cell(min(grown, key=rank)) if grown else None

    def alone(self, bound: Assignment) -> Cell:
        """The move of one instance."""
        advance = self.advance([bound])
        if advance is not None:
            return advance
        if self.state(bound) in self.states.waiting:
            return self.cell(bound) if bound in self.after.live else DEAD
        kin = self.goes_back(bound)
        return self.cell(kin) if kin else DEAD

    def goes_back(self, bound: Assignment) -> Assignment | None:
        """What a discarded copy goes on as."""
        source = self.source(bound)
        if not source or source not in self.after.live:
            return None
        kin = self.states.led_by(self.state(bound))
        copies = [
            more
            for more in self.after.live
            if self.rank in more.values() and self.state(more) in kin and self.source(more) == source
        ]
        return max(copies, key=len, default=source)

    def source(self, bound: Assignment) -> Assignment:
        """The instance of the last state that waits, of which one is a copy; empty: there is none."""
        ranked = sorted(bound, key=lambda name: bound[name])
        sizes = [size for size in range(len(ranked)) if self.states.of[frozenset(ranked[:size])] in self.states.waiting]
        return {name: bound[name] for name in ranked[: max(sizes)]}

    def together(self, state: str, joins: Joins, some: list[Assignment]) -> Cell:
        """The move of instances that move together."""
        advance = self.advance(some)
        if advance is not None:
            return advance
        if state in self.states.waiting:
            return Cell(state)
        held = [
            self.state(bound)
            for bound in self.after.live
            if bound and joins_of(self.after, bound) <= joins and not self.states.alone(self.state(bound))
        ]
        fallbacks = [at for at in self.fallback_states(state) if at in held]
        return Cell(fallbacks[0]) if fallbacks else DEAD

    def fallback_states(self, state: str) -> list[str]:
        """Of a sequence: where a discarded copy can go but for death, the furthest first."""
        boundaries = [number for number in range(1, int(state[1:]) + 1) if f"N{number}" in self.states.waiting]
        return [f"N{number}" for number in range(int(state[1:]), boundaries[0] - 1, -1)] if boundaries else []


class Chain:
    """The Markov chain of a subscription in which what an instance becomes can do all that the instance could."""

    def __init__(self, counts: Mapping[Cell, Mapping[Cell, float]], final: str) -> None:
        self.counts, self.final = counts, final

    def exactly(self, cell: Cell, n: int) -> float:
        """α: matched at exactly the n-th event."""
        if cell.state == self.final or n == 0:
            return float(cell.state == self.final and n == 0)
        moves = self.counts.get(cell, {})
        total = sum(moves.values())
        return sum(count / total * self.exactly(after, n - 1) for after, count in moves.items() if count)

    def within(self, cell: Cell, n: int) -> float:
        """β: the same within n events; 1 where it is matched already."""
        return sum(self.exactly(cell, k) for k in range(n + 1))


def missing(node: Node, bound: frozenset[str]) -> int:
    """How many events a part still needs at least."""
    if isinstance(node, Primitive):
        return int(node.name not in bound)
    return (min if isinstance(node, Or) else sum)(missing(item, bound) for item in node.items)
