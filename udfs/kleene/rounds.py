"""Repeated groups of a pattern, and whether it is certain where each round of one ends."""

from __future__ import annotations

from collections.abc import Iterator

from patternlake.udfs.language.query.tree import (
    Contiguous,
    Disjunction,
    Event,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
    SomeOf,
)


def repeated_groups(pattern: Node) -> Iterator[Repetition]:
    """The groups of a pattern that are repeated, but for what is negated."""
    for node in outside_negations(pattern):
        if isinstance(node, Repetition) and not isinstance(node.item, Event):
            yield node


def has_rounds_in_doubt(query: Query) -> bool:
    """Whether an event may go on with a complete round of some repeated group as well as begin the next one, as in
    ``(A+ | B)+``: the same operands may then take the same events in several rounds.
    """
    for node in repeated_groups(query.pattern):
        # By what they are: two operands of one name are equal.
        further = {id(event) for event in _further_events(node.item)}
        if node.maximum != 1 and any(id(event) in further for event in _first_events(node.item)):
            return True
    return False


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Repetition):
        return node.minimum == 0
    if isinstance(node, Event):
        return False
    empty = [_may_be_empty(child) for child in node.children()]
    if isinstance(node, Disjunction):
        return any(empty)
    return sum(empty) >= node.count if isinstance(node, SomeOf) else all(empty)


def _first_events(node: Node) -> list[Event]:
    """The operands that may take the first event of a part."""
    if isinstance(node, Event):
        return [node]
    if isinstance(node, Repetition):
        return _first_events(node.item)
    found = []
    for child in node.children():
        found += _first_events(child)
        if isinstance(node, Sequence | Contiguous) and not _may_be_empty(child):
            break
    return found


def _further_events(node: Node) -> list[Event]:
    """The operands that may take an event more of a part that is complete."""
    if isinstance(node, Event):
        return []
    if isinstance(node, Repetition):
        more = node.maximum is None or node.maximum > max(1, node.minimum)
        return [*_further_events(node.item), *(_first_events(node.item) if more else ())]
    found = []
    for child in reversed(node.children()):
        found += _further_events(child)
        left_out = isinstance(node, SomeOf) and node.count < len(node.children())
        if (left_out or _may_be_empty(child)) and not isinstance(node, Disjunction):
            found += _first_events(child)
        elif isinstance(node, Sequence | Contiguous):
            break
    return found


def outside_negations(node: Node) -> Iterator[Node]:
    """A node and all below it, but for what is negated."""
    yield node
    for child in () if isinstance(node, Negation) else node.children():
        yield from outside_negations(child)
