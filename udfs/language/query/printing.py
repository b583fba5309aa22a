"""From tree to canonical text: infix operators, the fewest parentheses and quotes that read back as the same tree."""

from __future__ import annotations

from patternlake.udfs.language.query import extents
from patternlake.udfs.language.query.lexer import is_word
from patternlake.udfs.language.query.names import quote
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
)

_JOIN: dict[type[Node], str] = {Sequence: " ; ", Contiguous: ", ", Disjunction: " | ", Conjunction: " & "}
_BINDING: dict[type[Node], int] = {Sequence: 0, Contiguous: 1, Disjunction: 2, Conjunction: 3, Negation: 4}
_POSTFIX = 5
_ATOM = 6


def to_text(query: Query) -> str:
    """The query in canonical text.

    Parameters
    ----------
    query
        Any tree that the grammar can produce.

    Returns
    -------
    str
        Text without PATTERN, that `parse` reads back as an equal tree.
    """
    parts = [pattern_text(query.pattern)]
    if query.define:
        parts.append("DEFINE " + ", ".join(f"{quote(one.name)} AS {one.predicate}" for one in query.define))
    if query.where is not None:
        parts.append(f"WHERE {query.where}")
    if query.measures:
        parts.append("MEASURES " + ", ".join(f"{one.expression} AS {_column(one.name)}" for one in query.measures))
    if query.partition:
        parts.append("PARTITION BY " + ", ".join(map(quote, query.partition)))
    if query.within is not None:
        parts.append(f"WITHIN {extents.to_text(query.within)}")
    if query.slide is not None:
        parts.append(f"SLIDE {extents.to_text(query.slide)}")
    return " ".join(parts)


def pattern_text(node: Node) -> str:
    """A pattern or a part of one in canonical text."""
    until = f" UNTIL {_inside(node.until, _ATOM)}" if isinstance(node, Repetition) and node.until is not None else ""
    if node.alias is None and not node.conditions:
        return _bare(node) + until
    alias = ""
    if node.alias is not None:
        alias = f" {quote(node.alias)}[]" if node.indexed else f" AS {quote(node.alias)}"
    text = _bare(node)
    if _binding(node, bare=True) < _POSTFIX:
        text = f"({text})"
    return text + alias + until + "".join(f" @({condition.text})" for condition in node.conditions)


def _bare(node: Node) -> str:
    """The node without its alias and conditions."""
    if isinstance(node, Event):
        return quote(node.name)
    if isinstance(node, Repetition):
        return _inside(node.item, _ATOM) + repetition_text(node)
    if isinstance(node, Negation):
        if len(node.items) == 1:
            return "!" + _inside(node.items[0], _BINDING[Negation])
        return f"NOT({', '.join(map(_argument, node.items))})"
    if isinstance(node, SomeOf):
        return f"{node.count} OF ({', '.join(map(_argument, node.items))})"
    kind = type(node)
    return _JOIN[kind].join(_inside(item, _BINDING[kind] + 1) for item in node.children())


def _inside(node: Node, binding: int) -> str:
    """The node as an operand of an operator that needs operands to bind at least as tightly as `binding`."""
    text = pattern_text(node)
    return text if _binding(node) >= binding else f"({text})"


def _binding(node: Node, *, bare: bool = False) -> int:
    """How tightly the node's text binds; `bare`: without its alias and conditions."""
    if not bare and (node.alias is not None or node.conditions):
        return _POSTFIX
    if isinstance(node, Event | SomeOf) or (isinstance(node, Negation) and len(node.items) > 1):
        return _ATOM
    return _POSTFIX if isinstance(node, Repetition) else _BINDING[type(node)]


def _argument(node: Node) -> str:
    """The node as an argument, where a comma outside parentheses would begin the next argument."""
    if node.alias is None and not node.conditions:
        if isinstance(node, Contiguous):
            return f"({_bare(node)})"
        if isinstance(node, Sequence):
            return _JOIN[Sequence].join(_inside(item, _BINDING[Disjunction]) for item in node.items)
    return pattern_text(node)


def _column(name: str) -> str:
    """The name of a measure."""
    return name if is_word(name) else "`" + name.replace("`", "``") + "`"


def repetition_text(node: Repetition) -> str:
    """The sign of a repetition, such as ``{2,5}``."""
    if node.form == "[n]":
        return f"[{node.minimum}]"
    if node.form != "{}":
        return node.form
    if node.maximum is None:
        return f"{{{node.minimum},}}"
    return f"{{{node.minimum}}}" if node.minimum == node.maximum else f"{{{node.minimum},{node.maximum}}}"
