"""The function `cet_count`: how many complete event trends each window has, and how long they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.answering.tasks import PORTION
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, explicit, parse_columns
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.trends.trend_vertices import TrendCall, trend_call, with_ends
from patternlake.udfs.measures.pattern_measures import refuse_measures
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.task import count_trends
from patternlake.udfs.trends.text_request import is_text

_COUNTED = explicit(
    "key STRING, window BIGINT, window_start TIMESTAMP, window_end TIMESTAMP, trends STRING, trends_approx DOUBLE, "
    "longest INT, total_length STRING, final BOOLEAN"
)
"""What the tasks give."""


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    call = trend_call(lake, arguments)
    if is_text(arguments["query"]):
        refuse_measures(call.request.layout.query.measures, "cet_count")
    rows = with_ends(call, call.answer_windows(count_trends, _COUNTED)).select(list(COLUMNS))
    return Answer(rows, call.tell_unseen_key(rows))


def count_by_tasks(call: TrendCall) -> DataFrame:
    """The counts of all windows of a call, and the portion that each was counted in."""
    asked = call.request

    def work(portion: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
        counted = count_trends(asked, columns_of(rows[0]))
        yield counted.append_column(PORTION, pa.array([portion] * counted.num_rows, pa.int32()))

    return call.by_portions(work, f"{_COUNTED}, {PORTION} INT")


COLUMNS = parse_columns(
    "key STRING, window_start TIMESTAMP, window_end TIMESTAMP, trends STRING, trends_approx DOUBLE, longest INT, "
    "total_length STRING, final BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def cet_count(
    spark: SparkSession,
    query: str,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    as_of: datetime | str | None = None,
    stream: str | DataFrame | None = None,
    params: Mapping[str, object] | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Count the complete event trends of each window, without listing them.

    Parameters
    ----------
    spark
        An enabled session.
    query
        Name of a configured trend query, or the text of a query, which begins with PATTERN.
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
        ``key STRING, window_start TIMESTAMP, window_end TIMESTAMP, trends STRING, trends_approx DOUBLE, longest INT,
        total_length STRING, final BOOLEAN``; the texts are whole numbers of any size.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT window_start, trends FROM cet_count('ab')
    ```
    """
