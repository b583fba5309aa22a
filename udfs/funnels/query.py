"""A funnel's pattern, compiled: its steps, its window, what it is partitioned by.

Source: ROWS part 2. A step is a name, an alternative of names, or a DEFINE condition; names inside an alternative may
be DEFINE primitives as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from patternlake.udfs.arguments import window
from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, read_definitions
from patternlake.udfs.language.query import engines, extents, operands
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.tree import Event, Extent, Query, Sequence
from patternlake.udfs.pattern_names import names_asked

MOST_STEPS = 64
"""Which steps an event fits is a number of so many bits."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way in which an event fits a step.

    Attributes
    ----------
    name
        Event name, or DEFINE primitive.
    define
        The predicate of the primitive; None: the event's name must equal `name`.
    """

    name: str
    define: Predicate | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a funnel.

    Attributes
    ----------
    operand
        What answers call it: the names of its operands.
    choices
        An event fits that fits one of them.
    """

    operand: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class FunnelQuery:
    """A compiled funnel.

    Attributes
    ----------
    steps
        In order, 1 to `MOST_STEPS`.
    within
        Window from the first step's event, or None.
    partition
        Columns of PARTITION BY, else the stream's ``key``.
    """

    steps: tuple[Step, ...]
    within: Extent | None
    partition: tuple[str, ...]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Those of all steps, in text order."""
        return tuple(choice for step in self.steps for choice in step.choices)

    @property
    def columns(self) -> frozenset[str]:
        """Columns of events that DEFINE reads, but for ``position`` and ``time``."""
        read = {
            ref.column for step in self.steps for one in step.choices if one.define for ref in one.define.references
        }
        return frozenset(read) - {"position", "time"}

    @property
    def asked_names(self) -> tuple[str, ...]:
        """The event names that steps and their primitives ask for, in text order, each once."""
        return names_asked((choice.name, choice.define) for choice in self.choices)

    def event_columns(self, by: str | None, types: Mapping[str, str]) -> tuple[str, ...]:
        """Columns of the table of events that are read, those that partition it and the one that groups it included,
        given attributes' types.
        """
        read = self.columns | set(self.partition) | ({by} if by is not None else set())
        built_in = [name for name in ("step", "key", "probability") if name in read]
        return ("position", "time", "name", *built_in, *attribute_columns(read, types))


def compile_query(query: Query, scope: Scope | None = None, *, within: str | None = None) -> FunnelQuery:
    """Compile a query for the funnels engine.

    Parameters
    ----------
    query
        The parsed query.
    scope
        Attributes, parameters and key column that predicates may use.
    within
        The window as an argument: ``5 MIN``, ``100 EVENTS``.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator, its place and what to write instead: what `engines.check` refuses; more than `MOST_STEPS`
        steps.
    PatternSyntaxError, PredicateError
        Two operands have one name; a predicate is not allowed or names what is not in scope; a PARTITION BY column
        that does not exist.
    ArgumentError
        `within` is no window, or not the one of the query.
    """
    engines.check(query, "funnels")
    scope = replace(scope or Scope(), operands=())
    nodes = query.pattern.items if isinstance(query.pattern, Sequence) else (query.pattern,)
    if len(nodes) > MOST_STEPS:
        message = (
            f"a funnel has at most {MOST_STEPS} steps, this has {len(nodes)}; join some with '|', or "
            f"ask for the first {MOST_STEPS} and for the others apart"
        )
        raise query.unsupported(message, nodes[MOST_STEPS].span)
    names = {id(operand.event): operand.name for operand in operands.number(query)}
    defined = read_definitions(query, scope)
    steps = []
    for node in nodes:
        events = [one for one in node.walk() if isinstance(one, Event)]
        choices = tuple(Choice(event.name, defined.get(event.name)) for event in events)
        steps.append(Step(" | ".join(names[id(event)] for event in events), choices))
    for predicate in defined.values():
        if predicate.variables:
            raise predicate.error("join variables ($x) belong to subscriptions; PARTITION BY keeps events of one value")
    return FunnelQuery(tuple(steps), extents.clip(_window(query, within)), partition_columns(query, scope) or ("key",))


def _window(query: Query, within: str | None) -> Extent | None:
    """The window of the query or of the argument; both may give the same."""
    if within is None:
        return query.within
    size = window(within)
    if query.within is not None and query.within != size:
        raise ArgumentError(
            f"within => {shorten(within)}, but the pattern says WITHIN {extents.to_text(query.within)}; leave one out"
        )
    return size
