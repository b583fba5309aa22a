"""The operands of a pattern: its events in text order, by number and by name (SPEC section 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.query import mistakes
from patternlake.udfs.language.query.tree import Event, Negation, Node, Query, Repetition, Span


@dataclass(frozen=True, slots=True)
class Operand:
    """One event of a pattern, with the repetitions directly around it.

    Attributes
    ----------
    number
        1-based place in text order; the N of ``t(N)``. Negated events count too.
    name
        The alias, or else the event's name; ``A#2``, ``A#3`` … where `A` stands again without an alias.
    event
        The event itself.
    node
        The event, or the outermost of the repetitions directly around it.
    negated
        True where the operand stands under ``!`` or NOT.
    span
        Where its name is written: the alias where there is one, else the event's name.
    """

    number: int
    name: str
    event: Event
    node: Node
    negated: bool
    span: Span


class Operands(tuple[Operand, ...]):
    """The operands of a query in text order."""

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The operands' names in text order."""
        return tuple(operand.name for operand in self)

    def named(self, name: str) -> Operand | None:
        """The operand of that name, if there is one."""
        return next((operand for operand in self if operand.name == name), None)

    def numbered(self, number: int) -> Operand | None:
        """The operand of that number (from 1), if there is one."""
        return self[number - 1] if 1 <= number <= len(self) else None


def number(query: Query) -> Operands:
    """Name and number the operands of a query.

    Raises
    ------
    PatternSyntaxError
        Two operands have the same name, or one has two aliases; the place is the later one.
    """
    seen: Counter[str] = Counter()
    taken: dict[str, Operand] = {}
    for index, (chain, negated) in enumerate(_events(query.pattern), 1):
        event = chain[-1]
        assert isinstance(event, Event)
        aliased = [node for node in chain if node.alias is not None]
        if len(aliased) > 1:
            message = mistakes.second_alias(aliased[1].alias or "", aliased[0].alias or "")
            raise _error(query, message, aliased[0].alias_span)
        if aliased:
            name, span = aliased[0].alias or "", aliased[0].alias_span
        else:
            seen[event.name] += 1
            name = event.name if seen[event.name] == 1 else f"{event.name}#{seen[event.name]}"
            span = event.sign
        operand = Operand(index, name, event, chain[0], negated, span)
        if name in taken:
            first = taken[name]
            message = f"{mistakes.name(name)} already names operand {first.number}; choose another name with AS"
            raise _error(query, message, span)
        taken[name] = operand
    return Operands(taken.values())


def _events(node: Node, chain: tuple[Node, ...] = (), negated: bool = False) -> Iterator[tuple[tuple[Node, ...], bool]]:
    """Each event with the repetitions directly around it, outermost first, and whether it is negated."""
    if isinstance(node, Event):
        yield (*chain, node), negated
        return
    inner = (*chain, node) if isinstance(node, Repetition) else ()
    for child in node.children():
        yield from _events(child, inner, negated or isinstance(node, Negation))


def _error(query: Query, message: str, span: Span) -> PatternSyntaxError:
    return PatternSyntaxError(message, query.text, span.start, span.end)
