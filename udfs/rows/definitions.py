"""DEFINE as Spark's boolean columns and the kernel's conditions.

A condition is split where AND joins it. What looks at the row asked about and at rows by physical offset from it is a
boolean column: Spark computes it, PREV and NEXT being ``lag`` and ``lead``. The rest are trees (`conditions`), judged
while rows are matched. Of such a tree each part that looks at one row is a column again, with all of Spark's functions:
``upper(LAST(a.x))`` is the value of ``upper(x)`` in the last row of a. What joins several rows must be said by the
kernel's operators.

Spark says which type a column has, so a clause is translated in two steps: `read_definitions` tells the columns,
`Definitions.typed` makes the trees once their types are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patternlake.udfs.language.row_pattern.formulas import Formula, FormulaReader
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.row_terms import is_of_row, row_sql
from patternlake.udfs.rows.condition_trees import KernelConditions, build_conditions


@dataclass(frozen=True)
class Definitions:
    """DEFINE of a clause.

    Attributes
    ----------
    clause
        The clause.
    rows
        By variables, what is said of the row alone: a boolean in Spark SQL in which ``{window}`` stands for the window
        (``PARTITION BY … ORDER BY …`` in parentheses) and braces are doubled, so that ``str.format`` fills it in. A
        variable that is not here may be any row.
    columns
        Expressions whose Spark types `typed` needs, with ``{window}`` as well.
    matched
        By variables, the conjuncts that look at what was matched.
    """

    clause: Clause
    rows: Mapping[str, str]
    columns: tuple[str, ...]
    matched: tuple[tuple[str, tuple[Formula, ...]], ...] = field(repr=False)

    def typed(self, types: Mapping[str, str]) -> KernelConditions:
        """The conditions of the match so far.

        Parameters
        ----------
        types
            By the texts of `columns` their Spark types, such as ``decimal(10,2)``.

        Raises
        ------
        UnsupportedOperatorError
            Types do not fit each other, or cannot be compared by the kernel.
        """
        return build_conditions(self.clause, self.rows, self.matched, types)[0]


def read_definitions(clause: Clause, columns: Mapping[str, str]) -> Definitions:
    """Translate DEFINE.

    Parameters
    ----------
    clause
        The clause.
    columns
        The input's columns, by names their Spark types.

    Raises
    ------
    PredicateError
        A condition breaks a rule of the clause or names what is not there.
    UnsupportedOperatorError
        A condition joins several rows of the match by what the kernel does not have.

    Examples
    --------
    >>> from patternlake.udfs.language.row_pattern.parser import parse_clause
    >>> clause = parse_clause("PATTERN (a b+) DEFINE b AS price > PREV(price) AND price < 2 * a.price")
    >>> definitions = read_definitions(clause, {"price": "double"})
    >>> definitions.rows
    {'b': '(price > lag(price, 1) OVER {window})'}
    >>> kernel = definitions.typed(dict.fromkeys(definitions.columns, "double"))
    >>> kernel.conditions["b"].operator, [column.sql for column in kernel.columns]
    ('<', ['price', '2 * price'])
    """
    reader = FormulaReader(clause, columns)
    rows: dict[str, str] = {}
    matched: list[tuple[str, tuple[Formula, ...]]] = []
    for definition in clause.definitions:
        variable = definition.variable
        conjuncts = reader.conjuncts(definition.condition)
        alone = [one for one in conjuncts if is_of_row(clause, one.terms, variable)]
        if alone:
            rows[variable] = " AND ".join(f"({row_sql(clause, one, variable)})" for one in alone)
        if rest := tuple(one for one in conjuncts if not is_of_row(clause, one.terms, variable)):
            matched.append((variable, rest))
    _, needed = build_conditions(clause, rows, matched, None)
    return Definitions(clause, rows, needed, tuple(matched))
