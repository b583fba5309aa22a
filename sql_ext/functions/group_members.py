"""The function `group_members`: the most probable matches of each group of a probabilistic stream."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.answering.unseen import tell_unseen_key
from patternlake.sql_ext.calls.declaring import Int32, table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns, schema_of
from patternlake.sql_ext.functions.match_groups import answer_from_events, reads_of
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.arguments import given_or
from patternlake.udfs.groups.members import check_best, members_in
from patternlake.udfs.groups.request import DEFAULT_BEST


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    check_best(given_or(arguments, "best", DEFAULT_BEST))
    reads, told = reads_of(lake, arguments)
    rows = answer_from_events(lake, arguments, reads, members_in, schema_of(COLUMNS))
    told |= tell_unseen_key(lake, arguments["key"], reads.events, rows, reads.partition)
    return Answer(rows, lasting=not told)


COLUMNS = parse_columns(
    "key STRING, t_start BIGINT, t_first BIGINT, t_end BIGINT, match_no INT, from_step BIGINT, to_step BIGINT, "
    "items ARRAY<STRING>, positions ARRAY<ARRAY<BIGINT>>, probability DOUBLE, final BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def group_members(
    spark: SparkSession,
    stream: str,
    pattern: str,
    overlap: str = "single",
    threshold: float = 0.0,
    within: int | None = None,
    key: str | None = None,
    from_step: int | None = None,
    to_step: int | None = None,
    best: Int32 = DEFAULT_BEST,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Find the most probable matches inside each group that `match_groups` finds.

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
    best
        How many matches of each group, at most.
    as_of
        Moment whose state answers; without a zone it is in the session's.

    Returns
    -------
    DataFrame
        ``key STRING, t_start BIGINT, t_first BIGINT, t_end BIGINT, match_no INT, from_step BIGINT, to_step BIGINT,
        items ARRAY<STRING>, positions ARRAY<ARRAY<BIGINT>>, probability DOUBLE, final BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT items, probability FROM group_members('sensor', 'a, b+, c', within => 6)
    ```
    """
