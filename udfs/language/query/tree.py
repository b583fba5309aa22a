"""The tree of a query in the pattern language (SPEC section 1).

Every node is immutable and carries the span of text that it was read from; spans do not take part in equality, so
that trees compare by meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from patternlake.udfs.errors import UnsupportedOperatorError


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets into the query's text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class TimeCondition:
    """A condition ``@( … )`` on times of operands, as SQL text; its span is that of the text alone."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every node of a pattern has.

    Attributes
    ----------
    alias
        Name given with ``AS name`` or ``name[]``; ``None`` where the query gives none.
    indexed
        True for the ``name[]`` form (a list of events that predicates index as ``name[i]``).
    conditions
        Time conditions ``@( … )`` attached to this node.
    span
        All of the node's text, with its parentheses, alias and conditions.
    sign
        Where the node's own operator is written (the first one of a run; an event's name).
    alias_span
        Where the alias is written.
    """

    alias: str | None = None
    indexed: bool = False
    conditions: tuple[TimeCondition, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    sign: Span = field(default=NOWHERE, compare=False)
    alias_span: Span = field(default=NOWHERE, compare=False)

    def children(self) -> tuple[Node, ...]:
        """The direct sub-patterns, in text order."""
        return ()

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in text order."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Node):
    """One event, by name: a token of the event equals `name`, or `name` is a DEFINE primitive."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items(Node):
    """What has several sub-patterns."""

    items: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.items


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(_Items):
    """``a ; b``, SEQ(a, b): each after the one before, other events may come between. Two items or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contiguous(_Items):
    """``a , b``: each directly next to the one before, in its partition. Two items or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disjunction(_Items):
    """``a | b``, OR(a, b). Two items or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conjunction(_Items):
    """``a & b``, AND(a, b): all of them, in any order. Two items or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeOf(_Items):
    """``n OF (a, b, …)``: at least `count` of the items, in any order. Two items or more."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation(_Items):
    """``! a``, NOT(a, b, …): none of the items between its neighbours. One item or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition(Node):
    """A postfix repetition of `item`.

    Attributes
    ----------
    form
        ``"+"``, ``"*"``, ``"?"``, ``"[n]"`` (exactly n) or ``"{}"`` (from `minimum` to `maximum`).
    minimum, maximum
        Bounds of the count; `maximum` is None where there is none.
    until
        An event, or an alternative of events, behind which nothing more is taken; it takes part in nothing else, so it
        is no operand and not among `children`. None without UNTIL.
    """

    item: Node
    form: str
    minimum: int
    maximum: int | None
    until: Node | None = None

    def children(self) -> tuple[Node, ...]:  # noqa: D102
        return (self.item,)


def open_groups(node: Node, *kinds: type[Node]) -> list[Node]:
    """The items of a node; those of a group of these kinds that stands in another one stand for it."""
    items: list[Node] = []
    for item in node.children():
        items += open_groups(item, *kinds) if isinstance(node, kinds) and isinstance(item, kinds) else [item]
    return items


@dataclass(frozen=True, slots=True)
class Definition:
    """``DEFINE name AS predicate``: a primitive that is more than an event name."""

    name: str
    predicate: str
    predicate_span: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """``expression AS name`` of MEASURES: a column of the answer; `expression` is Spark SQL over the operands."""

    name: str
    expression: str
    expression_span: Span = field(default=NOWHERE, compare=False)
    name_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a window or of its slide.

    Attributes
    ----------
    amount
        Number of events, or of microseconds.
    counted
        True where the extent counts events, False where it is time.
    """

    amount: int
    counted: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query.

    Attributes
    ----------
    pattern
        The pattern's root.
    define
        DEFINE primitives in text order.
    where
        The WHERE predicate as SQL text (still with units and ``[attr]``), or None.
    measures
        MEASURES in text order.
    partition
        PARTITION BY columns in text order.
    within, slide
        The window, or None.
    text
        The text that the query was read from; spans point into it.
    """

    pattern: Node
    define: tuple[Definition, ...] = ()
    where: str | None = None
    where_span: Span = field(default=NOWHERE, compare=False)
    measures: tuple[Measure, ...] = ()
    partition: tuple[str, ...] = ()
    within: Extent | None = None
    slide: Extent | None = None
    text: str = field(default="", compare=False)

    def unsupported(self, message: str, span: Span | None = None) -> UnsupportedOperatorError:
        """An error at a place of the text; without `span` at the whole pattern."""
        place = self.pattern.span if span is None else span
        return UnsupportedOperatorError(message, self.text, place.start, place.end)
