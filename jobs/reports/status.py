"""How every object stands: its last batch, how far it is behind its input, its rows, its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.schema import timestamps
from patternlake.jobs.configuration.alerts import TABLE
from patternlake.jobs.reports import status_sources
from patternlake.jobs.reports.status_sources import Held, Letters, Published, SketchBytes, Texts
from patternlake.jobs.runs.steps import JOBS

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.reading.direct_reader import DirectReader
    from patternlake.delta_tables.reading.state_reader import StateReader
    from patternlake.jobs.configuration.file import Configuration

SOURCE_JOB = "ingest"
"""The job whose objects, streams, all other jobs read."""


@dataclass(frozen=True)
class ObjectStatus:
    """One object of one job. Moments are in UTC, sizes in bytes.

    Parameters
    ----------
    job, object, stream
        Who works on what, and the stream that it reads or is.
    configured
        Whether the configuration names it; False for what was published once and is configured no more.
    batch_id, published_at
        The last published batch; None before the first.
    open_batch
        A batch that was begun and is not published: a run is at work, or died and the next one takes it over.
    watermark
        That of the last publication. An object's events end there, give or take the allowed lateness.
    horizon
        Earliest moment that `as_of` can ask for; None: the first publication.
    lag_rows, lag_batches
        Published events and batches of the stream that the object does not know yet. None for a stream: what its
        source holds is known only by reading it, so its lag shows in the age of its watermark.
    rows_in, rows_out, rows_quarantined
        Totals over the batches since the last rebuild.
    bytes
        What the object's files in its Delta tables take, rows included that only an earlier `as_of` sees.
    state_bytes
        Sketches: filters and key lists of the nodes that a query sees now, which is what `memory` bounds.
    bytes_per_event
        Sketches: `state_bytes` per event.
    dictionary_bytes_per_event
        Sketches: what a dictionary-coded log of the same events takes, that is, for each event
        ceil(log2(distinct names)) bits, for a keyed sketch ceil(log2(distinct keys)) bits more, and the names and
        keys once. Further token expressions are not counted.
    events_bytes_per_event
        Sketches, where tables are read without Spark: what position, time and name take in the files of the stream's
        events. Where that is less than `bytes_per_event`, exact answers about all of a stream read events instead.
    undelivered, dead_letters
        Alerts that are delivered outside: how many wait for it, and how many were given up. None for all others.
    held_back, held_back_uncounted
        Alerts: how many rows `quiet` has held back, and how many of them no alert has counted yet. None for all others.
    kept_events, kept_since
        Kept patterns: how many events may still take part in a match that is not final, which WITHIN bounds, and the
        moment from which on they are read; None for all others, and where each partition has a moment of its own.
    """

    job: str
    object: str
    stream: str
    configured: bool
    batch_id: int | None = None
    published_at: datetime | None = None
    open_batch: int | None = None
    watermark: datetime | None = None
    horizon: datetime | None = None
    lag_rows: int | None = None
    lag_batches: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    rows_quarantined: int = 0
    bytes: int = 0
    state_bytes: int | None = None
    bytes_per_event: float | None = None
    dictionary_bytes_per_event: float | None = None
    events_bytes_per_event: float | None = None
    undelivered: int | None = None
    dead_letters: int | None = None
    held_back: int | None = None
    held_back_uncounted: int | None = None
    kept_events: int | None = None
    kept_since: datetime | None = None


def status(database: Database, configuration: Configuration) -> list[ObjectStatus]:
    """Look at every object that is configured or was published, job by job.

    Takes a handful of small reads, however many objects there are. Events are counted through their files'
    metadata; no filter and no event is read. What a large sketch takes is summed up by Spark's tasks.

    Parameters
    ----------
    database
        The open database.
    configuration
        What ought to be there.
    """
    sketches = partial(status_sources.sketches, database)
    return _status(database.state, status_sources.sizes(database), sketches, configuration)


def status_without_spark(reader: DirectReader, configuration: Configuration) -> list[ObjectStatus]:
    """As `status`, of a database that can be read without Spark.

    Raises
    ------
    UnreadableError
        A table has come to be such as only Spark can read, or a sketch too large for one process.
    """
    sizes = status_sources.sizes_by_logs(reader, status_sources.owners())
    return _status(reader, sizes, partial(status_sources.sketches_here, reader), configuration)


def _status(
    reader: StateReader,
    sizes: Mapping[tuple[str, int], int],
    sketches_of: Callable[[Mapping[str, Published]], Mapping[str, SketchBytes]],
    configuration: Configuration,
) -> list[ObjectStatus]:
    published = status_sources.read_published(reader)
    open_batches = status_sources.open_batches(reader, published)
    streams = _of_job(SOURCE_JOB, published)
    sketches = sketches_of(_of_job("sketch", published))
    sketched = {name: streams[name] for name in sketches if name in streams}
    names = status_sources.names(reader, sketched)
    read_instead = status_sources.read_instead(reader, sketched)
    outside = {name for name, alert in configuration.alerts.items() if alert.to != TABLE}
    alerts = _of_job("alerts", published)
    letters = status_sources.letters(reader, {name: row for name, row in alerts.items() if name in outside})
    held_back = status_sources.held_back(reader, alerts)
    wanted = {(name, object) for name, job in JOBS.items() if job.maintains for object in job.objects(configuration)}
    # Streams without subscriptions are only looked at for such as there were.
    wanted -= {("predict", stream) for stream in configuration.streams if stream not in configuration.subscribed}
    order = {name: number for number, name in enumerate(JOBS)}
    found = []
    for job, object in sorted(
        {*wanted, *published, *open_batches}, key=lambda key: (order.get(key[0], len(order)), key)
    ):
        key = (job, object)
        row = published.get(key)
        stream_name = _configured_stream(job, object, configuration) if row is None else row.stream
        values: dict[str, Any] = {
            "job": job,
            "object": object,
            "stream": stream_name,
            "configured": key in wanted,
            "open_batch": open_batches.get(key),
        }
        if job != SOURCE_JOB:
            values |= _lag(row, streams.get(stream_name))
            if job == "evaluate" and row is not None and _is_judged(configuration, row, streams.get(stream_name)):
                values |= {"lag_rows": 0, "lag_batches": 0}
        if row is not None:
            values |= {
                "batch_id": row.batch_id,
                "published_at": timestamps.from_micros(row.published_at),
                "watermark": timestamps.from_micros(row.watermark),
                "horizon": timestamps.from_micros(row.horizon),
                "rows_in": row.rows_in,
                "rows_out": row.rows_out,
                "rows_quarantined": row.rows_quarantined,
                "bytes": sizes.get((job, row.object_id), 0),
            }
        if job == "sketch" and object in sketches and row is not None and row.source_to:
            values |= _per_event(sketches[object], names.get(object), read_instead.get(object), row.source_to)
        if job == "patterns" and row is not None:
            kept = row.state
            values |= {"kept_events": kept["events"], "kept_since": timestamps.from_micros(kept["from_time"])}
        if job == "alerts" and row is not None:
            values |= asdict(held_back.get(object, Held()))
            if object in outside:
                values |= asdict(letters.get(object, Letters()))
        found.append(ObjectStatus(**values))
    return found


def _of_job(job: str, published: Mapping[tuple[str, str], Published]) -> dict[str, Published]:
    """The publications of one job, by object."""
    return {object: row for (name, object), row in published.items() if name == job}


def _configured_stream(job: str, object: str, configuration: Configuration) -> str:
    """The stream that an object is to read; most bear its name."""
    named = JOBS[job].stream if job in JOBS and object in JOBS[job].objects(configuration) else None
    return object if named is None else named(configuration, object)


def _lag(row: Published | None, stream: Published | None) -> dict[str, Any]:
    """What a job that reads a stream has not read of it."""
    if stream is None:
        return {"lag_rows": 0, "lag_batches": 0}
    if row is None or row.source.get("ingest_base") != stream.base_batch:
        return {"lag_rows": stream.source_to or 0, "lag_batches": stream.batch_id - stream.base_batch + 1}
    return {
        "lag_rows": (stream.source_to or 0) - (row.source_to or 0),
        "lag_batches": stream.batch_id - row.source["ingest_batch"],
    }


def _is_judged(configuration: Configuration, row: Published, stream: Published | None) -> bool:
    """Whether no later event changes an evaluation: the ranges lie below its watermark, and the stream is the same."""
    asked = configuration.evaluate
    if asked is None or stream is None or row.watermark is None or row.source.get("ingest_base") != stream.base_batch:
        return False
    return row.watermark > max(timestamps.to_micros(each[1]) for each in (asked.train, asked.test))


def _per_event(sketch: SketchBytes, names: Texts | None, instead: int | None, events: int) -> dict[str, Any]:
    state_bytes = sketch.filters + sketch.key_lists
    coded = None
    if names is not None:
        columns = [each for each in (names, sketch.keys) if each.distinct or each is names]
        coded = dictionary_bytes(events, [(each.distinct, each.bytes) for each in columns]) / events
    return {
        "state_bytes": state_bytes,
        "bytes_per_event": state_bytes / events,
        "dictionary_bytes_per_event": coded,
        "events_bytes_per_event": instead / events if instead else None,
    }


def dictionary_bytes(events: int, columns: Iterable[tuple[int, int]]) -> int:
    """Bytes of a dictionary-coded log.

    Parameters
    ----------
    events
        How many.
    columns
        For each coded column: its distinct values, and the bytes of their texts.

    Returns
    -------
    int
        Codes of ceil(log2(distinct)) bits per event and column, and each dictionary once.
    """
    listed = list(columns)
    bits = sum((distinct - 1).bit_length() for distinct, _ in listed)
    return -(-events * bits // 8) + sum(texts for _, texts in listed)
