"""What a batch of rows amounts to: counts by reason, range and name, and the rows of the tables that keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.tables.event_statistics import ATTRIBUTES
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.ingest import ordering
from patternlake.jobs.ingest.ordering import Ranges
from patternlake.jobs.ingest.repeats import REASON as REPEAT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Total:
    """What the rows of one reason amount to.

    Parameters
    ----------
    rows
        How many.
    greatest
        Their greatest time in microseconds; None where none has one.
    quantiles
        Of their times, by `ordering.times`.
    sample
        The detail of one of them; None of accepted ones.
    """

    rows: int = 0
    greatest: int | None = None
    quantiles: tuple[int, ...] = ()
    sample: str | None = None


def totals(prepared: DataFrame) -> dict[str | None, Total]:
    """By reason; None stands for the accepted rows."""
    found = prepared.groupBy("reason").agg(
        F.count("*").alias("rows"),
        F.unix_micros(F.max("time")).alias("greatest"),
        ordering.times().alias("quantiles"),
        F.min_by("detail", "hash").alias("sample"),
    )
    return {
        row["reason"]: Total(row["rows"], row["greatest"], tuple(row["quantiles"] or ()), row["sample"])
        for row in found.collect()
    }


def warning(stream: str, totals: Mapping[str | None, Total], share: float) -> str | None:
    """What to say about a batch of which more than a share of the rows is refused; None where it is less.

    Repeats are refused on purpose, and don't count; a row that shares its step with a bad one is no reason of its own.
    """
    refused = {reason: total for reason, total in totals.items() if reason not in (None, REPEAT)}
    rows = sum(total.rows for total in totals.values())
    bad = sum(total.rows for total in refused.values())
    if not bad or bad <= share * rows:
        return None
    causes = {reason: total for reason, total in refused.items() if reason != "companion"} or refused
    commonest = max(causes, key=lambda reason: (causes[reason].rows, str(reason)))
    most = causes[commonest]
    return (
        f"stream {stream!r}: {bad:,} of {rows:,} rows went to quarantine, most of them ({most.rows:,}) for the reason "
        f"{commonest!r}, such as: {most.sample}"
    )


def count_names(accepted: DataFrame, cut: Ranges) -> DataFrame:
    """Rows and span of every name in every range: ``range, name, events, first_time, last_time``."""
    return accepted.groupBy(cut.number.alias("range"), "name").agg(
        F.count("*").alias("events"), F.min("time").alias("first_time"), F.max("time").alias("last_time")
    )


def by_range(counts: DataFrame) -> dict[int, int]:
    """Rows of each range, of what `counted` gives."""
    sums = counts.groupBy("range").agg(F.sum("events").alias("rows"))
    return {row["range"]: row["rows"] for row in sums.collect()}


def statistics(counts: DataFrame, batch: Batch) -> DataFrame:
    """Rows of `event_statistics`, of what `counted` gives."""
    by_name = counts.groupBy("name").agg(
        F.sum("events").alias("events"), F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time")
    )
    untold = F.lit(None).cast(ATTRIBUTES).alias("attributes")
    return by_name.select(*_batch_columns(batch), *by_name.columns, untold)


def quarantine(prepared: DataFrame, bad_files: Mapping[str, str], batch: Batch) -> DataFrame:
    """Rows of `quarantine`: those with a reason, and one for each file that cannot be read."""
    columns = ("reason", "detail", "origin", "row")
    rows = prepared.where(F.col("reason").isNotNull()).select(*columns)
    if bad_files:
        told = [("file", f"file: {reason}", file, None) for file, reason in bad_files.items()]
        schema = "reason string, detail string, origin string, row string"
        rows = rows.union(frame_of_tuples(prepared.sparkSession, told, schema))
    return rows.select(*_batch_columns(batch), *columns)


def _batch_columns(batch: Batch) -> list[Column]:
    return [
        F.lit(batch.stream_id).cast("int").alias("stream_id"),
        F.lit(batch.batch_id).cast("bigint").alias("batch_id"),
    ]
