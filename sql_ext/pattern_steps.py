"""SQL text that the functions over events share: from a call to the question, with the counts of names; partitions."""

from __future__ import annotations

from collections.abc import Sequence

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.parts import shown_text
from patternlake.sql_ext.registration import Parameter
from patternlake.sql_ext.steps import named_arguments, numbered, publication
from patternlake.udfs.unseen_names import MOST_NAMES

SHOWN = shown_text("part")
"""SQL text: the values ``part`` of a partition as ``key`` shows them."""


def partition_values(columns: str) -> str:
    """SQL text: of an event `e` the values of columns, as texts; given a list of their names."""
    cast = ("time", "position", "step", "probability")
    built_in = " ".join(f"WHEN '{name}' THEN CAST(e.{name} AS STRING)" for name in cast)
    return (
        f"transform({columns}, c -> CASE c WHEN 'key' THEN e.key WHEN 'name' THEN e.name {built_in} "
        "ELSE try_element_at(e.attributes, c) END)"
    )


def question(db: Database, function: str, parameters: Sequence[Parameter], python: str, *, queries: str = "") -> str:
    """The first steps: `question`, one row `q` of what a Python function makes of arguments, publication and counts.

    Parameters
    ----------
    db
        The database.
    function, parameters
        The SQL function.
    python
        The Python function.
    queries
        A job; the Python function is also given what it published, at `as_of`, for each query over the stream.
    """
    beside, more = "", ""
    if queries:
        beside = f""",
beside AS (
  SELECT collect_list(struct(object, at.*)) AS queries
  FROM (
    SELECT object,
      max_by(struct(batch_id, base_batch, object_id, source, configuration), struct(batch_id, published_at)) AS at
    FROM {db.log("publications")}
    WHERE job = '{queries}' AND stream = {function}.stream
      AND published_at <= coalesce({function}.as_of, published_at)
    GROUP BY object
  )
)"""
        more = " CROSS JOIN beside"
    return f"""publication AS (
{publication(db, function, job="ingest", more=", unix_micros(watermark) AS watermark")}
),
published AS (SELECT struct(p, known) AS s FROM publication),
statistics AS (
  SELECT collect_list(struct(name, events, first, last, attributes)) AS counts
  FROM (
    SELECT name, sum(events) AS events, unix_micros(min(first_time)) AS first, unix_micros(max(last_time)) AS last,
      max_by(attributes, batch_id) FILTER (WHERE attributes IS NOT NULL) AS attributes
    FROM {db.log("event_statistics")} JOIN (SELECT (SELECT s FROM published) AS s)
      ON batch_id BETWEEN s.p.at.base_batch AND s.p.at.batch_id
    WHERE {numbered("stream_id", f"{function}.stream", "s.p.at.object_id")}
    GROUP BY name ORDER BY events DESC, name LIMIT {MOST_NAMES}
  )
){beside},
question AS (
  SELECT {python}({named_arguments(function, parameters)}, s.p, s.known, counts{", queries" if queries else ""}) AS q
  FROM statistics{more} CROSS JOIN (SELECT (SELECT s FROM published) AS s)
)"""
