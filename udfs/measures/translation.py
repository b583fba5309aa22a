"""MEASURES as Spark SQL over atoms: values that are found for each match, or for each of its rows.

``LAST(up.price) / FIRST(price) - 1`` is a quotient of two navigations, called ``__patternlake_atom_0`` and
``__patternlake_atom_1``, less 1. Between atoms the text is the user's. Equal atoms are one.

RUNNING looks at the rows up to the one shown, FINAL at all rows of the match. ONE ROW PER MATCH shows the last row, so
that both are the same and all its atoms are FINAL; ALL ROWS PER MATCH is RUNNING where nothing is said. FIRST without
an offset and of no variable is the same either way, as the first row is before all others; of a variable it is NULL
under RUNNING up to the variable's first row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from patternlake.udfs.language.row_pattern.formulas import (
    AggregateTerm,
    ClassifierTerm,
    ColumnTerm,
    ConstantTerm,
    Formula,
    FormulaReader,
    MatchNumberTerm,
    NavigationTerm,
    Term,
    split_at_commas,
)
from patternlake.udfs.language.row_pattern.tokens import find_closing, tokens_of
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.row_terms import column_sql, is_classifier, is_one_term, row_seen, variables_of
from patternlake.udfs.measures.seen import FIRST, Seen
from patternlake.udfs.own_names import OWN

ATOM = f"{OWN}atom_"
"""What the names of atoms begin with; their number follows."""
CLASSIFIER, MATCH_NUMBER = f"{OWN}classifier", f"{OWN}match_number"
"""Columns that `AggregateAtom.sql` may name besides the input's."""
_JOINED = frozenset({"LISTAGG", "STRING_AGG"})
_FILTER = re.compile(r"\bFILTER\s*\(\s*WHERE\s*$", re.IGNORECASE)
ROWS = "*"
"""The argument of an aggregate that is over rows, whatever is in them."""


@dataclass(frozen=True)
class NavigationAtom:
    """An expression's value in one row of the match.

    Attributes
    ----------
    column
        The expression over the input's columns.
    seen
        FIRST or LAST of some variables, with offset and shift; NULL where there is no such row.
    final
        Whether all rows of the match count, not only those up to the row shown.
    """

    column: str
    seen: Seen
    final: bool


@dataclass(frozen=True)
class ClassifierAtom:
    """The variable of one row of the match, see `NavigationAtom`."""

    seen: Seen
    final: bool


@dataclass(frozen=True)
class AggregateAtom:
    """An aggregate over rows of the match.

    Attributes
    ----------
    name
        In lower case.
    column
        Its argument over the input's columns; `CLASSIFIER` for the variables of the rows, `ROWS` for ``count(*)``; None
        where it has several arguments or an order, or looks at CLASSIFIER or MATCH_NUMBER otherwise.
    condition
        Of FILTER, over the input's columns.
    variables
        Whose rows; none: all.
    sql
        The aggregate without FILTER in Spark SQL, over the input's columns, `CLASSIFIER` and `MATCH_NUMBER`.
    filter
        What FILTER says, likewise, where it is no `condition`.
    """

    name: str
    column: str | None
    condition: str | None
    distinct: bool
    variables: tuple[str, ...]
    final: bool
    sql: str
    filter: str | None = None


@dataclass(frozen=True)
class MatchNumberAtom:
    """MATCH_NUMBER()."""


Atom = NavigationAtom | ClassifierAtom | AggregateAtom | MatchNumberAtom


