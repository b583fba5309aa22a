"""MEASURES of a pattern over events: read as those of a row pattern are, over the columns that events have.

``t(pay) - t(cart)`` is a difference of two atoms, called ``__patternlake_atom_0`` and so on: values of events, of which
a task knows only columns. It finds the values of one column in one event of each match, and aggregates of one column.
Spark computes all that lies between these, and aggregates of expressions from the columns of the events that they are
over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from patternlake.udfs.errors import PatternError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.language import durations
from patternlake.udfs.language.predicate.columns import canonical_type
from patternlake.udfs.language.predicate.expressions import Field, Literal, Parameter
from patternlake.udfs.language.predicate.references import Reference, quote
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope, bound
from patternlake.udfs.language.query.operands import Operands
from patternlake.udfs.language.query.tree import Query, Repetition, Span
from patternlake.udfs.language.row_pattern import expressions
from patternlake.udfs.language.row_pattern.expressions import PHYSICAL, check_expression
from patternlake.udfs.language.row_pattern.formulas import (
    AggregateTerm,
    ColumnTerm,
    ConstantTerm,
    Formula,
    FormulaReader,
    NavigationTerm,
    Term,
)
from patternlake.udfs.language.row_pattern.tokens import Token, find_closing, tokens_of
from patternlake.udfs.language.row_pattern.tree import Clause, Concatenation
from patternlake.udfs.measures.decimals import type_of_sum
from patternlake.udfs.measures.event_values import FIELD, JSON_OPTIONS, arrow_type, is_handed_on
from patternlake.udfs.measures.row_terms import is_one_term, row_seen
from patternlake.udfs.measures.seen import Seen
from patternlake.udfs.measures.translation import ATOM, AggregateAtom, Atom, NavigationAtom, Translator
from patternlake.udfs.measures.values import is_computed_here

_NUMBER = frozenset("0123456789.eE+-")


@dataclass(frozen=True)
class PatternMeasures:
    """The measures of a pattern.

    Attributes
    ----------
    text
        The query.
    clause
        As `AtomValues` asks for it: its variables are the pattern's operands, by number.
    names, sql, spans, name_spans
        Of each measure: its column, Spark SQL over atoms, and where its expression and its name stand.
    types
        By columns of events that are read, their Spark types.
    atoms
        By names, what tasks find of each match.
    folded
        By names, what Spark aggregates of `LISTS`, in their order.
    listed
        The columns that those are over.
    """

    text: str
    clause: Clause
    names: tuple[str, ...]
    sql: tuple[str, ...]
    spans: tuple[Span, ...]
    name_spans: tuple[Span, ...]
    types: Mapping[str, str]
    atoms: Mapping[str, Atom]
    folded: Mapping[str, AggregateAtom]
    listed: tuple[str, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The columns of events that are read."""
        return frozenset(self.types)

    def handed_type(self, column: str) -> str:
        """The Spark type of what the values of a column are handed on as."""
        return self.types[column] if is_handed_on(self.types[column]) else "string"

    def atom_type(self, name: str) -> str:
        """The Spark type of an atom that tasks find."""
        atom = self.atoms[name]
        assert isinstance(atom, NavigationAtom | AggregateAtom)
        column = _name(atom.column or "")
        kind = self.handed_type(column) if column in self.types else ""
        if isinstance(atom, NavigationAtom) or atom.name in ("min", "max"):
            return kind
        if atom.name == "count":
            return "bigint"
        if atom.name in ("array_agg", "collect_list"):
            return f"array<{kind}>"
        if kind.startswith("decimal"):
            total = type_of_sum(arrow_type(kind))
            return f"decimal({total.precision},{total.scale})"
        return "bigint" if atom.name == "sum" and kind in ("tinyint", "smallint", "int", "bigint") else "double"


