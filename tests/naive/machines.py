"""Composite subscriptions, slow and obviously right: every assignment is tried, every continuation imagined (SPEC 6).

A subscription is given as a tree with Python functions beside its text, so that nothing of the language is used here.

How SPEC is read where it leaves room:

- An event that is still to come may have any name, any attributes and any time from the last event's on, in whole
  microseconds; only the columns of PARTITION BY are given. A primitive's own predicate is taken to be satisfiable
  whatever the join variables are.
- A condition is absolute where the smallest part of the pattern that holds both its operands is an ``&``.
- A continuation needs no events but those that operands miss: more of them never bring a ``,`` or a window about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import inf

Value = float | int | str | None
Assignment = dict[str, int]
"""Operand to the rank of its event in the partition, from 0; ranks past the partition's end are imagined events."""
Bound = tuple[int, int, int]
"""(x, y, c): the time of rank x is at most c after the time of rank y."""

START = -1
"""Stands for the time 0 among ranks."""


@dataclass(frozen=True)
class Event:
    """One event of a stream; `time` in microseconds."""

    position: int
    time: int
    name: str
    key: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def column(self, name: str) -> Value:
        return {"name": self.name, "key": self.key}.get(name, self.values.get(name))


@dataclass(frozen=True)
class Primitive:
    """An operand: which events it takes, and its ``column = $variable`` as (column, variable)."""

    name: str
    takes: Callable[[Event], bool]
    joins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Seq:
    """Two items or more in order; `direct` says for each but the first whether ``,`` stands before it, else ``;``."""

    items: tuple[Node, ...]
    direct: tuple[bool, ...]


@dataclass(frozen=True)
class And:
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Or:
    items: tuple[Node, ...]


Node = Primitive | Seq | And | Or


@dataclass(frozen=True)
class Condition:
    """``t(left) - t(right) sign amount``; the amount in microseconds."""

    left: str
    right: str
    sign: str
    amount: int

    def holds(self, left: int, right: int, *, absolute: bool) -> bool:
        gap = abs(left - right) if absolute else left - right
        return {
            "<": gap < self.amount,
            "<=": gap <= self.amount,
            ">": gap > self.amount,
            ">=": gap >= self.amount,
            "=": gap == self.amount,
            "<>": gap != self.amount,
        }[self.sign]

    @property
    def alternatives(self) -> tuple[tuple[Condition, ...], ...]:
        return ((self,),)

    @property
    def operands(self) -> frozenset[str]:
        return frozenset({self.left, self.right})


@dataclass(frozen=True)
class Either:
    """A condition with OR: it holds if all of one of its alternatives do."""

    alternatives: tuple[tuple[Condition, ...], ...]

    @property
    def operands(self) -> frozenset[str]:
        return frozenset(name for some in self.alternatives for part in some for name in part.operands)


@dataclass(frozen=True)
class Subscription:
    """A composite subscription, and its text in the language; `within` in microseconds or, where `counted`, events."""

    root: Node
    text: str
    conditions: tuple[Condition | Either, ...] = ()
    partition: tuple[str, ...] = ()
    within: int | None = None
    counted: bool = False

    @cached_property
    def primitives(self) -> dict[str, Primitive]:
        """The operands by name, in text order."""
        return {primitive.name: primitive for primitive in primitives(self.root)}


@dataclass(frozen=True)
class Match:
    """A row of match_subscription: the partition, the position of the completing event, and positions by operand."""

    key: tuple[Value, ...]
    completed: int
    bindings: Mapping[str, int]


@dataclass(frozen=True)
class Live:
    """A row of predict_match without its forecast; `joins` are the values of the variables that it has bound."""

    key: tuple[Value, ...]
    joins: frozenset[tuple[str, Value]]
    bindings: Mapping[str, int]


def primitives(node: Node) -> Iterator[Primitive]:
    if isinstance(node, Primitive):
        yield node
    else:
        for item in node.items:
            yield from primitives(item)


def names(node: Node) -> set[str]:
    return {primitive.name for primitive in primitives(node)}


