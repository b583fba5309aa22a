"""How every object stands: its last batch, how far it is behind its input, its rows, its size."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables import documents, timestamps
from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.quoting import literal
from patternlake.delta_tables.table_logs import UnreadableError
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.visibility import visible_text
from patternlake.jobs.configuration.alerts import TABLE
from patternlake.jobs.steps import JOBS

if TYPE_CHECKING:
    from pyspark.sql import Row

    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.direct_reader import DirectReader
    from patternlake.jobs.configuration.file import Configuration

logger = logging.getLogger(__name__)

SOURCE_JOB = "ingest"
"""The job whose objects, streams, all other jobs read."""

_Key = tuple[str, str]


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
    undelivered, dead_letters
        Alerts that are delivered outside: how many wait for it, and how many were given up. None for all others.
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
    undelivered: int | None = None
    dead_letters: int | None = None
    kept_events: int | None = None
    kept_since: datetime | None = None


def status(database: Database, configuration: Configuration) -> list[ObjectStatus]:
    """Look at every object that is configured or was published, job by job.

    Takes a handful of small queries, however many objects there are. Events are counted through their files'
    metadata; no filter and no event is read.

    Parameters
    ----------
    database
        The open database.
    configuration
        What ought to be there.
    """
    published = _published(database)
    open_batches = _open_batches(database, published)
    sizes = _sizes(database)
    names = _distinct_names(database)
    sketches = _sketches(database)
    outside = {name for name, alert in configuration.alerts.items() if alert.to != TABLE}
    letters = _letters(database) if outside else {}
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
            values |= _lag(row, published.get((SOURCE_JOB, stream_name)))
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
        if key in sketches and row is not None and row.source_to:
            values |= _per_event(sketches[key], names.get(object), row.source_to)
        if job == "patterns" and row is not None:
            kept = documents.from_text(row.state)
            values |= {"kept_events": kept["events"], "kept_since": timestamps.from_micros(kept["from_time"])}
        if job == "alerts" and object in outside and row is not None:
            values |= letters.get(object, {"undelivered": 0, "dead_letters": 0})
        found.append(ObjectStatus(**values))
    return found


def _configured_stream(job: str, object: str, configuration: Configuration) -> str:
    """The stream that an object is to read; most bear its name."""
    named = JOBS[job].stream if job in JOBS and object in JOBS[job].objects(configuration) else None
    return object if named is None else named(configuration, object)


def _published(database: Database) -> dict[_Key, Row]:
    """The last publication of each object, with totals over the batches since its last rebuild."""
    # A change of an object's horizon repeats its last batch, so batches are counted once each.
    text = f"""
WITH batches AS (
  SELECT job, object, batch_id, max(base_batch) AS base_batch, max(horizon) AS horizon, max_by(struct(
      stream, object_id, unix_micros(published_at) AS published_at, unix_micros(watermark) AS watermark,
      source_to, source, state, rows_in, rows_out, rows_quarantined), published_at) AS p
  FROM {database.log("publications")} GROUP BY job, object, batch_id
), based AS (
  SELECT *, max(base_batch) OVER (PARTITION BY job, object) AS base FROM batches
)
SELECT job, object, max(batch_id) AS batch_id, max(base) AS base_batch, unix_micros(max(horizon)) AS horizon,
  max_by(p.stream, batch_id) AS stream, max_by(p.object_id, batch_id) AS object_id,
  max_by(p.published_at, batch_id) AS published_at, max_by(p.watermark, batch_id) AS watermark,
  max_by(p.source_to, batch_id) AS source_to,
  max_by(p.source, batch_id) AS source, max_by(p.state, batch_id) AS state,
  sum(p.rows_in) AS rows_in, sum(p.rows_out) AS rows_out, sum(p.rows_quarantined) AS rows_quarantined
FROM based WHERE batch_id >= base GROUP BY job, object"""
    return {(row.job, row.object): row for row in database.spark.sql(text).collect()}


def _open_batches(database: Database, published: Mapping[_Key, Row]) -> dict[_Key, int]:
    """The newest batch of each object that was begun, where it is not published."""
    text = f"SELECT job, object, max(batch_id) AS batch_id FROM {database.log('intents')} GROUP BY job, object"
    return {
        key: row.batch_id
        for row in database.spark.sql(text).collect()
        if (key := (row.job, row.object)) not in published or row.batch_id > published[key].batch_id
    }


def _sizes(database: Database) -> dict[tuple[str, int], int]:
    """Bytes of the files of each job and number of an object, in the tables that have a folder per object."""
    owners = {
        table.name: (table.job, owner)
        for table in TABLES.values()
        if table.job and (owner := table.object_column or "stream_id") in table.partitions
    }
    if database.direct is not None:
        try:
            return sizes_by_logs(database.direct, owners)
        except UnreadableError as error:
            logger.info("sizes are asked of Spark: %s", error)
    return sizes_by_spark(database, owners)


def sizes_by_logs(reader: DirectReader, owners: Mapping[str, tuple[str, str]]) -> dict[tuple[str, int], int]:
    """The sizes as the tables' logs tell them: no file is opened."""
    found: Counter[tuple[str, int]] = Counter()
    for table, (job, owner) in owners.items():
        files = reader.files(table)
        if files.num_rows:
            objects, sizes = (files[name].to_pylist() for name in (f"partition.{owner}", "size_bytes"))
            for object, size in zip(objects, sizes, strict=True):
                found[job, object] += size
    return dict(found)


