"""How a job that reads a stream's events begins its next batch: from the stream's publication and its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.batches.resume import wrote_nothing
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.snapshots import earliest_event
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches.summary import Summary
from patternlake.udfs.errors import StateError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """A batch that was begun.

    Attributes
    ----------
    batch
        The batch; its range is `batch.source_from` to `batch.source_to` of the stream's positions.
    stream
        The publication of the stream that it reads.
    last
        The publication that it goes on from; None where it starts anew.
    """

    batch: Batch
    stream: Publication
    last: Publication | None


def follow(
    job: str, name: str, begin: Callable[[bool], Work | None], perform: Callable[[Work], Publication]
) -> Summary:
    """Do an object's batches until it is up to date.

    Parameters
    ----------
    job, name
        Which object.
    begin
        Begins the next batch, as `next_batch` does; told whether it is the first of this run.
    perform
        Writes and publishes it.
    """
    started = time.monotonic()
    done: list[Publication] = []
    while (work := begin(not done)) is not None:
        try:
            done.append(perform(work))
        finally:
            work.batch.declared()
        # Only a batch that was begun earlier can leave events unread that the stream has now.
        if not work.batch.adopted:
            break
    return Summary.of(job, name, done, time.monotonic() - started)


def next_batch(
    db: Database,
    job: str,
    name: str,
    stream_name: str,
    meaning: Mapping[str, Any],
    *,
    rebuild: bool,
    check: Callable[[Publication, Publication | None], None],
    free: tuple[str, ...] = (),
    catalogue: str = "",
    noted: Callable[[Publication, int, int], Mapping[str, Any]] = lambda *_: {},
) -> Work | None:
    """Begin the next batch of an object; None where it is up to date, as one without events of a stream without is.

    A batch that an earlier run began is taken over, with two exceptions. Where a rebuild of the stream has replaced
    what it reads, it stays behind, unseen, as before a rebuild of the object. Where it wrote nothing, and the
    configuration is another now, it is given up: its own configuration may be what it died of.

    Parameters
    ----------
    db
        The open database.
    job, name, stream_name
        Which object, and the stream that it reads.
    meaning
        What its configuration means.
    rebuild
        Start anew, with the configuration as it is now.
    check
        Called with the stream's publication, and the one to go on from, before anything is written: what it raises
        leaves no batch behind that nobody could finish.
    free
        Keys of `meaning` that may change from batch to batch. A batch that an earlier run began keeps its own.
    catalogue
        A key of `meaning` that may change from batch to batch, and whose change is a reason for one. A batch that an
        earlier run began is done as that run meant it.
    noted
        Called with the publication to go on from, the number of the batch, and how many events it reads: what its
        intent is to say beside what is read, so that every run of the batch does the same.

    Raises
    ------
    StateError
        The stream has no published events, or the configuration has changed in a way that needs a rebuild.
    """
    phases.at("looking for new events", unit=None)
    object_state = load_object_state(db, job, name, stream_name, beside=("ingest",))
    last, stream = object_state.latest, object_state.beside["ingest"]
    if stream is None:
        shown = "the stream" if name == stream_name else f"the stream {stream_name!r}"
        raise StateError(f"{job} {name!r}: {shown} has no published events; run `ingest` first")
    begun = object_state.pending[-1] if object_state.pending else None
    adopted = None if begun is None or rebuild or begun.source["ingest_base"] != stream.base_batch else begun
    whole: dict[str, Any] = {**meaning, "stream": dict(stream.configuration)}
    given_up = adopted is not None and differs(adopted.configuration, meaning) and wrote_nothing(db, adopted)
    if adopted is not None and given_up:
        told = "%s %r: batch %d was begun under another configuration, wrote nothing, and is given up"
        logger.warning(told, job, name, adopted.batch_id)
        adopted = None
    # What goes on from no events goes on from nothing, and need not fit together with it.
    fresh = last is None or rebuild or last.source["ingest_base"] != stream.base_batch or not last.source_to
    fresh = fresh or (adopted is not None and adopted.rebuild)
    if adopted is not None:
        # The stream may have gained attributes since.
        whole["stream"] = adopted.configuration["stream"]
    if adopted is not None:
        whole |= {key: adopted.configuration.get(key) for key in (*free, catalogue) if key}
    if last is not None and not fresh:
        refuse_changes(job, name, last.configuration, whole, (*free, catalogue))
        changed = bool(catalogue) and last.configuration.get(catalogue) != whole[catalogue]
        if adopted is None and last.source["ingest_batch"] == stream.batch_id and not changed:
            return None
    if not stream.source_to and (last is None or not last.source_to):
        return None
    if adopted is None:
        check(stream, None if fresh else last)
    batch_id = object_state.free_batch if adopted is None else adopted.batch_id
    source = {"ingest_batch": stream.batch_id, "ingest_base": stream.base_batch}
    if last is not None and not fresh:
        source |= noted(last, batch_id, stream.source_to - last.source_to)
    batch = Batch.begin(
        db,
        job=job,
        object=name,
        stream=stream_name,
        batch_id=batch_id,
        base_batch=batch_id if fresh or last is None else last.base_batch,
        source=source,
        source_from=0 if fresh or last is None else last.source_to,
        source_to=stream.source_to,
        configuration=whole,
        object_state=object_state,
        passing=given_up,
        beside=True,
    )
    # An intent that a run left behind may name an older batch of the stream.
    read: Publication | None = stream
    if stream.batch_id != batch.source["ingest_batch"]:
        read = PublicationsReader(db).of_batch("ingest", stream_name, int(batch.source["ingest_batch"]))
    if read is None:
        raise StateError(f"{job} {name!r}: batch {batch.source['ingest_batch']} of the stream is not published")
    return Work(batch, read, None if batch.base_batch == batch.batch_id else batch.previous)


def differs(begun: Mapping[str, Any], meaning: Mapping[str, Any]) -> bool:
    """Whether a batch was begun under a configuration that means something else."""
    now = documents.from_text(documents.to_text(meaning))
    return any(begun.get(key) != value for key, value in now.items())


def refuse_changes(
    job: str, name: str, published: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...] = ()
) -> None:
    """Refuse a configuration that gives an object another meaning, naming the keys that differ."""
    changed = sorted(
        key for key in {*published, *now} if published.get(key) != now.get(key) and key not in ("stream", *free)
    )
    if changed:
        told = ", ".join(f"{key}: {published.get(key)!r} → {now.get(key)!r}" for key in changed)
        raise StateError(
            f"{job} {name!r}: the configuration has changed since the last batch ({told}); "
            "what is kept would not fit together with what comes: run it with --rebuild, or take the change back"
        )


def refuse_earlier_events(db: Database, job: str, name: str, stream: Publication, last: Publication | None) -> None:
    """Refuse a stream that took an event of a time up to which a job has taken all events.

    Parameters
    ----------
    db, job, name
        The open database, and which object.
    stream
        The publication of its stream.
    last
        The publication that it goes on from; None: it starts anew.

    Raises
    ------
    StateError
        There is such an event.
    """
    if last is None or last.watermark is None:
        return
    earliest = timestamps.from_micros(
        earliest_event(db.state, stream.object_id, int(last.source["ingest_batch"]), stream.batch_id)
    )
    if earliest is not None and earliest < last.watermark:
        raise StateError(
            f"{job} {name!r}: the stream {stream.object!r} took an event at {timestamps.show_moment(earliest)}, as its "
            "allowed_lateness was none, after all up to "
            f"{timestamps.show_moment(last.watermark)} had been read; run it with --rebuild"
        )