def meeting(node: Node, one: str, other: str) -> Node:
    """The smallest part of the pattern that holds both operands."""
    if not isinstance(node, Primitive):
        for item in node.items:
            if {one, other} <= names(item):
                return meeting(item, one, other)
    return node


def done(node: Node, bound: Iterable[str]) -> bool:
    """Whether all is bound that one assignment needs of a part."""
    bound = set(bound)
    if isinstance(node, Primitive):
        return node.name in bound
    return (any if isinstance(node, Or) else all)(done(item, bound) for item in node.items)


def begun(node: Node, bound: Iterable[str]) -> bool:
    return not names(node).isdisjoint(bound)


def follows(before: Assignment, behind: Assignment, direct: bool) -> bool:
    """Whether the events of one part come after those of another, directly where asked."""
    gap = min(behind.values()) - max(before.values())
    return gap == 1 if direct else gap >= 1


def in_order(node: Node, assignment: Assignment) -> bool:
    """Whether a part's events stand as the part says, no event twice; what is not bound is an untaken alternative."""
    own = {name: rank for name, rank in assignment.items() if name in names(node)}
    if len(set(own.values())) < len(own):
        return False
    if isinstance(node, Primitive):
        return True
    parts = [{name: rank for name, rank in own.items() if name in names(item)} for item in node.items]
    if isinstance(node, Seq):
        for before, behind, direct in zip(parts, parts[1:], node.direct, strict=False):
            if not follows(before, behind, direct):
                return False
    return all(in_order(item, part) for item, part in zip(node.items, parts, strict=True) if part)


def orders(node: Node, bound: Assignment) -> list[tuple[str, ...]]:
    """All orders in which what an assignment misses of a part can still come."""
    if isinstance(node, Primitive):
        return [()] if node.name in bound else [(node.name,)]
    if isinstance(node, Or):
        taken = [item for item in node.items if begun(item, bound)] or node.items
        return [order for item in taken for order in orders(item, bound)]
    choices = list(product(*(orders(item, bound) for item in node.items)))
    if isinstance(node, Seq):
        return [tuple(name for order in chosen for name in order) for chosen in choices]
    return [merged for chosen in choices for merged in interleaved(chosen)]