def sizes_by_spark(database: Database, owners: Mapping[str, tuple[str, str]]) -> dict[tuple[str, int], int]:
    """The same where only Spark can read; it looks at every row for the file that it stands in."""
    parts = [
        f"SELECT DISTINCT {literal(job)} AS job, {owner} AS owner, _metadata.file_path AS path, "
        f"_metadata.file_size AS size FROM {database.log(table)}"
        for table, (job, owner) in owners.items()
    ]
    text = f"SELECT job, owner, sum(size) AS bytes FROM ({' UNION ALL '.join(parts)}) GROUP BY job, owner"
    return {(row.job, row.owner): row.bytes for row in database.spark.sql(text).collect()}


def _distinct_names(database: Database) -> dict[str, Row]:
    """Per stream: how many event names there are, and the bytes of their texts."""
    text = f"""
SELECT object, count(*) AS distinct, sum(octet_length(name)) AS bytes FROM (
  SELECT DISTINCT p.object, s.name
  FROM {database.log("event_statistics")} s JOIN ({current(database.log, SOURCE_JOB)}) p
    ON {visible_text(TABLES["event_statistics"], "s", "p")}
) GROUP BY object"""
    return {row.object: row for row in database.spark.sql(text).collect()}


def _sketches(database: Database) -> dict[_Key, Row]:
    """Per sketch: bytes of filters and key lists that a query sees, distinct keys, bytes of their texts."""
    text = f"""
WITH nodes AS (
  SELECT p.object, size(n.node) * CAST(n.m DIV 8 AS BIGINT) AS filters, n.keys
  FROM {database.log("sketch_nodes")} n JOIN ({current(database.log, "sketch")}) p
    ON {visible_text(TABLES["sketch_nodes"], "n", "p")}
), listed AS (
  SELECT object, key, count(*) AS times FROM nodes LATERAL VIEW explode(keys) AS key GROUP BY object, key
)
SELECT object, sum(filters) AS filters, sum(key_lists) AS key_lists, sum(distinct) AS distinct, sum(bytes) AS bytes
FROM (
  SELECT object, sum(filters) AS filters, 0 AS key_lists, 0 AS distinct, 0 AS bytes FROM nodes GROUP BY object
  UNION ALL
  SELECT object, 0, sum(times * octet_length(key)), count(*), sum(octet_length(key)) FROM listed GROUP BY object
) GROUP BY object"""
    return {("sketch", row.object): row for row in database.spark.sql(text).collect()}


def _letters(database: Database) -> dict[str, dict[str, int]]:
    """Per alert: how many of its rows wait for delivery, and how many are dead letters."""
    text = f"""
SELECT alert, count_if(delivered_at IS NULL AND NOT dead_letter) AS undelivered, count_if(dead_letter) AS dead_letters
FROM {database.view("alerts")} GROUP BY alert"""
    return {
        row.alert: {"undelivered": row.undelivered, "dead_letters": row.dead_letters}
        for row in database.spark.sql(text).collect()
    }


def _lag(row: Row | None, stream: Row | None) -> dict[str, Any]:
    """What a job that reads a stream has not read of it."""
    if stream is None:
        return {"lag_rows": 0, "lag_batches": 0}
    read = {} if row is None else documents.from_text(row.source)
    if row is None or read.get("ingest_base") != stream.base_batch:
        return {"lag_rows": stream.source_to or 0, "lag_batches": stream.batch_id - stream.base_batch + 1}
    return {
        "lag_rows": (stream.source_to or 0) - (row.source_to or 0),
        "lag_batches": stream.batch_id - read["ingest_batch"],
    }


def _per_event(sketch: Row, names: Row | None, events: int) -> dict[str, Any]:
    state_bytes = sketch.filters + (sketch.key_lists or 0)
    coded = None
    if names is not None:
        columns = [(names.distinct, names.bytes)] + ([(sketch.distinct, sketch.bytes)] if sketch.distinct else [])
        coded = dictionary_bytes(events, columns) / events
    return {
        "state_bytes": state_bytes,
        "bytes_per_event": state_bytes / events,
        "dictionary_bytes_per_event": coded,
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
