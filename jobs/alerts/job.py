"""The job `alerts`: what `predict`, `groups` and `patterns` have published since is told once, in a table, and outside.

Rows are written and published first. What is to be delivered outside is delivered after that, in this run or in a later
one, at least once: `alert_id` tells repeats apart.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.spark_reader import choose_rows
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.forecasts import ForecastsReader
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.delta_tables.writing.frames import frame_where
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.alerts.batches import JOB, READ_BATCH, next_batch
from patternlake.jobs.alerts.deliveries import deliver
from patternlake.jobs.alerts.quiet import AT, BEFORE, OUTCOME, RANK, TURN, hold_back
from patternlake.jobs.alerts.rows import alert_rows, check_where, find_rows, locate_rows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import keep_evaluated
from patternlake.jobs.batches.following import Work, follow
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.alerts import FORECAST, QUIET, TABLE, AlertConfiguration
from patternlake.jobs.machines.forecasts import KEPT
from patternlake.udfs.errors import StateError
from patternlake.udfs.record_batches import in_micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

ALERTS, HELD_ALERTS = "alerts", "held_alerts"
_Known = Mapping[str, Sequence[Condition]]
"""By table, the conditions on what earlier batches have decided; empty: none did."""


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
        warnings.extend(_find_forgotten(db, name, configuration, work))
        return _publish_new(db, work)

    summary = follow(JOB, name, begin, perform)
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
        find_rows(db, news, work.stream, batch.configuration, after), alert=batch.object, meaning=batch.configuration
    )
    # What was built anew, or began anew under another configuration, comes again.
    known = {} if last is None else {name: published_rows(TABLES[name], last) for name in (ALERTS, HELD_ALERTS)}
    if few.few_bytes(db, table, where) and all(few.few_bytes(db, *each) for each in known.items()):
        count = _write_here(db, batch, rows, known)
    else:
        count = _write(db, batch, rows, known)
    return batch.publish(rows_in=batch.source_to - batch.source_from, rows_out=count, watermark=work.stream.watermark)


def _write(db: Database, batch: Batch, rows: DataFrame, known: _Known) -> int:
    """Let Spark write the rows that no earlier batch has; how many are told."""
    before = {name: choose_rows(db.table(name), where) for name, where in known.items()}
    for those in before.values():
        rows = rows.join(those.select("alert_id"), "alert_id", "left_anti")
    with (
        keep_evaluated(rows.dropDuplicates(["alert_id"])) as new,
        keep_evaluated(_decide(new, before, _quiet(batch))) as decided,
    ):
        told = decided.where("held_by IS NULL").drop("held_by")
        held = decided.where("held_by IS NOT NULL").drop("held_back")
        for name, those in ((HELD_ALERTS, held), (ALERTS, told)):
            if not those.isEmpty():
                seen = timestamps.timestamp_literal(batch.intent.begun_at)
                batch.append(name, TaskRows.of(those.drop(TURN, AT, RANK).withColumn("first_seen_at", seen)))
        return told.count()


def _decide(new: DataFrame, before: Mapping[str, DataFrame], quiet: int) -> DataFrame:
    """New rows with what becomes of them, as `hold_back` decides it for each key; see `quiet.OUTCOME`."""
    if not quiet and (not before or before[HELD_ALERTS].isEmpty()):
        return new.withColumns({"held_back": F.lit(0).cast("bigint"), "held_by": F.lit(None).cast("string")})
    past = new.sparkSession.createDataFrame([], from_arrow_schema(BEFORE))
    if before:
        at = F.coalesce(F.unix_micros("last_time"), F.unix_micros("watermark"), "t_end")
        told = before[ALERTS].select(
            "key", "alert_id", at.alias(AT), (-F.coalesce("held_back", F.lit(0))).alias("open")
        )
        held = before[HELD_ALERTS].groupBy("key").agg(F.count("*").alias("open"))
        past = told.unionByName(held, allowMissingColumns=True)
    found = new.select("key", "alert_id", TURN, AT, RANK).groupBy("key")
    outcome = found.cogroup(past.groupBy("key")).applyInArrow(
        lambda of_key, before_it: hold_back(of_key, before_it, quiet), from_arrow_schema(OUTCOME)
    )
    return new.join(outcome, "alert_id")


def _write_here(db: Database, batch: Batch, rows: DataFrame, known: _Known) -> int:
    """As `_write`, in the driver's process."""
    assert db.direct is not None
    new = rows.toArrow()
    past = [_read_told(db, known[ALERTS]), _read_held(db, known[HELD_ALERTS])] if known else []
    for those in past:
        new = new.filter(pc.invert(pc.is_in(new["alert_id"], those["alert_id"].combine_chunks())))
    _, first = np.unique(new["alert_id"].to_numpy(), return_index=True)
    new = new.take(pa.array(first))
    if not new.num_rows:
        return 0
    outcome = hold_back(new, pa.concat_tables([BEFORE.empty_table(), *past]), _quiet(batch))
    moment = pa.scalar(timestamps.to_micros(batch.intent.begun_at), pa.int64())
    seen = pa.repeat(moment.cast(pa.timestamp("us", "UTC")), new.num_rows)
    decided = new.drop_columns([TURN, AT, RANK]).append_column("first_seen_at", seen)
    # Both are ordered by the id, as `np.unique` and the sort do it.
    outcome = outcome.sort_by("alert_id")
    is_told = outcome["held_by"].is_null()
    told = decided.append_column("held_back", outcome["held_back"]).filter(is_told)
    held = decided.append_column("held_by", outcome["held_by"]).filter(pc.invert(is_told))
    for name, those in ((HELD_ALERTS, held), (ALERTS, told)):
        if those.num_rows:
            batch.append(name, those)
    return int(told.num_rows)


def _read_told(db: Database, where: Sequence[Condition]) -> pa.Table:
    """What earlier batches told, as `BEFORE`."""
    assert db.direct is not None
    rows = db.direct.rows(ALERTS, ("key", "alert_id", "last_time", "watermark", "t_end", "held_back"), where)
    at = pc.coalesce(*(in_micros(rows[name]) for name in ("last_time", "watermark", "t_end")))
    more = pc.negate(pc.fill_null(rows["held_back"], 0))
    return pa.table([rows["key"], rows["alert_id"], at, more], schema=BEFORE)


def _read_held(db: Database, where: Sequence[Condition]) -> pa.Table:
    """What earlier batches held back, as `BEFORE`."""
    assert db.direct is not None
    rows = db.direct.rows(HELD_ALERTS, ("key", "alert_id"), where)
    count = rows.num_rows
    return pa.table([rows["key"], rows["alert_id"], pa.nulls(count, pa.int64()), pa.repeat(1, count)], schema=BEFORE)


def _quiet(batch: Batch) -> int:
    """For how long the alert is quiet, as the run meant it that began the batch; 0: not at all."""
    return int(batch.configuration.get(QUIET, 0))


def _find_forgotten(db: Database, name: str, configuration: AlertConfiguration, work: Work) -> list[str]:
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
