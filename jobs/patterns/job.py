"""The job `patterns`: new events of a stream make matches of a kept pattern final, and each is written once.

A batch reads its new events and those before them that may still take part in a match that is not final, which WITHIN
bounds. It matches them as `match_pattern` would, and writes what has become final since the batch before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.event_ranks import dealing_of
from patternlake.delta_tables.gathering.gather import Deal, collect, deal
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.spark.measure_columns import check_measures
from patternlake.delta_tables.spark.told_by_tasks import FromTasks, Gathered, Observed, add_up
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.observed_selectivities import ObservedSelectivities
from patternlake.delta_tables.tables.pattern_state import keeps_anew
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches.contexts import in_own_session_when_needed
from patternlake.jobs.batches.following import Work, follow, next_batch, refuse_earlier_events
from patternlake.jobs.batches.made_rows import keep
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import PatternConfiguration
from patternlake.jobs.patterns.carried import carried_after
from patternlake.jobs.patterns.here import MATCHES, STATE, FewEvents, Found
from patternlake.udfs.errors import ConfigurationError
from patternlake.udfs.kleene.batch import ADVANCED, BATCH_SCHEMA, EVENT, EVENT_COLUMNS, MATCH, batch_rows
from patternlake.udfs.kleene.from_config import arguments_of, pattern_of, unfit
from patternlake.udfs.kleene.plans.judged_conditions import observed_in
from patternlake.udfs.kleene.request import KleeneReads, check_request
from patternlake.udfs.kleene.result import ROWS
from patternlake.udfs.kleene.state import Carried, kept_as_rows, reach
from patternlake.udfs.kleene.work import Work as Matching
from patternlake.udfs.partitions import ByPartition
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.record_batches import columns_of, together
from patternlake.udfs.requests import BatchRange
from patternlake.udfs.unseen_names import MOST_NAMES

logger = logging.getLogger(__name__)

JOB = "patterns"
PART = "part"
_MATCH_COLUMNS = (
    PART, "first_position", "last_position", "first_time", "last_time", "positions", "operands", "bindings", "values",
)  # fmt: skip
_ANEW = 4
"""Kept events for each event of a batch, up to which the batch writes all of them anew. Measured for batches of 50,000
events in most partitions: 14 ms more to write, where to close what they replace took 100."""


@in_own_session_when_needed
def patterns(db: Database, name: str, configuration: PatternConfiguration, *, rebuild: bool = False) -> Summary:
    """Bring the matches of a pattern up to its stream's last published event.

    Parameters are as of `runs.steps.Job.work`.

    Raises
    ------
    PatternLakeError
        The query does not compile, Spark does not take one of its measures, or it has no WITHIN; the stream has no
        published events, or its events never settle; or the pattern has changed since the last batch.
    """

    def begin(first: bool) -> Work | None:
        return next_batch(
            db,
            JOB,
            name,
            configuration.stream,
            configuration.meaning,
            rebuild=rebuild and first,
            check=lambda stream, last: _check(db, name, configuration, stream, last),
            noted=_note_first_kept,
        )

    return follow(JOB, name, begin, lambda work: _Builder(db, work).build())


def _check(
    db: Database, name: str, configuration: PatternConfiguration, stream: Publication, last: Publication | None
) -> None:
    meaning = configuration.meaning
    pattern = pattern_of({**meaning, "stream": stream.configuration})
    wrong = unfit(pattern, meaning["after_match"])
    if wrong is not None:
        raise ConfigurationError(f"patterns.{name}.query: {wrong}")
    if stream.source_to and stream.watermark is None:
        raise ConfigurationError(
            f"patterns.{name}.stream: events of {stream.object!r} never settle, as its allowed_lateness is none; a "
            "match is kept once it is final: give it a duration"
        )
    if last is None and pattern.measures is not None:
        # Later batches have the same query. Without measures the job may need no session.
        check_measures(db.spark, pattern.measures, ROWS.names)
    refuse_earlier_events(db, JOB, name, stream, last)


def _note_first_kept(last: Publication, batch_id: int, events: int) -> dict[str, int]:
    """From which batch on kept rows count: those of a batch that writes anew all that is kept, or of one before it."""
    if not kept_as_rows(pattern_of(last.configuration)):
        return {}
    first = batch_id if last.state["events"] <= _ANEW * events else last.source.get(TABLES[STATE].counted_from)
    return {} if first is None else {TABLES[STATE].counted_from: first}


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.pattern = pattern_of(self.batch.configuration)
        self.by_rows = kept_as_rows(self.pattern)
        self.reach = reach(self.pattern, self.batch.configuration["policy"])
        self.watermark = None if self.stream.watermark is None else timestamps.to_micros(self.stream.watermark)

    def build(self) -> Publication:
        """Write matches and what is kept of partitions, close what that replaces, publish."""
        batch = self.batch
        if not batch.source_to:
            return self._publish(0, {"from_time": None, "events": 0})
        phases.at("matching")
        few_found = self._few.found()
        if few_found is not None:
            return self._publish_few(few_found)
        told = self.db.spark.sparkContext.accumulator([], Gathered())
        with keep([self._make_rows(FromTasks(told, self.db.location, batch.stream_id))]) as found:
            counts = found.counts()
            if counts.get(MATCH):
                batch.append(MATCHES, found.of([MATCH], _MATCH_COLUMNS))
            if counts.get(EVENT):
                batch.append(STATE, found.of([EVENT], (PART, *EVENT_COLUMNS)))
            if self.by_rows and self.last is not None and not keeps_anew(batch):
                batch.close_partitions(STATE, found.read(ADVANCED, [PART])[PART].combine_chunks())
        carried = carried_after(
            self.db,
            batch,
            self.stream,
            self.pattern,
            self.reach,
            None if self.carried is None else self.carried.from_time,
        )
        publication = self._publish(counts.get(MATCH, 0), carried.state)
        self._tell(add_up(observed for _, _, observed in told.value))
        return publication

    def _publish_few(self, found: Found) -> Publication:
        """As `build`, of rows that the driver holds."""
        batch = self.batch
        made = {MATCHES: found.matches.select(list(_MATCH_COLUMNS)), STATE: found.events}
        batch.append_each({table: rows for table, rows in made.items() if rows.num_rows})
        if found.replaced is not None and found.replaced.num_rows:
            parts, positions = (found.replaced[name].combine_chunks() for name in (PART, "position"))
            batch.close_partitions(STATE, parts, positions=positions)
        publication = self._publish(found.matches.num_rows, found.carried.state)
        self._tell(found.observed)
        return publication

    def _publish(self, matches: int, state: Mapping[str, Any]) -> Publication:
        batch = self.batch
        return batch.publish(
            rows_in=batch.source_to - batch.source_from,
            rows_out=matches,
            watermark=self.stream.watermark,
            state=state,
        )

    def _tell(self, observed: Observed) -> None:
        """Let the plans of later calls know how often conditions held."""
        ObservedSelectivities(self.db).tell(self.batch.stream_id, observed)

    @cached_property
    def carried(self) -> Carried | None:
        """What the batch goes on from."""
        last = self.last
        if last is None or last.watermark is None:
            return None
        return Carried.of(last.state, timestamps.to_micros(last.watermark), last.source_to)

    @cached_property
    def _few(self) -> FewEvents:
        """The batch as the driver makes it, where it can."""
        given = (self.db, self.batch, self.stream, self.last, self.pattern, self.reach, self.carried)
        return FewEvents(*given, self._reads(whole=True))

    @cached_property
    def parallelism(self) -> int:
        """How many tasks Spark runs at once, about."""
        return self.db.spark.sparkContext.defaultParallelism

    @cached_property
    def reads(self) -> KleeneReads:
        """What is asked of the events, for tasks."""
        return self._reads(whole=False)

    def _reads(self, *, whole: bool) -> KleeneReads:
        """What is asked of the events, as `check_request` says it."""
        stream = self.stream
        published = Published(
            PublishedBatch(
                object_id=stream.object_id,
                base_batch=stream.base_batch,
                batch_id=stream.batch_id,
                configuration=documents.to_text(stream.configuration),
                watermark=self.watermark,
                source_to=stream.source_to,
            )
        )
        arguments = arguments_of(self.batch.configuration)
        return check_request(arguments, published, [stream.object], self._counts, whole=whole, carried=self.carried)

    @cached_property
    def _counts(self) -> list[NameCount]:
        stream = self.stream
        snapshot = Snapshot(self.db.state, None)
        return snapshot.name_counts(BatchRange(stream.object_id, stream.base_batch, stream.batch_id), MOST_NAMES)

    def _make_rows(self, observer: FromTasks) -> TaskRows:
        """What `batch_rows` makes of new events and of those that are kept; `observer` is told what tasks observe."""
        request, portions = self.reads.request, self.reads.request.portions
        kept_events, anew = self.reach if self.by_rows else None, keeps_anew(self.batch)
        events, *others = sources = self._few.sources
        dealing = dealing_of(events, request, partial(collect, self.db, self.db.state))
        deals: list[Deal] = [dealing.deal, *[ByPartition(portions.count)] * len(others)]
        blobs, dealt = deal(self.db, self.db.state, list(zip(sources, deals, strict=True)), portions.count)

        def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, (given, *more) in dealt.read(batches):
                rows, work = columns_of(together([dealing.ranked(given), *more])), Matching()
                place = number + portions.low
                for made in batch_rows(request, place, rows, kept_events=kept_events, anew=anew, work=work):
                    yield from made.to_batches()
                observer.tell(observed_in(request.pattern, work))

        return TaskRows(blobs, found, BATCH_SCHEMA)
