"""The operators of the language, and where a query uses them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
    SomeOf,
    Span,
)


class Operator(Enum):
    """An operator or clause; the value is how messages write it."""

    THEN = "';' (then)"
    NEXT = "',' (directly next)"
    OR = "'|' (or)"
    AND = "'&' (and, in any order)"
    NOT = "'!' (not)"
    PLUS = "'+' (one or more)"
    STAR = "'*' (any number)"
    OPTIONAL = "'?' (optional)"
    COUNT = "'[n]' (exactly n)"
    RANGE = "'{n,m}' (from n to m)"
    UNTIL = "UNTIL (where a repetition ends)"
    SOME_OF = "n OF ( … ) (at least n of several)"
    TIMES = "'@' (a condition on times)"
    DEFINE = "DEFINE"
    WHERE = "WHERE"
    MEASURES = "MEASURES"
    PARTITION = "PARTITION BY"
    WITHIN_EVENTS = "WITHIN a number of events"
    WITHIN_TIME = "WITHIN a length of time"
    SLIDE = "SLIDE"
    GROUP_NAME = "another name (AS) of a group"


_GROUPS: dict[type[Node], Operator] = {
    Sequence: Operator.THEN,
    Contiguous: Operator.NEXT,
    Disjunction: Operator.OR,
    Conjunction: Operator.AND,
    Negation: Operator.NOT,
    SomeOf: Operator.SOME_OF,
}
_REPETITIONS = {
    "+": Operator.PLUS,
    "*": Operator.STAR,
    "?": Operator.OPTIONAL,
    "[n]": Operator.COUNT,
    "{}": Operator.RANGE,
}


def uses(query: Query) -> Iterator[tuple[Operator, Span]]:
    """Each operator and clause that the query uses, with its place; in no certain order."""
    for node in query.pattern.walk():
        if isinstance(node, Repetition):
            yield _REPETITIONS[node.form], node.sign
            if node.until is not None:
                yield Operator.UNTIL, node.until.span
        elif not isinstance(node, Event):
            yield _GROUPS[type(node)], node.sign
        if node.alias is not None and not is_event(node):
            yield Operator.GROUP_NAME, node.alias_span
        for condition in node.conditions:
            start = query.text.rfind("@", 0, condition.span.start)
            yield Operator.TIMES, Span(start, start + 1)
    for definition in query.define[:1]:
        yield Operator.DEFINE, definition.span
    if query.where is not None:
        yield Operator.WHERE, query.where_span
    for measure in query.measures[:1]:
        yield Operator.MEASURES, measure.expression_span
    if query.within is not None:
        yield Operator.WITHIN_EVENTS if query.within.counted else Operator.WITHIN_TIME, query.within.span
    if query.slide is not None:
        yield Operator.SLIDE, query.slide.span


def is_event(node: Node) -> bool:
    """True for an event and for repetitions directly around one."""
    while isinstance(node, Repetition):
        node = node.item
    return isinstance(node, Event)