def interleaved(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """All merges of some lines that keep the order of each."""
    if not any(lines):
        return [()]
    found = []
    for at, line in enumerate(lines):
        if line:
            rest = [other[1:] if place == at else other for place, other in enumerate(lines)]
            found += [(line[0], *merged) for merged in interleaved(rest)]
    return found


class Partition:
    """A subscription over the events that one partition has taken so far."""

    def __init__(self, subscription: Subscription, events: Iterable[Event]) -> None:
        self.asked = subscription
        self.events = sorted(events, key=lambda event: (event.time, event.position))
        self.absolute = {
            part: isinstance(meeting(subscription.root, part.left, part.right), And)
            for condition in subscription.conditions
            for some in condition.alternatives
            for part in some
        }

    def takes(self, primitive: Primitive, event: Event) -> bool:
        return primitive.takes(event) and all(event.column(column) is not None for column, _ in primitive.joins)

    def beginnings(self, node: Node) -> list[Assignment]:
        """All ways of filling a part from its beginning, the empty way and the whole ones included."""
        if isinstance(node, Primitive):
            return [{}, *({node.name: rank} for rank, event in enumerate(self.events) if self.takes(node, event))]
        choices = [self.beginnings(item) for item in node.items]
        if isinstance(node, Or):
            return [{}, *(part for parts in choices for part in parts if part)]
        if isinstance(node, And):
            merged = [{name: rank for part in chosen for name, rank in part.items()} for chosen in product(*choices)]
            return [one for one in merged if len(set(one.values())) == len(one)]
        found = choices[0]
        whole = [one for one in found if done(node.items[0], one)]
        for item, parts, direct in zip(node.items[1:], choices[1:], node.direct, strict=True):
            longer = [{**one, **part} for one in whole for part in parts if part and follows(one, part, direct)]
            found = found + longer
            whole = [one for one in longer if done(item, one)]
        return found

    def applicable(self, bound: Assignment) -> list[Condition | Either]:
        return [condition for condition in self.asked.conditions if condition.operands <= bound.keys()]

    def joined(self, bound: Assignment) -> set[tuple[str, Value]]:
        """Join variables with the values of their events."""
        return {
            (variable, self.events[rank].column(column))
            for name, rank in bound.items()
            for column, variable in self.asked.primitives[name].joins
        }

    def holds(self, bound: Assignment) -> bool:
        """Conditions, joins and window, as far as events are bound."""
        joined = self.joined(bound)
        times = {name: self.events[rank].time for name, rank in bound.items()}
        return (
            all(
                any(
                    all(part.holds(times[part.left], times[part.right], absolute=self.absolute[part]) for part in some)
                    for some in condition.alternatives
                )
                for condition in self.applicable(bound)
            )
            and len({variable for variable, _ in joined}) == len(joined)
            and self.in_window(bound.values(), times.values())
        )

    def in_window(self, ranks: Iterable[int], times: Iterable[int]) -> bool:
        within, measured = self.asked.within, list(ranks if self.asked.counted else times)
        return within is None or not measured or max(measured) - min(measured) < within

    @cached_property
    def fitting(self) -> list[Assignment]:
        return [bound for bound in self.beginnings(self.asked.root) if self.holds(bound)]

    @cached_property
    def full(self) -> list[Assignment]:
        """All assignments that match."""
        return [bound for bound in self.fitting if done(self.asked.root, bound)]

    @cached_property
    def live(self) -> list[Assignment]:
        """All assignments that don't match yet and that a continuation can complete; the empty one among them."""
        return [bound for bound in self.fitting if not done(self.asked.root, bound) and self.completable(bound)]

    def completable(self, bound: Assignment, now: int | None = None) -> bool:
        """Whether a continuation can complete it, of events from the partition's last one on, or from `now` on."""
        return any(self.possible(bound, order, now) for order in orders(self.asked.root, bound))

    def possible(self, bound: Assignment, order: Sequence[str], now: int | None = None) -> bool:
        """Whether the next events of the partition can be those that these operands take; `now`: from when on."""
        whole = {**bound, **{name: rank for rank, name in enumerate(order, len(self.events))}}
        return (
            in_order(self.asked.root, whole)
            and (not self.asked.counted or self.in_window(whole.values(), ()))
            and self.agreeing(bound, order)
            and any(feasible([*self.known(whole, now), *chosen]) for chosen in self.timings(whole))
        )

    def agreeing(self, bound: Assignment, order: Sequence[str]) -> bool:
        """Whether the missing events can have the values that joins ask for."""
        facts: list[tuple[set[str], set[Value]]] = [({variable}, {value}) for variable, value in self.joined(bound)]
        for name in order:
            joins = self.asked.primitives[name].joins
            for column in {column for column, _ in joins}:
                given = {self.events[0].column(column)} if self.events and column in self.asked.partition else set()
                facts.append(({variable for one, variable in joins if one == column}, given))
        merged: list[tuple[set[str], set[Value]]] = []
        for variables, values in facts:
            near = [one for one in merged if one[0] & variables]
            merged = [one for one in merged if one not in near]
            merged.append((variables.union(*(one[0] for one in near)), values.union(*(one[1] for one in near))))
        return all(len(values) <= 1 and None not in values for _, values in merged)

    def known(self, whole: Assignment, now: int | None = None) -> list[Bound]:
        """What holds of times anyway: those of events that came, and the order and the window of all."""
        bounds: list[Bound] = []
        last = len(self.events) - 1
        ranks = sorted(whole.values())
        for rank in ranks:
            if rank <= last:
                bounds += [(rank, START, self.events[rank].time), (START, rank, -self.events[rank].time)]
            elif self.events:
                bounds.append((START, rank, -(self.events[last].time if now is None else now)))
        bounds += [(earlier, later, 0) for earlier, later in pairwise(ranks)]
        if self.asked.within is not None and not self.asked.counted:
            bounds.append((ranks[-1], ranks[0], self.asked.within - 1))
        return bounds

    def timings(self, whole: Assignment) -> list[list[Bound]]:
        """The conditions as bounds, for every choice of an alternative, of which event of an absolute one is the later,
        and of the side on which a difference is another one.
        """
        choices: list[list[list[Bound]]] = []
        for condition in self.applicable(whole):
            choice: list[list[Bound]] = []
            for some in condition.alternatives:
                parts = [self.sides(whole, part) for part in some]
                choice += [[bound for side in chosen for bound in side] for chosen in product(*parts)]
            choices.append(choice)
        return [[bound for chosen in one for bound in chosen] for one in product(*choices)]

    def sides(self, whole: Assignment, part: Condition) -> list[list[Bound]]:
        left, right = whole[part.left], whole[part.right]
        if not self.absolute[part]:
            return limits(left, right, part)
        return [
            *([(right, left, 0), *side] for side in limits(left, right, part)),
            *([(left, right, 0), *side] for side in limits(right, left, part)),
        ]


def limits(left: int, right: int, condition: Condition) -> list[list[Bound]]:
    """``t(left) - t(right) sign amount`` as bounds between whole microseconds: all of one of these hold."""
    amount = condition.amount
    less, more = [(left, right, amount - 1)], [(right, left, -amount - 1)]
    return {
        "<": [less],
        "<=": [[(left, right, amount)]],
        ">": [more],
        ">=": [[(right, left, -amount)]],
        "=": [[(left, right, amount), (right, left, -amount)]],
        "<>": [less, more],
    }[condition.sign]


def feasible(bounds: Sequence[Bound]) -> bool:
    """Whether times exist that keep all bounds: no circle of them is negative (Bellman and Ford)."""
    distance = {place: 0 for one, other, _ in bounds for place in (one, other)}
    for _ in range(len(distance) + 1):
        changed = False
        for one, other, most in bounds:
            if distance[other] + most < distance[one]:
                distance[one] = distance[other] + most
                changed = True
        if not changed:
            return True
    return False


def partitions(subscription: Subscription, events: Iterable[Event]) -> dict[tuple[Value, ...], list[Event]]:
    """The events of each partition in order; NULL is a partition of its own."""
    found: dict[tuple[Value, ...], list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.time, event.position)):
        found.setdefault(tuple(event.column(column) for column in subscription.partition), []).append(event)
    return found


