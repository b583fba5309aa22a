"""The function `match_funnel_rows`: how far each partition gets in a funnel, and by which events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.answering.answers import answer
from patternlake.sql_ext.answering.unseen import tell_unseen_key
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns, schema_of
from patternlake.sql_ext.functions.match_funnel import gather_partitions, reads_of
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.funnels.request import DEFAULT_MODE
from patternlake.udfs.funnels.task import rows_of_partitions
from patternlake.udfs.record_batches import columns_of


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    reads, told = reads_of(lake, arguments)
    gathered, dealt = gather_partitions(reads, arguments, rows_of_partitions)

    def here(rows: list[pa.Table]) -> pa.Table:
        return rows_of_partitions(reads.request, columns_of(rows[0]))

    rows = answer(lake, [gathered], here, lambda: dealt, schema_of(COLUMNS))
    told |= tell_unseen_key(lake, arguments["key"], reads.events, rows, reads.request.query.partition)
    return Answer(rows, lasting=not told)


COLUMNS = parse_columns(
    "key STRING, reached INT, positions ARRAY<BIGINT>, first_time TIMESTAMP, last_time TIMESTAMP, "
    "waited_seconds DOUBLE, next_position BIGINT, next_name STRING, final BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def match_funnel_rows(
    spark: SparkSession,
    stream: str | DataFrame,
    pattern: str,
    within: str | None = None,
    mode: str = DEFAULT_MODE,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    params: Mapping[str, object] | None = None,
    as_of: datetime | str | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Tell for each partition how far it gets in a funnel, by which events, and what came next.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream; or a table, a row an event: in SQL ``TABLE(t) PARTITION BY user ORDER BY (at)``, in Python a
        DataFrame, of which `key` is the column that partitions it.
    pattern
        Steps with ``;`` between them, 64 at most: names, alternatives, DEFINE conditions.
    within
        Window from the first step's event, such as ``1 HOUR``; or WITHIN in the pattern.
    mode
        What may come between two steps: ``any_order_between``, ``strict_order``, ``steps_in_order``, ``once`` or
        ``strict``.
    key
        Only this partition.
    from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    params
        Values of the parameters that the pattern mentions.
    as_of
        Moment whose state answers.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``key STRING, reached INT, positions ARRAY<BIGINT>, first_time TIMESTAMP, last_time TIMESTAMP, waited_seconds
        DOUBLE, next_position BIGINT, next_name STRING, final BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT reached, positions FROM match_funnel_rows('letters', 'A ; B ; C WITHIN 5 MIN')
    ```
    """
