"""The job `alerts`: what `predict`, `groups` and `patterns` have published since is told once, in a table, and outside.

Rows are written and published first. What is to be delivered outside is delivered after that, in this run or in a later
one, at least once: `alert_id` tells repeats apart.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables import phases, timestamps
from patternlake.delta_tables.batches import Batch
from patternlake.delta_tables.database import Database
from patternlake.delta_tables.frames import frame_where
from patternlake.delta_tables.spark_reader import chosen
from patternlake.delta_tables.state_reader import Condition
from patternlake.delta_tables.tables.alerts import told_by
from patternlake.delta_tables.tables.forecasts import ForecastsReader
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs import few
from patternlake.jobs.alerts.batches import JOB, READ_BATCH, next_batch
from patternlake.jobs.alerts.deliveries import deliver
from patternlake.jobs.alerts.rows import alert_rows, check_where, found, locate_rows
from patternlake.jobs.configuration.alerts import FORECAST, TABLE, AlertConfiguration
from patternlake.jobs.contexts import kept
from patternlake.jobs.following import Work, followed
from patternlake.jobs.forecasts import KEPT
from patternlake.jobs.summary import Summary
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

ALERTS = "alerts"


def alerts(
    db: Database, name: str, configuration: AlertConfiguration, *, stream: str, rebuild: bool = False
) -> Summary:
    """Tell what was published since this alert was told last, and deliver what waits for it.

    Parameters
    ----------
    db
        The open database.
    name
        The alert.
    configuration
        Its section under `alerts`.
    stream
        The stream whose events it goes back to.
    rebuild
        Tell all again that is published, with the configuration as it is now. What has been delivered is not delivered
        again.

    Raises
    ------
    PatternLakeError
        What the alert is about is not published; its predicate is none; its configuration has changed since the last
        batch; or its target cannot be used at all.
    """
    # As in `ingest`: what cannot be computed of a row is NULL, and stops no run.
    with db.apart({"spark.sql.ansi.enabled": "false"}) as own:
        return _tell(own, name, configuration, stream, rebuild=rebuild)


def _tell(db: Database, name: str, configuration: AlertConfiguration, stream: str, *, rebuild: bool) -> Summary:
    started = time.monotonic()
    read_from = configuration.reads(stream)
    warnings: list[str] = []

    def begin(first: bool) -> Work | None:
        return next_batch(
            db,
            name,
            stream,
            read_from,
            configuration.meaning,
            rebuild=rebuild and first,
            check=lambda read: _check(db, name, configuration, read),
        )

    def perform(work: Work) -> Publication:
        warnings.extend(_forgotten(db, name, configuration, work))
        return _publish_new(db, work)

    summary = followed(JOB, name, begin, perform)
    if configuration.to != TABLE:
        latest = PublicationsReader(db).latest(JOB, name)
        if latest is not None:
            warnings += deliver(db, latest, configuration)
    for warning in warnings:
        logger.warning(warning)
    return dataclasses.replace(summary, seconds=time.monotonic() - started, warnings=tuple(warnings))


def _check(db: Database, name: str, configuration: AlertConfiguration, read: Publication) -> None:
    check_where(db.spark, name, configuration.meaning)
    if configuration.section != "subscriptions":
        return
    entry = read.configuration["subscriptions"].get(configuration.name)
    if entry is None or (configuration.of == FORECAST and KEPT not in entry):
        what = "the subscription" if entry is None else "forecasts of the subscription"
        raise StateError(f"{JOB} {name!r}: `predict` has not published {what} {configuration.name!r}; run it first")
    # What `predict` keeps follows from all alerts together, so it may keep more than this one asks for.
    if configuration.of == FORECAST and configuration.bound is not None and entry[KEPT] > configuration.bound:
        raise StateError(
            f"{JOB} {name!r}: `predict` has kept forecasts above {entry[KEPT]:g} only, and the alert is about those "
            f"above {configuration.bound:g}; run `predict` first"
        )


def _publish_new(db: Database, work: Work) -> Publication:
    """Write what is new and publish it."""
    batch, last = work.batch, work.last
    phases.at("looking for what is told")
    after = None if last is None else int(last.source[READ_BATCH])
    table, where = locate_rows(work.stream, batch.configuration, after)
    news = frame_where(db, table, where, most_bytes=few.FEW_BYTES)
    rows = alert_rows(
        found(db, news, work.stream, batch.configuration, after), alert=batch.object, meaning=batch.configuration
    )
    # What was built anew, or began anew under another configuration, comes again.
    known = [] if last is None else told_by(last)
    if few.few_bytes(db, table, where) and (last is None or few.few_bytes(db, ALERTS, known)):
        count = _write_here(db, batch, rows, known)
    else:
        count = _write(db, batch, rows, known)
    return batch.publish(rows_in=batch.source_to - batch.source_from, rows_out=count, watermark=work.stream.watermark)


def _write(db: Database, batch: Batch, rows: DataFrame, known: Sequence[Condition]) -> int:
    """Let Spark write the rows that no earlier batch has; how many there are."""
    if known:
        rows = rows.join(chosen(db.table(ALERTS), known).select("alert_id"), "alert_id", "left_anti")
    with kept(rows.dropDuplicates(["alert_id"])) as new:
        count = new.count()
        if count:
            moment = timestamps.timestamp_literal(batch.intent.begun_at)
            marks = {"alert_number": batch.object_id, "stream_id": batch.stream_id, "batch_id": batch.batch_id}
            types = {"alert_number": "int", "stream_id": "int", "batch_id": "bigint"}
            batch.append(
                ALERTS,
                new.select(
                    "*",
                    moment.alias("first_seen_at"),
                    *[F.lit(value).cast(types[column]).alias(column) for column, value in marks.items()],
                ),
            )
    return count


def _write_here(db: Database, batch: Batch, rows: DataFrame, known: Sequence[Condition]) -> int:
    """As `_write`, in the driver's process."""
    assert db.direct is not None
    new = rows.toArrow()
    if known:
        told = db.direct.rows(ALERTS, ("alert_id",), known)["alert_id"]
        new = new.filter(pc.invert(pc.is_in(new["alert_id"], told.combine_chunks())))
    _, first = np.unique(new["alert_id"].to_numpy(), return_index=True)
    new = new.take(pa.array(first))
    if new.num_rows:
        moment = pa.scalar(timestamps.to_micros(batch.intent.begun_at), pa.int64())
        new = new.append_column("first_seen_at", pa.repeat(moment.cast(pa.timestamp("us", "UTC")), new.num_rows))
        batch.append(ALERTS, batch.marked(ALERTS, new))
    return int(new.num_rows)


def _forgotten(db: Database, name: str, configuration: AlertConfiguration, work: Work) -> list[str]:
    """Say so where forecasts were removed before they could be told."""
    read, last = work.stream, work.last
    if configuration.of != FORECAST or last is None or read.horizon is None:
        return []
    oldest = PublicationsReader(db).at(read.job, read.object, read.horizon).batch_id
    after = int(last.source[READ_BATCH])
    gone = [batch for batch in ForecastsReader(db).batches(read, after + 1) if batch < oldest]
    if not gone:
        return []
    return [
        f"alert {name!r}: forecasts of {len(gone)} batches of `predict`, from {gone[0]} to {gone[-1]}, were removed by "
        "`maintain` before they could be told; run `alerts` more often"
    ]