@dataclass(frozen=True)
class Measures:
    """The measures of a clause.

    Attributes
    ----------
    names, sql
        Of each measure.
    atoms
        The n-th is called ``__patternlake_atom_n`` in `sql`.
    variables
        Of the pattern: a row of the match is of one of them.
    """

    names: tuple[str, ...]
    sql: tuple[str, ...]
    atoms: tuple[Atom, ...]
    variables: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The expressions over the input's columns that the atoms need, with the variables of whose rows: none, any."""
        needed: dict[str, tuple[str, ...]] = {}
        for atom in self.atoms:
            texts: tuple[str | None, ...] = ()
            variables: tuple[str, ...] = ()
            if isinstance(atom, NavigationAtom):
                texts = (atom.column,)
                variables = () if atom.seen.shift else atom.seen.variables or self.variables
            elif isinstance(atom, AggregateAtom):
                texts, variables = (atom.column, atom.condition), atom.variables or self.variables
            for sql in texts:
                if sql is not None and sql not in (CLASSIFIER, ROWS):
                    known = needed.get(sql, variables)
                    needed[sql] = tuple(sorted({*known, *variables})) if known and variables else ()
        return needed


def read_measures(clause: Clause, columns: Mapping[str, str]) -> Measures:
    """Translate MEASURES.

    Parameters
    ----------
    clause
        The clause.
    columns
        The input's columns, by names their Spark types.

    Raises
    ------
    PredicateError
        An expression breaks a rule of the clause or names what is not there.

    Examples
    --------
    >>> from patternlake.udfs.language.row_pattern.parser import parse_clause
    >>> clause = parse_clause("MEASURES LAST(b.price) / a.price - 1 AS gain PATTERN (a b)")
    >>> measures = read_measures(clause, {"price": "double"})
    >>> measures.sql
    ('__patternlake_atom_0 / __patternlake_atom_1 - 1',)
    >>> measures.columns
    {'price': ('a', 'b')}
    """
    reader = FormulaReader(clause, columns)
    translator = Translator(clause)
    texts = tuple(translator.write(reader.read(measure.expression)) for measure in clause.measures)
    names = tuple(measure.name for measure in clause.measures)
    return Measures(names, texts, tuple(translator.atoms), clause.variables)