def read_pattern_measures(query: Query, named: Operands, scope: Scope) -> PatternMeasures | None:
    """Read the MEASURES of a query.

    Parameters
    ----------
    query
        The query.
    named
        Its operands.
    scope
        Attributes, parameters and key column that the expressions may use; its operands are replaced by the query's.

    Returns
    -------
    PatternMeasures | None
        None: it has none.

    Raises
    ------
    PredicateError
        An expression names what is not there, asks for one event of an operand with several, or breaks a rule of
        aggregates; or it is no SQL.
    UnsupportedOperatorError
        It holds a subquery, a window function or a function that looks beside the match.

    Examples
    --------
    >>> from patternlake.udfs.language.query import operands
    >>> from patternlake.udfs.language.query.parser import parse
    >>> query = parse("a ; b+ MEASURES LAST(b.x) / a.x - 1 AS gain")
    >>> measures = read_pattern_measures(query, operands.number(query), Scope(attributes={"x": "double"}))
    >>> measures.sql, measures.types
    (('__patternlake_atom_0 / __patternlake_atom_1 - 1',), {'x': 'double'})
    """
    if not query.measures:
        return None
    clause = Clause(text=_measures_alone(query), pattern=Concatenation(items=()), variables=named.names)
    reader = _Reader(clause, query, named, replace(scope, operands=named.names))
    translator = _Translator(clause, reader)
    sql = []
    for measure in query.measures:
        formula = reader.measure(measure.expression_span)
        sql.append(translator.write(formula))
    atoms = {f"{ATOM}{number}": atom for number, atom in enumerate(translator.atoms)}
    folded = {name: atom for name, atom in atoms.items() if isinstance(atom, AggregateAtom) and _folds(atom, reader)}
    texts = [f"{atom.sql} {atom.filter or ''}" for atom in folded.values()]
    listed = {token.name for text in texts for token in tokens_of(text) if token.is_name}
    here = [atom for name, atom in atoms.items() if name not in folded]
    read = {_name(atom.column or "") for atom in here if isinstance(atom, NavigationAtom | AggregateAtom)}
    known = {**BUILT_IN, **reader.types}
    types = {name: kind for name, kind in known.items() if name in read | listed}
    return PatternMeasures(
        text=query.text,
        clause=replace(clause, text=""),
        names=tuple(measure.name for measure in query.measures),
        sql=tuple(sql),
        spans=tuple(measure.expression_span for measure in query.measures),
        name_spans=tuple(measure.name_span for measure in query.measures),
        types=types,
        atoms={name: atom for name, atom in atoms.items() if name not in folded},
        folded=folded,
        listed=tuple(name for name in types if name in listed),
    )


def refuse_measures(measures: PatternMeasures | None, function: str) -> None:
    """Refuse measures where a function gives no matches.

    Raises
    ------
    UnsupportedOperatorError
        There are some.
    """
    if measures is not None:
        message = f"{function} has no column for each match, as MEASURES are; leave them out"
        raise UnsupportedOperatorError(message, measures.text, measures.spans[0].start, measures.spans[-1].end)


def _measures_alone(query: Query) -> str:
    """The text of a query with blanks in the place of all but its measures and line breaks, so that places stay."""
    text = [character if character == "\n" else " " for character in query.text]
    for measure in query.measures:
        place = slice(measure.expression_span.start, measure.expression_span.end)
        text[place] = query.text[place]
    return "".join(text)


def _folds(atom: AggregateAtom, reader: _Reader) -> bool:
    """Whether Spark has to compute an aggregate."""
    kind = reader.types.get(_name(atom.column or ""))
    return not is_computed_here(atom, None if kind is None else arrow_type(kind))


def quoted_column(column: str) -> str:
    """A column of events in Spark SQL; any name is quoted, for some of them are words of Spark's."""
    return "`" + column.replace("`", "``") + "`"


def restore(sql: str, spark_type: str) -> str:
    """A value of a type that is handed on as JSON, in Spark SQL."""
    if is_handed_on(spark_type):
        return sql
    options = ", ".join(f'"{name}", "{value}"' for name, value in JSON_OPTIONS.items())
    return f"from_json({sql}, '{FIELD} {spark_type}', map({options})).{FIELD}"


def _name(sql: str) -> str:
    """The column of `_sql`."""
    return sql[1:-1].replace("``", "`") if sql.startswith("`") else sql


