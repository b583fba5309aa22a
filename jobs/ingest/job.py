"""The one door in: sources become numbered, checked events, batch by batch.

Spark's own streaming query remembers what was read. For each of its batches: every source row is evaluated once and
kept on disk; bad rows are told apart and counted; the good ones get positions; then come the writes, each idempotent,
and the publication.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from delta.exceptions import ConcurrentTransactionException
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables import phases, timestamps
from patternlake.delta_tables.arrow_rows import arrow_schema
from patternlake.delta_tables.batches import Batch, numbers
from patternlake.delta_tables.object_state import load_object_state
from patternlake.delta_tables.registration import register
from patternlake.delta_tables.row_files import TaskRows, on_one_disk
from patternlake.delta_tables.sessions import made_within
from patternlake.delta_tables.state_reader import Condition
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.delta_tables.tables.publications import Publication
from patternlake.jobs import few, spilling
from patternlake.jobs.configuration.streams import QUARANTINE_WARNING, StreamConfiguration
from patternlake.jobs.contexts import in_background, kept
from patternlake.jobs.ingest import few_rows, ordering, ranges, repeats, steps
from patternlake.jobs.ingest.batch_counts import Total, by_range, counted, quarantine, statistics, warning
from patternlake.jobs.ingest.checkpoints import Checkpoint, Expected
from patternlake.jobs.ingest.repeats import REASON as REPEAT
from patternlake.jobs.sources.columns import FIRST_MICROS, EventColumns
from patternlake.jobs.sources.errors import ChangedSourceError
from patternlake.jobs.sources.evaluated_rows import EvaluatedRows, Evaluation
from patternlake.jobs.sources.evaluated_rows import settings as evaluation_settings
from patternlake.jobs.sources.source import Source
from patternlake.jobs.summary import Summary
from patternlake.udfs.errors import ConcurrentRunError, SourceError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.database import Database

logger = logging.getLogger(__name__)

JOB = "ingest"

# Rows per task of the aggregates; a batch's own partitions would be too many for few rows and too few for many.
_SHUFFLED_ROWS = 1_000_000

_COMPRESSED = (".gz", ".gzip", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz", ".lzo", ".br")
_FEW_BYTES = 16 << 20
"""Bytes of text, at most, whose rows the driver takes in for itself."""


def ingest(
    db: Database,
    name: str,
    stream: StreamConfiguration,
    *,
    rebuild: bool = False,
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
        # Without this, Spark would sort the rows by block again, which they are already.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
    }
    with db.apart(settings) as own:
        run = _Run(own, name, stream, quarantine_warning)
        try:
            run.perform(rebuild)
        except ChangedSourceError as error:
            if stream.on_change != "rebuild" or rebuild:
                raise
            logger.warning("%s; reading the source anew", error)
            run = _Run(own, name, stream, quarantine_warning)
            run.perform(rebuild=True)
    return Summary(
        job=JOB,
        object=name,
        batch_id=run.published[-1].batch_id if run.published else None,
        batches=len(run.published),
        rows_in=sum(publication.rows_in for publication in run.published),
        rows_out=sum(publication.rows_out for publication in run.published),
        rows_quarantined=sum(publication.rows_quarantined for publication in run.published),
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
    published: list[Publication] = field(default_factory=list)
    repeated: int = 0
    warnings: list[str] = field(default_factory=list)

    def perform(self, rebuild: bool) -> None:
        db, name = self.db, self.name
        self.spark: SparkSession = db.spark
        phases.at("looking for new files", unit=None)
        self.object_state = object_state = load_object_state(db, JOB, name, name)
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
        number, _ = numbers(db, JOB, name, name, object_state)
        path = db.folder("checkpoints", str(number), str(self.base))
        self.checkpoint = Checkpoint(self.spark, path, name)
        if rebuild:
            self.checkpoint.delete()
        known = own.source if own is not None else begun.source if begun is not None else {}
        expected = Expected(
            published=-1 if own is None else int(own.source["epoch"]),
            query=known.get("query"),
            begun=None if begun is None else int(begun.source["epoch"]),
        )
        try:
            self.checkpoint.check(expected)
        except StateError:
            # A live rival may have gone on between the look at the tables and the look at the checkpoint.
            if load_object_state(db, JOB, name, name) == object_state:
                raise
            raise _rival(name) from None
        self.source = Source(self.spark, name, self.stream)
        last = begun.source if begun is not None else own.source if own is not None else None
        self.origin = None if last is None else last.get("origin")
        if last is not None and not self._new_files(last) and begun is None and self.checkpoint.settled(expected):
            logger.info("stream %r: no new files at %s", name, self.source.shown)
            return
        schema = self.checkpoint.schema if self.source.kind != "delta" else None
        if schema is None:
            schema = self.source.schema()
            if schema is None:
                logger.info("stream %r: nothing at %s yet", name, self.source.shown)
                return
        self.schema: T.StructType = schema
        self.columns = EventColumns(name, self.stream)
        self.columns.check(self.source.empty(schema))
        if self.source.kind != "delta" and self.checkpoint.schema is None:
            self.checkpoint.schema = schema
        self._query()

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
            known = _rivalry(cause, self.name) or self.source.explained(cause, self.schema.fieldNames())
            if known is not None:
                raise known from None
            raise cause from None

    def _batch(self, rows: DataFrame, epoch: int) -> None:
        db, latest = self.db, self.latest
        made_within(rows.sparkSession, db.spark)
        batch_id = self.base + epoch
        if latest is not None and batch_id <= latest.batch_id:
            logger.info("stream %r: epoch %d is published as batch %d already", self.name, epoch, batch_id)
            return
        before = latest if latest is not None and latest.base_batch == self.base else None
        phases.at("looking at new files", unit=None)
        with ExitStack() as stack:
            evaluated = self._evaluated(rows, epoch, before, stack)
            prepared, found, bad_files = evaluated.prepared, dict(evaluated.totals), evaluated.bad_files
            parallelism = db.spark.sparkContext.defaultParallelism
            session = prepared.sparkSession
            warned = [f"stream {self.name!r}: file {file} {reason}; left out" for file, reason in bad_files.items()]
            warned += filter(None, [warning(self.name, found, self.quarantine_warning)])
            good = found.pop(None, Total())
            repeated = found.get(REPEAT, Total()).rows
            refused = evaluated.refused
            rows_in = good.rows + refused
            phases.reads(rows_in - len(bad_files))
            session.conf.set("spark.sql.shuffle.partitions", str(max(parallelism, -(-rows_in // _SHUFFLED_ROWS))))
            first = 0 if before is None else before.source_to
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
                },
                source_from=first,
                source_to=first + good.rows,
                configuration=self.stream.meaning,
                object_state=self.object_state,
            )
            if batch.published is not None:
                raise _rival(self.name)
            self._check_adopted(batch, epoch, first + good.rows)
            if evaluated.here is not None:
                self._write_here(batch, evaluated.here, bad_files)
            else:
                self._write(batch, prepared, bad_files, good, refused, parallelism)
        last = _later(good.greatest, None if before is None else before.state.get("max_time"))
        publication = batch.publish(
            rows_in=rows_in,
            rows_out=good.rows,
            rows_quarantined=refused,
            watermark=self._watermark(last, before),
            state={"max_time": last},
            source_from=first,
            source_to=first + good.rows,
        )
        self.repeated += repeated
        self.warnings += warned
        for told in warned:
            logger.warning("%s", told)
        self.latest = publication
        self.object_state = self.object_state.after(publication)
        self.published.append(publication)
        logger.info("stream %r: batch %d, %d rows in, %d quarantined", self.name, batch_id, rows_in, refused)

    def _write(
        self,
        batch: Batch,
        prepared: DataFrame,
        bad_files: Mapping[str, str],
        good: Total,
        refused: int,
        parallelism: int,
    ) -> None:
        """Write the rows of all tables by tasks of Spark."""
        session = prepared.sparkSession
        accepted = prepared.where(F.col("reason").isNull())
        phases.at("counting")
        cut = ordering.ranges(accepted, good.rows, good.quantiles, parallelism=parallelism)
        with kept(counted(accepted, cut)) as counts:
            sizes = by_range(counts) if len(cut) > 1 else {}

            def small_writes() -> None:
                register(batch, types=self.stream.types, timezone=self.stream.timezone)
                if good.rows:
                    batch.append("event_statistics", statistics(counts, batch))
                if refused:
                    batch.append("quarantine", quarantine(prepared, bad_files, batch))

            with in_background(session, small_writes):
                if good.rows:
                    numbered = ordering.number(accepted, cut, sizes, batch.source_from + 1)
                    batch.append("events", self.columns.events(numbered, batch.stream_id, batch.batch_id))

    def _write_here(self, batch: Batch, prepared: pa.Table, bad_files: Mapping[str, str]) -> None:
        """Write the same of rows that the driver holds, or reads range by range."""
        register(batch, types=self.stream.types, timezone=self.stream.timezone)
        phases.at("ordering", unit=None)
        cut = ranges.ranges(prepared)
        firsts = batch.source_from + 1 + np.cumsum([0, *map(len, cut)])
        self._append(batch, "events", prepared, [
            partial(few_rows.events, prepared, places, first, self.columns)
            for places, first in zip(cut, firsts.tolist(), strict=False)
        ])  # fmt: skip
        self._append(batch, "event_statistics", prepared, [partial(few_rows.statistics, prepared)] if cut else [])
        refused = [partial(few_rows.quarantine, prepared, places) for places in ranges.refused(prepared)]
        self._append(batch, "quarantine", prepared, [*refused, *few_rows.bad_files(bad_files)])

    def _append(self, batch: Batch, table: str, prepared: pa.Table, rows: Sequence[Callable[[], pa.Table]]) -> None:
        """Append what is made of a batch's rows, at once where they are few."""

        def marked(made: Callable[[], pa.Table]) -> pa.Table:
            return batch.marked(table, made())

        if rows and prepared.num_rows <= few.FEW_EVENTS:
            batch.append(table, pa.concat_tables(map(marked, rows)))
        elif rows:
            batch.append(table, [partial(marked, made) for made in rows])

    def _bring(self, files: Sequence[str], stack: ExitStack) -> Callable[[DataFrame], pa.Table | None] | None:
        """What brings the rows of a batch's files to the driver's process; None where Spark's tasks write them."""
        if self.db.direct is None:
            return None
        if self._few(files):
            return DataFrame.toArrow
        if self.db.lock("events") is None or not on_one_disk(self.spark):
            return None
        folder = stack.enter_context(spilling.folder_for(self.spark))

        def spilled(rows: DataFrame) -> pa.Table | None:
            found = spilling.spilled(TaskRows(rows, lambda batches: batches, arrow_schema(rows.schema)), folder)
            return found if found.num_rows <= ranges.MOST_ROWS else None

        return spilled

    def _few(self, files: Sequence[str]) -> bool:
        """Whether the rows of a batch's files are few, by what the files take."""
        if self.source.kind not in ("csv", "json") or not files:
            return False
        sizes = [_bytes_of(file) for file in files]
        return None not in sizes and sum(size for size in sizes if size is not None) <= _FEW_BYTES

    def _evaluated(self, rows: DataFrame, epoch: int, before: Publication | None, stack: ExitStack) -> EvaluatedRows:
        """The rows of a batch; one that was begun leaves out the files that it left out then."""
        batch_id = self.base + epoch
        begun = next((intent for intent in self.object_state.pending if intent.batch_id == batch_id), None)
        bad: dict[str, str] = {} if begun is None else dict(begun.source.get("bad_files", {}))
        files = [] if self.source.kind == "delta" else self.checkpoint.files_of(epoch)
        evaluation = Evaluation(self.source, self.schema, self.columns)
        judge = partial(self._judged, evaluation, before=before)
        return evaluation.rows(rows, files, judge, stack, bad=bad, bring=self._bring(files, stack))

    def _judged(self, evaluation: Evaluation, rows: DataFrame, before: Publication | None) -> DataFrame:
        if before is None:
            return evaluation.judged(rows)
        stream, session = self.stream, rows.sparkSession
        mark = None if stream.allowed_lateness is None else before.watermark
        ids = None
        if stream.event_id is not None:
            ids = repeats.unsettled_ids(self._identified(before, mark, session), mark)
        return evaluation.judged(
            rows,
            watermark=None if mark is None else timestamps.to_micros(mark),
            known_ids=ids,
            last_steps=steps.last_steps(self._stepped(before, session)) if stream.probabilistic else None,
        )

    def _identified(self, before: Publication, mark: datetime | None, session: SparkSession) -> DataFrame:
        """The published events whose ids matter; see `repeats.unsettled_ids`."""
        where = [] if mark is None else [Condition("time", ">=", timestamps.to_micros(mark))]
        found = self._few_published(before, ("time", "event_id"), where)
        return self._events(before, session) if found is None else session.createDataFrame(found)

    def _stepped(self, before: Publication, session: SparkSession) -> DataFrame:
        """The published events whose steps matter; see `steps.last_steps`."""
        found = self._few_published(before, ("key", "step", "probability"))
        if found is None:
            return self._events(before, session)
        return session.createDataFrame(steps.of_last_steps(found))

    def _few_published(
        self, before: Publication, columns: Sequence[str], where: Sequence[Condition] = ()
    ) -> pa.Table | None:
        """Columns of the published events, read without Spark; None where they take too much."""
        conditions = [*few.of_stream(before, 1, before.source_to), *where]
        if self.db.direct is None or not few.few_bytes(self.db, "events", conditions, columns):
            return None
        return self.db.direct.rows("events", columns, conditions)

    def _events(self, before: Publication, session: SparkSession) -> DataFrame:
        """The published events, in the session of the batch: Spark joins no frames of two sessions."""
        return EventsReader(type(self.db)(session, self.db.name, self.db.location)).published(before)

    def _watermark(self, last: int | None, before: Publication | None) -> Any:
        lateness = self.stream.allowed_lateness
        if lateness is None or last is None:
            return None
        mark = timestamps.from_micros(max(FIRST_MICROS, last - lateness // timedelta(microseconds=1)))
        former = None if before is None else before.watermark
        return mark if former is None else max(mark, former)  # type: ignore[type-var]

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

    def _new_files(self, last: Any) -> bool:
        """Whether there may be files that were not read; refuses such as were changed after they were read."""
        until = last.get("offset", {}).get("logOffset")
        if until is None:
            return True
        read, there = self.checkpoint.files(int(until)), self.source.modified()
        if read is None or there is None:
            return True
        # Spark writes one file's address with one slash or with three.
        path = F.regexp_replace("path", "^file:/+", "file:/").alias("path")
        was = read.select(path, F.col("modified").alias("was"))
        known = there.select(path, "modified").join(was, "path", "left")
        differing = known.where(F.col("was").isNull() | (F.col("was") != F.col("modified")))
        # Those that were changed come first.
        found = differing.orderBy(F.col("was").isNull(), "path").select("path", "was").limit(4).collect()
        names = [row["path"] for row in found if row["was"] is not None]
        if names:
            shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            raise ChangedSourceError(
                f"stream {self.name!r}: changed after it was read: {shown}; put new rows into new files, "
                "or run with --rebuild, which reads all files anew"
            )
        return bool(found)


def _bytes_of(file: str) -> int | None:
    """The bytes of a file on a local disk; None of another one, and of one that may hold many times as much."""
    path = unquote(urlsplit(file).path) if file.startswith("file:") else ""
    if not path or path.lower().endswith(_COMPRESSED) or not os.path.isfile(path):
        return None
    return os.path.getsize(path)


def _later(one: int | None, other: Any) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _refuse_changes(name: str, before: Any, now: Any) -> None:
    """Refuse a configuration that gives the stream another meaning, naming the keys that differ."""
    document = json.loads(json.dumps(now))
    differing = [key for key in {**document, **before} if before.get(key) != document.get(key)]
    if differing:
        shown = "; ".join(f"{key}: {_short(before.get(key))} → {_short(document.get(key))}" for key in differing)
        raise StateError(
            f"streams.{name}: {', '.join(differing)} changed, which would mix events of two meanings ({shown}); "
            "run the job with --rebuild, or give the stream another name"
        )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"


def _rivalry(error: BaseException, name: str) -> ConcurrentRunError | None:
    """Spark's and Delta's ways to say that another run of the stream is at work."""
    text = str(error)
    rival = isinstance(error, ConcurrentTransactionException) or any(
        sign in text
        for sign in (
            "Multiple streaming jobs detected",
            "Multiple streaming queries are concurrently using",
            "CONCURRENT_STREAM_LOG_UPDATE",
            "is already active",
            "CONCURRENT_QUERY",
        )
    )
    if not rival or not isinstance(error, PySparkException | Py4JJavaError | ConcurrentTransactionException):
        return None
    return _rival(name)


def _rival(name: str) -> ConcurrentRunError:
    return ConcurrentRunError(f"another run of ingest of stream {name!r} is at work; this one stopped without harm")
