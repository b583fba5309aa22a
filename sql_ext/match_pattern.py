"""The SQL function `match_pattern`: exact matches of a pattern on the events of a stream.

Events that can take part go to portions: each partition to one, or, without partitions, ranges of times (or of ranks,
where windows count events) that overlap by the window, so that each match lies whole in the portion it begins in.
"""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext import exact_steps
from patternlake.sql_ext.pattern_steps import SHOWN, partition_values, question
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.steps import numbered
from patternlake.sql_ext.trend_steps import floored
from patternlake.udfs.sketch.hits import MAX_MATCHES

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
    Parameter("max_matches", "BIGINT", str(MAX_MATCHES)),
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

_EVENT = "part, position, time, step, key, name, probability, attributes"
_NO_EVENT = "array(), NULL, NULL, NULL, NULL, NULL, NULL, map()"


def function(db: Database) -> SqlFunction:
    """`match_pattern` over the tables of a database."""
    return SqlFunction("match_pattern", PARAMETERS, RETURNS, _body(db), "Exact matches of a pattern in a stream")


def _body(db: Database) -> str:
    # What the pattern does not need is not handed over, and where ranks don't matter no event is sorted: the flags of
    # the question leave such a branch without rows.
    # Each mention of the question is planned anew, so an error goes the way of its text.
    # All events of a partition go to its portion where ranks matter: to rank them there costs less than here.
    f = "match_pattern"
    part = partition_values("q.partition")
    span = "CASE WHEN q.counted THEN r.rank ELSE unix_micros(r.time) END"
    first, last = (floored(f"({span} {sign} coalesce(q.within, 0))", "q.width") for sign in "-+")
    read = ", ".join(f"CASE WHEN conditional THEN {name} END AS {name}" for name in ("step", "key", "probability"))
    return f"""
WITH
{question(db, f, PARAMETERS, "_patternlake_kleene_question")},
asked AS (SELECT (SELECT q FROM question) AS q),
told AS (SELECT explode(sequence(q.low, q.high)) AS portion, q.text FROM asked),
mine AS (
  SELECT e.position, e.time, e.step, e.name, e.probability, e.key, e.attributes, q.high, q.by_key, q.conditional,
    q.ranked, CASE WHEN q.by_key THEN {part} ELSE array() END AS part,
    q.names IS NULL OR array_contains(q.names, e.name) AS taking, unix_micros(e.time) DIV q.bucket AS bucket
  FROM {db.log("events")} e JOIN asked ON e.batch_id BETWEEN q.base AND q.batch
  WHERE {numbered("e.stream_id", f"{f}.stream", "q.number")}
    AND ({f}.from_time IS NULL OR e.time >= {f}.from_time) AND ({f}.to_time IS NULL OR e.time <= {f}.to_time)
),
chosen AS (
  SELECT part, position, time, name, {read}, CASE WHEN conditional THEN attributes ELSE map() END AS attributes,
    taking, bucket, by_key, ranked, CASE WHEN by_key THEN pmod(hash(part), high + 1) END AS portion
  FROM mine
  WHERE {f}.key IS NULL OR {f}.key = CASE WHEN by_key THEN {SHOWN} ELSE key END
),
before AS (
  SELECT map_from_entries(collect_list(struct(bucket, before))) AS b
  FROM (SELECT bucket, sum(events) OVER (ORDER BY bucket) - events AS before
    FROM (SELECT bucket, count(*) AS events FROM chosen WHERE ranked AND NOT by_key GROUP BY bucket))
),
whole AS (
  SELECT {_EVENT}, taking, CAST(NULL AS BIGINT) AS rank FROM chosen WHERE NOT ranked AND NOT by_key
  UNION ALL
  SELECT {_EVENT}, taking, row_number() OVER (PARTITION BY bucket ORDER BY time, position) - 1L
    + try_element_at((SELECT b FROM before), bucket) AS rank
  FROM chosen WHERE ranked AND NOT by_key
),
dealt AS (
  SELECT portion, CAST(NULL AS STRING) AS text, {_EVENT}, CAST(NULL AS BIGINT) AS rank
  FROM chosen WHERE by_key AND (ranked OR taking)
  UNION ALL
  SELECT explode(CASE WHEN q.width IS NULL THEN array(0L)
      ELSE sequence(greatest(q.low, least(q.high, {first})), least(q.high, greatest(q.low, {last}))) END),
    NULL, {_EVENT}, rank
  FROM (SELECT * FROM whole WHERE taking) r CROSS JOIN asked
  UNION ALL
  SELECT portion, text, {_NO_EVENT}, NULL FROM told
),
exact AS (
  SELECT _patternlake_kleene_part(text, portion, part, position, time, step, key, name, probability, attributes, rank)
    AS part
  FROM dealt GROUP BY portion
),
answer AS (
  SELECT chunks, total, coalesce(error, _patternlake_kleene_refusal(total, most, truncate)) AS error
  FROM (
    SELECT {exact_steps.portions("true")}, {exact_steps.limit(f)} AS most, coalesce({f}.truncate, false) AS truncate
    FROM exact
  )
),
{exact_steps.rows(f, RETURNS, engine="kleene", several="true")}"""