class _Reader(FormulaReader):
    """Reads expressions over operands: names are those of the query's language, the rest is Spark SQL."""

    kind = "operand"

    def __init__(self, clause: Clause, query: Query, named: Operands, scope: Scope) -> None:
        super().__init__(clause, {})
        self.query = query
        self.operands = named
        # What predicates know by no type is a string to them.
        others = dict.fromkeys(scope.measured.keys() - scope.attributes.keys(), "string")
        self.scope = replace(scope, attributes={**scope.attributes, **others})
        self.types: dict[str, str] = {}
        self.several = _several(query, named)

    def measure(self, span: Span) -> Formula:
        """Read an expression."""
        try:
            names = {name.upper(): name for name in self.operands.names}
            check_expression(
                self.inside(span), expressions.Scope(self.clause.text, names, kind=self.kind), in_define=False
            )
            formula = self.read_span(span)
        except PatternError as error:
            raise self.placed(error) from None
        for term in formula.terms:
            if isinstance(term, ColumnTerm) and term.variable in self.several:
                self.fail(self.which(term), term.span)
        return formula

    def which(self, term: ColumnTerm) -> str:
        """What to say of a column of an operand with several events."""
        name, column = quote(term.variable or ""), quote(term.name)
        return (
            f"{name} takes several events; say of which: FIRST({name}.{column}) or LAST({name}.{column}), or of all of "
            f"them: MAX({name}.{column}), ARRAY_AGG({name}.{column})"
        )

    def read_span(self, span: Span) -> Formula:
        """Read what stands at a place."""
        return self.formula(self.inside(span))

    def placed(self, error: PatternError) -> PatternError:
        """An error with the whole query."""
        if error.text != self.clause.text:
            return error
        return type(error)(error.message, self.query.text, error.start, error.end)

    def fail(self, message: str, span: Span) -> NoReturn:
        """Raise an error at a place."""
        raise PredicateError(message, self.query.text, span.start, span.end)

    def variable_called(self, name: str) -> str | None:
        """The operand of a name, whose case matters."""
        return name if self.operands.named(name) is not None else None

    def call_end(self, tokens: Sequence[Token], at: int) -> int | None:
        """Behind ``t(a)`` and ``5 MIN`` as well."""
        sign = tokens[at + 1].sign if at + 1 < len(tokens) else ""
        if tokens[at].word == "T" and sign == "(" and not (at and tokens[at - 1].sign == "."):
            close = find_closing(tokens, at + 1)
            return None if close is None else close + 1
        return at + 2 if _is_duration(tokens, at) else super().call_end(tokens, at)

    def call(self, tokens: Sequence[Token]) -> Term:
        """The term of a call."""
        span = Span(tokens[0].start, tokens[-1].end)
        if tokens[0].kind == "number":
            amount = durations.microseconds(tokens[0].text, tokens[1].text)
            assert amount is not None
            return ConstantTerm(span, f"INTERVAL '{amount // 1_000_000}.{amount % 1_000_000:06}' SECOND")
        name = tokens[0].word
        if name == "T":
            if len(tokens) != 4 or not (tokens[2].is_name or tokens[2].text.isdecimal()):
                self.fail("t takes an operand, or its number, as in t(a) or t(2)", span)
            if tokens[2].is_name:
                return self.resolved(Reference(tokens[2].name, None, "time"), span, span)
            return self.resolved(Reference(None, None, "time", ordinal=int(tokens[2].text)), span, span)
        if name in PHYSICAL or name in ("CLASSIFIER", "MATCH_NUMBER"):
            where = "looks at rows beside the match" if name in PHYSICAL else "is of MATCH_RECOGNIZE"
            message = f"{name} {where}; measures take columns of operands, FIRST, LAST and aggregates of these"
            raise UnsupportedOperatorError(message, self.query.text, span.start, span.end)
        return super().call(tokens)

    def column(self, parts: Sequence[str], spans: Sequence[Span]) -> ColumnTerm | ConstantTerm:
        """``a.x``, a parameter, or of a pattern with one operand a bare column; fields of structs stay behind it."""
        if len(parts) > 1 and (self.variable_called(parts[0]) or not self.is_bare_column(parts[0])):
            whole = Span(spans[0].start, spans[1].end)
            return self.resolved(Reference(parts[0], None, parts[1]), whole, spans[0])
        if self.variable_called(parts[0]) and not self.is_bare_column(parts[0]):
            name = quote(parts[0])
            if self.text[spans[0].end :].lstrip().startswith("["):
                self.fail(f"{name}[…] is of conditions; a measure takes FIRST({name}.x) or LAST({name}.x, 1)", spans[0])
            self.fail(f"{parts[0]} is an operand of the pattern; write {name}.column", spans[0])
        return self.resolved(Reference(None, None, parts[0]), spans[0], spans[0])

    def is_bare_column(self, name: str) -> bool:
        """Whether a name without an operand is a column."""
        one = len(self.operands) == 1
        return one and (name in self.scope.attributes or name in BUILT_IN or name == self.scope.key)

    def resolved(self, reference: Reference, span: Span, at: Span) -> ColumnTerm | ConstantTerm:
        """What a reference names, once it is known to be there; `at` is where errors point to."""
        found = bound(Field(reference=reference, span=span), self.query.text, self.scope)
        if isinstance(found, Literal):
            return ConstantTerm(span, "NULL")
        if isinstance(found, Parameter):
            return ConstantTerm(span, constant_sql(found.text))
        assert isinstance(found, Field)
        operand, column = found.reference.operand or "", found.reference.column
        one = self.operands.named(operand)
        if one is not None and one.negated:
            self.fail(f"no event of {quote(operand)} is in the match, it is negated", at)
        kind = BUILT_IN.get(column) or self.scope.measured.get(column)
        self.types[column] = kind or canonical_type(self.scope.attributes[column]) or ""
        return ColumnTerm(span, column, operand, restore(quoted_column(column), self.types[column]))


