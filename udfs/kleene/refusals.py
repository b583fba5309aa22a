"""What `match_pattern` refuses beyond the operators that no engine of its kind takes, by policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from patternlake.udfs.kleene.rounds import outside_negations, repeated_groups
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
    open_groups,
)

Refusal = tuple[Span, str]

ANY = "skip_till_any"


def refuse_untaken(query: Query, policy: str, *, every: bool = False) -> None:
    """Refuse a query that the kleene engine does not match under a policy; `every`: with ``repetition => 'all'``.

    Raises
    ------
    UnsupportedOperatorError
        The place is the first such one.
    """
    rules = _RULES
    if policy == ANY:
        rules = rules if every else (*rules, _repeated_groups)
    elif every:
        rules = (*rules, _rounds_that_begin_with_nothing)
    refusals = [refusal for rule in rules for refusal in rule(query, policy)]
    if refusals:
        place, message = min(refusals, key=lambda refusal: refusal[0].start)
        raise query.unsupported(message, place)


def _repeated_groups(query: Query, policy: str) -> Iterator[Refusal]:
    for node in repeated_groups(query.pattern):
        message = "policy skip_till_any repeats what stands in parentheses only with repetition => 'all'"
        yield (
            node.item.span,
            f"{message}, which match_pattern takes; skip_till_next and strict repeat groups without it",
        )


def _time_conditions(query: Query, policy: str) -> Iterator[Refusal]:
    """``@`` that stands neither on a negation nor next to one."""
    taking: set[int] = set()
    for node in query.pattern.walk():
        if isinstance(node, Negation):
            taking |= {id(inner) for inner in node.walk()}
        items = open_groups(node, Sequence, Contiguous)
        for one, other in (*pairwise(items), *pairwise(items[::-1])):
            if any(isinstance(inner, Negation) for inner in one.walk()):
                taking.add(id(other))
    for node in query.pattern.walk():
        if node.conditions and id(node) not in taking:
            start = query.text.rfind("@", 0, node.conditions[0].span.start)
            message = "match_pattern takes '@' next to '!'; WHERE takes conditions on times, as in t(b) - t(a) < 5 MIN"
            yield Span(start, start + 1), message


def _negation_inside_run(query: Query, policy: str) -> Iterator[Refusal]:
    """``A , !X , B``, and ``A , !(X ; Y)``: what is directly next is one event."""
    for node in query.pattern.walk():
        for at, item in enumerate(node.items if isinstance(node, Contiguous) else ()):
            if not isinstance(item, Negation):
                continue
            if 0 < at < len(node.children()) - 1:
                message = "'!' (not) stands inside ',', where what is directly next leaves no room for it; leave it out"
                yield item.sign, f"{message}, or write ';' on its other side, as in A , !X ; B"
            elif any(isinstance(inner, _OF_MANY) for inner in item.walk()) or any(_repeats(n) for n in item.walk()):
                message = "'!' (not) of several events stands next to ',', where one event is directly next"
                yield item.sign, f"{message}; write ';', or negate one name or an alternative"


_OF_MANY = (Sequence, Contiguous, Conjunction, SomeOf)


def _repeats(node: Node) -> bool:
    return isinstance(node, Repetition) and node.minimum > 1


def _negation_in_rounds(query: Query, policy: str) -> Iterator[Refusal]:
    for node in repeated_groups(query.pattern):
        for inner in node.walk():
            if isinstance(inner, Negation):
                yield inner.sign, "'!' (not) stands in a repeated group; write it before or behind the group"


def _one_until(query: Query, policy: str) -> Iterator[Refusal]:
    for node in outside_negations(query.pattern):
        if isinstance(node, Repetition) and node.until is not None:
            for inner in node.item.walk():
                if isinstance(inner, Repetition) and inner.until is not None:
                    yield inner.until.span, "UNTIL stands in a group that another UNTIL ends; write one of both"


def _rounds_that_begin_with_nothing(query: Query, policy: str) -> Iterator[Refusal]:
    """Under ``repetition => 'all'``: a round behind the first, or an alternative of one, that may leave out its first
    operand. Where it does, the event that it leaves out would not be seen to begin the round.
    """
    for node in repeated_groups(query.pattern):
        chooses = any(isinstance(inner, Disjunction) for inner in node.item.walk())
        first = next(_optional_beginnings(node.item), None)
        if first is not None and (chooses or node.maximum != 1):
            message = "repetition => 'all' does not take a repeated group that may begin without this"
            yield first.sign, f"{message}; begin it with what takes an event, or ask with repetition => 'maximal'"


def _optional_beginnings(node: Node) -> Iterator[Node]:
    """The repetitions that a part may begin with, and need not."""
    if isinstance(node, Repetition):
        if node.minimum == 0:
            yield node
        yield from _optional_beginnings(node.item)
    elif not isinstance(node, Event):
        children = node.children()
        for child in children[:1] if isinstance(node, Sequence | Contiguous) else children:
            yield from _optional_beginnings(child)


_RULES: tuple[Callable[[Query, str], Iterator[Refusal]], ...] = (
    _time_conditions,
    _negation_inside_run,
    _negation_in_rounds,
    _one_until,
)
