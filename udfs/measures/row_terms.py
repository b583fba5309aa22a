"""Which rows the terms of an expression look at, and the Spark SQL of what they ask of such a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patternlake.udfs.language.row_pattern.formulas import (
    AggregateTerm,
    ClassifierTerm,
    ColumnTerm,
    ConstantTerm,
    Formula,
    MatchNumberTerm,
    NavigationTerm,
    Term,
)
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.seen import CURRENT, FIRST, LAST, Seen


def variables_of(clause: Clause, name: str | None) -> tuple[str, ...]:
    """The variables that a name stands for; none where it stands for all, as no name does."""
    if name is None:
        return ()
    members = next((subset.variables for subset in clause.subsets if subset.name == name), (name,))
    return () if set(members) == set(clause.variables) else tuple(sorted(members))


def row_seen(clause: Clause, term: Term, current: str | None = None) -> Seen | None:
    """The row that a term looks at; None for an aggregate, MATCH_NUMBER and a constant, which look at no single one.

    Parameters
    ----------
    clause
        The clause.
    term
        Of one of its expressions.
    current
        In DEFINE, the variable whose condition it is: the last row of such is the row asked about.
    """
    if isinstance(term, (AggregateTerm, MatchNumberTerm, ConstantTerm)):
        return None
    variables = variables_of(clause, term.variable)
    kind, offset, shift = LAST, 0, 0
    if isinstance(term, NavigationTerm):
        kind, offset, shift = FIRST if term.function == "FIRST" else LAST, term.offset, term.shift
    if current is not None and kind == LAST and not offset and (not variables or current in variables):
        return Seen(CURRENT, (), 0, shift)
    return Seen(kind, variables, offset, shift)


def column_sql(formula: Formula) -> str | None:
    """What an expression says of one row, in Spark SQL; None where it asks for more than the row's columns."""
    if not all(isinstance(term, ColumnTerm | ConstantTerm) for term in formula.terms):
        return None
    return formula.write(lambda term: term.sql if isinstance(term, ColumnTerm | ConstantTerm) else "")


def is_one_term(formula: Formula) -> bool:
    """Whether an expression is one term and nothing else, so that it needs no parentheses."""
    return len(formula.terms) == 1 and formula.terms[0].span == formula.span


def is_classifier(formula: Formula) -> bool:
    """Whether an expression is CLASSIFIER and nothing else."""
    return is_one_term(formula) and isinstance(formula.terms[0], ClassifierTerm)


def is_of_row(clause: Clause, terms: Sequence[Term], variable: str) -> bool:
    """Whether terms look at the row asked about and at physical offsets from it, and at nothing that was matched."""
    for term in terms:
        if isinstance(term, ConstantTerm):
            continue
        seen = row_seen(clause, term, variable)
        if seen is None or seen.kind != CURRENT or isinstance(term, ClassifierTerm):
            return False
        if isinstance(term, NavigationTerm) and column_sql(term.argument) is None:
            return False
    return True


def term_sql(clause: Clause, term: Term, variable: str) -> str:
    """A term of `is_of_row` in Spark SQL."""
    if isinstance(term, ColumnTerm | ConstantTerm):
        return escape_braces(term.sql)
    assert isinstance(term, NavigationTerm)
    column = column_sql(term.argument)
    seen = row_seen(clause, term, variable)
    assert column is not None
    assert seen is not None
    if not seen.shift:
        return escape_braces(column) if is_one_term(term.argument) else f"({escape_braces(column)})"
    return f"{'lead' if seen.shift > 0 else 'lag'}({escape_braces(column)}, {abs(seen.shift)}) OVER {{window}}"


def escape_braces(sql: str) -> str:
    """Spark SQL with its braces doubled, as `str.format` reads it."""
    return sql.replace("{", "{{").replace("}", "}}")


def write_terms(formula: Formula, replace: Callable[[Term], str]) -> str:
    """An expression with other text in the place of its terms, and its own braces doubled."""
    pieces, at = [], formula.span.start
    for term in formula.terms:
        pieces += [escape_braces(formula.text[at : term.span.start]), replace(term)]
        at = term.span.end
    return "".join([*pieces, escape_braces(formula.text[at : formula.span.end])])


def row_sql(clause: Clause, formula: Formula, variable: str) -> str:
    """A conjunct of the row alone in Spark SQL with ``{window}``."""
    return write_terms(formula, lambda term: term_sql(clause, term, variable))


def find_tests(rows: Mapping[str, str], variables: Sequence[str]) -> list[str]:
    """What a row meets that is of one of some variables: a test in Spark SQL, or none.

    Parameters
    ----------
    rows
        By variables, what their conditions say of the row alone.
    variables
        None: the row may be any.
    """
    if not variables or not all(name in rows for name in variables):
        return []
    tests = dict.fromkeys(rows[name] for name in variables)
    return [*tests] if len(tests) == 1 else [" OR ".join(f"({test})" for test in tests)]


def guard_column(tests: Sequence[str], sql: str) -> str:
    """An expression that is computed only where all tests are met, else NULL; a mere column stays as it is."""
    if not tests or sql.strip("`").isidentifier():
        return sql
    return f"CASE WHEN {' AND '.join(f'({test})' for test in tests)} THEN {sql} END"
