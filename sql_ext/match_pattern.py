"""The SQL function `match_pattern`: exact matches of a pattern on the events of a stream.

Events that can take part go to portions: each partition to one, or, without partitions, ranges of times (or of ranks,
where windows count events) that overlap by the window, so that each match lies whole in the portion it begins in.
"""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext import exact_steps
from patternlake.sql_ext.pattern_steps import SHOWN, partition_values, question
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.steps import stream_id
from patternlake.sql_ext.trend_steps import floored

PARAMETERS = (
    Parameter("stream", "STRING"),
    Parameter("pattern", "STRING"),
    Parameter("policy", "STRING", "'skip_till_any'"),
    Parameter("after_match", "STRING", "'next'"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("params", "MAP<STRING, STRING>", "NULL"),
    Parameter("plan", "STRING", "NULL"),
    Parameter("max_matches", "BIGINT", "1000000"),
    Parameter("truncate", "BOOLEAN", "false"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "match_no": "BIGINT",
    "key": "STRING",
    "first_position": "BIGINT",
    "last_position": "BIGINT",
    "first_time": "TIMESTAMP",
    "last_time": "TIMESTAMP",
    "bindings": "MAP<STRING, ARRAY<BIGINT>>",
    "final": "BOOLEAN",
    "truncated": "BOOLEAN",
}

_NO_EVENT = "array(), NULL, NULL, NULL, NULL, NULL, NULL, map(), NULL"


def function(db: Database) -> SqlFunction:
    """`match_pattern` over the tables of a database."""
    return SqlFunction("match_pattern", PARAMETERS, RETURNS, _body(db), "Exact matches of a pattern in a stream")


def _body(db: Database) -> str:
    # What the text of a pattern cannot need folds away with its columns and windows where the pattern is a literal.
    f = "match_pattern"
    by_key = f"{f}.pattern RLIKE '(?i)PARTITION'"
    conditional = f"({f}.pattern RLIKE '(?i)DEFINE|WHERE|PARTITION')"
    ranked = f"({f}.pattern RLIKE '(?i)EVENTS|UNIT' OR {f}.policy = 'strict')"
    several = f"({f}.pattern RLIKE '(?i)PARTITION|WITHIN')"
    part = partition_values("q.partition")
    span = "CASE WHEN q.counted THEN r.rank ELSE unix_micros(r.time) END"
    first, last = (floored(f"({span} {sign} coalesce(q.within, 0))", "q.width") for sign in "-+")
    return f"""
WITH
{question(db, f, PARAMETERS, "_patternlake_kleene_question")},
asked AS (SELECT (SELECT q FROM question) AS q),
mine AS (
  SELECT e.position, e.time, e.step, e.name, e.probability, e.key,
    CASE WHEN {conditional} THEN e.attributes ELSE map() END AS attributes,
    CASE WHEN {by_key} THEN {part} ELSE array() END AS part,
    q.names IS NULL OR array_contains(q.names, e.name) AS taking, unix_micros(e.time) DIV q.bucket AS bucket
  FROM {db.log("events")} e JOIN asked ON e.batch_id BETWEEN q.base AND q.batch
  WHERE e.stream_id = {stream_id(f)}
    AND ({f}.from_time IS NULL OR e.time >= {f}.from_time) AND ({f}.to_time IS NULL OR e.time <= {f}.to_time)
),
chosen AS (
  SELECT * FROM mine
  WHERE {f}.key IS NULL OR {f}.key = CASE WHEN {by_key} THEN {SHOWN} ELSE key END
),
before AS (
  SELECT map_from_entries(collect_list(struct(bucket, before))) AS b
  FROM (SELECT bucket, sum(events) OVER (ORDER BY bucket) - events AS before
    FROM (SELECT bucket, count(*) AS events FROM chosen WHERE {ranked} AND NOT {by_key} GROUP BY bucket))
),
ranked AS (
  SELECT *, CASE
    WHEN {ranked} AND {by_key} THEN row_number() OVER (PARTITION BY part ORDER BY time, position) - 1L
    WHEN {ranked} THEN row_number() OVER (PARTITION BY bucket ORDER BY time, position) - 1L
      + try_element_at((SELECT b FROM before), bucket) END AS rank
  FROM chosen
),
dealt AS (
  SELECT explode(CASE WHEN {by_key} THEN array(pmod(hash(part), q.high + 1)) WHEN q.width IS NULL THEN array(0L)
      ELSE sequence(greatest(q.low, least(q.high, {first})), least(q.high, greatest(q.low, {last}))) END) AS portion,
    CAST(NULL AS STRING) AS text, r.part, r.position, r.time, r.step,
    CASE WHEN {conditional} THEN r.key END AS key, r.name, r.probability, r.attributes, r.rank
  FROM (SELECT * FROM ranked WHERE taking) r CROSS JOIN asked
  UNION ALL
  SELECT explode(sequence(q.low, q.high)), q.text, {_NO_EVENT} FROM asked WHERE q.text IS NOT NULL
),
exact AS (
  SELECT _patternlake_kleene_part(text, portion, part, position, time, step, key, name, probability, attributes, rank)
    AS part
  FROM dealt GROUP BY portion
),
answer AS (
  {exact_steps.answer(engine="kleene", several=several)}
),
{exact_steps.rows(f, RETURNS, engine="kleene", several=several, order="key NULLS FIRST, places, match_no")}"""
