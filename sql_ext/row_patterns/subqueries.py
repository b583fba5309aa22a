"""Subqueries of a clause as columns of its input, for Spark to compute before the match."""

from __future__ import annotations

from dataclasses import replace

from patternlake.delta_tables.spark.spark_types import project
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, find_constants
from patternlake.udfs.language.row_pattern.subqueries import COLUMN
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.own_names import check_names


def place_subqueries(rows: OrderedRows, clause: Clause) -> tuple[OrderedRows, Clause]:
    """Add a column for each subquery, unless the statement that the clause was a part of did.

    Parameters
    ----------
    rows
        The input.
    clause
        The clause.

    Returns
    -------
    (OrderedRows, Clause)
        The input with the columns, and the clause that knows which of them are the same in all rows.

    Raises
    ------
    PredicateError
        Spark does not take a subquery.
    ArgumentError
        The input has columns that are called so, and are none.
    """
    given = [name for name in rows.frame.columns if name.startswith(COLUMN)]
    wanted = [one.column for one in clause.subqueries]
    if given != wanted:
        check_names(given)
    if not wanted:
        return rows, clause
    constants = rows.constants
    if not given:
        columns = [(one.sql, one.column, one.span) for one in clause.subqueries]
        frame = project(rows.frame, columns, clause.text, every=True)
        constants = find_constants(frame._jdf.queryExecution().analyzed())
        rows = replace(rows, frame=frame)
    known = tuple(replace(one, is_constant=one.column in constants) for one in clause.subqueries)
    return rows, replace(clause, subqueries=known)
