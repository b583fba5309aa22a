"""The SQL function `match_exists`: whether a sequence occurs, for one stream or for each row of a table.

It may be called per row, with other arguments in each, so what it reads cannot be chosen by what the tops of the tree
say: it reads the stream's tops and leaves inside the bounds of the call.
"""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.registration import Parameter, SqlFunction
from patternlake.sql_ext.steps import NODE, named_arguments, numbered, publication, visible
from patternlake.udfs.sketch.segments import TOP_BUCKET

PARAMETERS = (
    Parameter("stream", "STRING"),
    Parameter("pattern", "STRING"),
    Parameter("policy", "STRING", "'skip_till_next'"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_position", "BIGINT", "NULL"),
    Parameter("to_position", "BIGINT", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)


def function(db: Database) -> SqlFunction:
    """`match_exists` over the tables of a database."""
    return SqlFunction("match_exists", PARAMETERS, "BOOLEAN", _body(db), "Whether a sequence occurs in a stream")


def _body(db: Database) -> str:
    # Only top rows list their segment's keys.
    return f"""(
SELECT CASE WHEN r.error IS NOT NULL THEN CAST(raise_error(r.error) AS BOOLEAN) ELSE r.found END
FROM (
  SELECT _patternlake_sketch_exists(text, error, hits) AS r
  FROM (
    SELECT max(q.text) AS text, max(q.error) AS error, collect_list(h) FILTER (WHERE h IS NOT NULL) AS hits
    FROM (
      SELECT q, _patternlake_sketch_nodes(q.text, segment, {NODE}, segment_keys) AS h
      FROM (
        SELECT q, n.*, t.keys AS segment_keys
        FROM (
          SELECT _patternlake_sketch_question({named_arguments("match_exists", PARAMETERS)}, p, known) AS q
          FROM (
{publication(db, "match_exists")}
          )
        ) LEFT JOIN {db.log("sketch_nodes")} n
        ON {numbered("n.stream_id", "match_exists.stream", "q.number")} AND array_contains(q.tiers, n.tier)
          AND {visible("q")}
        LEFT JOIN (
          SELECT stream_id, segment, from_batch, keys FROM {db.log("sketch_nodes")} WHERE bucket = {TOP_BUCKET}
        ) t
        ON q.by_key AND t.stream_id = n.stream_id AND t.segment = n.segment AND t.from_batch = n.from_batch
      )
    )
  )
))"""
