"""The SQL function `cet_trends`: the complete event trends of each window, one row for each.

They are counted first. The counts tell whether there are too many, and deal the trends out to tasks in equal shares.
"""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.trend_steps import VERTEX, ctes
from patternlake.udfs.trends.sharing import SHARES

PARAMETERS = (
    Parameter("query", "STRING"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("max_trends", "BIGINT", "1000000"),
    Parameter("truncate", "BOOLEAN", "false"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "key": "STRING",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "positions": "ARRAY<BIGINT>",
    "length": "INT",
    "first_time": "TIMESTAMP",
    "last_time": "TIMESTAMP",
    "final": "BOOLEAN",
    "truncated": "BOOLEAN",
}


def function(db: Database) -> SqlFunction:
    """`cet_trends` over the tables of a database."""
    return SqlFunction("cet_trends", PARAMETERS, RETURNS, _body(db), "Complete event trends, one row for each")


def _body(db: Database) -> str:
    # Each mention of a step is planned and computed anew, so the shares are mentioned once, and carry what was refused
    # as well. They are dealt to tasks by number: by their few rows, Spark would give all shares of a portion to one.
    # The explode keeps the counts' Python function out of sight of Spark's merging of like subqueries, which fails on
    # one.
    return f"""
WITH
{ctes(db, "cet_trends", PARAMETERS)},
dealt AS (
  SELECT _patternlake_trends_shares(q.text, counted, CASE WHEN q.counted THEN coalesce(windows, array()) END) AS d
  FROM asked CROSS JOIN (
    SELECT collect_list(struct(
      portion, e.error AS error, transform(e.rows, r -> struct(r.key, r.window, r.trends)) AS cells)) AS counted
    FROM counts LATERAL VIEW explode(array(c)) AS e
  ) CROSS JOIN (SELECT collect_list(window) AS windows FROM ends)
),
listed AS (
  SELECT error, truncated, _patternlake_trends_list(text, low, high, {VERTEX}) AS t
  FROM (
    SELECT /*+ BROADCAST(shares), REPARTITION({SHARES}, portion, low) */ *
    FROM portions JOIN (SELECT s.* FROM dealt, LATERAL inline(d) AS s) AS shares USING (portion)
  )
  GROUP BY portion, low, high, truncated, error
),
chunks AS (
  SELECT q.counted AS counted, truncated, _patternlake_trends_rows(chunk) AS rows
  FROM asked LEFT JOIN listed ON true, LATERAL explode(
    CASE WHEN q.error IS NOT NULL THEN raise_error(q.error) WHEN listed.error IS NOT NULL THEN raise_error(listed.error)
      WHEN t.error IS NOT NULL THEN raise_error(t.error) ELSE t.chunks END) AS c (chunk)
)
SELECT m.key, coalesce(m.window_start, ends.first_time), coalesce(m.window_end, ends.last_time), m.positions, m.length,
  m.first_time, m.last_time, coalesce(ends.final, m.final), m.truncated
FROM (SELECT counted, truncated, r.* FROM chunks, LATERAL inline(rows) AS r) m
LEFT JOIN ends ON m.counted AND ends.window = m.window
"""
