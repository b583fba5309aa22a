"""The function `match_paths`: the most frequent ways of names before and after an event, or of whole partitions."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.schema.layout import KEY
from patternlake.sql_ext.answering.answers import Dealt, answer_in_parts
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.stream_facts import facts_of
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.calls.declaring import Int32, table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns, schema_of
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.arguments import given_or
from patternlake.udfs.partitions import ByPartition
from patternlake.udfs.paths.request import (
    DEFAULT_AFTER,
    DEFAULT_BEFORE,
    DEFAULT_PATHS,
    DEFAULT_TOP,
    check_request,
)
from patternlake.udfs.paths.result import PARTS, merge
from patternlake.udfs.paths.task import parts_of_partitions
from patternlake.udfs.record_batches import columns_of


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    top = given_or(arguments, "top", DEFAULT_TOP)
    facts = facts_of(lake.snapshot(arguments["as_of"]), arguments["stream"], top)
    counts = facts.counts or lake.count_names()
    reads = check_request(arguments, facts.published, facts.known, counts)
    request = reads.request
    told = request.around is not None and tell_unseen(lake, [request.around], counts)
    where = event_conditions(reads.events, from_time=arguments["from_time"], to_time=arguments["to_time"])
    columns = request.event_columns
    gathered = Gather("events", columns, tuple(where), request.partition, arguments["key"], coded=("name", KEY))

    def parts(_: int, rows: list[pa.Table]) -> list[pa.Table]:
        return [parts_of_partitions(request, columns_of(rows[0]))]

    dealt = Dealt([ByPartition(reads.portions)], reads.portions, parts)
    none, merging = PARTS.empty_table(), partial(merge, request)
    rows = answer_in_parts(lake, gathered, dealt, merging, none, schema_of(COLUMNS))
    told |= tell_unseen_key(lake, arguments["key"], reads.events, rows)
    return Answer(rows, lasting=not told)


COLUMNS = parse_columns(
    "path ARRAY<STRING>, partitions BIGINT, occurrences BIGINT, share DOUBLE, seconds_p50 DOUBLE, group STRING"
)


@table_function(plan=_plan, columns=COLUMNS)
def match_paths(
    spark: SparkSession,
    stream: str | DataFrame,
    around: str | None = None,
    before: Int32 = DEFAULT_BEFORE,
    after: Int32 = DEFAULT_AFTER,
    by: str | None = None,
    top: Int32 = DEFAULT_TOP,
    within: str | None = None,
    key: str | None = None,
    fold: bool = True,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    max_paths: int = DEFAULT_PATHS,
    as_of: datetime | str | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Find the most frequent ways of names before and after an event, or of whole partitions.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream; or a table, a row an event: in SQL ``TABLE(t) PARTITION BY user ORDER BY (at)``, in Python a
        DataFrame, of which `key` is the column that partitions it.
    around
        The name that paths lead to and from; without it each partition is one path.
    before, after
        Names before and behind it, at most, from 0 to 100.
    by
        Column of events whose value, of the event that the path is around, or of its first, groups paths.
    top
        So many names, the most frequent of the stream, are told apart; any other is ``…``.
    within
        Only names less than this away from the one that the path is around, or from the first, such as ``1 HOUR``.
    key
        Only this key.
    fold
        Whether equal names one behind another are one.
    from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    max_paths
        Rows of a group, at most.
    as_of
        Moment whose state answers.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``path ARRAY<STRING>, partitions BIGINT, occurrences BIGINT, share DOUBLE, seconds_p50 DOUBLE, group STRING``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT path, occurrences FROM match_paths('letters', around => 'C')
    ```
    """
