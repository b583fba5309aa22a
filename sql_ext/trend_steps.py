"""SQL text that `cet_count` and `cet_trends` share: from a call to vertices, dealt out to portions, and to counts.

A portion is what one call of a Python function answers: some partitions and runs of windows (blocks). A vertex goes
to the portion of every block that one of its windows lies in.
"""

from __future__ import annotations

from collections.abc import Sequence

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.parts import shown_text
from patternlake.delta_tables.trend_vertices import EVENT, PANE
from patternlake.sql_ext.registration import Parameter
from patternlake.sql_ext.steps import named_arguments, numbered, publication, visible

VERTEX = "block, pane, part, position, time, term, left, right, along, carried"
"""The columns of a vertex as the kernels read them."""

NO_PORTION = -1
"""A portion without vertices, for the reason why there is no answer."""

_NO_VERTEX = "NULL, NULL, array(), NULL, NULL, NULL, array(), array(), array(), array()"
"""The same in a row that carries the text of the question to a portion: beside every vertex it would be most of what
is handed over."""


def ctes(db: Database, function: str, parameters: Sequence[Parameter]) -> str:
    """The first steps: asked (q), portions of vertices, counts (portion, c) and ends (of windows that count events)."""
    published = ", unix_micros(watermark) AS watermark, source_to"
    mine = numbered("trend_id", f"{function}.query", "q.number")
    first, last = windows_of("v.pane", "q")
    return f"""publication AS (
{publication(db, function, job="trends", argument="query", more=published)}
),
question AS (
  SELECT _patternlake_trends_question({named_arguments(function, parameters)}, p, known) AS q FROM publication
),
asked AS (SELECT (SELECT q FROM question) AS q),
vertices AS (
  SELECT CAST(pmod(hash(part, block), parts) AS INT) AS portion, {VERTEX}
  FROM (
    SELECT q.parts, explode(sequence({floored(first, "q.block")}, {floored(last, "q.block")})) AS block,
      v.pane, v.part, v.position, v.time, v.term, v.left, v.right, v.along, v.carried
    FROM {db.log("trend_vertices")} v JOIN asked
      ON {visible("q")} AND v.pane BETWEEN q.low_pane AND q.high_pane
    WHERE {mine} AND v.kind = '{EVENT}' AND ({function}.key IS NULL OR {function}.key =
      CASE WHEN NOT q.by_part THEN v.key ELSE {shown_text("v.part")} END)
  )
),
portions AS (
  SELECT CAST(NULL AS STRING) AS text, * FROM vertices
  UNION ALL SELECT q.text, explode(sequence({NO_PORTION}, q.parts - 1)), {_NO_VERTEX} FROM asked
    WHERE q.text IS NOT NULL
),
counts AS (
  SELECT portion, _patternlake_trends_count(text, {VERTEX}) AS c FROM portions GROUP BY portion
),
ends AS (
  SELECT window, min_by(time, position) AS first_time, max_by(last_time, position) AS last_time,
    coalesce((window * any_value(step) + any_value(length)) * any_value(pane_width) <= any_value(last_position)
      AND unix_micros(max(greatest_time)) < any_value(watermark), false) AS final
  FROM (
    SELECT explode(sequence({first}, {last})) AS window, v.time, v.position, v.last_time, v.greatest_time,
      q.step, q.length, q.pane AS pane_width, q.last_position, q.watermark
    FROM {db.log("trend_vertices")} v JOIN asked ON {visible("q")}
    WHERE {mine} AND v.kind = '{PANE}'
  )
  GROUP BY window
  HAVING first_time >= coalesce({function}.from_time, first_time)
    AND last_time <= coalesce({function}.to_time, last_time)
)"""


def windows_of(pane: str, question: str) -> tuple[str, str]:
    """Numbers of the first and the last window that a pane lies in."""
    step = f"{question}.step"
    return f"{floored(f'({pane} - {question}.length)', step)} + 1", floored(pane, step)


def floored(number: str, by: str) -> str:
    """A whole number divided and rounded down, below zero as well."""
    return f"(({number}) - pmod({number}, {by})) DIV {by}"
