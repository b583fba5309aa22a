"""The function `cet_aggregate`: sums, extremes and averages of attributes over the complete event trends of windows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, explicit, parse_columns
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.trends.trend_vertices import trend_call, with_ends
from patternlake.udfs.measures.pattern_measures import refuse_measures
from patternlake.udfs.trends.aggregates import (
    aggregate_trends,
    attributes_of,
    check_types,
    parse_aggregates,
)
from patternlake.udfs.trends.text_request import is_text

_AGGREGATED = explicit(
    "key STRING, window BIGINT, window_start TIMESTAMP, window_end TIMESTAMP, aggregate STRING, value STRING, "
    "value_approx DOUBLE, final BOOLEAN"
)
"""What the tasks give."""


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    aggregates = parse_aggregates(arguments["aggregate"])
    call = trend_call(lake, arguments, attributes_of(aggregates) or None)
    if is_text(arguments["query"]):
        refuse_measures(call.request.layout.query.measures, "cet_aggregate")
    check_types(aggregates, call.request.layout.types)
    rows = call.answer_windows(lambda asked, vertices: aggregate_trends(asked, aggregates, vertices), _AGGREGATED)
    rows = with_ends(call, rows).select(list(COLUMNS))
    return Answer(rows, call.tell_unseen_key(rows))


COLUMNS = parse_columns(
    "key STRING, window_start TIMESTAMP, window_end TIMESTAMP, aggregate STRING, value STRING, value_approx DOUBLE, "
    "final BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def cet_aggregate(
    spark: SparkSession,
    query: str,
    aggregate: str,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    as_of: datetime | str | None = None,
    stream: str | DataFrame | None = None,
    params: Mapping[str, object] | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Aggregate attributes over the complete event trends of each window, without listing them.

    Parameters
    ----------
    spark
        An enabled session.
    query
        Name of a configured trend query, or the text of a query, which begins with PATTERN.
    aggregate
        ``COUNT(*)``, or COUNT, SUM, MIN, MAX or AVG of an attribute; several with commas.
    key
        Only this partition; of a query without PARTITION BY, only events of this key.
    from_time, to_time
        Only windows that lie wholly inside; moments without a zone are in the session's.
    as_of
        Moment whose state answers.
    stream, params
        Of a text alone: the stream that it asks, or a table, a row an event (in SQL ``TABLE(t) PARTITION BY user ORDER
        BY (at)``, in Python a DataFrame, of which `key` is the column that partitions it); and the values of the
        parameters that it mentions.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``key STRING, window_start TIMESTAMP, window_end TIMESTAMP, aggregate STRING, value STRING, value_approx
        DOUBLE, final BOOLEAN``; one row for each partition, window and aggregate.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT window_start, value FROM cet_aggregate('ab', 'SUM(x)')
    ```
    """
