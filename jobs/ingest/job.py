"""The one door in: sources become numbered, checked events, batch by batch.

Spark's own streaming query remembers what was read. For each of its batches: every source row is evaluated once and
kept on disk; bad rows are told apart and counted; the good ones get positions; then come the writes, each idempotent,
and the publication.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import WRITTEN, Batch, numbers
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.committing.sessions import made_within
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.publications import Publication
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.streams import QUARANTINE_WARNING, StreamConfiguration, meaning_as_now
from patternlake.jobs.ingest import backfill as filling
from patternlake.jobs.ingest.bringing import choose_place
from patternlake.jobs.ingest.checkpoints import Checkpoint, Expected, refuse_unpublished
from patternlake.jobs.ingest.evaluated_rows import EvaluatedRows, Evaluation
from patternlake.jobs.ingest.evaluated_rows import settings as evaluation_settings
from patternlake.jobs.ingest.judging import Judge, settled_before, settled_by
from patternlake.jobs.ingest.moved_source import follow
from patternlake.jobs.ingest.prepared_rows import Total, warning
from patternlake.jobs.ingest.repeats import REASON as REPEAT
from patternlake.jobs.ingest.rivals import rival, rivalry
from patternlake.jobs.ingest.ties import Ties
from patternlake.jobs.ingest.unread_files import may_have_unread, renew_planned
from patternlake.jobs.ingest.writing import write
from patternlake.jobs.sources.columns import LATE, EventColumns
from patternlake.jobs.sources.errors import ChangedSourceError
from patternlake.jobs.sources.source import Source
from patternlake.udfs.errors import ConfigurationError, SourceError, StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as T

    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

JOB = "ingest"

_FOLDERS_SHOWN = 5
# Rows per task of the aggregates; a batch's own partitions would be too many for few rows and too few for many.
_SHUFFLED_ROWS = 1_000_000


def ingest(
    db: Database,
    name: str,
    stream: StreamConfiguration,
    *,
    rebuild: bool = False,
    backfill: filling.Span | None = None,
    quarantine_warning: float = QUARANTINE_WARNING,
) -> Summary:
    """Read what a stream's source has gained since the last run.

    Safe to run at any time and after any crash: a batch that was begun is finished first, with the same input.

    Parameters
    ----------
    db
        An open database, of a session with a JVM (not Spark Connect).
    name, stream
        The stream and its configuration.
    rebuild
        Read the source from its beginning, as a new incarnation of the stream; the former one stays for `as_of`.
    backfill
        Then take in the late rows of this span, as a new incarnation; see `ingest.backfill`.
    quarantine_warning
        Share of a batch above which quarantined rows are worth a warning, in the log and in the summary.

    Returns
    -------
    Summary
        Of all batches of this run.

    Raises
    ------
    ConfigurationError
        An expression does not fit the source's columns.
    SourceError
        The source is missing, has other columns, or was changed where it had been read.
    StateError
        The configuration or the checkpoint does not go with what was published.
    ConcurrentRunError
        Another run of the same stream won.
    """
    started = time.monotonic()
    settings = {
        **evaluation_settings(stream),
        # A second run must not stop the first one.
        "spark.sql.streaming.stopActiveRunOnRestart": "false",
        # Half a file that a run left as it died would stop every later one, and a rival's file would look like one that
        # was left; `Checkpoint.check` tells what does not fit.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        # Without this, Spark would sort the rows by block again, which they are already.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
    }
    with db.apart(settings) as own:
        run = _Run(own, name, stream, quarantine_warning, backfill)
        try:
            run.perform(rebuild)
        except ChangedSourceError as error:
            if stream.on_change != "rebuild" or rebuild:
                raise
            logger.warning("%s; reading the source anew", error)
            run = _Run(own, name, stream, quarantine_warning, backfill)
            run.perform(rebuild=True)
        if backfill is not None:
            run.fill(backfill)
        run.tell_ties()
    return Summary(
        job=JOB,
        object=name,
        batch_id=run.published[-1].batch_id if run.published else None,
        batches=len(run.published),
        rows_in=run.rows_in,
        rows_out=run.rows_out,
        rows_quarantined=run.rows_quarantined,
        seconds=round(time.monotonic() - started, 3),
        rows_repeated=run.repeated,
        warnings=tuple(run.warnings),
    )


@dataclass
class _Run:
    """One run: from looking at what was published to the last batch."""

    db: Database
    name: str
    stream: StreamConfiguration
    quarantine_warning: float
    backfill: filling.Span | None = None
    published: list[Publication] = field(default_factory=list)
    rows_in: int = 0
    rows_out: int = 0
    rows_quarantined: int = 0
    repeated: int = 0
    warnings: list[str] = field(default_factory=list)
    ties: Ties = field(default_factory=Ties)

    def tell_ties(self) -> None:
        """Warn of events that nothing orders but their names, once for all batches."""
        told = self.ties.told(self.stream)
        if told is not None:
            self.warnings.append(f"stream {self.name!r}: {told}, and run ingest with --rebuild")
            logger.warning("%s", self.warnings[-1])

    def perform(self, rebuild: bool) -> None:
        db, name = self.db, self.name
        self.spark: SparkSession = db.spark
        phases.at("looking for new files", unit=None)
        self.object_state = object_state = load_object_state(db, JOB, name, name)
        begun_span = None if rebuild or not object_state.pending else object_state.pending[-1].source.get(filling.KEY)
        if begun_span is not None:
            logger.info("stream %r: a backfill that was begun is done first", name)
            self.fill(filling.Span(*begun_span))
            object_state = self.object_state
        latest, pending = object_state.latest, object_state.pending
        if latest is not None and not rebuild and not (pending and pending[-1].rebuild):
            _refuse_changes(name, latest.configuration, self.stream.meaning)
        if rebuild:
            self.base = object_state.free_batch
        elif pending:
            self.base = pending[-1].base_batch
        else:
            self.base = 1 if latest is None else latest.base_batch
        self.latest = latest
        own = latest if latest is not None and latest.base_batch == self.base else None
        begun = None if rebuild or not pending else pending[-1]
        newest = own or begun
        self._find_checkpoint(None if newest is None else newest.source)
        self.unused = newest is None
        self.epoch_0 = self.base if newest is None else newest.batch_id - int(newest.source["epoch"])
        expected = Expected(
            published=-1 if own is None else int(own.source["epoch"]),
            query=None if newest is None else newest.source["query"],
            begun=None if begun is None else int(begun.source["epoch"]),
        )
        try:
            if newest is not None:
                self.checkpoint.check(expected)
            elif not rebuild:
                refuse_unpublished(self.spark, self.checkpoints, name)
        except StateError:
            # A live rival may have gone on between the look at the tables and the look at the checkpoint.
            if load_object_state(db, JOB, name, name) == object_state:
                raise
            raise rival(name) from None
        clash = self.stream.source.clash(db.location)
        if clash is not None:
            raise SourceError(f"stream {name!r}: source {clash}")
        self.source = Source(self.spark, name, self.stream)
        last = begun.source if begun is not None else own.source if own is not None else None
        self.origin = None if last is None else follow(name, self.source, self.checkpoint, last)
        if self.source.kind != "delta" and begun is None and not self.checkpoint.settled(expected):
            renew_planned(self.source, self.checkpoint, last or {})
        unread = last is None or may_have_unread(name, self.source, self.checkpoint, last)
        if not unread and begun is None and self.checkpoint.settled(expected):
            logger.info("stream %r: no new files at %s", name, self.source.shown)
            return
        schema = self.checkpoint.schema if self.source.kind != "delta" else None
        if schema is None:
            schema = self.source.schema()
            if schema is None:
                logger.info("stream %r: nothing at %s yet", name, self.source.shown)
                if self.source.kind != "delta" and (folders := self.source.folders_left_out()):
                    logger.warning(
                        "stream %r: no file is at %s, but folders are, whose files are not read: %s; for all files "
                        "below it, write the option recursiveFileLookup: true",
                        name, self.source.shown, ", ".join(folders[:_FOLDERS_SHOWN]),
                    )  # fmt: skip
                return
        self._check_columns(schema)
        if self.source.kind != "delta" and self.checkpoint.schema is None:
            self.checkpoint.schema = schema
        try:
            self._query()
        finally:
            if self.unused:
                self.checkpoint.delete()

    def fill(self, span: filling.Span) -> None:
        """Take in the late rows of a span, after all that the source has; nothing where there are none."""
        former = self.object_state.latest
        if former is None:
            return
        _refuse_changes(self.name, former.configuration, self.stream.meaning)
        self.base = former.base_batch
        self._find_checkpoint(former.source)
        self.source = source = Source(self.spark, self.name, self.stream)
        schema = (self.checkpoint.schema if source.kind != "delta" else None) or source.schema()
        if schema is None:
            raise SourceError(f"stream {self.name!r}: source {source.shown} has no columns any more; nothing was done")
        self._check_columns(schema)
        of_batch = (WRITTEN, "bad_files", filling.KEY, _LATE_BEFORE)
        read = {key: value for key, value in former.source.items() if key not in of_batch}
        done = filling.backfill(
            self.db,
            self.name,
            self.columns,
            self.schema,
            span,
            former=former,
            object_state=self.object_state,
            source={**read, CHECKPOINT: self.folder},
            after=former.batch_id - sum(filling.KEY not in each.source for each in self.published),
        )
        if done is None:
            logger.info("stream %r: no late rows from %d to %d", self.name, span.first, span.until)
            return
        # What this run brought and refused as late has been counted.
        self.rows_in += done.rows - done.fresh
        self.rows_out += done.rows - done.refused
        self.rows_quarantined += done.refused - done.fresh
        self.repeated += done.repeated
        self._note(done.publication)

    def _find_checkpoint(self, read: Mapping[str, Any] | None) -> None:
        """Open the checkpoint of what a batch says it has read; None: a new one.

        What a run plans before it begins a batch is its own: the next one may be given other files or another
        configuration, and two may be at work at once.
        """
        self.folder = f"{self.base}-{uuid.uuid4().hex}" if read is None else str(read.get(CHECKPOINT, self.base))
        number, _ = numbers(self.db, JOB, self.name, self.name, self.object_state)
        self.checkpoints = self.db.folder("checkpoints", str(number))
        self.checkpoint = Checkpoint(self.spark, f"{self.checkpoints}/{self.folder}", self.name)

    def _note(self, publication: Publication) -> None:
        """Go on from a batch that was published."""
        self.latest = publication
        self.object_state = self.object_state.after(publication)
        self.published.append(publication)

    def _check_columns(self, schema: T.StructType) -> None:
        """Check the stream's expressions over the source's columns, and, where they need it, those of later files."""
        self.columns = EventColumns(self.name, self.stream)
        self.schema: T.StructType = schema
        try:
            self.columns.check(self.source.empty(schema), self.source.unread)
        except ConfigurationError:
            self.schema = self._with_new_fields(schema)
            if self.schema == schema:
                raise
            self.columns.check(self.source.empty(self.schema), self.source.unread)
            self.checkpoint.schema = self.schema

    def _with_new_fields(self, schema: T.StructType) -> T.StructType:
        """The columns of a source, with those that later files have beside them; rows before have NULL there."""
        if self.checkpoint.schema is None or self.source.kind not in _FIELDS_BY_NAME:
            return schema
        now = self.source.schema(merged=True) or schema
        new = [field for field in now.fields if field.name not in schema.names]
        return type(schema)([*schema.fields, *new])

    def _query(self) -> None:
        """Let Spark read batch after batch until the source has no more."""
        failures: list[Exception] = []
        # Spark calls for each batch from a thread of its own; one after another, so that one context will do.
        context = copy_context()

        def each(rows: DataFrame, epoch: int) -> None:
            try:
                context.run(self._batch, rows, epoch)
            except Exception as error:
                failures.append(error)
                raise

        try:
            rows = self.source.rows(self.schema, before=self.origin)
            writer = rows.writeStream.foreachBatch(each)
            query = writer.option("checkpointLocation", self.checkpoint.path).trigger(availableNow=True).start()
            query.awaitTermination()
        except Exception as error:
            cause = failures[0] if failures else error
            known = rivalry(cause, self.name) or self.source.explain(cause, self.schema.fieldNames())
            if known is not None:
                raise known from None
            raise cause from None

    def _batch(self, rows: DataFrame, epoch: int) -> None:
        db, latest = self.db, self.latest
        made_within(rows.sparkSession, db.spark)
        batch_id = self.epoch_0 + epoch
        if latest is not None and batch_id <= latest.batch_id:
            logger.info("stream %r: epoch %d is published as batch %d already", self.name, epoch, batch_id)
            return
        before = latest if latest is not None and latest.base_batch == self.base else None
        phases.at("looking at new files", unit=None)
        with ExitStack() as stack:
            evaluated = self._evaluate(rows, epoch, before, stack)
            if evaluated.schema != self.schema:
                # Before the batch begins, so that whoever does it again reads the same.
                self.schema = self.checkpoint.schema = evaluated.schema
            found, bad_files = dict(evaluated.totals), evaluated.bad_files
            warned = [f"stream {self.name!r}: file {file} {reason}; left out" for file, reason in bad_files.items()]
            warned += filter(None, [warning(self.name, self._leave_out_late(found), self.quarantine_warning)])
            good = found.pop(None, Total())
            repeated = found.get(REPEAT, Total()).rows
            refused = evaluated.refused
            rows_in = good.rows + refused
            phases.reads(rows_in - len(bad_files))
            parallelism = db.spark.sparkContext.defaultParallelism
            shuffled = max(parallelism, -(-rows_in // _SHUFFLED_ROWS))
            rows.sparkSession.conf.set("spark.sql.shuffle.partitions", str(shuffled))
            first = 0 if before is None else before.source_to
            self.unused = False
            batch = Batch.begin(
                db,
                job=JOB,
                object=self.name,
                stream=self.name,
                batch_id=batch_id,
                base_batch=self.base,
                source={
                    "query": self.checkpoint.query,
                    "epoch": epoch,
                    "offset": self.checkpoint.offset(epoch),
                    "origin": self.source.shown,
                    **({"bad_files": bad_files} if bad_files else {}),
                    CHECKPOINT: self.folder,
                    _LATE_BEFORE: self._late_before(epoch, before),
                },
                source_from=first,
                source_to=first + good.rows,
                configuration=self.stream.meaning,
                object_state=self.object_state,
            )
            if batch.published is not None:
                raise rival(self.name)
            self._check_adopted(batch, epoch, first + good.rows)
            phases.at("looking at events of one time", unit=None)
            tie_count = evaluated.rows.count_ties()
            write(batch, evaluated.rows, self.columns, bad_files)
        last = _later(good.greatest, None if before is None else before.state.get("max_time"))
        settled = settled_by(last, self.stream.allowed_lateness, before)
        watermark = settled if self.stream.allowed_lateness is not None else None
        publication = batch.publish(
            rows_in=rows_in,
            rows_out=good.rows,
            rows_quarantined=refused,
            watermark=timestamps.from_micros(watermark),
            state={"max_time": last, "settled": settled},
            source_from=first,
            source_to=first + good.rows,
        )
        self.repeated += repeated
        self.ties += Ties(tie_count, good.rows)
        self.warnings += warned
        for told in warned:
            logger.warning("%s", told)
        self.rows_in += rows_in
        self.rows_out += good.rows
        self.rows_quarantined += refused
        self._note(publication)
        logger.info("stream %r: batch %d, %d rows in, %d quarantined", self.name, batch_id, rows_in, refused)

    def _evaluate(self, rows: DataFrame, epoch: int, before: Publication | None, stack: ExitStack) -> EvaluatedRows:
        """The rows of a batch; one that was begun leaves out the files that it left out then."""
        bad = dict(self._begun(epoch).get("bad_files", {}))
        files = [] if self.source.kind == "delta" else self.checkpoint.files_of(epoch)
        evaluation = Evaluation(self.source, self.schema, self.columns)
        judge = Judge(self.db, evaluation, before, self._late_before(epoch, before))
        bring = choose_place(self.db, self.source, files, stack)
        return evaluation.rows(rows, files, judge.judged, bad=bad, bring=bring)

    def _begun(self, epoch: int) -> Mapping[str, Any]:
        """What an earlier run that began a batch said that it reads; nothing where none did."""
        batch_id = self.epoch_0 + epoch
        return next((intent.source for intent in self.object_state.pending if intent.batch_id == batch_id), {})

    def _late_before(self, epoch: int, before: Publication | None) -> int | None:
        """The moment before which a batch's rows are late; for one that was begun, that of then."""
        mark = None if self.stream.allowed_lateness is None else settled_before(before)
        found: int | None = self._begun(epoch).get(_LATE_BEFORE, mark)
        return found

    def _leave_out_late(self, found: dict[str | None, Total]) -> dict[str | None, Total]:
        """What a batch amounts to, without late rows where these are going to be taken in."""
        return {reason: total for reason, total in found.items() if self.backfill is None or reason != LATE}

    def _check_adopted(self, batch: Batch, epoch: int, source_to: int) -> None:
        found = batch.source
        if found.get("query") != self.checkpoint.query or found.get("epoch") != epoch:
            raise StateError(
                f"batch {batch.batch_id} of stream {self.name!r} was begun by query {found.get('query')}, epoch "
                f"{found.get('epoch')}, not by {self.checkpoint.query}, epoch {epoch}; run it with --rebuild"
            )
        if batch.source_to != source_to:
            raise SourceError(
                f"stream {self.name!r}: batch {batch.batch_id} had events up to position {batch.source_to} when it was "
                f"begun and has now up to {source_to}: the source was changed in between; run with --rebuild"
            )


