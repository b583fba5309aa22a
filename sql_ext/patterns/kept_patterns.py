"""`match_pattern` of a kept pattern: the final matches that the job wrote, and those that its next batch would look at.

What the job has not read yet is matched as well, so the answer is that of the text itself, at any moment. It reads
kept rows, and events as far back as WITHIN reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from patternlake.delta_tables.gathering.event_ranks import dealing_of
from patternlake.delta_tables.gathering.gather import Deal, Gather, anyhow
from patternlake.delta_tables.gathering.pattern_sources import ends_of, events_of, kept_events_of
from patternlake.delta_tables.gathering.snapshots import earliest_event
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.reading.visibility import first_batch, visible_rows
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.schema.quoting import shown_text
from patternlake.delta_tables.spark.measure_columns import needed_schema
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering import tasks
from patternlake.sql_ext.answering.answers import Dealt, answer, collect_apart
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.stream_facts import StreamFacts, facts_of
from patternlake.sql_ext.declarations.declaration import explicit
from patternlake.sql_ext.declarations.measured_rows import names_found
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.kleene.batch import open_rows
from patternlake.udfs.kleene.kept_request import answers, carried_at, check_query, ingested_at, pattern_at, whole_call
from patternlake.udfs.kleene.merged import merge_matches
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.request import KleeneReads, KleeneRequest, check_request
from patternlake.udfs.kleene.result import MATCHES, ROWS
from patternlake.udfs.kleene.state import Carried, kept_as_rows
from patternlake.udfs.limits import WHOLE_EVENTS
from patternlake.udfs.measures.of_matches import kept_columns, with_columns
from patternlake.udfs.partitions import PART, ByPartition
from patternlake.udfs.published import PublishedBatch
from patternlake.udfs.record_batches import columns_of, together
from patternlake.udfs.requests import BatchRange

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

    @property
    def stream_events(self) -> BatchRange:
        """All events of the stream."""
        return self._whole.events

    def rows(self) -> DataFrame | pa.Table:
        """The answer."""
        schema = f"{_SCHEMA}, {needed}" if (needed := needed_schema(self.pattern.measures)) else _SCHEMA
        return answer(self.lake, self._sources, self._here, self._by_portions, schema)

    def _here(self, rows: list[pa.Table]) -> pa.Table | None:
        if not self.pattern.partition and sum(given.num_rows for given in rows[1:]) > WHOLE_EVENTS:
            return None
        request = self._whole.request
        return merge_matches(request, pa.concat_tables(_known_and_open(request, 0, rows)))

    def _by_portions(self) -> Dealt:
        request = self._reads(whole=False).request
        portions = request.portions
        dealing = dealing_of(self._events, request, partial(collect_apart, self.lake))

        def work(portion: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
            known, events, *more = rows
            measures, given = request.pattern.measures, [known, dealing.ranked(events), *more]
            for found in _known_and_open(request, portion + portions.low, given):
                yield found if measures is None else with_columns(found, kept_columns(measures, found))

        others = ByPartition(portions.count) if request.pattern.partition else partial(anyhow, portions.count)
        deals: list[Deal] = [others, dealing.deal, *[others] * (len(self._sources) - 2)]
        return Dealt(deals, portions.count, work, partial(_number, request))

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

    @cached_property
    def _sources(self) -> list[Gather]:
        """The rows that the job wrote, the events, and what is known of others."""
        found = [self._gather("pattern_matches", _KEPT, self._matches_shown), self._events]
        if kept_as_rows(self.pattern):
            types, key = self._whole.request.types, self.arguments["key"]
            found.append(kept_events_of(self.pattern, self._state_shown, types, key))
        if self._resumes:
            found.append(ends_of(self.pattern, self._matches_shown, self._carried.from_time, self.arguments["key"]))
        return found

    @cached_property
    def _events(self) -> Gather:
        return events_of(self.pattern, self._events_read, self._whole.request.types, self.arguments["key"])

    def _gather(self, table: str, columns: Sequence[str], where: Sequence[Condition]) -> Gather:
        """Rows of the partition that is asked for."""
        return Gather(table, (PART, *columns), tuple(where), self.pattern.partition, self.arguments["key"])


def _known_and_open(request: KleeneRequest, portion: int, rows: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The known matches of a portion, and those among the events that are given with them; rows of `MATCHES`."""
    known, *given = rows
    yield known.append_column("final", pa.repeat(pa.scalar(True), known.num_rows)).select(MATCHES.names).cast(MATCHES)
    yield from open_rows(request, portion, columns_of(together(given)))


def _number(request: KleeneRequest, rows: DataFrame) -> DataFrame:
    """Matches in the order of their partition, numbered and limited."""
    mine = Window.partitionBy(PART)
    order = mine.orderBy("positions", "operands")
    more = F.count(F.lit(1)).over(mine) > request.max_matches
    key = F.lit(request.key) if not request.pattern.partition else F.expr(shown_text(PART))
    numbered = rows.withColumns(
        {"match_no": F.row_number().over(order).cast("bigint"), "truncated": more, "key": key.cast("string")}
    )
    return tasks.limit_matches(numbered, request.max_matches, truncate=request.truncate).select(
        names_found(ROWS.names, request.pattern.measures)
    )
