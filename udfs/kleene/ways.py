"""The ways of a pattern: what ``skip_till_next`` and ``strict`` try for a start, one after another.

Source: SPEC section 3. A way is a choice at every ``|`` and ``n OF``, and at every ``?``, ``*`` and ``{0,…}`` of
whether it is taken or left out; what is taken comes before what is left out, all in the order of the text. Inside of a
group that is repeated nothing is chosen before: each round takes the nearest. So a way is a tree of **steps** without
alternatives but in its groups, and the order of operands that the rest of the engine knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from patternlake.udfs.kleene.linearizations import MOST_LINEARIZATIONS, Linearization, order_of
from patternlake.udfs.language.query import tree
from patternlake.udfs.language.query.tree import Node, Query

EVENT, THEN, NEXT, ALL, ANY, ROUNDS = range(6)
"""Kinds of steps: events of an operand; parts after one another, or directly next to one another; parts in any order;
one of the parts; rounds of the one part."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a way.

    Attributes
    ----------
    kind
        See `EVENT`.
    parts
        What it is made of, in text order.
    operand
        Of `EVENT`: the number of the operand.
    least, most
        How many events an `EVENT` takes, how many rounds `ROUNDS` have; of `ALL` the parts that are needed. `most` is
        None for any number.
    until
        An operand whose `Operand.until` ends the step, or -1.
    optional
        Whether another way leaves it out; this one takes it.
    """

    kind: int
    parts: tuple[Step, ...] = ()
    operand: int = -1
    least: int = 1
    most: int | None = 1
    until: int = -1
    optional: bool = False

    def walk(self) -> Iterator[Step]:
        """The step and all below it, in text order."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def needed(self) -> Iterator[Step]:
        """The events of operands of which the step takes some whatever comes."""
        if self.kind == EVENT and self.least > 0:
            yield self
        if self.kind != ANY and self.least >= (len(self.parts) if self.kind == ALL else 1):
            for part in self.parts:
                yield from part.needed()

    @property
    def can_be_empty(self) -> bool:
        """Whether it needs no event."""
        if self.kind in (EVENT, ROUNDS):
            return self.least == 0
        empty = [part.can_be_empty for part in self.parts]
        if self.kind == ANY:
            return any(empty)
        return sum(empty) >= (self.least if self.kind == ALL else len(self.parts))


@dataclass(frozen=True, slots=True)
class Way:
    """What is tried for a start.

    Attributes
    ----------
    order
        The order of its operands; those under ``&`` have none among each other.
    root
        Its steps.
    """

    order: Linearization
    root: Step

    @property
    def operands(self) -> tuple[int, ...]:
        """Numbers of the operands that take events, in text order."""
        return tuple(step.operand for step in self.root.walk() if step.kind == EVENT)

    @property
    def needed(self) -> frozenset[int]:
        """Numbers of the operands that have an event in each of its matches."""
        return frozenset(step.operand for step in self.root.needed())

    @property
    def beginnings(self) -> frozenset[int]:
        """Numbers of the operands that the first event of its matches may belong to."""
        behind = {later for earlier, later in self.order.before if earlier in self.needed}
        return frozenset(self.operands) - behind

    @property
    def single(self) -> frozenset[int]:
        """Numbers of the operands that take exactly one event."""
        return frozenset(_single(self.root))


def _single(step: Step) -> Iterator[int]:
    if step.kind == EVENT and step.least == step.most == 1:
        yield step.operand
    if step.kind in (THEN, NEXT, ALL):
        for part in step.parts:
            yield from _single(part)


