"""The SQL function `explain_pattern`: the plan that `match_pattern` would take, with what it is expected to cost."""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.pattern_steps import question
from patternlake.sql_ext.registration import Parameter, SqlFunction

PARAMETERS = (
    Parameter("stream", "STRING"),
    Parameter("pattern", "STRING"),
    Parameter("params", "MAP<STRING, STRING>", "NULL"),
    Parameter("plan", "STRING", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {"line": "INT", "plan": "STRING", "cost": "DOUBLE", "rows": "DOUBLE"}


def function(db: Database) -> SqlFunction:
    """`explain_pattern` over the tables of a database."""
    return SqlFunction("explain_pattern", PARAMETERS, RETURNS, _body(db), "The plan of a pattern, and its costs")


def _body(db: Database) -> str:
    return f"""
WITH
{question(db, "explain_pattern", PARAMETERS, "_patternlake_kleene_explain")}
SELECT m.*
FROM question, LATERAL inline(CASE WHEN q.error IS NOT NULL THEN raise_error(q.error) ELSE q.rows END) AS m
"""
