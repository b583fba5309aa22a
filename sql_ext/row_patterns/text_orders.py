"""Tells whoever orders rows by texts that these do not sort as the times or numbers that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from patternlake.sql_ext.answering.user_warnings import warn_user
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, list_items
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.rows.text_order import better_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOKED_AT = 1000
"""Rows of the table, in any order."""
_CHEAP = (
    *("Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "LogicalRDD", "LogicalRelation"),
    *("HiveTableRelation", "RelationV2", "DataSourceV2Relation", "OneRowRelation", "Range"),
)
"""Plans of which a few rows cost little; those of a join or a group cost as much as all."""


def warn_of_text_order(rows: OrderedRows) -> None:
    """Warn, in the log and in Python's warnings, where the first column of ORDER BY holds texts that sort wrong.

    Parameters
    ----------
    rows
        A table and its order, whose first column is a text.
    """
    term = rows.order_by[0]
    try:
        frame = rows.frame if rows.apart is None else rows.apart()
        if not _is_cheap(frame):
            return
        texts = [row[0] for row in frame.select(term.value).limit(_LOOKED_AT).collect()]
    except (ArgumentError, PySparkException):
        return  # The question itself fails with it, or names a CTE, which only the statement knows.
    better = better_order(texts)
    if better is None:
        return
    order = "" if term.order == "ASC NULLS FIRST" else term.order
    text = (
        f"ORDER BY {term.name} sorts texts such as '{better.example}' by their first characters, so that '10' comes "
        f"before '9'. To sort what they stand for, write ORDER BY {better.call.format(term.name)} {order}"
    ).strip()
    warn_user(text)


def _is_cheap(frame: DataFrame) -> bool:
    open_plans: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while open_plans:
        plan = open_plans.pop()
        if plan.getClass().getSimpleName() not in _CHEAP:
            return False
        open_plans += list_items(plan.children())
    return True
