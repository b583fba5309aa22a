"""Predicates of patterns: DEFINE, WHERE and time conditions, read, bound to a scope, and evaluated.

A predicate is read with `parse_predicate`, its names are resolved and its types checked with `bind`, and its truth
for many rows is computed with `evaluate`. Conjuncts of two forms are not evaluated per row but handed to the engine:
``[attr]`` (`Predicate.equal_along`) and ``col = $x`` (`Predicate.joins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate import translation
from patternlake.udfs.language.predicate.admitted import names_for
from patternlake.udfs.language.predicate.coercion import TypeMismatchError, UnreadableConstantError
from patternlake.udfs.language.predicate.columns import Column, Truth
from patternlake.udfs.language.predicate.evaluation import evaluate_predicate, evaluate_value
from patternlake.udfs.language.predicate.expressions import (
    Call,
    EqualAlong,
    Expression,
    Field,
    Variable,
    join_parts,
    to_sql,
)
from patternlake.udfs.language.predicate.inference import typed_predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope, bound, column_type
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.tree import Query, Span


class ConstantError(PredicateError):
    """A constant or parameter cannot be read as the type that its place asks for, so nothing could ever match."""


@dataclass(frozen=True, slots=True)
class Join:
    """A conjunct ``reference = $variable``."""

    reference: Reference
    variable: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate, or one conjunct of one.

    Attributes
    ----------
    root
        Its tree; two predicates are equal if their trees are, wherever they stand.
    text
        The text of the whole query, which spans point into.
    """

    root: Expression
    text: str = field(default="", compare=False)

    @property
    def span(self) -> Span:
        """Where the predicate stands in `text`."""
        return self.root.span

    @property
    def conjuncts(self) -> tuple[Predicate, ...]:
        """The parts that AND joins at the top, in text order; BETWEEN gives two."""
        if isinstance(self.root, Call) and self.root.operator == "AND":
            return tuple(Predicate(part, self.text) for part in self.root.arguments)
        return (self,)

    @property
    def references(self) -> tuple[Reference, ...]:
        """All columns that it refers to, each once, in text order."""
        found = [part.reference for part in self.root.walk() if isinstance(part, Field)]
        return tuple(dict.fromkeys(found))

    @property
    def operands(self) -> frozenset[str]:
        """Operands that it refers to."""
        return frozenset(reference.operand for reference in self.references if reference.operand is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """Join variables, without the ``$``, each once, in text order."""
        return tuple(dict.fromkeys(part.name for part in self.root.walk() if isinstance(part, Variable)))

    @property
    def equal_along(self) -> tuple[str, ...]:
        """Attributes of its ``[attr]`` conjuncts."""
        roots = (part.root for part in self.conjuncts)
        return tuple(dict.fromkeys(root.attribute for root in roots if isinstance(root, EqualAlong)))

    @property
    def joins(self) -> tuple[Join, ...]:
        """Its ``col = $x`` conjuncts."""
        found = (_join(part.root) for part in self.conjuncts)
        return tuple(join for join in found if join is not None)

    @property
    def ordinary(self) -> tuple[Predicate, ...]:
        """Conjuncts that `evaluate` can judge: all but ``[attr]`` and ``col = $x``."""
        return tuple(
            part
            for part in self.conjuncts
            if not isinstance(part.root, EqualAlong) and not any(isinstance(p, Variable) for p in part.root.walk())
        )

    def sql(self) -> str:
        """Canonical text; `parse_predicate` reads it back to an equal predicate."""
        return to_sql(self.root)

    def error(self, message: str) -> PredicateError:
        """An error at the predicate's place."""
        return PredicateError(message, self.text, self.span.start, self.span.end)


@lru_cache(maxsize=512)
def parse_predicate(text: str, *, query_text: str | None = None, offset: int = 0) -> Predicate:
    """Read a predicate; nothing but allowed SQL gets through. What was read lately is remembered: a tree never changes.

    Parameters
    ----------
    text
        The predicate.
    query_text, offset
        The whole query and where in it `text` begins, so that errors show their place; by default `text` itself.

    Raises
    ------
    PredicateError
        With the place, naming what is not allowed and what is.
    """
    whole = text if query_text is None else query_text
    root = translation.read(text, whole, offset)
    translation.refuse_hidden(root, whole)
    return Predicate(root, whole)


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """All parts joined by AND; TRUE for none."""
    parts = tuple(parts)
    return Predicate(join_parts("AND", (part.root for part in parts)), parts[0].text if parts else "")


def bind(predicate: Predicate, scope: Scope) -> Predicate:
    """Resolve every name in a scope, and check types.

    Afterwards each reference is to an existing column; ``t(2)`` and ``t2`` name the operand; a bare column with one
    operand in scope belongs to that operand; a bare name that is no column is a parameter.

    Raises
    ------
    PredicateError
        A name that is not in scope (naming the closest that is), a type that does not fit its place, a join variable
        in another form than ``col = $x``.
    ConstantError
        A constant or parameter that does not cast.
    """
    resolved = Predicate(bound(predicate.root, predicate.text, scope), predicate.text)
    try:
        for part in resolved.conjuncts:
            if not isinstance(part.root, EqualAlong) and _join(part.root) is None:
                typed_predicate(part.root, lambda reference: column_type(reference.column, scope) or "")
    except TypeMismatchError as mismatch:
        kind = ConstantError if isinstance(mismatch, UnreadableConstantError) else PredicateError
        raise kind(mismatch.message, predicate.text, mismatch.span.start, mismatch.span.end) from None
    return resolved


def read_predicate(text: str, span: Span, query: Query, scope: Scope) -> Predicate:
    """A predicate that stands at some place of a query, bound."""
    return bind(parse_predicate(text, query_text=query.text or None, offset=span.start), scope)


def read_definitions(query: Query, scope: Scope) -> dict[str, Predicate]:
    """The DEFINE predicates of a query by name, bound: each is over the event itself, so no operand is in scope."""
    alone = replace(scope, operands=())
    return {part.name: read_predicate(part.predicate, part.predicate_span, query, alone) for part in query.define}


def refuse_variables(conjunct: Predicate) -> None:
    """Refuse ``$x`` at the place of its conjunct."""
    if conjunct.variables:
        raise conjunct.error("join variables ($x) belong to subscriptions; compare operands, as in a.x = b.x")


def refuse_neighbours(conjunct: Predicate, operand: str, *, negated: bool = False) -> NoReturn:
    """Refuse ``[i-1]`` on an operand that has no event before another one."""
    name = quote(operand)
    if negated:
        raise conjunct.error(f"{name}[i-1]: no event of {name} is in the match, it is negated")
    raise conjunct.error(f"{name}[i-1] needs a repetition, and {name} takes one event; write {name}+")


def refuse_joined(definitions: Mapping[str, Predicate]) -> None:
    """Refuse ``$x`` and ``[attr]`` in DEFINE: neither says anything of one event.

    Raises
    ------
    PredicateError
        At the place of the conjunct.
    """
    for part in (part for predicate in definitions.values() for part in predicate.conjuncts):
        refuse_variables(part)
        if isinstance(part.root, EqualAlong):
            raise part.error(f"{part.sql()} is of a whole match: that is for WHERE")


def read_where(query: Query, scope: Scope) -> Predicate | None:
    """WHERE of a query, bound; None without it."""
    return None if query.where is None else read_predicate(query.where, query.where_span, query, scope)


def evaluate(
    predicate: Predicate,
    resolve: Callable[[Reference], Column],
) -> Truth:
    """Truth of a predicate for many rows at once.

    Parameters
    ----------
    predicate
        Best bound, so that names and types are known to be right.
    resolve
        The column behind a reference; called once per distinct reference. Shapes must broadcast.

    Returns
    -------
    Truth
        Of the broadcast shape of all columns; of shape () if the predicate refers to none.

    Raises
    ------
    PredicateError
        If types do not fit (after `bind` with the same types they do), or if the predicate holds ``[attr]`` or
        ``$x``: evaluate its `ordinary` conjuncts.
    """
    try:
        return evaluate_predicate(predicate.root, predicate.references, resolve)
    except TypeMismatchError as mismatch:
        raise PredicateError(mismatch.message, predicate.text, mismatch.span.start, mismatch.span.end) from None


def value_of(expression: Expression, resolve: Callable[[Reference], Column]) -> Column:
    """Value of a part of a bound predicate for many rows, such as one side of a comparison."""
    return evaluate_value(expression, Predicate(expression).references, resolve)


def names_admitted(predicate: Predicate, operand: str | None = None) -> frozenset[str] | None:
    """Event names for which a predicate can hold.

    Parameters
    ----------
    predicate
        A DEFINE predicate, or any other with `operand`.
    operand
        The operand whose `name` is looked at; None for bare columns.

    Returns
    -------
    frozenset or None
        None if any name may do; empty if the predicate can never hold.
    """
    return names_for(predicate.root, operand)


def _join(root: Expression) -> Join | None:
    match root:
        case Call(
            operator="=",
            arguments=(Field(reference=reference), Variable(name=name))
            | (Variable(name=name), Field(reference=reference)),
        ):
            return Join(reference, name)
    return None


__all__ = [
    "BUILT_IN",
    "Column",
    "ConstantError",
    "Join",
    "Predicate",
    "Reference",
    "Scope",
    "Truth",
    "bind",
    "column_type",
    "conjunction",
    "evaluate",
    "names_admitted",
    "parse_predicate",
    "read_definitions",
    "read_predicate",
    "read_where",
    "refuse_joined",
    "refuse_neighbours",
    "refuse_variables",
    "value_of",
]
