"""The function `match_seq`: sequences on the sketch tree of a stream, or exactly on its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.snapshots import Published
from patternlake.delta_tables.state_reader import Condition, among
from patternlake.sql_ext import event_rows, tasks
from patternlake.sql_ext.lake import Lake
from patternlake.sql_ext.planned_functions import call
from patternlake.sql_ext.reading_tasks import RowsRead, place_of, rows_dealt
from patternlake.sql_ext.sketch_descent import descend, shown_in
from patternlake.sql_ext.table_function import Answer, Parameter, TableFunction, explicit
from patternlake.sql_ext.unseen import tell_unseen
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.limits import MAX_MATCHES, WHOLE_EVENTS
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.sketch.reads import SketchReads, check_request
from patternlake.udfs.sketch.request import SketchRequest, parse_request
from patternlake.udfs.sketch.result import Candidates, answer, candidates, costs_no_more, everywhere
from patternlake.udfs.sketch.task import match_exactly
from patternlake.udfs.sketch.windows import Window
from patternlake.udfs.unseen_names import MOST_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_EVENTS = 100_000
"""Events of one portion of an exact answer of every key, about; the events of a key are never divided."""
MOST_PORTIONS = 1000
_BLOCKS_AT_ONCE = 64
"""Whose events of one key a task holds."""
_ALWAYS = ("position", "time", "name")


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    snapshot = lake.snapshot(arguments["as_of"])
    published = snapshot.published("sketch", arguments["stream"] or "")
    reads = check_request(arguments, published.as_mapping(), snapshot.names("sketch"))
    request = reads.request
    counts = snapshot.name_counts(reads.number, reads.ingest_base, reads.ingest_batch, MOST_NAMES)
    told = tell_unseen(request.pattern.names, counts, names_are_tokens=request.tokens_are_names)
    return Answer(_rows(lake, arguments, published, reads, counts), lasting=not told)


def _rows(
    lake: Lake, arguments: dict[str, Any], published: Published, reads: SketchReads, counts: list[dict[str, Any]]
) -> DataFrame | pa.Table:
    request = reads.request
    if request.verify:
        wanted = everywhere(request)
        if not request.every_key and not _cheaper_than_the_sketch(lake, reads, wanted):
            wanted = candidates(request, descend(lake, reads))
        return exact_rows(lake, reads, wanted, counts)
    hits = descend(lake, reads)
    exactly = exact_instead(lake, arguments, published, reads, hits, counts)
    return answer(request, hits) if exactly is None else exact_rows(lake, *exactly, counts)


def exact_instead(
    lake: Lake,
    arguments: dict[str, Any],
    published: Published,
    reads: SketchReads,
    hits: pa.Array,
    counts: list[dict[str, Any]],
) -> tuple[SketchReads, Candidates] | None:
    """The exact question that is answered in the place of one without verify, where few events can matter.

    Parameters
    ----------
    lake
        Where the sketch is.
    arguments, published, reads
        The call, what it asks, and what was made of both.
    hits
        Array of `gathering.HITS_TYPE`.
    counts
        Events by name.
    """
    request = reads.request
    # What ageing has taken is told by the sketch alone.
    if not lake.exact_when_few or request.level != 0 or request.floors:
        return None
    exactly = check_request({**arguments, "verify": True}, published.as_mapping(), [])
    wanted = candidates(exactly.request, hits)
    about = _about(exactly.request, wanted, counts)
    few = costs_no_more(exactly.request, hits, about) and lake.small("events", _conditions(exactly, wanted))
    return (exactly, wanted) if few else None


def _conditions(reads: SketchReads, wanted: Candidates) -> list[Condition]:
    """Those on the events that an exact answer reads."""
    names = wanted.names if reads.request.tokens_are_names else None
    where = event_rows.of_stream(reads.number, reads.ingest_base, reads.ingest_batch, names=names)
    where.append(among("block", wanted.blocks))
    if reads.request.one_key:
        where.append(Condition("key", "=", reads.request.key))
    return where


def exact_rows(
    lake: Lake, reads: SketchReads, wanted: Candidates, counts: list[dict[str, Any]]
) -> DataFrame | pa.Table:
    """The answer from the events that can matter, as rows of `match_seq`."""
    request, where = reads.request, _conditions(reads, wanted)
    columns = _columns(request)
    undivided = not request.every_key and not request.one_key
    about = _about(request, wanted, counts)
    if about <= WHOLE_EVENTS and lake.small("events", where, _touched(columns, where)):
        rows = lake.reader.rows("events", columns, where)
        if not undivided or rows.num_rows <= WHOLE_EVENTS:
            return pa.concat_tables(match_exactly(request, columns_of(rows)))
    if undivided and about > WHOLE_EVENTS:
        raise ArgumentError(
            f"about {about:,} events carry names of the pattern in the parts that can hold a match, and without "
            f"PARTITION BY one task would hold them all, {WHOLE_EVENTS:,} at most; partition the pattern, narrow the "
            "question with key, positions or times, or ask without verify"
        )
    rows = _frame(lake, request, columns, where, wanted)
    if wanted.names is not None and not request.tokens_are_names:
        rows = rows.where(F.arrays_overlap("tokens", F.array(*map(F.lit, wanted.names))))
    portions = max(1, min(MOST_PORTIONS, -(-about // TASK_EVENTS))) if request.every_key else 1
    portion = F.pmod(F.hash("key"), F.lit(portions)) if request.every_key else F.lit(0)
    text = reads.text

    def task(_: int, columns: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
        yield from match_exactly(parse_request(text), columns)

    return tasks.dealt(rows.withColumn(tasks.PORTION, portion.cast("int")), portions, task, FUNCTION.schema)


def _frame(
    lake: Lake, request: SketchRequest, columns: tuple[str, ...], where: list[Condition], wanted: Candidates
) -> DataFrame:
    """Columns of the events that satisfy conditions, for Spark's tasks."""
    place = place_of(lake)
    if place is None or not request.one_key or not wanted.blocks:
        return lake.frame("events", where).select(*columns)
    # Of one key few rows are left of many files: what Spark takes over from its own scan would be the most of it.
    types = {column.name: column.type for column in TABLES["events"].columns}
    read = RowsRead("events", columns, tuple(where), "block", _BLOCKS_AT_ONCE, _unchanged)
    schema = explicit(", ".join(f"{name} {types[name]}" for name in columns))
    return rows_dealt(lake, place, read, wanted.blocks, schema)


