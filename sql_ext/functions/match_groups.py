"""The function `match_groups`: groups of overlapping matches in a probabilistic stream.

From what the job `groups` keeps, where it keeps the query and is up to date; else from the events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.state_reader import between
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering.answers import Dealt, answer
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.kept_rows import read_kept_rows
from patternlake.sql_ext.answering.stream_facts import facts_of
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns, schema_of
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.groups.request import GroupsReads, GroupsRequest, check_request
from patternlake.udfs.groups.task import groups_of_partitions
from patternlake.udfs.partitions import ByPartition
from patternlake.udfs.published import PublishedBatch
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.requests import BatchRange

Work = Callable[[GroupsRequest, Mapping[str, pa.Array]], pa.Table]
"""From a request and the events of some partitions to rows of an answer."""
_KEPT = ("t_start", "t_first", "t_end", "probability", "final")
_EVENT = ("position", "time", "step", "key", "name", "probability")


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    reads, told = reads_of(lake, arguments)
    if reads.kept is None:
        rows = answer_from_events(lake, arguments, reads, groups_of_partitions, schema_of(COLUMNS))
    else:
        rows = _read_kept(lake, arguments, reads.events.number, reads.kept)
    told |= tell_unseen_key(lake, arguments["key"], reads.events, rows, reads.partition)
    return Answer(rows, lasting=not told)


def reads_of(lake: Lake, arguments: Mapping[str, Any]) -> tuple[GroupsReads, bool]:
    """Check a call; what is to be read for it, and whether the analyst was told of names that never occurred."""
    snapshot = lake.snapshot(arguments["as_of"])
    facts = facts_of(snapshot, arguments["stream"])
    configured = _find_configured(snapshot, facts.number)
    reads = check_request(arguments, facts.published, facts.known, facts.counts, configured)
    return reads, tell_unseen(lake, reads.asked_names, facts.counts)


def _find_configured(snapshot: Snapshot, number: int | None) -> list[PublishedBatch]:
    """What `groups` published at the moment for queries over the stream of a number."""
    found = [one.at for one in snapshot.of_job("groups").values() if one.at is not None]
    return [at for at in found if at.stream_id == number]


def _read_kept(lake: Lake, arguments: Mapping[str, Any], stream: int, kept: BatchRange) -> DataFrame | pa.Table:
    where = visible_rows(TABLES["group_matches"], stream, *astuple(kept))
    where += between("t_end", arguments["from_step"], arguments["to_step"])
    return read_kept_rows(lake, "group_matches", _KEPT, where, arguments["key"])


def answer_from_events(
    lake: Lake, arguments: Mapping[str, Any], reads: GroupsReads, work: Work, schema: str
) -> DataFrame | pa.Table:
    """What some work makes of the events of all partitions, here or by Spark's tasks."""
    # All events of a key are handed on, those whose names the pattern lacks as well: they say that a step is complete.
    request, columns, portions, key = reads.request, reads.partition, reads.portions, arguments["key"]
    attributes = attribute_columns(request.groups.query.columns | set(columns), request.types)
    where = event_conditions(reads.events)
    gathered = Gather("events", (*_EVENT, *attributes), tuple(where), tuple(columns), key)

    def found(rows: list[pa.Table]) -> pa.Table:
        return work(request, columns_of(rows[0]))

    def by_portions() -> Dealt:
        return Dealt([ByPartition(portions)], portions, lambda _, rows: [found(rows)])

    return answer(lake, [gathered], found, by_portions, schema)


COLUMNS = parse_columns("key STRING, t_start BIGINT, t_first BIGINT, t_end BIGINT, probability DOUBLE, final BOOLEAN")


@table_function(plan=_plan, columns=COLUMNS)
def match_groups(
    spark: SparkSession,
    stream: str,
    pattern: str,
    overlap: str = "single",
    threshold: float = 0.0,
    within: int | None = None,
    key: str | None = None,
    from_step: int | None = None,
    to_step: int | None = None,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Find where a pattern may have happened among events that have probabilities.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of a probabilistic stream.
    pattern
        Text of the pattern.
    overlap
        ``single`` or ``complete``.
    threshold
        Least probability of a match, in [0, 1].
    within
        Greatest number of steps of a match; or WITHIN in the pattern.
    key
        Only this partition.
    from_step, to_step
        Bounds of ``t_end``, both included.
    as_of
        Moment whose state answers; without a zone it is in the session's.

    Returns
    -------
    DataFrame
        ``key STRING, t_start BIGINT, t_first BIGINT, t_end BIGINT, probability DOUBLE, final BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT t_start, t_end, probability FROM match_groups('sensor', 'a, b+, c', within => 6)
    ```
    """
