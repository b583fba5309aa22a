"""One batch of a job on one object: intent first, then idempotent writes, publication last."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.batches import durability, phases
from patternlake.delta_tables.batches.batch_rows import BatchRows, application_of
from patternlake.delta_tables.batches.object_state import ObjectState, load_object_state
from patternlake.delta_tables.batches.resume import resolve, wrote_nothing
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.schema.stream_names import check_name
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.intents import TABLE as INTENTS
from patternlake.delta_tables.tables.intents import Intent, IntentsWriter
from patternlake.delta_tables.tables.object_numbers import STREAM, ObjectNumbers
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader, PublicationsWriter
from patternlake.udfs.errors import ConcurrentRunError

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database


WRITTEN = "written"
"""Key in what a publication says it has read: the section of the configuration that its object was run with."""


@dataclass
class Batch(BatchRows):
    """A batch that was begun. Its range, source and base are the intent's, which may be an earlier run's."""

    previous: Publication | None
    """The latest publication before this batch."""
    adopted: bool
    """Whether an earlier run had begun the batch."""
    passed: tuple[Intent, ...] = ()
    """Batches that were begun before this one and given up, as they had written nothing."""
    _started: float = field(default_factory=time.monotonic)
    _declaring: Future[None] | None = None

    @classmethod
    def begin(
        cls,
        database: Database,
        *,
        job: str,
        object: str,
        stream: str,
        batch_id: int,
        base_batch: int,
        source: Mapping[str, Any],
        source_from: int,
        source_to: int,
        configuration: Mapping[str, Any],
        object_state: ObjectState | None = None,
        passing: bool = False,
        beside: bool = False,
    ) -> Batch:
        """Declare what a batch is going to read, or take over the declaration of a run that died.

        Parameters
        ----------
        database
            Where.
        job, object, stream
            Who works on what, and the stream that it reads.
        batch_id
            Number of the batch, from 1; see `ObjectState.next_batch`.
        base_batch
            First batch whose rows count; `batch_id` starts the object anew.
        source, source_from, source_to
            What is read: the positions after source_from up to source_to. An open intent of this batch overrides
            all three and the base.
        configuration
            The object's configuration.
        object_state
            Where the object stood when the caller looked; None: look now. What a rival does after that look is found
            out when the intent is written, or at the latest the publication.
        passing
            Whether earlier batches that were begun may be given up where they have written nothing.
        beside
            Whether the intent may be written while the caller reads; the first write of the batch waits for it, and
            raises what went wrong. The caller has to call `declared`, however its work ends.

        Raises
        ------
        ArgumentError
            A name is empty or too long.
        StateError
            Another batch must come first; the open intent was made under another configuration; or no number is free
            for the name.
        ConcurrentRunError
            Another run began the batch at the same moment.
        """
        phases.at(f"beginning batch {batch_id}", unit=None)
        check_name("object", object)
        check_name("stream", stream)
        text = documents.to_text(configuration)
        found = object_state or load_object_state(database, job, object, stream)
        rebuild = base_batch == batch_id and found.latest is not None
        if database.direct is not None and not rebuild:
            durability.check_versions(database.direct, {job, "ingest"})
        number, own_number = numbers(database, job, object, stream, found, rebuild=base_batch == batch_id)
        intent = Intent(
            job=job,
            object=object,
            stream=stream,
            stream_id=number,
            object_id=own_number,
            batch_id=batch_id,
            base_batch=base_batch,
            begun_at=timestamps.now(),
            run_id=uuid.uuid4().hex,
            source_from=source_from,
            source_to=source_to,
            source=dict(source),
            configuration=documents.from_text(text),
            configuration_hash=documents.digest(text),
        )
        start = resolve(database, intent, found, passing=passing)
        declaring = None
        if start.published is None and not start.adopted:
            application = application_of("intents", job, object)
            declare = partial(IntentsWriter(database).declare, intent, application=application)
            if beside and database.commits(INTENTS) is not None:
                declaring = _in_thread(declare)
            else:
                declare()
        return cls(
            database,
            start.intent,
            start.published,
            intent.run_id,
            previous=start.previous,
            adopted=start.adopted,
            passed=start.passed,
            _declaring=declaring,
        )

    def declared(self) -> None:
        """Wait until the intent is written.

        Raises
        ------
        ConcurrentRunError
            Another run began the batch at the same moment.
        """
        if self._declaring is not None:
            self._declaring.result()

    def publish(
        self,
        *,
        rows_in: int,
        rows_out: int,
        rows_quarantined: int = 0,
        watermark: datetime | None = None,
        state: Mapping[str, Any] | None = None,
        source_from: int | None = None,
        source_to: int | None = None,
    ) -> Publication:
        """Make the batch visible: its last write.

        Parameters
        ----------
        rows_in, rows_out, rows_quarantined
            Rows read, written, refused.
        watermark
            Greatest event time minus the allowed lateness.
        state
            What the next batch needs to know.
        source_from, source_to
            Positions that were given in this batch, where the intent could not know them (ingest).

        Raises
        ------
        ConcurrentRunError
            Another run published the batch first.
        StateError
            This run has published the batch before.
        """
        self._check_open()
        phases.at("publishing", unit=None)
        self._check_passed()
        intent = self.intent
        folder, direct, written = self.database.folder_on_disk, self.database.direct, self.database.written
        versions = {} if folder is None or direct is None else durability.current_versions(direct, self.job)
        if folder is not None:
            durability.write_out(folder)
        # As late as can be: a moment after it is asked from this batch.
        published_at = timestamps.now()
        if self.previous is not None:
            # The driver's clock may stand still or go back; an object's publications are in order all the same.
            published_at = max(published_at, self.previous.published_at + timedelta(microseconds=1))
        publication = Publication(
            job=self.job,
            object=self.object,
            stream=self.stream,
            stream_id=self.stream_id,
            object_id=self.object_id,
            batch_id=self.batch_id,
            base_batch=self.base_batch,
            run_id=self.run_id,
            source_from=intent.source_from if source_from is None else source_from,
            source_to=intent.source_to if source_to is None else source_to,
            source={**intent.source, **({} if written is None else {WRITTEN: written})},
            configuration=intent.configuration,
            configuration_hash=intent.configuration_hash,
            state=dict(state or {}),
            rows_in=rows_in,
            rows_out=rows_out,
            rows_quarantined=rows_quarantined,
            watermark=watermark,
            horizon=None if self.previous is None else self.previous.horizon,
            seconds=round(time.monotonic() - self._started, 3),
            published_at=published_at,
            versions=versions,
        )
        application = application_of("publications", self.job, self.object)
        writer = PublicationsWriter(self.database)
        self.published = writer.publish(publication, application=application, version=self.batch_id)
        if folder is not None:
            durability.write_out(folder)
        return self.published

    def _check_open(self) -> None:
        self.declared()
        super()._check_open()

    def _check_passed(self) -> None:
        """Refuse to publish beside a batch that was given up and that its run has gone on with after all."""
        for other in self.passed:
            published = PublicationsReader(self.database).of_batch(self.job, self.object, other.batch_id)
            if published is not None or not wrote_nothing(self.database, other):
                raise ConcurrentRunError(
                    f"another run is at work on batch {other.batch_id} of {self.job} of '{self.object}', which had "
                    f"written nothing when batch {self.batch_id} was begun; this run stopped and changed nothing that "
                    "readers see; run it with --rebuild"
                )


def _in_thread(work: Callable[[], None]) -> Future[None]:
    thread = ThreadPoolExecutor(1, "patternlake-declaring")
    done = thread.submit(work)
    thread.shutdown(wait=False)
    return done


def numbers(
    database: Database, job: str, object: str, stream: str, object_state: ObjectState, *, rebuild: bool = False
) -> tuple[int, int]:
    """The numbers of a stream and of a job's object on it: those of its newest batch, else what is given out.

    A rebuild asks anew: an object may have been moved to another stream.

    Raises
    ------
    StateError
        No number is free.
    """
    newest = object_state.newest
    if newest is not None and not rebuild:
        return newest.stream_id, newest.object_id
    given = ObjectNumbers(database)
    number = given.give(STREAM, stream)
    numbered = any(table.job == job and table.object_column for table in TABLES.values())
    return number, given.give(job, object) if numbered else number
