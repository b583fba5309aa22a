"""SQL text that `match_subscription` and `predict_match` share: from a call to what was published of the stream."""

from __future__ import annotations

from collections.abc import Sequence

from patternlake.delta_tables.database import Database
from patternlake.sql_ext.registration import Parameter
from patternlake.sql_ext.steps import named_arguments, visible


def asked(db: Database, function: str, parameters: Sequence[Parameter]) -> str:
    """The steps up to ``asked``: one row, the question q."""
    return f"""standing AS (
  SELECT object,
    max_by(struct(batch_id, base_batch, object_id, configuration, state), struct(batch_id, published_at))
      FILTER (WHERE asked) AS at,
    unix_micros(min(published_at)) AS first, unix_micros(max(horizon)) AS horizon
  FROM (
    SELECT *, published_at <= coalesce({function}.as_of, published_at) AS asked
    FROM {db.log("publications")} WHERE job = 'predict'
  ) GROUP BY object
),
question AS (
  SELECT _patternlake_machines_question({named_arguments(function, parameters)}, published) AS q
  FROM (SELECT collect_list(struct(object, at, first, horizon)) AS published FROM standing)
),
asked AS (SELECT (SELECT q FROM question) AS q)"""


def mine(rows: str, question: str = "q") -> str:
    """The condition on rows of a table of the job that a question shows."""
    return f"{rows}.stream_id = {question}.number AND {visible(question)}"


def refused(columns: int) -> str:
    """A query without rows, of so many columns, that raises the error of a question."""
    nothing = ", ".join(["NULL"] * columns)
    return f"""SELECT {nothing} FROM asked, LATERAL explode(
  CASE WHEN q.error IS NOT NULL THEN raise_error(q.error) ELSE CAST(array() AS ARRAY<INT>) END) AS e (x)"""
