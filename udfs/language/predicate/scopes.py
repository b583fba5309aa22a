"""Names of predicates resolved in a scope: operands, attributes, built-in columns, parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.allowed import TYPES_SHOWN
from patternlake.udfs.language.predicate.columns import value_type
from patternlake.udfs.language.predicate.expressions import (
    Aggregate,
    Call,
    Case,
    Cast,
    EqualAlong,
    Expression,
    Field,
    parameter,
    to_sql,
)
from patternlake.udfs.language.predicate.references import Reference, quote
from patternlake.udfs.language.query.tree import Span
from patternlake.udfs.nearest_names import nearest_name

BUILT_IN = {
    "name": "string",
    "time": "timestamp",
    "key": "string",
    "position": "bigint",
    "step": "bigint",
    "probability": "double",
}
"""Columns that every event has, with their types; no attribute has such a name."""

_ORDINAL = re.compile(r"t([1-9]\d{0,8})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a predicate may use.

    Attributes
    ----------
    operands
        Names of the pattern's operands in text order (for ``a.x``, ``t(2)``, ``t2``); none for a DEFINE, where
        columns are bare.
    attributes
        The stream's attributes with their Spark types.
    parameters
        Values of parameters, as texts; None: NULL.
    key
        The bare column that is the stream's key, a synonym of ``key``; None where the key is an expression.
    aggregates
        Whether a predicate may aggregate the events of an operand.
    measured
        The Spark types of a table's columns that measures know, and predicates don't.
    """

    operands: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    key: str | None = None
    aggregates: bool = False
    measured: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_stream(cls, stream: Mapping[str, Any], parameters: Mapping[str, str | None] | None = None) -> Scope:
        """The names of a stream, by its configuration, with values of parameters."""
        types = {name: entry["type"] for name, entry in stream["attributes"].items()}
        measured = stream.get("measured", {})
        return cls(attributes=types, parameters=dict(parameters or {}), key=stream["key"], measured=measured)


def column_type(column: str, scope: Scope) -> str | None:
    """The value type of an attribute or built-in column; None if there is no such column."""
    if column in BUILT_IN:
        return BUILT_IN[column]
    return value_type(scope.attributes[column]) if column in scope.attributes else None


def bound(root: Expression, text: str, scope: Scope) -> Expression:
    """The tree with every name resolved; `text` is the whole query, for the places of errors."""
    return _Binder(text, scope).expression(root)


def map_nodes(
    expression: Expression, change: Callable[[Any], Expression], kind: type[Expression] = Field
) -> Expression:
    """The tree with every node of a kind replaced by what `change` gives."""
    if isinstance(expression, kind):
        return change(expression)
    match expression:
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(map_nodes(part, change, kind) for part in arguments))
        case Cast(argument=argument) | Aggregate(argument=argument):
            return replace(expression, argument=map_nodes(argument, change, kind))
        case Case(branches=branches, default=default):
            pairs = tuple((map_nodes(one, change, kind), map_nodes(two, change, kind)) for one, two in branches)
            last = None if default is None else map_nodes(default, change, kind)
            return replace(expression, branches=pairs, default=last)
    return expression


