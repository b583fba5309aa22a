"""The function `explain_pattern`: the plan that `match_pattern` would take, with what it is expected to cost.

With ``analyze => true`` the events are matched along it as `match_pattern` would, and what each node gave and took
stands beside; matches are counted and let go.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.gathering.event_ranks import dealing_of
from patternlake.delta_tables.gathering.pattern_sources import events_of
from patternlake.delta_tables.schema.layout import KEY
from patternlake.sql_ext.answering.answers import Dealt, answer, collect_apart
from patternlake.sql_ext.answering.stream_facts import StreamFacts, facts_of
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns
from patternlake.sql_ext.functions.match_pattern import (
    conditions,
    find_seen,
)
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.kleene.plans.judged_conditions import observed_in
from patternlake.udfs.kleene.plans.observations import Seen
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.request import check_request, explain
from patternlake.udfs.kleene.task import observe_partitions
from patternlake.udfs.kleene.work import Work, work_of
from patternlake.udfs.limits import WHOLE_EVENTS
from patternlake.udfs.record_batches import columns_of

_ROWS = pa.schema(
    [
        ("line", pa.int32()),
        ("plan", pa.string()),
        ("cost", pa.float64()),
        ("rows", pa.float64()),
        ("actual_rows", pa.float64()),
        ("actual_seconds", pa.float64()),
    ]
)
_WORK = "key STRING, rows STRING, seconds DOUBLE"


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    facts = facts_of(lake.snapshot(arguments["as_of"]), arguments["stream"])
    given = {name: value for name, value in arguments.items() if name != "analyze"}
    # What is wrong with the call is said before anything is matched.
    seen = find_seen(lake, facts, given, at_once=True)
    # Looked up once, so that what is expected is not what the run itself, or one beside it, tells.
    seen = None if seen is None else cache(seen)
    lines = explain(given, facts.published, facts.known, facts.counts, observed=seen)
    if arguments["analyze"]:
        work = _work(lake, {**given, "key": None, "from_time": None, "to_time": None}, facts, seen)
        lines = explain(given, facts.published, facts.known, facts.counts, work, seen)
    rows = [
        {
            "line": number,
            "plan": line.text,
            "cost": line.cost,
            "rows": line.rows,
            "actual_rows": None if line.done is None else _double(line.done.rows),
            "actual_seconds": None if line.done is None else line.done.seconds,
        }
        for number, line in enumerate(lines, start=1)
    ]
    # What `maintain` tells of attributes changes costs, and so does what runs observe; neither is a publication.
    return Answer(pa.Table.from_pylist(rows, _ROWS), lasting=False)


def _double(count: int) -> float:
    """A count, which may have any number of digits; infinity where no double holds it."""
    return float(count) if count <= sys.float_info.max else math.inf


def _work(lake: Lake, arguments: dict[str, Any], facts: StreamFacts, seen: Seen | None) -> Work:
    """What matching does, here or in Spark's tasks, as `match_pattern` would choose; what it observes is told."""
    work, pattern = _match_observed(lake, arguments, facts, seen)
    if seen is not None and facts.number is not None:
        lake.learned.tell(facts.number, observed_in(pattern, work))
    return work


def _match_observed(
    lake: Lake, arguments: dict[str, Any], facts: StreamFacts, seen: Seen | None
) -> tuple[Work, KleenePattern]:
    check = partial(check_request, arguments, facts.published, facts.known, facts.counts, observed=seen)
    reads = check(whole=True)
    request, apart = reads.request, lake.apart()
    pattern = request.pattern
    gathered = events_of(pattern, conditions(reads, arguments), request.types, request.key, coded=("name", KEY))

    def here(rows: list[pa.Table]) -> pa.Table | None:
        if not pattern.partition and rows[0].num_rows > WHOLE_EVENTS:
            return None
        return pa.concat_tables(observe_partitions(request, 0, columns_of(rows[0])))

    def by_portions() -> Dealt:
        dealt = check().request
        dealer = dealing_of(gathered, dealt, partial(collect_apart, lake))

        def work(portion: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
            yield from observe_partitions(dealt, portion + dealt.portions.low, columns_of(dealer.ranked(rows[0])))

        return Dealt([dealer.deal], dealt.portions.count, work)

    found = answer(apart, [gathered], here, by_portions, _WORK)
    return work_of(iter([found if isinstance(found, pa.Table) else found.toArrow()])), pattern


COLUMNS = parse_columns("line INT, plan STRING, cost DOUBLE, rows DOUBLE, actual_rows DOUBLE, actual_seconds DOUBLE")


@table_function(plan=_plan, columns=COLUMNS)
def explain_pattern(
    spark: SparkSession,
    stream: str,
    pattern: str,
    params: Mapping[str, object] | None = None,
    plan: str | None = None,
    as_of: datetime | str | None = None,
    analyze: bool = False,
) -> DataFrame:
    """Show the plan that `match_pattern` would take.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream.
    pattern
        Text of the pattern.
    params
        Values of the parameters that it mentions.
    plan
        A plan to take instead of the cheapest.
    as_of
        Moment whose state answers; without a zone it is in the session's.
    analyze
        Match the pattern along the plan, and say what each node gave and took.

    Returns
    -------
    DataFrame
        ``line INT, plan STRING, cost DOUBLE, rows DOUBLE, actual_rows DOUBLE, actual_seconds DOUBLE``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT plan, cost FROM explain_pattern('letters', 'A ; B+ ; D WITHIN 5 MIN')
    ```
    """
