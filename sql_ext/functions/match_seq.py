"""The function `match_seq`: sequences of events, exactly or on the sketch tree of a stream alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.spark.measure_columns import check_names
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.calls.declaring import Int32, table_function
from patternlake.sql_ext.declarations.declaration import Answer
from patternlake.sql_ext.declarations.measured_rows import with_measures
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.sketches.exact_sequences import COLUMNS, events_that_matter, exact_rows
from patternlake.sql_ext.sketches.sketch_descent import descend
from patternlake.udfs.limits import MAX_MATCHES
from patternlake.udfs.published import NameCount
from patternlake.udfs.sequences.lent_patterns import compile_asked
from patternlake.udfs.sketch.reads import SketchReads, check_request
from patternlake.udfs.sketch.result import answer
from patternlake.udfs.unseen_names import MOST_NAMES


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    snapshot = lake.snapshot(arguments["as_of"])
    published = snapshot.published("sketch", arguments["stream"] or "")
    reads = check_request(arguments, published, snapshot.names("sketch"), compile_asked)
    request = reads.request
    check_names(request.pattern.measures, COLUMNS)
    counts = snapshot.name_counts(reads.events, MOST_NAMES)
    told = tell_unseen(lake, request.pattern.names, counts, names_are_tokens=request.tokens_are_names)
    rows = _rows(lake, reads, counts)
    told |= tell_unseen_key(lake, request.key if request.one_key else None, reads.events, rows)
    return with_measures(rows, COLUMNS, request.pattern.measures, lasting=not told)


def _rows(lake: Lake, reads: SketchReads, counts: Sequence[NameCount]) -> DataFrame | pa.Table:
    request = reads.request
    if request.verify:
        return exact_rows(lake, reads, events_that_matter(lake, reads, counts), counts)
    return answer(request, descend(lake, reads))


@table_function(plan=_plan, columns=COLUMNS)
def match_seq(
    spark: SparkSession,
    stream: str,
    pattern: str,
    policy: str = "skip_till_next",
    after_match: str = "past_last",
    key: str | None = None,
    from_position: int | None = None,
    to_position: int | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    level: Int32 = 0,
    verify: bool = True,
    params: Mapping[str, object] | None = None,
    max_matches: int = MAX_MATCHES,
    truncate: bool = False,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Find sequences of events in a stream, exactly or on its sketch.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream.
    pattern
        Text of the pattern.
    policy
        ``strict``, ``skip_till_next`` or ``skip_till_any``.
    after_match
        ``past_last`` or ``next``; of a pattern beyond what the sketch engine matches also ``first b`` or ``last b``.
    key
        Only events of this key.
    from_position, to_position, from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    level
        Without `verify`: answer at the granularity of nodes of this level.
    verify
        Read back the events of the ranges that can hold a match, so that the answer is that of a full scan. False: ask
        the sketch alone, whose rows may be false and miss matches inside one leaf.
    params
        Values of the parameters that the pattern mentions.
    max_matches
        More matches than so many, of a partition or of the whole answer where there is none, are an error.
    truncate
        Give the first `max_matches` instead.
    as_of
        Moment whose state answers.

    Returns
    -------
    DataFrame
        ``match_no BIGINT, key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, last_time
        TIMESTAMP, steps ARRAY<STRUCT<operand STRING, from_position BIGINT, to_position BIGINT>>, level INT, exact
        BOOLEAN, fp_bound DOUBLE, truncated BOOLEAN``, then a column for each of the pattern's MEASURES, of the type
        that Spark gives it.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT first_position, last_position FROM match_seq('letters', 'A ; B')
    ```
    """
