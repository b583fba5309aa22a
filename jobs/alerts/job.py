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
from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.delta_tables.writing.frames import frame_where
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.alerts.batches import JOB, READ_BATCH, next_batch
from patternlake.jobs.alerts.deliveries import deliver
from patternlake.jobs.alerts.quiet import BEFORE, decide
from patternlake.jobs.alerts.rows import alert_rows, check_where, find_rows, locate_rows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import keep_evaluated
from patternlake.jobs.batches.following import Work, follow
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.alerts import FORECAST, QUIET, TABLE, AlertConfiguration
from patternlake.jobs.machines.forecasts import KEPT
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

ALERTS, HELD_ALERTS = "alerts", "held_alerts"
_Known = Mapping[str, Sequence[Condition]]
"""By table, the conditions on what earlier batches have decided; empty: none did."""
_SHARES = 64
"""Shares of the keys that tasks decide on."""


def alerts(
    db: Database, name: str, configuration: AlertConfiguration, *, stream: str, rebuild: bool = False
) -> Summary:
    """Tell what was published since this alert was told last, and deliver what waits for it.

    Parameters are as of `runs.steps.Job.work`; `stream` is the one whose events the alert goes back to. A rebuild tells
    all again that is published, and delivers nothing again.

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
    ).withColumn("first_seen_at", timestamps.timestamp_literal(batch.intent.begun_at))
    # What was built anew, or began anew under another configuration, comes again.
    known = {} if last is None else {name: published_rows(TABLES[name], last) for name in (ALERTS, HELD_ALERTS)}
    in_driver = all(few.few_bytes(db, *each) for each in ((table, where), *known.items()))
    count = (_write_here if in_driver else _write)(db, batch, rows, known)
    # What was built anew may have fewer events than were read before.
    rows_in = max(0, batch.source_to - batch.source_from)
    return batch.publish(rows_in=rows_in, rows_out=count, watermark=work.stream.watermark)


def _write(db: Database, batch: Batch, rows: DataFrame, known: _Known) -> int:
    """Let tasks decide, each for some keys, what becomes of rows, and write them; how many are told."""
    before = db.spark.createDataFrame([], from_arrow_schema(BEFORE))
    for name, where in known.items():
        earlier = choose_rows(db.table(name), where)
        before = before.unionByName(earlier.select(*_columns(name)), allowMissingColumns=True)
    quiet = _quiet(batch)
    some_keys = F.pmod(F.xxhash64("key"), F.lit(_SHARES))
    decided = rows.groupBy(some_keys).cogroup(before.groupBy(some_keys))
    schema = from_arrow_schema(decide(arrow_schema(rows.schema).empty_table(), BEFORE.empty_table(), quiet).schema)
    with keep_evaluated(decided.applyInArrow(lambda found, past: decide(found, past, quiet), schema)) as rows:
        told = rows.where("held_by IS NULL").drop("held_by")
        held = rows.where("held_by IS NOT NULL").drop("held_back")
        for name, those in ((HELD_ALERTS, held), (ALERTS, told)):
            if not those.isEmpty():
                batch.append(name, TaskRows.of(those))
        return told.count()


def _write_here(db: Database, batch: Batch, rows: DataFrame, known: _Known) -> int:
    """As `_write`, in the driver's process."""
    assert db.direct is not None
    before = [db.direct.rows(name, _columns(name), where) for name, where in known.items()]
    before = pa.concat_tables([BEFORE.empty_table(), *before], promote_options="default")
    decided = decide(rows.toArrow(), before, _quiet(batch))
    is_told = decided["held_by"].is_null()
    told = decided.filter(is_told).drop_columns("held_by")
    held = decided.filter(pc.invert(is_told)).drop_columns("held_back")
    for name, those in ((HELD_ALERTS, held), (ALERTS, told)):
        if those.num_rows:
            batch.append(name, those)
    return int(told.num_rows)


def _columns(table: str) -> tuple[str, ...]:
    """What a table has of `BEFORE`."""
    return tuple(name for name in BEFORE.names if name in TABLES[table].column_names)


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