def _unchanged(rows: pa.Table) -> pa.Table:
    return rows


def _cheaper_than_the_sketch(lake: Lake, reads: SketchReads, wanted: Candidates) -> bool:
    """Whether to read every event takes fewer bytes than to ask the sketch which of them can matter."""
    if reads.request.one_key or reads.request.window != Window():
        return False
    where = _conditions(reads, wanted)
    columns = _touched(_columns(reads.request), where)
    return lake.small("events", where, columns) and (
        lake.reader.size("events", where, columns) <= lake.reader.size("sketch_nodes", shown_in(reads))
    )


def _touched(columns: Sequence[str], where: Sequence[Condition]) -> tuple[str, ...]:
    """The columns that are read for some columns of the rows that satisfy conditions."""
    return (*columns, *(condition.column for condition in where))


def _columns(request: SketchRequest) -> tuple[str, ...]:
    """The columns of events that are read: attributes and keys are most of an event's bytes."""
    read = request.pattern.columns
    built_in = [name for name in ("step", "probability") if name in read]
    key = ["key"] if request.every_key or "key" in read else []
    tokens = [] if request.tokens_are_names else ["tokens"]
    return (*_ALWAYS, *tokens, *built_in, *key, *(("attributes",) if read - BUILT_IN.keys() else ()))


def _about(request: SketchRequest, wanted: Candidates, counts: list[dict[str, Any]]) -> int:
    """About how many events can matter, by how often each name occurs."""
    # Names tell nothing of events that have other tokens.
    names = wanted.names if request.tokens_are_names else None
    mine = request.events if names is None else sum(int(row["events"]) for row in counts if row["name"] in names)
    return int(mine * min(1.0, (len(wanted.blocks) << BLOCK_BITS) / max(1, request.events)))


FUNCTION = TableFunction(
    name="match_seq",
    parameters=(
        Parameter("stream", "STRING"),
        Parameter("pattern", "STRING"),
        Parameter("policy", "STRING", "skip_till_next"),
        Parameter("after_match", "STRING", "past_last"),
        Parameter("key", "STRING", None),
        Parameter("from_position", "BIGINT", None),
        Parameter("to_position", "BIGINT", None),
        Parameter("from_time", "TIMESTAMP", None),
        Parameter("to_time", "TIMESTAMP", None),
        Parameter("level", "INT", 0),
        Parameter("verify", "BOOLEAN", False),
        Parameter("params", "MAP<STRING, STRING>", None),
        Parameter("max_matches", "BIGINT", MAX_MATCHES),
        Parameter("truncate", "BOOLEAN", False),
        Parameter("as_of", "TIMESTAMP", None),
    ),
    columns={
        "match_no": "BIGINT",
        "key": "STRING",
        "first_position": "BIGINT",
        "last_position": "BIGINT",
        "first_time": "TIMESTAMP",
        "last_time": "TIMESTAMP",
        "steps": "ARRAY<STRUCT<operand: STRING, from_position: BIGINT, to_position: BIGINT>>",
        "level": "INT",
        "exact": "BOOLEAN",
        "fp_bound": "DOUBLE",
        "truncated": "BOOLEAN",
    },
    comment="Sequences of events on the sketch of a stream",
    plan=_plan,
)


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
    level: int = 0,
    verify: bool = False,
    params: Mapping[str, object] | None = None,
    max_matches: int = MAX_MATCHES,
    truncate: bool = False,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Find sequences of events on the sketch of a stream.

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
        ``past_last`` or ``next``.
    key
        Only events of this key.
    from_position, to_position, from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    level
        Answer at the granularity of nodes of this level.
    verify
        Make the answer exact, by reading back the events of the ranges that can hold a match.
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
        BOOLEAN, fp_bound DOUBLE, truncated BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    given = {
        "stream": stream, "pattern": pattern, "policy": policy, "after_match": after_match, "key": key,
        "from_position": from_position, "to_position": to_position, "from_time": from_time, "to_time": to_time,
        "level": level, "verify": verify, "params": params, "max_matches": max_matches, "truncate": truncate,
        "as_of": as_of,
    }  # fmt: skip
    return call(FUNCTION, spark, given)