class Translator:
    """Numbers the atoms of a clause's measures."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.atoms: dict[Atom, int] = {}

    def write(self, formula: Formula) -> str:
        """A measure over atoms."""
        fields = _find_fields(formula)

        def write(term: Term) -> str:
            name = fields.get(term.span.start)
            return self.term(term) + (f" AS {name}" if name else "")

        return formula.write(write)

    def name(self, atom: Atom) -> str:
        """The name of an atom, which is new unless there is one like it."""
        return f"{ATOM}{self.atoms.setdefault(atom, len(self.atoms))}"

    def is_final(self, semantics: str, seen: Seen | None = None) -> bool:
        """Whether a term looks at all rows of the match."""
        if seen is not None and seen.kind == FIRST and not seen.offset and not seen.variables:
            return True
        return not self.clause.all_rows or semantics == "FINAL"

    def term(self, term: Term) -> str:
        """A term over atoms."""
        seen = row_seen(self.clause, term)
        match term:
            case MatchNumberTerm():
                return self.name(MatchNumberAtom())
            case ConstantTerm():
                return term.sql
            case AggregateTerm():
                return self.write_listagg(term) or self.name(self.aggregate(term))
            case ColumnTerm():
                assert seen is not None
                return self.name(NavigationAtom(term.sql, seen, self.is_final("")))
            case ClassifierTerm():
                assert seen is not None
                return self.name(ClassifierAtom(seen, self.is_final("")))
            case NavigationTerm():
                assert seen is not None
                return self.navigation(term, seen, self.is_final(term.semantics, seen))

    def navigation(self, term: NavigationTerm, seen: Seen, final: bool) -> str:
        """A navigation over atoms."""
        column = column_sql(term.argument)
        if column is not None:
            return self.name(NavigationAtom(column, seen, final))
        if is_classifier(term.argument):
            return self.name(ClassifierAtom(seen, final))

        # Spark cannot compute CLASSIFIER before the match: the argument is computed after it, if there is the row.
        def part(inner: Term) -> str:
            match inner:
                case ColumnTerm():
                    return self.name(NavigationAtom(inner.sql, seen, final))
                case ClassifierTerm():
                    return self.name(ClassifierAtom(seen, final))
            return self.term(inner)

        there = self.name(NavigationAtom("true", seen, final))
        return f"CASE WHEN {there} THEN {term.argument.write(part)} END"

    def aggregate(self, term: AggregateTerm) -> AggregateAtom:
        """An aggregate."""
        column = None
        condition = None if term.condition is None else column_sql(term.condition)
        if term.ordering or term.with_nulls or (condition is None and term.condition is not None):
            pass  # only Spark can say
        elif not term.arguments:
            column = ROWS
        elif len(term.arguments) == 1:
            column = CLASSIFIER if is_classifier(term.arguments[0]) else column_sql(term.arguments[0])
            if column not in (None, CLASSIFIER) and condition is not None and not is_one_term(term.arguments[0]):
                # It is computed for all rows; in those that do not count it may fail.
                column = f"CASE WHEN {condition} THEN {column} END"
        return AggregateAtom(
            name=term.name.lower(),
            column=column,
            condition=condition,
            distinct=term.distinct,
            variables=variables_of(self.clause, term.variable),
            final=self.is_final(term.semantics),
            sql=_aggregate_sql(term),
            filter=term.condition.write(_row_sql) if term.condition is not None and condition is None else None,
        )

    def write_listagg(self, term: AggregateTerm) -> str | None:
        """``listagg(x, ',')`` over the list of x, whose order is that of the rows; None for any other aggregate."""
        plain = not (term.distinct or term.ordering or term.with_nulls) and 1 <= len(term.arguments) <= 2
        if term.name not in _JOINED or not plain or any(one.terms for one in term.arguments[1:]):
            return None
        atom = self.aggregate(replace(term, name="ARRAY_AGG", arguments=term.arguments[:1]))
        if atom.column is None:
            return None
        if atom.column != CLASSIFIER:
            atom = replace(atom, column=f"CAST({atom.column} AS STRING)")
        name = self.name(replace(atom, sql=f"array_agg({atom.column})"))
        between = term.arguments[1].write(_row_sql) if len(term.arguments) > 1 else "''"
        return f"CASE WHEN size({name}) > 0 THEN array_join({name}, {between}) END"


def _find_fields(formula: Formula) -> dict[int, str]:
    """What Spark calls the fields of a struct that are terms, by where these begin: an atom has a name of its own."""
    found: dict[int, str] = {}
    terms = {term.span.start: term for term in formula.terms}
    tokens = [token for token in tokens_of(formula.text[: formula.span.end]) if token.start >= formula.span.start]
    for at, token in enumerate(tokens):
        # ``struct(…)``, or a row ``(…, …)``.
        if token.sign != "(" or (at and tokens[at - 1].word != "STRUCT" and not tokens[at - 1].sign):
            continue
        close = find_closing(tokens, at)
        parts = split_at_commas(tokens[at + 1 : close])
        if len(parts) < 2 and (not at or tokens[at - 1].word != "STRUCT"):
            continue
        for number, part in enumerate(parts, start=1):
            term = terms.get(part[0].start) if part else None
            if term is not None and term.span.end == part[-1].end:
                column = isinstance(term, ColumnTerm)
                found[term.span.start] = part[-1].text if column else f"col{number}"
    return found


def _row_sql(term: Term) -> str:
    """What a term of an aggregate is called in a row of its rows."""
    match term:
        case ColumnTerm() | ConstantTerm():
            return term.sql
        case ClassifierTerm():
            return CLASSIFIER
    return MATCH_NUMBER


def _aggregate_sql(term: AggregateTerm) -> str:
    """The text of an aggregate without RUNNING, FINAL, FILTER and the names of variables."""
    if not term.arguments and not term.ordering:
        return "count(*)"
    pieces, at = [], term.call.start
    formulas = [one for one in term.formulas if one is not term.condition]
    for formula in formulas:
        pieces += [formula.text[at : formula.span.start], formula.write(_row_sql)]
        at = formula.span.end
    behind = formulas[0].text[at : term.call.end]
    if term.condition is not None:
        within = term.condition.span
        before = _FILTER.sub("", behind[: within.start - at])
        behind = before + behind[within.end - at :].lstrip().removeprefix(")")
    return "".join([*pieces, behind]).strip()
