"""The function `match_pattern`: exact matches of a pattern on the events of a stream.

Events that can take part go to portions: each partition to one, or, without partitions, ranges of times (or of ranks,
where windows count events) that overlap by the window, so that each match lies whole in the portion it begins in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from patternlake.delta_tables.gathering.event_ranks import dealing_of
from patternlake.delta_tables.gathering.pattern_sources import events_of
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import KEY
from patternlake.delta_tables.spark.measure_columns import check_names
from patternlake.delta_tables.spark.told_by_tasks import FromTasks
from patternlake.sql_ext.answering import tasks
from patternlake.sql_ext.answering.answers import Dealt, answer, collect_apart, leave_little
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.stream_facts import StreamFacts, facts_of
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.answering.user_warnings import warn_user
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns
from patternlake.sql_ext.declarations.measured_rows import found_schema, names_found, with_measures
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.lakes.learning import from_tasks
from patternlake.sql_ext.patterns.around_anchors import around_anchors
from patternlake.sql_ext.patterns.kept_patterns import KeptPattern, whole_or_kept
from patternlake.sql_ext.patterns.spark_definitions import with_definitions
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.dealing import Dealing
from patternlake.udfs.kleene.plans.judged_conditions import judged_conditions, observed_in
from patternlake.udfs.kleene.plans.observations import Seen
from patternlake.udfs.kleene.request import KleeneReads, KleeneRequest, check_request
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.limits import MAX_MATCHES, WHOLE_EVENTS
from patternlake.udfs.published import NameCount, count_events
from patternlake.udfs.record_batches import columns_of


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    if arguments["query"] is not None:
        asked = whole_or_kept(lake, arguments)
        if isinstance(asked, KeptPattern):
            told = tell_unseen(lake, asked.pattern.asked_names, asked.facts.counts)
            measures, rows = asked.pattern.measures, asked.rows()
            check_names(measures, COLUMNS)
            told |= tell_unseen_key(lake, arguments["key"], asked.stream_events, rows, asked.pattern.partition)
            return with_measures(rows, COLUMNS, measures, lasting=not told)
        arguments = asked
    elif arguments["stream"] is None and arguments["pattern"] is None:
        raise ArgumentError(
            "neither a pattern nor a query is given; give stream and pattern, or query => the name of a kept pattern"
        )
    facts = facts_of(lake.snapshot(arguments["as_of"]), arguments["stream"])
    lake, facts = with_definitions(lake, facts, arguments)
    seen = find_seen(lake, facts, arguments)
    check = partial(
        check_request,
        arguments,
        facts.published,
        facts.known,
        facts.counts,
        factor=lake.replan_factor,
        observed=seen,
    )
    reads = check(whole=True)
    where, request = conditions(reads, arguments), reads.request
    idle = request.after_match != "next" and not request.resumes
    if idle:
        warn_user(
            f"after_match => '{request.after_match}' does nothing under policy => 'skip_till_any', which gives all "
            "matches, overlapping ones too; policy => 'skip_till_next' goes on where after_match says"
        )
    told = tell_unseen(lake, request.pattern.asked_names, facts.counts) or idle
    events = events_of(request.pattern, where, request.types, request.key, coded=("name", KEY))
    gathered = replace(events, sparse=_are_few(reads.names_read, facts.counts))
    if not request.partial:
        gathered = around_anchors(lake, request.pattern, gathered, facts.counts)

    def here(rows: list[pa.Table]) -> pa.Table | None:
        if not request.pattern.partition and rows[0].num_rows > WHOLE_EVENTS:
            return None
        work = None if seen is None else Work()
        found = pa.concat_tables(match_partitions(request, 0, columns_of(rows[0]), work))
        if facts.number is not None and work is not None:
            lake.learned.tell(facts.number, observed_in(request.pattern, work))
        return found

    def by_portions() -> Dealt:
        dealt = check().request
        observer = None
        if facts.number is not None and seen is not None and judged_conditions(dealt.pattern):
            observer = from_tasks(lake.spark.sparkContext, lake.learned.location, facts.number)
        return _deal(dealt, dealing_of(gathered, dealt, partial(collect_apart, lake)), observer)

    measures, columns = request.pattern.measures, columns_of_answer(request)
    check_names(measures, columns)
    rows = answer(lake, [gathered], here, by_portions, found_schema(columns, measures))
    told |= tell_unseen_key(lake, request.key, reads.events, rows, request.pattern.partition)
    return with_measures(rows, columns, measures, lasting=not told)


def find_seen(lake: Lake, facts: StreamFacts, arguments: Mapping[str, Any], *, at_once: bool = False) -> Seen | None:
    """What is known of the stream's conditions; None where nothing is to be known, or told.

    A question of an earlier moment is planned by what was known then: by what was published.
    """
    if facts.number is None or arguments["as_of"] is not None or not lake.learns:
        return None
    lake.learned.look(lake.reader, at_once=at_once)
    return lake.learned.seen(facts.number)


def conditions(reads: KleeneReads, arguments: Mapping[str, Any]) -> list[Condition]:
    """Which events are read."""
    return event_conditions(
        reads.events,
        names=reads.names_read,
        from_time=arguments["from_time"],
        to_time=arguments["to_time"],
    )


def _are_few(names: Collection[str] | None, counts: Sequence[NameCount]) -> bool:
    """Whether the events of some names, of all where None are given, are few among those of a stream."""
    return names is not None and leave_little(count_events(counts, names), count_events(counts))


def _deal(request: KleeneRequest, dealt: Dealing, observer: FromTasks | None) -> Dealt:
    """How Spark's tasks match events; `observer` is told what they observe."""
    portions = request.portions

    def work(portion: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
        work = None if observer is None else Work()
        yield from match_partitions(request, portion + portions.low, columns_of(dealt.ranked(rows[0])), work)
        if observer is not None and work is not None:
            observer.tell(observed_in(request.pattern, work))

    finish = None if portions.width is None else partial(in_one_order, request)
    return Dealt([dealt.deal], portions.count, work, finish)


def in_one_order(request: KleeneRequest, found: DataFrame) -> DataFrame:
    """The rows of several blocks, each in order and within the limit, numbered and limited as one answer."""
    # The rows of one block are in order; those that begin at the same event are all of one block.
    order, everything = Window.orderBy("first_position", "match_no"), Window.partitionBy()
    total = F.count(F.lit(1)).over(everything)
    more = (total > request.max_matches) | F.max("truncated").over(everything)
    rows = found.withColumns({"match_no": F.row_number().over(order).cast("bigint"), "truncated": more})
    return tasks.limit_matches(rows, request.max_matches, truncate=request.truncate).select(
        names_found(columns_of_answer(request), request.pattern.measures)
    )


def columns_of_answer(request: KleeneRequest) -> Mapping[str, str]:
    """The columns of an answer before its measures: with near misses two more."""
    return {**COLUMNS, **MISSING} if request.partial else COLUMNS


COLUMNS = parse_columns(
    "match_no BIGINT, key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, "
    "last_time TIMESTAMP, bindings MAP<STRING, ARRAY<BIGINT>>, final BOOLEAN, truncated BOOLEAN"
)
MISSING = {"missing": "STRING", "deadline": "TIMESTAMP"}
"""What rows have besides where near misses are among them."""


@table_function(plan=_plan, columns=COLUMNS)
def match_pattern(
    spark: SparkSession,
    stream: str | DataFrame | None = None,
    pattern: str | None = None,
    policy: str = "skip_till_any",
    after_match: str = "next",
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    params: Mapping[str, object] | None = None,
    plan: str | None = None,
    max_matches: int = MAX_MATCHES,
    truncate: bool = False,
    as_of: datetime | str | None = None,
    query: str | None = None,
    repetition: str = "maximal",
    partial: bool = False,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Find the exact matches of a pattern.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream; or a table, a row an event: in SQL ``TABLE(t) PARTITION BY user ORDER BY (at)``, in Python a
        DataFrame, of which `key` is the column that partitions it.
    pattern
        Text of the pattern.
    policy
        ``skip_till_any``, ``skip_till_next`` or ``strict``.
    after_match
        Under ``skip_till_next`` and ``strict``, where the search goes on behind a match: ``next`` (at the next event),
        ``past_last`` (behind its last event), ``first b`` or ``last b`` (at that event of operand b).
    key
        Only this partition; without PARTITION BY, only events of this key.
    from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    params
        Values of the parameters that the pattern mentions.
    plan
        A plan to take instead of the cheapest; rows do not depend on it.
    max_matches
        More matches than so many, of a partition or of the whole answer where there is none, are an error.
    truncate
        Give the first `max_matches` instead.
    as_of
        Moment whose state answers.
    query
        Name of a kept pattern, in the place of stream, pattern, policy, after_match, params and repetition.
    repetition
        ``maximal``: a repeated operand takes all that can be added; ``all``: every choice of at least its least number.
    partial
        Give near misses, too: what has begun and is not complete.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``match_no BIGINT, key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, last_time
        TIMESTAMP, bindings MAP<STRING, ARRAY<BIGINT>>, final BOOLEAN, truncated BOOLEAN``, with `partial` ``missing
        STRING, deadline TIMESTAMP``, then a column for each of the pattern's MEASURES, of the type that Spark gives it.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT bindings FROM match_pattern('letters', 'C ; A+ ; B WITHIN 6 MIN')
    ```
    """
