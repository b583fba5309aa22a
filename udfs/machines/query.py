"""A composite subscription, compiled: primitives, the tree of machines, time bounds, joins, window.

Source: Muthusamy et al. 2010, sections 3.2 and 4, and SPEC section 6. A **primitive** takes single events: by name, or
by a DEFINE predicate whose conjuncts ``col = $x`` are **joins**. A **chain** is what one state machine matches: items
one after the other, each directly next to the one before (``,``) or later (``;``). An item is a primitive, or a Boolean
machine over chains of its own (``&``, ``|``): its child machines.

Departures from the paper: a time condition is kept as bounds of a difference in whole microseconds, so that several of
them can be judged together (`time_conditions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from patternlake.udfs.language.predicate.predicates import (
    Predicate,
    Scope,
    column_type,
    conjunction,
    read_definitions,
    read_predicate,
)
from patternlake.udfs.language.query import engines, extents, operands, tree
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.tree import Extent, Query
from patternlake.udfs.machines.time_conditions import MOST_CHOICES, TimeCondition, time_conditions
from patternlake.udfs.measures.pattern_measures import PatternMeasures, read_pattern_measures

MOST_OPERANDS = 62
"""Greatest number of operands of one subscription: a set of them is one integer."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """An operand of a subscription.

    Attributes
    ----------
    name
        What conditions and bindings call it.
    takes
        The event name, or the DEFINE primitive, that it takes.
    define
        What its events must satisfy alone, joins apart; None: the name is enough.
    joins
        (variable, column) of each ``col = $variable``.
    """

    name: str
    takes: str
    define: Predicate | None
    joins: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One step of a chain: a primitive by number, or a Boolean machine.

    Attributes
    ----------
    primitive
        Number of the primitive, from 0 in text order; -1 for a Boolean machine.
    every
        Of a Boolean machine: True for ``&``, False for ``|``.
    children
        Its child machines.
    """

    primitive: int
    every: bool = True
    children: tuple[Chain, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A state machine's items; ``next_to[i]``: item i directly follows the one before. The first never does."""

    items: tuple[Item, ...]
    next_to: tuple[bool, ...]


@dataclass(frozen=True)
class Subscription:
    """A compiled subscription.

    Attributes
    ----------
    primitives
        In text order.
    master
        The master machine.
    bounds
        Time conditions.
    variables
        Join variables, in order.
    partition
        Columns of PARTITION BY; the stream's key is called ``key``.
    within
        Window, or None.
    columns
        All columns of events that matching reads, but for ``position`` and ``time``.
    query
        The query.
    measures
        MEASURES, or None; the n-th operand is the n-th primitive.
    """

    primitives: tuple[Primitive, ...]
    master: Chain
    bounds: tuple[TimeCondition, ...]
    variables: tuple[str, ...]
    partition: tuple[str, ...]
    within: Extent | None
    columns: frozenset[str]
    query: Query
    measures: PatternMeasures | None = None

    @property
    def boolean(self) -> bool:
        """Whether it has Boolean machines."""
        return any(item.primitive < 0 for item in self.master.items)

    def numbered(self) -> Subscription:
        """The same with join variables called by their number, so that subscriptions share what they share."""
        number = {name: str(place) for place, name in enumerate(self.variables)}
        primitives = tuple(
            replace(one, joins=tuple((number[variable], column) for variable, column in one.joins))
            for one in self.primitives
        )
        return replace(self, primitives=primitives, variables=tuple(number.values()))


def compile_subscription(query: Query, scope: Scope | None = None) -> Subscription:
    """Compile a query for the machines engine.

    Parameters
    ----------
    query
        The parsed query.
    scope
        Attributes, parameters and key column that predicates may use; its operands are replaced by the query's.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator and its place: what `engines.check` refuses, more than `MOST_OPERANDS` operands.
    PatternSyntaxError, PredicateError
        A name stands twice without aliases; a predicate is not allowed or names what is not in scope; a time condition
        that `time_conditions` refuses; a join variable that stands once, is compared with columns
        of different types, or stands outside of DEFINE; a PARTITION BY column that does not exist.
    """
    engines.check(query, "machines")
    return _Compiler(query, scope or Scope()).subscription()


class _Compiler:
    def __init__(self, query: Query, scope: Scope) -> None:
        self.query = query
        self.scope = scope
        self.named = operands.number(query)
        if len(self.named) > MOST_OPERANDS:
            message = f"a subscription has at most {MOST_OPERANDS} operands, this has {len(self.named)}"
            raise query.unsupported(message, self.named[MOST_OPERANDS].span)
        self.number_at = {id(operand.event): operand.number - 1 for operand in self.named}
        self.defined = read_definitions(query, scope)
        self.siblings = self.under_and()

    def subscription(self) -> Subscription:
        """The compiled query."""
        primitives = tuple(self.primitive(operand) for operand in self.named)
        self.check_joins(primitives)
        partition = partition_columns(self.query, self.scope)
        read = {
            reference.column
            for primitive in primitives
            if primitive.define is not None
            for reference in primitive.define.references
        }
        read |= {column for primitive in primitives for _, column in primitive.joins}
        if any(primitive.define is None for primitive in primitives):
            read.add("name")
        return Subscription(
            primitives=primitives,
            master=self.chain(self.query.pattern),
            bounds=tuple(self.time_conditions()),
            variables=tuple(dict.fromkeys(variable for primitive in primitives for variable, _ in primitive.joins)),
            partition=partition,
            within=extents.clip(self.query.within),
            columns=frozenset(read) - {"position", "time"},
            query=self.query,
            measures=read_pattern_measures(self.query, self.named, self.scope),
        )

    def primitive(self, operand: operands.Operand) -> Primitive:
        define = self.defined.get(operand.event.name)
        if define is None:
            return Primitive(operand.name, operand.event.name, None, ())
        joins = tuple((join.variable, join.reference.column) for join in define.joins)
        return Primitive(operand.name, operand.event.name, conjunction(define.ordinary), joins)

    def check_joins(self, primitives: tuple[Primitive, ...]) -> None:
        """Refuse join variables that join nothing, or values of different types."""
        many = {variable for primitive in primitives for variable, _ in primitive.joins}
        for name, define in self.defined.items():
            for join in define.joins:
                if len(many) > MOST_OPERANDS:
                    raise define.error(f"a subscription has at most {MOST_OPERANDS} join variables")
                uses = [column for primitive in primitives for variable, column in primitive.joins
                        if variable == join.variable]  # fmt: skip
                if not any(primitive.takes == name for primitive in primitives):
                    continue
                if len(uses) < 2:
                    raise define.error(f"${join.variable} stands once; a join variable joins two operands or more")
                types = {column_type(column, self.scope) or "" for column in uses}
                if len(types) > 1:
                    shown = " and ".join(sorted(types))
                    raise define.error(f"${join.variable} is compared with {shown}; its columns must have one type")

    def chain(self, node: tree.Node) -> Chain:
        """The chain of a sub-pattern, sequences inside sequences opened."""
        if isinstance(node, tree.Sequence | tree.Contiguous):
            items: list[Item] = []
            next_to: list[bool] = []
            for number, child in enumerate(node.children()):
                part = self.chain(child)
                items += part.items
                next_to += [number > 0 and isinstance(node, tree.Contiguous), *part.next_to[1:]]
            return Chain(tuple(items), tuple(next_to))
        if isinstance(node, tree.Event):
            return Chain((Item(self.number_at[id(node)]),), (False,))
        children = tuple(self.chain(child) for child in node.children())
        return Chain((Item(-1, isinstance(node, tree.Conjunction), children),), (False,))

    def under_and(self) -> set[tuple[int, int]]:
        """Pairs of primitives that have no order: the lowest node above both is ``&``."""
        found: set[tuple[int, int]] = set()
        for node in self.query.pattern.walk():
            if isinstance(node, tree.Conjunction):
                groups = [
                    [self.number_at[id(event)] for event in child.walk() if isinstance(event, tree.Event)]
                    for child in node.children()
                ]
                found |= {
                    (one, other)
                    for group in groups
                    for one in group
                    for beside in groups
                    if beside is not group
                    for other in beside
                }
        return found

    def time_conditions(self) -> Iterator[TimeCondition]:
        """The time conditions in text order."""
        scope = replace(self.scope, operands=self.named.names)
        siblings, inside = frozenset(self.siblings), self.inside_alternatives()
        combinations = 1
        for node in self.query.pattern.walk():
            for condition in node.conditions:
                read = read_predicate(condition.text, condition.span, self.query, scope)
                for found in time_conditions(read, self.named.names, siblings, inside):
                    combinations *= len(found.choices)
                    if combinations > MOST_CHOICES:
                        raise read.error(
                            f"the OR and <> of the time conditions so far give {combinations:,} combinations; at most "
                            f"{MOST_CHOICES} are taken: use fewer of them"
                        )
                    yield found

    def inside_alternatives(self) -> frozenset[int]:
        """Primitives inside of ``|``."""
        return frozenset(
            self.number_at[id(event)]
            for node in self.query.pattern.walk()
            if isinstance(node, tree.Disjunction)
            for event in node.walk()
            if isinstance(event, tree.Event)
        )
