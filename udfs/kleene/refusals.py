"""What `match_pattern` refuses beyond the operators that no engine of its kind takes, by policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.query.names import quoted
from patternlake.udfs.language.query.operators import Operator, uses
from patternlake.udfs.language.query.tree import Conjunction, Event, Negation, Node, Query, Repetition, Sequence, Span

Refusal = tuple[Span, str]


def refuse_untaken(query: Query, policy: str) -> None:
    """Refuse a query that the kleene engine does not match under a policy.

    Raises
    ------
    UnsupportedOperatorError
        The place is the first such one.
    """
    refusals = [refusal for rule in _RULES for refusal in rule(query, policy)]
    if refusals:
        place, message = min(refusals, key=lambda refusal: refusal[0].start)
        raise UnsupportedOperatorError(message, query.text, place.start, place.end)


def _directly(query: Query, policy: str) -> Iterator[Refusal]:
    for place in _places(query, Operator.NEXT):
        yield place, "match_pattern does not take ','; policy => 'strict' takes events directly next to each other"


def _optional(query: Query, policy: str) -> Iterator[Refusal]:
    for node in query.pattern.walk():
        if isinstance(node, Repetition) and node.form == "?":
            item = _item(query, node)
            yield node.sign, f"match_pattern does not take '?' (optional); write {item}* or both cases with '|'"


def _bounded(query: Query, policy: str) -> Iterator[Refusal]:
    for node in query.pattern.walk():
        if isinstance(node, Repetition) and node.form == "{}":
            name = quoted(node.alias or node.item.alias or node.item.name) if isinstance(node.item, Event) else "A"
            instead = f"write {_item(query, node)}+ and count in WHERE, as in COUNT({name}.position) >= {node.minimum}"
            yield node.sign, f"match_pattern does not take '{{n,m}}' (from n to m); {instead}"


def _until(query: Query, policy: str) -> Iterator[Refusal]:
    for place in _places(query, Operator.UNTIL):
        yield place, "match_pattern does not take UNTIL"


def _some_of(query: Query, policy: str) -> Iterator[Refusal]:
    for place in _places(query, Operator.SOME_OF):
        yield place, "match_pattern does not take OF; write the cases with '&' and '|'"


def _repeated_groups(query: Query, policy: str) -> Iterator[Refusal]:
    for node in query.pattern.walk():
        if isinstance(node, Repetition) and not isinstance(node.item, Event):
            yield node.item.span, "match_pattern repeats only a name, not what stands in parentheses"


def _time_conditions(query: Query, policy: str) -> Iterator[Refusal]:
    for place in _places(query, Operator.TIMES):
        yield place, "match_pattern does not take '@'; WHERE takes conditions on times, as in t(b) - t(a) < 5 MIN"


def _negated_groups(query: Query, policy: str) -> Iterator[Refusal]:
    for node in query.pattern.walk():
        if isinstance(node, Negation):
            for item in node.items:
                if not isinstance(item, Event):
                    yield item.span, "match_pattern negates only a name, not what stands in parentheses"


def _negation_outside(query: Query, policy: str) -> Iterator[Refusal]:
    """``!`` that does not stand between two operands of a sequence."""
    placed: set[int] = set()
    for node in query.pattern.walk():
        if isinstance(node, Sequence):
            items = _flat(node)
            placed |= {id(item) for item in items[1:-1] if isinstance(item, Negation)}
        if isinstance(node, Conjunction):
            for inner in node.walk():
                if isinstance(inner, Negation):
                    yield inner.sign, "'!' (not) stands under '&'; it needs an order, as ';' gives"
    for node in query.pattern.walk():
        if isinstance(node, Negation) and id(node) not in placed:
            yield node.sign, "'!' (not) needs an operand of ';' on either side"


def _conjunctions(query: Query, policy: str) -> Iterator[Refusal]:
    for node in query.pattern.walk() if policy != "skip_till_any" else ():
        if isinstance(node, Conjunction):
            message = f"'&' (AND) has no order to scan by; policy {policy} does not take it, skip_till_any does"
            yield node.sign, message


def _measures(query: Query, policy: str) -> Iterator[Refusal]:
    for place in _places(query, Operator.MEASURES):
        yield place, "match_pattern does not take MEASURES"


_RULES: tuple[Callable[[Query, str], Iterator[Refusal]], ...] = (
    _directly,
    _optional,
    _bounded,
    _until,
    _some_of,
    _repeated_groups,
    _time_conditions,
    _negated_groups,
    _negation_outside,
    _conjunctions,
    _measures,
)


def _places(query: Query, operator: Operator) -> list[Span]:
    return [place for used, place in uses(query) if used is operator]


def _item(query: Query, node: Repetition) -> str:
    """The text of what a repetition repeats."""
    return query.text[node.item.span.start : node.item.span.end]


def _flat(node: Node) -> list[Node]:
    """The items of a group, with sequences inside a sequence opened."""
    items: list[Node] = []
    for item in node.children():
        items += _flat(item) if isinstance(node, Sequence) and isinstance(item, Sequence) else [item]
    return items