def _several(query: Query, named: Operands) -> frozenset[str]:
    """The operands that may have several events."""
    repeated = {
        id(inner)
        for node in query.pattern.walk()
        if isinstance(node, Repetition) and (node.maximum is None or node.maximum > 1)
        for inner in node.walk()
    }
    return frozenset(operand.name for operand in named if id(operand.event) in repeated)


def _is_duration(tokens: Sequence[Token], at: int) -> bool:
    """Whether ``5 MIN`` stands at a place, and is not of Spark's own INTERVAL."""
    if tokens[at].kind != "number" or at + 1 == len(tokens) or not tokens[at + 1].word:
        return False
    if durations.unit(tokens[at + 1].word) is None or not set(tokens[at].text) <= set("0123456789."):
        return False
    before = at - 1
    while before >= 1 and tokens[before].word and tokens[before - 1].kind == "number":
        before -= 2
    return not (before >= 0 and tokens[before].word == "INTERVAL")


def constant_sql(text: str) -> str:
    """A parameter's value in Spark SQL: a number, a truth value, a duration or a string."""
    number = text.strip()
    try:
        float(number)
    except ValueError:
        pass
    else:
        if set(number) <= _NUMBER:
            return f"({number})"
    if number.lower() in ("true", "false"):
        return number
    amount = durations.read(text)
    if amount is not None:
        sign, size = "-" if amount < 0 else "", abs(amount)
        return f"(INTERVAL '{sign}{size // 1_000_000}.{size % 1_000_000:06}' SECOND)"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _is_column(formula: Formula) -> bool:
    """Whether an argument is a column of events, as it is handed on, and nothing more."""
    term = formula.terms[0] if is_one_term(formula) else None
    return isinstance(term, ColumnTerm) and term.sql == quoted_column(term.name)


class _Translator(Translator):
    """Makes atoms of columns alone: no event's expression is computed before its match is found."""

    def __init__(self, clause: Clause, reader: _Reader) -> None:
        super().__init__(clause)
        self.reader = reader

    def value(self, term: ColumnTerm, seen: Seen, final: bool) -> str:
        """A column of one event."""
        name = self.name(NavigationAtom(quoted_column(term.name), seen, final))
        return restore(name, self.reader.types[term.name])

    def term(self, term: Term) -> str:
        """A term over atoms."""
        if isinstance(term, ColumnTerm):
            seen = row_seen(self.clause, term)
            assert seen is not None
            return self.value(term, seen, True)
        return super().term(term)

    def navigation(self, term: NavigationTerm, seen: Seen, final: bool) -> str:
        """FIRST or LAST of a column, or an expression of that event, if there is one."""
        first = term.argument.terms[0]
        if is_one_term(term.argument) and isinstance(first, ColumnTerm):
            return self.value(first, seen, final)

        def part(inner: Term) -> str:
            return self.value(inner, seen, final) if isinstance(inner, ColumnTerm) else self.term(inner)

        there = self.name(NavigationAtom(quoted_column("position"), seen, final))
        return f"CASE WHEN {there} IS NOT NULL THEN {term.argument.write(part)} END"

    def aggregate(self, term: AggregateTerm) -> AggregateAtom:
        """An aggregate; it has a column only where that is a column of events, and no filter."""
        made = super().aggregate(term)
        if made.condition is not None:
            return replace(made, column=None, condition=None, filter=made.condition)
        return made if all(map(_is_column, term.arguments)) else replace(made, column=None)

    def write_listagg(self, term: AggregateTerm) -> str | None:
        """``listagg(x, ',')`` in the order of events: over the list of x."""
        plain = not (term.distinct or term.ordering or term.with_nulls) and term.condition is None
        if term.name not in ("LISTAGG", "STRING_AGG") or not plain or any(one.terms for one in term.arguments[1:]):
            return None
        atom = self.aggregate(replace(term, name="ARRAY_AGG", arguments=term.arguments[:1]))
        if atom.column is None:
            return None
        name = self.name(replace(atom, sql=f"array_agg({atom.column})"))
        between = term.arguments[1].write(lambda _: "") if len(term.arguments) > 1 else "''"
        return f"CASE WHEN size({name}) > 0 THEN array_join(CAST({name} AS ARRAY<STRING>), {between}) END"