def smallest(subscription: Subscription, found: Iterable[Assignment]) -> Assignment:
    """The first in text order by the operands' events, untaken alternatives last."""
    return min(found, key=lambda bound: [bound.get(name, inf) for name in subscription.primitives])


def matches(subscription: Subscription, events: Iterable[Event]) -> list[Match]:
    """match_subscription: a row for each partition and event that completes an assignment."""
    rows = []
    for key, taken in partitions(subscription, events).items():
        partition = Partition(subscription, taken)
        for rank, event in enumerate(partition.events):
            completed = [bound for bound in partition.full if max(bound.values()) == rank]
            if completed:
                rows.append(Match(key, event.position, positions(partition, smallest(subscription, completed))))
    return rows


def live(subscription: Subscription, events: Iterable[Event], now: int | None = None) -> list[Live]:
    """predict_match without forecasts: a row for each partition, join values and set of bound operands.

    `now` is the watermark, below which no more events come; None: what is live at the last event of each partition.
    """
    rows = []
    for key, taken in partitions(subscription, events).items():
        partition = Partition(subscription, taken)
        kinds: dict[tuple[frozenset[tuple[str, Value]], frozenset[str]], list[Assignment]] = {}
        for bound in partition.live:
            if bound and (now is None or partition.completable(bound, max(now, taken[-1].time))):
                kinds.setdefault((frozenset(partition.joined(bound)), frozenset(bound)), []).append(bound)
        for (joins, _), found in kinds.items():
            rows.append(Live(key, joins, positions(partition, smallest(subscription, found))))
    return rows


def positions(partition: Partition, bound: Assignment) -> dict[str, int]:
    """Positions by operand, in text order."""
    return {name: partition.events[bound[name]].position for name in partition.asked.primitives if name in bound}
