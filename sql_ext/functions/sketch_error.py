"""The function `sketch_error`: how wrong the answer can be that `match_seq` gives with ``verify => false``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from patternlake.sql_ext.answering.unseen import tell_unseen
from patternlake.sql_ext.calls.declaring import Int32, table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.sketches.sketch_descent import claims_to_expect, nodes_below, tops_hit
from patternlake.udfs.limits import MAX_MATCHES
from patternlake.udfs.sketch.answer_error import answer_error
from patternlake.udfs.sketch.reads import check_request
from patternlake.udfs.unseen_names import MOST_NAMES, unseen_names


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    snapshot = lake.snapshot(arguments["as_of"])
    published = snapshot.published("sketch", arguments["stream"] or "")
    reads = check_request({**arguments, "verify": False}, published, snapshot.names("sketch"))
    request = reads.request
    counts = snapshot.name_counts(reads.events, MOST_NAMES)
    told = tell_unseen(lake, request.pattern.names, counts, names_are_tokens=request.tokens_are_names)
    # Segments in which no match can end count as well: one more claim might end it there.
    hits = nodes_below(lake, reads, tops_hit(lake, reads), every="top" in request.tiers())
    known = [row.name for row in counts]
    unseen = unseen_names(request.pattern.names, known, names_are_tokens=request.tokens_are_names)
    rows = answer_error(request, hits, claims_to_expect(lake, reads), {name for name, _ in unseen})
    return Answer(rows, lasting=not told)


COLUMNS = parse_columns("rows BIGINT, expected_false DOUBLE, any_false_bound DOUBLE, truncated BOOLEAN")


@table_function(plan=_plan, columns=COLUMNS)
def sketch_error(
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
    max_matches: int = MAX_MATCHES,
    truncate: bool = False,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Say how wrong the answer of `match_seq` with ``verify => false`` can be.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream.
    pattern
        Text of the pattern; DEFINE and WHERE, which need verify, have no place here: such an answer has no error.
    policy
        ``strict``, ``skip_till_next`` or ``skip_till_any``.
    after_match
        ``past_last`` or ``next``.
    key
        Only events of this key.
    from_position, to_position, from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    level
        Of the answer at the granularity of nodes of this level.
    max_matches
        More matches than so many, of a partition or of the whole answer where there is none, are an error.
    truncate
        Of the first `max_matches` instead.
    as_of
        Moment whose state answers.

    Returns
    -------
    DataFrame
        One row: ``rows BIGINT, expected_false DOUBLE, any_false_bound DOUBLE, truncated BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT rows, expected_false FROM sketch_error('letters', 'A ; B', level => 1)
    ```
    """
