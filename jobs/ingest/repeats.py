"""Repeats: rows with the id of an event that is there already, of this batch or published and not yet settled.

A row below the watermark is late, whatever its id; so only events at or above it can have repeats that would be
taken, and no others are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from patternlake.delta_tables.schema.timestamps import timestamp_literal
from patternlake.jobs.ingest.ordering import order_of

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

REASON = "repeat"


def unsettled_ids(events: DataFrame, watermark: datetime | None) -> DataFrame:
    """The distinct ids, as ``event_id``, of events at or above a watermark; of all events where there is none."""
    open_events = events if watermark is None else events.where(F.col("time") >= timestamp_literal(watermark))
    return open_events.where(F.col("event_id").isNotNull()).select("event_id").distinct()


def mark_repeats(rows: DataFrame, known: DataFrame | None) -> DataFrame:
    """Turn down the good rows that repeat an event; of those with one id in the batch, the first in its order stays.

    Parameters
    ----------
    rows
        Prepared rows with an ``event_id``; a row without one repeats nothing.
    known
        Of `unsettled_ids`, for the events published before; None where there are none.

    Returns
    -------
    DataFrame
        The rows with `reason` and `detail` completed.
    """
    columns = rows.columns
    good = F.col("reason").isNull() & F.col("event_id").isNotNull()
    if known is None:
        joined = rows.withColumn("__published", F.lit(False))
    else:
        published = known.select(F.col("event_id").alias("__id"), F.lit(True).alias("__published"))
        joined = rows.join(published, F.col("event_id") == F.col("__id"), "left").drop("__id")
    # By their hash, the rows that repeat nothing spread over all tasks.
    alike = Window.partitionBy(F.when(good, F.col("event_id")), F.when(~good, F.col("hash")))
    alike = alike.orderBy(*order_of(columns), "origin")
    numbered = joined.withColumns({"__nth": F.row_number().over(alike), "__good": good})
    published_before = F.coalesce(F.col("__published"), F.lit(False))
    repeated = F.col("__good") & (published_before | (F.col("__nth") > 1))
    where = F.when(published_before, "is published").otherwise("stands in the batch before")
    detail = F.concat(F.lit("repeat: the event_id '"), F.col("event_id"), F.lit("' "), where)
    return numbered.withColumns(
        {
            "reason": F.when(repeated, F.lit(REASON)).otherwise(F.col("reason")),
            "detail": F.when(repeated, detail).otherwise(F.col("detail")),
        }
    ).select(*columns)
