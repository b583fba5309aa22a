"""The SQL function `predict_match`: how likely live partial matches of a subscription are to be completed."""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.parts import shown_text
from patternlake.sql_ext.machine_steps import asked, mine, refused
from patternlake.sql_ext.registration import Parameter, SqlFunction

PARAMETERS = (
    Parameter("subscription", "STRING"),
    Parameter("lookahead", "INT", "NULL"),
    Parameter("threshold", "DOUBLE", "NULL"),
    Parameter("key", "STRING", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "key": "STRING",
    "state": "STRING",
    "bindings": "MAP<STRING, ARRAY<BIGINT>>",
    "alpha": "DOUBLE",
    "probability": "DOUBLE",
    "trained_on": "BIGINT",
    "is_best": "BOOLEAN",
}


def function(db: Database) -> SqlFunction:
    """`predict_match` over the tables of a database."""
    return SqlFunction("predict_match", PARAMETERS, RETURNS, _body(db), "Forecasts for live partial matches")


def _body(db: Database) -> str:
    # Of each partition, join values and set of bound operands the smallest assignment is shown: operands in text order
    # by (time, position), untaken ones last.
    f = "predict_match"
    return f"""
WITH
{asked(db, f, PARAMETERS)},
moves AS (
  SELECT collect_list(struct(m.machine, m.state, m.next_state, m.moves)) AS moves
  FROM {db.log("machine_transitions")} m JOIN (SELECT q FROM asked WHERE q.error IS NULL) ON {mine("m")}
  WHERE m.subscription = {f}.subscription
),
states AS (
  SELECT q, s.* FROM (
    SELECT q, _patternlake_machines_forecast(q.text, moves) AS forecasts FROM asked CROSS JOIN moves
    WHERE q.error IS NULL
  ), LATERAL inline(forecasts) AS s
),
live AS (
  SELECT i.part, s.state, s.alpha, s.probability, s.trained_on, s.q.operands AS names, s.q.threshold AS threshold,
    i.joins, i.operands, map_from_arrays(i.operands, i.positions) AS position_of,
    map_from_arrays(i.operands, arrays_zip(i.times, i.positions)) AS event_of
  FROM {db.log("machine_instances")} i JOIN states s ON i.state_id = s.state_id AND {mine("i", "s.q")}
),
ordered AS (
  SELECT *,
    transform(sequence(0, size(names) - 1), o -> struct(event_of[o] IS NULL AS last, event_of[o] AS at)) AS place
  FROM live
),
smallest AS (
  SELECT part, state, any_value(alpha) AS alpha, any_value(probability) AS probability,
    any_value(trained_on) AS trained_on, any_value(threshold) AS threshold, min(place) AS place,
    min_by(struct(names, position_of), place) AS shown
  FROM ordered GROUP BY part, joins, operands, state
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY part ORDER BY probability DESC, place) = 1 AS is_best FROM smallest
),
found AS (
  SELECT {shown_text("part")} AS key, state,
    map_from_arrays(shown.names, transform(sequence(0, size(shown.names) - 1), o ->
      CASE WHEN shown.position_of[o] IS NULL THEN CAST(array() AS ARRAY<BIGINT>) ELSE array(shown.position_of[o]) END)
    ) AS bindings,
    alpha, probability, trained_on, is_best
  FROM ranked WHERE probability > threshold
)
SELECT * FROM found WHERE {f}.key IS NULL OR key = {f}.key
UNION ALL
{refused(len(RETURNS))}
"""
