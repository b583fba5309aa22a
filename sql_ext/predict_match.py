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
  SELECT collect_list(struct(m.left_state AS state, m.age, m.following_state AS next_state, m.following_age AS next_age,
    m.moves)) FILTER (WHERE m.left_state IS NOT NULL) AS moves
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
  SELECT i.part, s.state_id, s.q.operands AS names, i.joins, i.operands, coalesce(i.age, 0) AS age,
    map_from_arrays(i.operands, i.positions) AS position_of,
    map_from_arrays(i.operands, arrays_zip(i.times, i.positions)) AS event_of
  FROM {db.log("machine_instances")} i JOIN states s ON i.state_id = s.state_id AND {mine("i", "s.q")}
),
ordered AS (
  SELECT *,
    transform(sequence(0, size(names) - 1), o -> struct(event_of[o] IS NULL AS last, event_of[o] AS at)) AS place
  FROM live
),
smallest AS (
  SELECT part, state_id, sort_array(collect_set(age)) AS ages, min(place) AS place,
    min_by(struct(names, position_of), place) AS shown
  FROM ordered GROUP BY part, joins, operands, state_id
),
foreseen AS (
  SELECT m.state_id, m.ages, s.state, s.trained_on, s.q.threshold AS threshold,
    _patternlake_machines_row(m.ages, s.ages, s.hazards) AS f
  FROM (SELECT DISTINCT state_id, ages FROM smallest) m JOIN states s ON m.state_id = s.state_id
),
forecast AS (
  SELECT m.part, m.place, m.shown, f.state, f.trained_on, f.threshold, f.f
  FROM smallest m JOIN foreseen f ON m.state_id = f.state_id AND m.ages = f.ages
),
ranked AS (
  SELECT part, place, shown, state, trained_on, threshold, f.alpha AS alpha, f.probability AS probability,
    row_number() OVER (PARTITION BY part ORDER BY f.probability DESC, place) = 1 AS is_best FROM forecast
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
