"""The SQL function `match_groups`: groups of overlapping matches in a probabilistic stream.

From what the job `groups` keeps, where it keeps the query and is up to date; else from the events.
"""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.pattern_steps import SHOWN, partition_values, question
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.steps import numbered

PARAMETERS = (
    Parameter("stream", "STRING"),
    Parameter("pattern", "STRING"),
    Parameter("overlap", "STRING", "'single'"),
    Parameter("threshold", "DOUBLE", "0"),
    Parameter("within", "BIGINT", "NULL"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_step", "BIGINT", "NULL"),
    Parameter("to_step", "BIGINT", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "key": "STRING",
    "t_start": "BIGINT",
    "t_first": "BIGINT",
    "t_end": "BIGINT",
    "probability": "DOUBLE",
    "final": "BOOLEAN",
}


def function(db: Database) -> SqlFunction:
    """`match_groups` over the tables of a database."""
    return SqlFunction("match_groups", PARAMETERS, RETURNS, _body(db), "Groups of matches in a probabilistic stream")


def _body(db: Database) -> str:
    # All events of a key are handed on, those whose names the pattern lacks as well: they say that a step is complete.
    f = "match_groups"
    conditional = f"({f}.pattern RLIKE '(?i)DEFINE|WHERE|PARTITION')"
    part = f"CASE WHEN {f}.pattern RLIKE '(?i)PARTITION' THEN {partition_values('q.partition')} ELSE array(e.key) END"
    return f"""
WITH
{question(db, f, PARAMETERS, "_patternlake_groups_question", queries="groups")},
asked AS (SELECT (SELECT q FROM question) AS q),
mine AS (
  SELECT e.position, e.time, e.step, e.key, e.name, e.probability, q.portions,
    CASE WHEN {conditional} THEN e.attributes ELSE map() END AS attributes, {part} AS part
  FROM {db.log("events")} e JOIN (SELECT q FROM asked WHERE q.text IS NOT NULL) ON e.batch_id BETWEEN q.base AND q.batch
  WHERE {numbered("e.stream_id", f"{f}.stream", "q.number")}
),
dealt AS (
  SELECT CAST(pmod(hash(part), portions) AS INT) AS portion, CAST(NULL AS STRING) AS text, part, position, time, step,
    key, name, probability, attributes
  FROM mine WHERE {f}.key IS NULL OR {f}.key = {SHOWN}
  UNION ALL
  SELECT explode(sequence(0, q.portions - 1)), q.text, array(), NULL, NULL, NULL, NULL, NULL, NULL, map()
  FROM asked WHERE q.text IS NOT NULL
),
exact AS (
  SELECT _patternlake_groups_part(text, part, position, time, step, key, name, probability, attributes) AS part
  FROM dealt GROUP BY portion
),
answer AS (
  SELECT part.error AS error, part.chunks AS chunks FROM exact
  UNION ALL
  SELECT q.error, CAST(NULL AS ARRAY<BINARY>) FROM asked WHERE q.error IS NOT NULL
)
SELECT m.* FROM (
  SELECT _patternlake_groups_rows(chunk) AS rows
  FROM answer, LATERAL explode(CASE WHEN error IS NOT NULL THEN raise_error(error) ELSE chunks END) AS c (chunk)
), LATERAL inline(rows) AS m
UNION ALL
SELECT * FROM (
  SELECT {SHOWN} AS key, g.t_start, g.t_first, g.t_end, g.probability, g.final
  FROM {db.log("group_matches")} g JOIN (SELECT q FROM asked WHERE q.query IS NOT NULL)
    ON g.group_id = q.query_number AND g.stream_id = q.number AND g.from_batch BETWEEN q.query_base AND q.query_batch
      AND (g.to_batch IS NULL OR g.to_batch > q.query_batch)
)
WHERE ({f}.key IS NULL OR key = {f}.key)
  AND t_end BETWEEN coalesce({f}.from_step, t_end) AND coalesce({f}.to_step, t_end)
"""