CHECKPOINT = "checkpoint"
"""Key in what a batch says it has read: the checkpoint's folder; in older batches only where it is not the base."""

_LATE_BEFORE = "late_before"
"""Key in what a batch says it has read: before which moment its rows are late, microseconds, or None. Whoever does the
batch again judges alike, though `allowed_lateness` may have been changed since."""


def _later(one: int | None, other: Any) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


_FIELDS_BY_NAME = ("json", "parquet")
"""Formats whose files may each have other columns."""


def _refuse_changes(name: str, before: Any, now: Any) -> None:
    """Refuse a configuration that gives the stream another meaning, naming the keys that differ."""
    document, before = json.loads(json.dumps(now)), meaning_as_now(before)
    changes = dict(_list_changes(before, document))
    if changes:
        shown = "; ".join(f"{key}: {change}" for key, change in changes.items())
        raise StateError(
            f"streams.{name}: {', '.join(changes)} changed, which would mix events of two meanings ({shown}); "
            "run the job with --rebuild, or give the stream another name"
        )


def _list_changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key that means something else, and what it was and is."""
    for key in dict.fromkeys([*now, *before]):
        if key != "attributes":
            if before.get(key) != now.get(key):
                yield key, f"{_short(before.get(key))} → {_short(now.get(key))}"
            continue
        # An attribute that is new is NULL in the events before.
        for attribute, was in before[key].items():
            is_now = now[key].get(attribute)
            if is_now is None:
                yield f"{key}.{attribute}", f"{was['type']} → left out"
                continue
            for part, former in was.items():
                if is_now.get(part) != former:
                    part_of = "" if part == "type" else f".{part}"
                    yield f"{key}.{attribute}{part_of}", f"{former} → {is_now.get(part)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"
