"""The SQL function `match_subscription`: the matches of a composite subscription, one for each completing event."""

from __future__ import annotations

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.parts import shown_text
from patternlake.sql_ext.machine_steps import asked, mine, refused
from patternlake.sql_ext.registration import Parameter, SqlFunction

PARAMETERS = (
    Parameter("subscription", "STRING"),
    Parameter("key", "STRING", "NULL"),
    Parameter("from_time", "TIMESTAMP", "NULL"),
    Parameter("to_time", "TIMESTAMP", "NULL"),
    Parameter("as_of", "TIMESTAMP", "NULL"),
)

RETURNS = {
    "key": "STRING",
    "first_position": "BIGINT",
    "last_position": "BIGINT",
    "first_time": "TIMESTAMP",
    "last_time": "TIMESTAMP",
    "bindings": "MAP<STRING, ARRAY<BIGINT>>",
}


def function(db: Database) -> SqlFunction:
    """`match_subscription` over the tables of a database."""
    return SqlFunction("match_subscription", PARAMETERS, RETURNS, _body(db), "Matches of a composite subscription")


def _body(db: Database) -> str:
    f = "match_subscription"
    return f"""
WITH
{asked(db, f, PARAMETERS)},
found AS (
  SELECT {shown_text("m.part")} AS key, m.first_position, m.last_position, m.first_time, m.last_time, m.bindings
  FROM {db.log("subscription_matches")} m JOIN (SELECT q FROM asked WHERE q.error IS NULL) ON {mine("m")}
  WHERE m.subscription = {f}.subscription
    AND m.last_time BETWEEN coalesce({f}.from_time, m.last_time) AND coalesce({f}.to_time, m.last_time)
)
SELECT * FROM found WHERE {f}.key IS NULL OR key = {f}.key
UNION ALL
{refused(len(RETURNS))}
"""
