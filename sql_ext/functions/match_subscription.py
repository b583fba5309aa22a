"""The function `match_subscription`: the matches of a composite subscription, one for each completing event."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.spark.measure_columns import check_names
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering.kept_rows import read_kept_rows
from patternlake.sql_ext.answering.unseen import tell_unseen_key
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns
from patternlake.sql_ext.declarations.measured_rows import with_measures
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.patterns.bound_events import with_events
from patternlake.udfs.machines.request import check_request

_STORED = ("first_position", "last_position", "first_time", "last_time", "bindings")


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    snapshot = lake.snapshot(arguments["as_of"])
    reads = check_request(arguments, snapshot.of_job("predict"))
    rows, measures = reads.rows, reads.question.measures
    check_names(measures, COLUMNS)
    where = visible_rows(TABLES["subscription_matches"], rows.number, *astuple(rows))
    where.append(Condition("subscription", "=", arguments["subscription"]))
    where += between("last_time", arguments["from_time"], arguments["to_time"])
    found = read_kept_rows(lake, "subscription_matches", _STORED, where, arguments["key"])
    told = tell_unseen_key(lake, arguments["key"], reads.events, found, reads.question.group.partition)
    shown = with_events(lake, found, COLUMNS, reads.events, measures)
    return with_measures(shown, COLUMNS, measures, lasting=not told)


COLUMNS = parse_columns(
    "key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, "
    "bindings MAP<STRING, ARRAY<BIGINT>>"
)


@table_function(plan=_plan, columns=COLUMNS)
def match_subscription(
    spark: SparkSession,
    subscription: str,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Give the matches of a subscription: one row per key and completing event.

    Parameters
    ----------
    spark
        An enabled session.
    subscription
        Its name.
    key
        Only the matches of this partition.
    from_time, to_time
        Bounds, both included, of the time of the completing event; moments without a zone are in the session's.
    as_of
        Moment whose state answers.

    Returns
    -------
    DataFrame
        ``key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, bindings
        MAP<STRING, ARRAY<BIGINT>>``, then a column for each of the subscription's MEASURES, of the type that Spark
        gives it.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT last_position, bindings FROM match_subscription('chain')
    ```
    """
