"""The function `match_recognize`: row patterns over any table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patternlake.sql_ext.declarations.declaration import Parameter, RowsFunction
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, read_terms
from patternlake.sql_ext.row_patterns.planning import plan_row_pattern
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def match_recognize(
    frame: DataFrame,
    clause: str,
    partition_by: str | Column | Sequence[str | Column] | None = None,
    order_by: str | Column | Sequence[str | Column] | None = None,
) -> DataFrame:
    """Find row patterns in a table, as MATCH_RECOGNIZE of the SQL standard does.

    Parameters
    ----------
    frame
        The table.
    clause
        What stands between the parentheses of MATCH_RECOGNIZE, with PARTITION BY and ORDER BY or without.
    partition_by, order_by
        Columns, expressions of SQL (``"ts DESC"``) or Columns (``F.desc("ts")``), where the clause does not say them.
        Without a partition all rows are one; without an order it is any.

    Returns
    -------
    DataFrame
        ONE ROW PER MATCH: the columns of the partition, then the measures; ALL ROWS PER MATCH: the columns of the
        partition and of the order, the measures, and all other columns of the table.

    Raises
    ------
    PatternLakeError
        What is wrong with the clause, the columns or a setting. What is wrong with a match (AFTER MATCH SKIP leads
        nowhere) or with a partition (it is too large) is told when rows are asked for.

    Notes
    -----
    ISO/IEC 9075-2:2016, feature R010. Departures: names are compared whatever their case, as Spark does, and
    expressions are Spark SQL.

    Examples
    --------
    >>> match_recognize(
    ...     spark.table("ticks"),
    ...     "MEASURES LAST(up.price) AS price PATTERN (start down+ up+) "
    ...     "DEFINE down AS price < PREV(price), up AS price > PREV(price)",
    ...     partition_by="symbol",
    ...     order_by="ts",
    ... ).show()
    """
    partition = read_terms(frame, partition_by, "partition_by")
    return _plan(OrderedRows(frame, partition, read_terms(frame, order_by, "order_by")), clause)


def _plan(rows: OrderedRows, clause: Any) -> DataFrame:
    if not isinstance(clause, str):
        shown = "NULL" if clause is None else repr(clause)
        raise ArgumentError(f"match_recognize: clause is a text, not {shown}; give what comes from MEASURES on")
    return plan_row_pattern(rows, clause)


HELP = """
    Arguments:
      * input - the rows: TABLE(ticks) PARTITION BY symbol ORDER BY (ts)
      * clause - the clause from MEASURES on

    Examples:
      > SELECT * FROM match_recognize(
          TABLE(ticks) PARTITION BY symbol ORDER BY (day),
          'MEASURES count(*) AS days PATTERN (start down+ up+)
           DEFINE down AS price < PREV(price), up AS price > PREV(price)');
"""
"""As of `RowsFunction`."""
DECLARATION = RowsFunction(
    "match_recognize",
    (Parameter("input", "TABLE"), Parameter("clause", "STRING")),
    "Find row patterns in a table, as MATCH_RECOGNIZE of the SQL standard does",
    lambda rows, arguments: _plan(rows, arguments["clause"]),
    HELP,
)
