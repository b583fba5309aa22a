"""Forgets: removes the rows that no answer at or after a horizon needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column

from patternlake.delta_tables.batches.closing import FEW_BYTES
from patternlake.delta_tables.reading.spark_reader import all_of
from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.reading.visibility import first_batch, of_object
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader, PublicationsWriter
from patternlake.delta_tables.writing import direct_rewriting, writes
from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.schema.table import Table


def move_horizon(database: Database, *, job: str, object: str, horizon: datetime) -> Publication | None:
    """Record from which moment on an object can be asked for; it never moves back.

    Parameters
    ----------
    database
        Where.
    job, object
        Whose.
    horizon
        Earliest moment that can be asked for from now on.

    Returns
    -------
    Publication or None
        The latest publication, with its horizon; None where nothing was published by the horizon, and nothing
        can be forgotten.

    Raises
    ------
    ArgumentError
        The horizon lies in the future, or has no time zone.
    ConcurrentRunError
        Another run recorded a horizon at the same moment.
    """
    now = timestamps.now()
    if timestamps.to_micros(horizon) > timestamps.to_micros(now):
        raise ArgumentError(
            f"the horizon {timestamps.show_moment(horizon)} lies in the future; it is {timestamps.show_moment(now)} now"
        )
    reader = PublicationsReader(database)
    latest = reader.latest(job, object)
    if latest is None:
        return None
    if latest.horizon is None or latest.horizon < horizon:
        try:
            reader.at(job, object, horizon)
        except StateError:
            return None
        latest = _record(database, latest, horizon)
    return latest


def forget(
    database: Database, *, job: str, object: str, horizon: datetime, readers: Collection[tuple[str, str]] = ()
) -> Publication | None:
    """Record an object's horizon, then delete the rows that only earlier moments need.

    The horizon comes first: a run that dies in between leaves too many rows, never an answer with too few. May be
    run again, and beside the object's own job.

    Parameters
    ----------
    database, job, object, horizon
        As for `move_horizon`, as are results and errors.
    readers
        Jobs and objects of which functions read rows of this one, beside what they keep: those that they know at the
        horizon stay. What was not made anew since its stream was answers from the events that it read then. Their own
        horizons are to be moved before.
    """
    latest = move_horizon(database, job=job, object=object, horizon=horizon)
    if latest is None:
        return None
    assert latest.horizon is not None
    needed = PublicationsReader(database).at(job, object, latest.horizon)
    read = _first_read(database, needed, latest.horizon, readers) if readers else None
    for table in TABLES.values():
        if table.job == job:
            _forget(database, table, needed, read)
    return latest


def _first_read(
    database: Database, events: Publication, horizon: datetime, readers: Collection[tuple[str, str]]
) -> int:
    """The first batch of a stream that readers know at a horizon or later."""
    columns = ("job", "object", "batch_id", "published_at", "source")
    until = between("published_at", None, timestamps.to_micros(horizon))
    where = [Condition("stream_id", "=", events.stream_id), among("job", sorted({job for job, _ in readers})), *until]
    rows = database.state.rows("publications", columns, where)
    found: dict[tuple[str, str], tuple[int, datetime, str]] = {}
    for row in (row for row in rows.to_pylist() if (row["job"], row["object"]) in readers):
        at = (row["batch_id"], row["published_at"], row["source"])
        found[row["job"], row["object"]] = max(at, found.get((row["job"], row["object"]), at))
    sources = [documents.from_text(source) for _, _, source in found.values()]
    return min((int(source["ingest_base"]) for source in sources), default=events.base_batch)


def _forget(database: Database, table: Table, needed: Publication, read: int | None) -> None:
    """Delete the rows of an object that the publication at its horizon does not need."""
    any_of = _list_unneeded(table, needed, read)
    # What a table's log says is cheap to ask.
    if database.direct is not None and not any(database.direct.size(table.name, where) for where in any_of):
        return
    writes.delete(
        database.spark,
        database.log(table.name),
        reduce(Column.__or__, [all_of(where, table.moments) for where in any_of]),
        commits=database.commits(table),
        directly=partial(direct_rewriting.delete, any_of=any_of, most_bytes=FEW_BYTES, layout=table.layout),
    )


def _oldest(table: Table, needed: Publication) -> int:
    """The first batch whose rows a publication needs."""
    return needed.batch_id if table.momentary else first_batch(table, needed.source, needed.base_batch)


def _list_unneeded(table: Table, needed: Publication, read: int | None) -> list[list[Condition]]:
    """The rows of an object that a publication does not need: those that satisfy all conditions of one of the lists.

    Those of batch `read` and later ones are needed by what others publish; None: there is no such batch.
    """
    mine = of_object(table, needed.stream_id, needed.object_id)
    written = "from_batch" if table.changing else "batch_id"
    oldest = _oldest(table, needed)
    any_of = [[*mine, Condition(written, "<=", (oldest if read is None else min(oldest, read)) - 1)]]
    return [*any_of, [*mine, Condition("to_batch", "<=", needed.batch_id)]] if table.changing else any_of


def _record(database: Database, latest: Publication, horizon: datetime) -> Publication:
    """Publish the latest batch once more, with the horizon; its run stays the one that made it."""
    published_at = max(timestamps.now(), latest.published_at + timedelta(microseconds=1))
    return PublicationsWriter(database).publish(
        dataclasses.replace(latest, horizon=horizon, published_at=published_at),
        application=documents.to_array([latest.job, latest.object, "horizon"]),
        version=timestamps.to_micros(published_at),
    )
