"""The SQL function `match_seq`: sequences on the sketch tree of a stream, or exactly on its events."""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext import exact_steps
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.steps import NODE, named_arguments, numbered, publication, visible
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.exact_parts import WHOLE_EVENTS
from patternlake.udfs.sketch.hits import MAX_MATCHES
from patternlake.udfs.sketch.segments import TOP_BUCKET

PARAMETERS = (
    Parameter("stream", "STRING"),
    Parameter("pattern", "STRING"),
    Parameter("policy", "STRING", "'skip_till_next'"),
    Parameter("after_match", "STRING", "'past_last'"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_position", "BIGINT", "NULL"),
    Parameter("to_position", "BIGINT", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("level", "INT", "0"),
    Parameter("verify", "BOOLEAN", "false"),
    Parameter("params", "MAP<STRING, STRING>", "NULL"),
    Parameter("max_matches", "BIGINT", str(MAX_MATCHES)),
    Parameter("truncate", "BOOLEAN", "false"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

PARTS = 32
"""Tasks that the keys of an exact answer are spread over."""

_TOO_LARGE = (
    "about %s events carry names of the pattern in the parts that can hold a match, and without PARTITION BY one task "
    f"would hold them all, {WHOLE_EVENTS:,} at most; partition the pattern, narrow the question with key, positions or "
    "times, or ask without verify"
)

RETURNS = {
    "match_no": "BIGINT",
    "key": "STRING",
    "first_position": "BIGINT",
    "last_position": "BIGINT",
    "first_time": "TIMESTAMP",
    "last_time": "TIMESTAMP",
    "steps": "ARRAY<STRUCT<operand: STRING, from_position: BIGINT, to_position: BIGINT>>",
    "level": "INT",
    "exact": "BOOLEAN",
    "fp_bound": "DOUBLE",
    "truncated": "BOOLEAN",
}


def function(db: Database) -> SqlFunction:
    """`match_seq` over the tables of a database."""
    return SqlFunction("match_seq", PARAMETERS, RETURNS, _body(db), "Sequences of events on the sketch of a stream")


def _body(db: Database) -> str:
    # What a scalar subquery says can choose the partitions that are read, and equal ones are evaluated once; but each
    # mention is planned anew, with all that it mentions in turn. So every step mentions the one before it once where
    # partitions are chosen, and once as a joined row. Arguments of Python functions must be columns, never subqueries.
    # The question's text goes to each portion of the events once, in a row of its own: beside every event it would be
    # most of what is handed over.
    # Attributes and keys are most of an event's bytes: where the pattern needs neither, they are not handed over.
    # Where `verify` is a literal, what puts the portions of an exact answer together folds away with its windows.
    # Rows travel in chunks: Spark holds a value several times, so that all rows as one would be too large for it.
    # No WHERE on what a Python function gave: it would be evaluated for the filter, and again for the rows that pass.
    # What one task would take in is judged by the counts of names, before it is read.
    nodes, events, statistics = db.log("sketch_nodes"), db.log("events"), db.log("event_statistics")
    mine = numbered("stream_id", "match_seq.stream", "q.number")
    verify = "coalesce(match_seq.verify, false)"
    too_large = f"coalesce((SELECT n FROM taken), 0) > {WHOLE_EVENTS}"
    return f"""
WITH
publication AS (
{publication(db, "match_seq")}
),
question AS (
  SELECT _patternlake_sketch_question({named_arguments("match_seq", PARAMETERS)}, p, known) AS q FROM publication
),
asked AS (SELECT (SELECT q FROM question) AS q),
tops AS (
  SELECT struct(
    array_union(
      collect_set(CASE WHEN h.hit AND array_contains(tiers, 'body') THEN CAST(segment DIV part_segments AS INT) END),
      collect_set(CASE WHEN h.hit AND array_contains(tiers, 'top') THEN {TOP_BUCKET} END)) AS buckets,
    map_from_entries(collect_list(CASE WHEN h.hit THEN struct(segment, h.keys AS keys) END)) AS keys
  ) AS t
  FROM (
    SELECT segment, q.tiers AS tiers, q.part_segments AS part_segments,
      _patternlake_sketch_top(q.text, {NODE}) AS h
    FROM {nodes} JOIN asked ON {visible("q")}
    WHERE {mine} AND bucket = {TOP_BUCKET}
  )
),
found AS (
  SELECT collect_list(h) AS hits
  FROM (
    SELECT _patternlake_sketch_nodes(q.text, segment, {NODE},
      CASE WHEN q.by_key THEN try_element_at(t.keys, segment) END) AS h
    FROM {nodes} JOIN asked ON {visible("q")}
      LEFT JOIN (SELECT (SELECT t FROM tops) AS t) ON q.by_key
    WHERE {mine} AND array_contains((SELECT t FROM tops).buckets, bucket)
  )
),
candidates AS (
  SELECT _patternlake_sketch_candidates(q.text, hits) AS c FROM found CROSS JOIN asked
),
taken AS (
  SELECT sum(s.events) FILTER (WHERE c.any_name OR array_contains(c.names, s.name))
    * least(1, max(size(c.blocks)) * {1 << BLOCK_BITS} / sum(s.events)) AS n
  FROM {statistics} s JOIN asked ON s.batch_id BETWEEN q.ingest_base AND q.ingest_batch
    JOIN (SELECT (SELECT c FROM candidates) AS c)
  WHERE {verify} AND NOT q.by_key AND match_seq.key IS NULL AND {mine}
),
exact AS (
  SELECT _patternlake_sketch_exact(text, position, time, step, key, name, probability, tokens, attributes) AS part
  FROM (
    SELECT CASE WHEN q.by_key THEN pmod(hash(e.key), {PARTS}) ELSE 0 END AS portion, CAST(NULL AS STRING) AS text,
      e.position, e.time, e.step, CASE WHEN q.conditional OR q.by_key THEN e.key END AS key, e.name, e.probability,
      coalesce(e.tokens, array(e.name)) AS tokens,
      CASE WHEN q.conditional THEN e.attributes ELSE map() END AS attributes
    FROM {events} e
      JOIN asked ON e.batch_id BETWEEN q.ingest_base AND q.ingest_batch
      JOIN (SELECT (SELECT c FROM candidates) AS c)
        ON c.any_name OR array_contains(c.names, e.name) OR arrays_overlap(c.names, e.tokens)
    WHERE {verify} AND {mine} AND array_contains((SELECT c FROM candidates).blocks, block) AND NOT {too_large}
      AND (match_seq.key IS NULL OR e.key = match_seq.key)
    UNION ALL
    SELECT explode(CASE WHEN q.by_key THEN sequence(0, {PARTS - 1}) ELSE array(0) END), q.text,
      NULL, NULL, NULL, NULL, NULL, NULL, array(), map()
    FROM asked WHERE {verify} AND q.text IS NOT NULL
  )
  GROUP BY portion
),
answer AS (
  SELECT r.chunks AS chunks, CAST(NULL AS BIGINT) AS total, r.error AS error
  FROM (SELECT _patternlake_sketch_answer(q.text, q.error, hits) AS r FROM asked CROSS JOIN found WHERE NOT {verify})
  UNION ALL
  SELECT chunks, total,
    coalesce(error, _patternlake_sketch_refusal(q.text, total)) AS error
  FROM (
    SELECT {exact_steps.portions(verify)} FROM exact
  ) CROSS JOIN asked WHERE {verify}
  UNION ALL
  SELECT CAST(NULL AS ARRAY<BINARY>), CAST(NULL AS BIGINT), q.error FROM asked
  WHERE {verify} AND q.error IS NOT NULL
  UNION ALL
  SELECT CAST(NULL AS ARRAY<BINARY>), CAST(NULL AS BIGINT), format_string('{_TOO_LARGE}', format_number(n, 0))
  FROM taken WHERE n > {WHOLE_EVENTS}
),
{exact_steps.rows("match_seq", RETURNS, engine="sketch", several=verify)}"""
