"""The function `match_funnel`: how many partitions reach each step of a pattern, and where the others stop.

Events of all names are read: what came next is told, too. Each partition goes to one portion; what portions add comes
together in one place, for percentiles are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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
from patternlake.udfs.funnels.request import DEFAULT_MODE, DEFAULT_NEXT, FunnelRequest, check_request
from patternlake.udfs.funnels.result import PARTS, merge
from patternlake.udfs.funnels.task import parts_of_partitions
from patternlake.udfs.partitions import ByPartition
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.requests import PartitionReads

Work = Callable[[FunnelRequest, Mapping[str, pa.Array]], pa.Table]
"""From a request and the events of some partitions to rows."""


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    reads, told = reads_of(lake, arguments)
    gathered, dealt = gather_partitions(reads, arguments, parts_of_partitions)
    none, merging = PARTS.empty_table(), partial(merge, reads.request)
    rows = answer_in_parts(lake, gathered, dealt, merging, none, schema_of(COLUMNS))
    reached = rows.filter(pc.field("reached") > 0) if isinstance(rows, pa.Table) else rows
    told |= tell_unseen_key(lake, arguments["key"], reads.events, reached, reads.request.query.partition)
    return Answer(rows, lasting=not told)


def reads_of(lake: Lake, arguments: Mapping[str, Any]) -> tuple[PartitionReads[FunnelRequest], bool]:
    """Check a call; what is to be read for it, and whether the analyst was told of names that never occurred."""
    snapshot = lake.snapshot(arguments["as_of"])
    facts = facts_of(snapshot, arguments["stream"])
    at = facts.published.at
    last_time = None if at is None else snapshot.last_time(at.rows)
    reads = check_request(arguments, facts.published, facts.known, facts.counts, last_time)
    return reads, tell_unseen(lake, reads.request.query.asked_names, facts.counts)


def gather_partitions(
    reads: PartitionReads[FunnelRequest], arguments: Mapping[str, Any], work: Work
) -> tuple[Gather, Dealt]:
    """The events of all partitions, and how tasks work on those of some."""
    request, portions = reads.request, reads.portions
    where = event_conditions(reads.events, from_time=arguments["from_time"], to_time=arguments["to_time"])
    columns = request.query.event_columns(request.by, request.types)
    gathered = Gather("events", columns, tuple(where), request.query.partition, arguments["key"], coded=("name", KEY))
    return gathered, Dealt([ByPartition(portions)], portions, lambda _, rows: [work(request, columns_of(rows[0]))])


COLUMNS = parse_columns(
    "group STRING, step INT, operand STRING, reached BIGINT, share_of_first DOUBLE, share_of_previous DOUBLE, "
    "dropped BIGINT, seconds_p50 DOUBLE, seconds_p90 DOUBLE, "
    "next_events ARRAY<STRUCT<name: STRING, partitions: BIGINT>>"
)


@table_function(plan=_plan, columns=COLUMNS)
def match_funnel(
    spark: SparkSession,
    stream: str | DataFrame,
    pattern: str,
    within: str | None = None,
    mode: str = DEFAULT_MODE,
    by: str | None = None,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    params: Mapping[str, object] | None = None,
    next: Int32 = DEFAULT_NEXT,
    as_of: datetime | str | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Count how many partitions reach each step of a pattern, and tell where the others stop.

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
    by
        Column of events whose value, of the first step's event, groups partitions.
    key
        Only this partition.
    from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    params
        Values of the parameters that the pattern mentions.
    next
        How many of the most frequent next events are told for each step.
    as_of
        Moment whose state answers.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``group STRING, step INT, operand STRING, reached BIGINT, share_of_first DOUBLE, share_of_previous DOUBLE,
        dropped BIGINT, seconds_p50 DOUBLE, seconds_p90 DOUBLE, next_events ARRAY<STRUCT<name STRING, partitions
        BIGINT>>``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT step, reached FROM match_funnel('letters', 'A ; B ; C WITHIN 5 MIN')
    ```
    """
