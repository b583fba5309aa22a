"""`match_pattern` of a kept pattern: the final matches that the job wrote, and those that its next batch would look at.

What the job has not read yet is matched as well, so the answer is that of the text itself, at any moment. It reads
kept rows, and events as far back as WITHIN reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from patternlake.delta_tables import documents
from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.chosen_attributes import chosen_attributes, with_chosen_attributes
from patternlake.delta_tables.overlapping_blocks import blocks
from patternlake.delta_tables.partition_values import frame_of_key, partition_column, shown_text
from patternlake.delta_tables.snapshots import earliest_event
from patternlake.delta_tables.state_reader import Condition, between
from patternlake.delta_tables.visibility import first_batch, visible_rows
from patternlake.sql_ext.answering import tasks
from patternlake.sql_ext.answering.declaration import explicit
from patternlake.sql_ext.answering.tasks import PORTION
from patternlake.sql_ext.event_conditions import event_conditions
from patternlake.sql_ext.lake import Lake
from patternlake.sql_ext.stream_facts import StreamFacts, facts_of
from patternlake.udfs.kleene.batch import open_rows
from patternlake.udfs.kleene.kept_request import answers, carried_at, check_query, ingested_at, pattern_at, whole_call
from patternlake.udfs.kleene.merged import merged
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.request import KleeneReads, KleeneRequest, check_request
from patternlake.udfs.kleene.result import MATCHES, ROWS
from patternlake.udfs.kleene.state import Carried, kept_as_rows
from patternlake.udfs.limits import WHOLE_EVENTS, too_many
from patternlake.udfs.partitions import PART, are_texts, partition_values, rows_of_key
from patternlake.udfs.published import PublishedBatch
from patternlake.udfs.record_batches import columns_of, in_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEPT = tuple(name for name in MATCHES.names if name not in (PART, "final"))
_SCHEMA = explicit(
    "part ARRAY<STRING>, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, "
    "positions ARRAY<BIGINT>, operands ARRAY<INT>, bindings MAP<STRING, ARRAY<BIGINT>>, final BOOLEAN, "
    "values MAP<STRING, STRING>"
)
"""The columns of `MATCHES` as DDL."""


def whole_or_kept(lake: Lake, arguments: dict[str, Any]) -> dict[str, Any] | KeptPattern:
    """The arguments of a call for a text that asks for the same, or, where what is kept answers it, that.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    snapshot = lake.snapshot(arguments["as_of"])
    at = check_query(arguments, snapshot.of_job("patterns"))
    call = whole_call(arguments, at)
    facts = facts_of(snapshot, call["stream"])
    pattern = pattern_at(at)
    stream = facts.published.at
    if stream is None:
        return call
    earliest = earliest_event(lake.reader, stream.object_id, ingested_at(at), stream.batch_id)
    if not answers(arguments, at, pattern, stream, earliest):
        return call
    return KeptPattern(lake, call, at, facts, pattern)