def ways_of(query: Query, number_of: Mapping[int, int], repeated: frozenset[int]) -> tuple[Way, ...]:
    """The ways of a query, in the order in which they are tried.

    Parameters
    ----------
    query
        The parsed query.
    number_of
        ``id`` of an event's node to its operand's number.
    repeated
        Numbers of the operands that may take several events.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MOST_LINEARIZATIONS`; the place is the whole pattern.
    """
    chooser = _Chooser(query, number_of)
    orders: dict[int, Linearization] = {}
    found: list[Way] = []
    for chosen in chooser.choices(query.pattern):
        key = id(chosen.node)
        if key not in orders:
            orders[key] = order_of(query, number_of, repeated, chosen.node)
        if chosen.step is not None:
            found.append(Way(orders[key], chosen.step))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A part of the pattern with its alternatives chosen, and its steps; None where all of it is left out."""

    node: Node
    step: Step | None


class _Chooser:
    def __init__(self, query: Query, number_of: Mapping[int, int]) -> None:
        self.query = query
        self.number_of = number_of

    def check(self, count: int) -> None:
        if count > MOST_LINEARIZATIONS:
            message = (
                f"'|', OF, '?' and '*' give this pattern {count:,} ways at least, which are tried one after another; "
                f"{MOST_LINEARIZATIONS} are the most; split it into several patterns"
            )
            raise self.query.unsupported(message)

    def choices(self, node: Node) -> list[_Choice]:
        """All ways of a part, in order."""
        if isinstance(node, tree.Event):
            return [_Choice(node, Step(EVENT, operand=self.number_of[id(node)]))]
        if isinstance(node, tree.Negation):
            return [_Choice(node, None)]
        if isinstance(node, tree.Repetition):
            return self.of_repetition(node)
        below = [self.choices(child) for child in node.children()]
        if isinstance(node, tree.Disjunction):
            found = [choice for choices in below for choice in choices]
            self.check(len(found))
            return found
        if isinstance(node, tree.SomeOf):
            found = []
            for size in range(len(below), node.count - 1, -1):
                for chosen in combinations(below, size):
                    found += self.joined(node, chosen)
                    self.check(len(found))
            return found
        return self.joined(node, below)

    def joined(self, node: Node, below: Sequence[list[_Choice]]) -> list[_Choice]:
        """All ways to join a way of each part."""
        count = 1
        for choices in below:
            count *= len(choices)
            self.check(count)
        # Without an order of its own each choice of alternatives has one node, whatever is left out.
        made: dict[tuple[int, ...], Node] = {}
        found = []
        for chosen in product(*below):
            key = tuple(id(choice.node) for choice in chosen)
            if key not in made:
                made[key] = _join(node, tuple(choice.node for choice in chosen))
            parts = tuple(choice.step for choice in chosen if choice.step is not None)
            found.append(_Choice(made[key], join_steps(_KINDS[type(node)], parts) if parts else None))
        return found

    def of_repetition(self, node: tree.Repetition) -> list[_Choice]:
        step = self.inside(node)
        taken = [_Choice(node, replace(step, least=max(1, step.least), optional=node.minimum == 0))]
        return [*taken, _Choice(node, None)] if node.minimum == 0 else taken

    def inside(self, node: Node) -> Step:
        """A part of a group that is repeated."""
        if isinstance(node, tree.Event):
            return Step(EVENT, operand=self.number_of[id(node)])
        if isinstance(node, tree.Repetition):
            inner = self.inside(node.item)
            until = -1 if node.until is None else next(each.operand for each in inner.walk() if each.kind == EVENT)
            if isinstance(node.item, tree.Event):
                return replace(inner, least=node.minimum, most=node.maximum, until=until)
            return Step(ROUNDS, (inner,), least=node.minimum, most=node.maximum, until=until)
        parts = tuple(self.inside(child) for child in node.children())
        if isinstance(node, tree.Disjunction):
            return Step(ANY, parts)
        made = Step(_KINDS[type(node)], parts)
        return replace(made, least=node.count if isinstance(node, tree.SomeOf) else len(parts))


def _join(node: Node, parts: tuple[Node, ...]) -> Node:
    """The node with these parts."""
    if isinstance(node, tree.SomeOf):
        return tree.Conjunction(items=parts, span=node.span, sign=node.sign)
    assert isinstance(node, tree.Sequence | tree.Contiguous | tree.Conjunction)
    return replace(node, items=parts)


def join_steps(kind: int, parts: Sequence[Step]) -> Step:
    """The step that is made of some; of one itself."""
    return parts[0] if len(parts) == 1 else Step(kind, tuple(parts), least=len(parts))


_KINDS: Mapping[type[Node], int] = {
    tree.Sequence: THEN,
    tree.Contiguous: NEXT,
    tree.Conjunction: ALL,
    tree.SomeOf: ALL,
}