class _Binder:
    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope

    def error(self, message: str, span: Span) -> PredicateError:
        return PredicateError(message, self.text, span.start, span.end)

    def expression(self, root: Expression) -> Expression:
        for part in root.walk():
            if isinstance(part, EqualAlong):
                self.check_column(part.attribute, part.span)
            if isinstance(part, Aggregate) and not self.scope.aggregates:
                raise self.error(
                    f"{part.function} aggregates the events of a repeated operand: that is for WHERE of match_pattern",
                    part.span,
                )
        for part in root.walk():
            if isinstance(part, Field) and part.reference.numbered and not self.scope.aggregates:
                raise self.error(
                    f"{part.reference.sql()} is of the events that an operand has collected: that is for WHERE of "
                    "match_pattern",
                    part.span,
                )
        result = map_nodes(root, self.field)
        for part in result.walk():
            if isinstance(part, Aggregate):
                self.check_aggregate(part)
        return self.synonyms(result)

    def check_aggregate(self, part: Aggregate) -> None:
        """Refuse an aggregate that is not over the events of one operand."""
        fields = [inner for inner in part.argument.walk() if isinstance(inner, Field)]
        named = list(dict.fromkeys(inner.reference.operand for inner in fields if inner.reference.operand is not None))
        if len(named) != 1:
            which = f"this names {' and '.join(map(quote, named))}" if named else "this names none"
            raise self.error(
                f"{part.function} takes an attribute of one operand, as in {part.function}(b.x); {which}", part.span
            )
        for inner in fields:
            if inner.reference.index is not None:
                plain = replace(inner, reference=replace(inner.reference, index=None))
                raise self.error(
                    f"{part.function} is over all events of {quote(named[0])}, so none has an index; write "
                    f"{part.function}({to_sql(plain)})",
                    inner.span,
                )

    def synonyms(self, root: Expression) -> Expression:
        parts = root.arguments if isinstance(root, Call) and root.operator == "AND" else (root,)
        renamed = tuple(
            replace(part, attribute=self.column(part.attribute)) if isinstance(part, EqualAlong) else part
            for part in parts
        )
        return replace(root, arguments=renamed) if isinstance(root, Call) and root.operator == "AND" else renamed[0]

    def column(self, name: str) -> str:
        """The column that a name means: the key's own column is ``key``, unless events have another so called."""
        return "key" if name == self.scope.key and name not in (*self.scope.attributes, *BUILT_IN) else name

    def field(self, part: Field) -> Expression:
        reference = part.reference
        if reference.ordinal is not None:
            return self.of_ordinal(part, reference.ordinal)
        if reference.operand is not None:
            return self.of_operand(part)
        return self.bare(part)

    def of_ordinal(self, part: Field, ordinal: int) -> Field:
        operands = self.scope.operands
        if ordinal > len(operands):
            count = f"the pattern has {len(operands)} operands" if operands else "there are no operands here"
            raise self.error(f"t({ordinal}): {count}", part.span)
        return replace(part, reference=Reference(operands[ordinal - 1], None, "time"))

    def of_operand(self, part: Field) -> Field:
        reference = part.reference
        if f"{reference.operand}#2" in self.scope.operands:
            raise self.error(
                f"{reference.operand} stands for several operands; give each an alias, as in "
                f"{quote(reference.operand or '')} AS first",
                part.span,
            )
        if reference.operand not in self.scope.operands:
            if not self.scope.operands:
                raise self.error(
                    f"a condition here looks at one event, whose columns stand bare: write {reference.column}, not "
                    f"{reference.operand}.{reference.column}",
                    part.span,
                )
            raise self.error(
                f"{reference.operand} is not an operand of the pattern"
                + suggest(reference.operand or "", "operands", self.scope.operands),
                part.span,
            )
        self.check_column(reference.column, part.span)
        return replace(part, reference=replace(reference, column=self.column(reference.column)))

    def bare(self, part: Field) -> Expression:
        name = part.reference.column
        operands = self.scope.operands
        is_column = self.column(name) in BUILT_IN or name in self.scope.attributes
        if is_column and len(operands) <= 1:
            self.check_column(name, part.span)
            operand = operands[0] if operands else None
            return replace(part, reference=Reference(operand, None, self.column(name)))
        if operands and (found := _ORDINAL.match(name)) is not None and int(found[1]) <= len(operands):
            return self.of_ordinal(part, int(found[1]))
        if name in self.scope.parameters:
            return parameter(name, self.scope.parameters[name], part.span)
        if is_column:
            raise self.error(
                f"{name} of which operand? write {operands[0]}.{name}; operands are {', '.join(operands)}", part.span
            )
        if name in operands:
            raise self.error(f"{name} is an operand; write {name}.column, or {name}.position for the event", part.span)
        known = [*(self.columns() if len(operands) <= 1 else operands), *self.scope.parameters]
        what = "a column or a parameter" if len(operands) <= 1 else "a parameter"
        near = suggest(name, "in scope", known)
        raise self.error(f"{name} is not {what}{near}; put text in single quotes: '{name}'", part.span)

    def columns(self) -> list[str]:
        key = [] if self.scope.key is None else [self.scope.key]
        return list(dict.fromkeys([*self.scope.attributes, *BUILT_IN, *key]))

    def check_column(self, name: str, span: Span) -> None:
        if self.column(name) in BUILT_IN:
            return
        of_table = self.scope.measured.get(name)
        type_ = self.scope.attributes.get(name, of_table)
        if type_ is None:
            raise self.error(
                f"{name} is not an attribute of the stream" + suggest(name, "in scope", self.columns()), span
            )
        if value_type(type_) is None:
            wanted = "TIMESTAMP" if type_ == "timestamp_ntz" else "STRING"
            cure = f"; cast it, as in TABLE(SELECT *, CAST({name} AS {wanted}) AS its_{name} FROM …)"
            raise self.error(
                f"attribute {name} is of type {type_}, which predicates cannot use; types are {TYPES_SHOWN}"
                + (cure if of_table else ""),
                span,
            )


def suggest(name: str, what: str, known: Iterable[str]) -> str:
    """The known name that is nearest to an unknown one, if one is near, and all of them."""
    names = list(known)
    near = nearest_name(name, names)
    closest = "" if near is None else f"; did you mean {near}?"
    return f"{closest} ({what}: {', '.join(names) or 'nothing'})"