@dataclass(frozen=True)
class KeptPattern:
    """A kept pattern that is asked.

    Attributes
    ----------
    lake, arguments
        The lake, and the call for the text.
    at
        What was published of the pattern.
    facts
        What is known of its stream.
    pattern
        The pattern.
    """

    lake: Lake
    arguments: dict[str, Any]
    at: PublishedBatch
    facts: StreamFacts
    pattern: KleenePattern

    def rows(self) -> DataFrame | pa.Table:
        """The answer."""
        sizes = [("pattern_matches", self._matches_shown), ("events", self._events_read)]
        if kept_as_rows(self.pattern):
            sizes.append(("pattern_state", self._state_shown))
        if are_texts(self.pattern.partition) and all(self.lake.small(*each) for each in sizes):
            known = self._known_here()
            given = self._given_here(known)
            if self.pattern.partition or len(given[PART]) <= WHOLE_EVENTS:
                request = self._whole.request
                known = known.append_column("final", pa.repeat(pa.scalar(True), known.num_rows))
                return merged(
                    request,
                    pa.concat_tables([known.select(MATCHES.names).cast(MATCHES), *open_rows(request, 0, given)]),
                )
        return self._by_tasks()

    @cached_property
    def _carried(self) -> Carried:
        return carried_at(self.at)

    @cached_property
    def _whole(self) -> KleeneReads:
        """What is read where the work is not dealt out."""
        return self._reads(whole=True)

    def _reads(self, *, whole: bool) -> KleeneReads:
        facts = self.facts
        return check_request(
            self.arguments, facts.published, facts.known, facts.counts, whole=whole, carried=self._carried
        )

    @cached_property
    def _matches_shown(self) -> list[Condition]:
        return visible_rows(TABLES["pattern_matches"], self.at.stream_id, *astuple(self.at.rows))

    @cached_property
    def _state_shown(self) -> list[Condition]:
        table, at = TABLES["pattern_state"], self.at
        first = first_batch(table, documents.from_text(at.source), at.base_batch)
        return visible_rows(table, at.stream_id, at.object_id, first, at.batch_id)

    @cached_property
    def _events_read(self) -> list[Condition]:
        reads = self._whole
        where = event_conditions(reads.events, names=reads.names_read, from_time=self._carried.from_time)
        if kept_as_rows(self.pattern):
            where += between("position", (self._carried.before.position or 0) + 1, None)
        return where

    @property
    def _resumes(self) -> bool:
        return self._whole.request.resumes and not kept_as_rows(self.pattern)

    @property
    def _attributes(self) -> list[str]:
        """The attributes that kept events have."""
        return self.pattern.attributes(self._whole.request.types)

    def _known_here(self) -> pa.Table:
        """The rows that the job wrote, of the partition that is asked for."""
        rows = self.lake.reader.rows("pattern_matches", (PART, *_KEPT), self._matches_shown)
        return self._of_key(rows)

    def _given_here(self, known: pa.Table) -> dict[str, pa.Array]:
        """The events that are matched, and where known matches rule out others."""
        columns = self.pattern.matched_columns
        events = self.lake.reader.rows("events", self.pattern.event_columns, self._events_read)
        part = partition_values(events, self.pattern.partition)
        events = events.select(columns).append_column(PART, part)
        if kept_as_rows(self.pattern):
            events = with_chosen_attributes(events, self._attributes)
        given = [self._of_key(events)]
        if kept_as_rows(self.pattern):
            given.append(self._of_key(self.lake.reader.rows("pattern_state", (PART, *columns), self._state_shown)))
        if self._resumes:
            places = known.select([PART, "last_time", "last_position"]).rename_columns([PART, "time", "position"])
            given.append(places)
        schema = given[0].schema
        return columns_of(pa.concat_tables([in_schema(rows, schema) for rows in given]))

    def _of_key(self, rows: pa.Table) -> pa.Table:
        return rows_of_key(rows, self.pattern.partition, self.arguments["key"])

    def _by_tasks(self) -> DataFrame:
        """The answer by Spark's tasks."""
        lake, key = self.lake, self.arguments["key"]
        request = self._reads(whole=False).request
        portions = request.portions
        known = lake.frame("pattern_matches", self._matches_shown).select(PART, *_KEPT)
        columns = self.pattern.matched_columns
        events = lake.frame("events", self._events_read).select(*self.pattern.event_columns)
        given = events.withColumn(PART, partition_column(self.pattern.partition)).select(PART, *columns)
        if kept_as_rows(self.pattern):
            if "attributes" in columns:
                given = given.withColumn("attributes", chosen_attributes(self._attributes))
            given = given.unionByName(lake.frame("pattern_state", self._state_shown).select(PART, *columns))
        if self._resumes:
            since = self._carried.from_time
            late = known if since is None else known.where(F.unix_micros("last_time") >= F.lit(since))
            last = F.max(F.struct(F.col("last_time").alias("time"), F.col("last_position").alias("position")))
            ends = late.groupBy(PART).agg(last.alias("last")).select(PART, "last.time", "last.position")
            given = given.unionByName(ends, allowMissingColumns=True)
        known, given = (frame_of_key(rows, self.pattern.partition, key) for rows in (known, given))
        if self.pattern.partition:
            given = given.withColumn(PORTION, F.pmod(F.hash(PART), F.lit(portions.high + 1)).cast("int"))
        elif portions.width is None:
            given = given.withColumn(PORTION, F.lit(0))
        else:
            given = blocks(given, portions, PORTION)

        def task(portion: int, rows: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
            yield from open_rows(request, portion + portions.low, rows)

        found = tasks.dealt(given, portions.count, task, _SCHEMA)
        every = known.withColumn("final", F.lit(True)).select(*MATCHES.names).unionByName(found)
        return _numbered(every, request)


def _numbered(rows: DataFrame, request: KleeneRequest) -> DataFrame:
    """Matches in the order of their partition, numbered and limited."""
    mine = Window.partitionBy(PART)
    order = mine.orderBy("positions", "operands")
    more = F.count(F.lit(1)).over(mine) > request.max_matches
    key = F.lit(request.key) if not request.pattern.partition else F.expr(shown_text(PART))
    numbered = rows.withColumns(
        {"match_no": F.row_number().over(order).cast("bigint"), "truncated": more, "key": key.cast("string")}
    ).where(F.col("match_no") <= request.max_matches)
    if not request.truncate:
        message = str(too_many(request.max_matches + 1, request.max_matches, complete=False))
        numbered = tasks.checked(numbered.withColumn(tasks.ERROR, F.when(F.col("truncated"), F.lit(message))))
    return numbered.select(*ROWS.names)
