"""What a batch of rows amounts to: counts by reason and name, and the rows of the tables that keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.batches import Batch
from patternlake.delta_tables.event_statistics import ATTRIBUTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def counted(prepared: DataFrame) -> DataFrame:
    """Rows and span of every reason and name; of refused rows the name says nothing."""
    name = F.when(F.col("reason").isNull(), F.col("name"))
    return prepared.groupBy("reason", name.alias("name")).agg(
        F.count("*").alias("events"), F.min("time").alias("first_time"), F.max("time").alias("last_time")
    )


def totals(by_name: DataFrame) -> dict[str | None, tuple[int, int | None]]:
    """Count and greatest time (microseconds) by reason; None stands for the accepted rows."""
    sums = by_name.groupBy("reason").agg(
        F.sum("events").alias("events"), F.unix_micros(F.max("last_time")).alias("greatest")
    )
    return {row["reason"]: (row["events"], row["greatest"]) for row in sums.collect()}


def statistics(by_name: DataFrame, batch: Batch) -> DataFrame:
    """Rows of `event_statistics`, of what `counted` gives."""
    columns = ("name", "events", "first_time", "last_time")
    untold = F.lit(None).cast(ATTRIBUTES).alias("attributes")
    return by_name.where(F.col("reason").isNull()).select(*_batch_columns(batch), *columns, untold)


def quarantine(prepared: DataFrame, batch: Batch) -> DataFrame:
    """Rows of `quarantine`: those with a reason."""
    columns = ("reason", "detail", "origin", "row")
    return prepared.where(F.col("reason").isNotNull()).select(*_batch_columns(batch), *columns)


def _batch_columns(batch: Batch) -> list[Column]:
    return [
        F.lit(batch.stream_id).cast("int").alias("stream_id"),
        F.lit(batch.batch_id).cast("bigint").alias("batch_id"),
    ]
