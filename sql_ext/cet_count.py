"""The SQL function `cet_count`: how many complete event trends each window has, and how long they are."""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.trend_steps import ctes

PARAMETERS = (
    Parameter("query", "STRING"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "key": "STRING",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "trends": "STRING",
    "trends_approx": "DOUBLE",
    "longest": "INT",
    "total_length": "STRING",
    "final": "BOOLEAN",
}


def function(db: Database) -> SqlFunction:
    """`cet_count` over the tables of a database."""
    return SqlFunction("cet_count", PARAMETERS, RETURNS, _body(db), "Numbers of complete event trends by window")


def _body(db: Database) -> str:
    return f"""
WITH
{ctes(db, "cet_count", PARAMETERS)}
SELECT m.key, coalesce(m.window_start, ends.first_time), coalesce(m.window_end, ends.last_time),
  m.trends, m.trends_approx, m.longest, m.total_length, coalesce(ends.final, m.final)
FROM (
  SELECT q.counted AS counted, r.*
  FROM asked LEFT JOIN counts ON true, LATERAL inline(
    CASE WHEN q.error IS NOT NULL THEN raise_error(q.error)
      WHEN c.error IS NOT NULL THEN raise_error(c.error) ELSE c.rows END) AS r
) m LEFT JOIN ends ON m.counted AND ends.window = m.window
WHERE NOT m.counted OR ends.window IS NOT NULL
"""
