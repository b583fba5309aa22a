"""Whole steps of probabilistic streams: a (key, step) is taken or turned down with all its rows.

The rows of one (key, step) exclude each other, so their probabilities sum to at most 1. A step with a bad row or too
great a sum says nothing that can be relied on. Rows of a key arrive with growing steps: a published later step closes
the earlier ones.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Reasons that make a row bad; a late or a closed row is a good one that came too late, and goes alone.
_BAD = ("corrupt", "time", "name", "cast", "step", "probability")
# Sums of decimals do not depend on the order of the rows, so that a replay decides alike.
_EXACT = "decimal(28,18)"


def last_steps(events: DataFrame) -> DataFrame:
    """Per key of published events: ``key, last_step, last_sum``, the greatest step and the sum of its probabilities."""
    sums = events.groupBy("key", "step").agg(F.sum(F.col("probability").cast(_EXACT)).alias("total"))
    last = F.max(F.struct("step", "total"))
    return (
        sums.groupBy("key")
        .agg(last.alias("last"))
        .select("key", "last.step", "last.total")
        .toDF("key", "last_step", "last_sum")
    )


def of_last_steps(events: pa.Table) -> pa.Table:
    """Of published events, those that `last_steps` needs: of each key, the ones of its greatest step."""
    words = events["key"].combine_chunks().dictionary_encode()
    key = words.indices.fill_null(len(words.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    step = events["step"].to_numpy()
    last = np.full(len(words.dictionary) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, key, step)
    return events.filter(pa.array(step == last[key]))


def judge_steps(rows: DataFrame, last: DataFrame | None, tolerance: float) -> DataFrame:
    """Turn down the rows whose step is closed, sums to more than 1, or has a bad row.

    Where the sum exceeds 1 by no more than the tolerance, the probabilities are scaled so that they sum to 1: those of
    this batch alone, since published rows stand.

    Parameters
    ----------
    rows
        Prepared rows; those with a reason keep it.
    last
        Of `last_steps`, for the events published before; None where there are none.
    tolerance
        By how much a sum may exceed 1.

    Returns
    -------
    DataFrame
        The rows with `reason` and `detail` completed, and their probabilities scaled.
    """
    columns = rows.columns
    if last is None:
        joined = rows.withColumns({"last_step": F.lit(None).cast("bigint"), "last_sum": F.lit(None).cast(_EXACT)})
    else:
        before = last.withColumnRenamed("key", "last_key")
        joined = rows.join(before, F.col("key").eqNullSafe(F.col("last_key")), "left").drop("last_key")
    closed = F.coalesce(F.col("step") < F.col("last_step"), F.lit(False))
    # Rows without a step belong to no step: by their hash they spread over all tasks.
    alone = F.when(F.col("step").isNull(), F.col("hash"))
    whole = Window.partitionBy("key", "step", alone)
    stored = F.when(F.col("step") == F.col("last_step"), F.col("last_sum"))
    counted = F.when(F.col("reason").isNull() & ~closed, F.col("probability").cast(_EXACT))
    fresh = F.coalesce(F.sum(counted).over(whole), F.lit(0)).cast(_EXACT)
    former = F.coalesce(stored, F.lit(0)).cast(_EXACT)
    bad = F.max(F.coalesce(F.col("reason").isin(*_BAD), F.lit(False))).over(whole) & F.col("step").isNotNull()
    measured = joined.withColumns({"__closed": closed, "__fresh": fresh, "__before": former, "__bad": bad})
    summed = F.col("__fresh") + F.col("__before")
    most = F.lit(Decimal(1) + Decimal(repr(tolerance))).cast(_EXACT)
    good = F.col("reason").isNull()
    found = [
        ("closed", F.col("__closed"), _tell("closed: its key has published step ", F.col("last_step"))),
        (
            "sum",
            good & ~F.col("__closed") & (summed > most),
            _tell("sum: the probabilities of its key and step sum to ", summed.cast("double")),
        ),
        (
            "companion",
            good & ~F.col("__closed") & F.col("__bad"),
            F.lit("companion: another row of its key and step is bad"),
        ),
    ]
    reason = F.coalesce(F.col("reason"), *[F.when(condition, F.lit(code)) for code, condition, _ in found])
    detail = F.concat_ws("; ", F.col("detail"), *[F.when(condition, text) for _, condition, text in found])
    room = F.greatest(F.lit(0.0), F.lit(1.0) - F.col("__before").cast("double"))
    # Rows of probability 0 may come behind a sum that is above 1 by an error of rounding.
    some = F.nullif(F.col("__fresh").cast("double"), F.lit(0.0))
    scaled = F.coalesce(F.col("probability") / some * room, F.lit(0.0))
    share = F.when(reason.isNull() & (summed > 1), scaled).otherwise(F.col("probability"))
    told = F.when(reason.isNotNull(), detail)
    return measured.withColumns({"reason": reason, "detail": told, "probability": share}).select(*columns)


def _tell(text: str, value: Column) -> Column:
    return F.concat(F.lit(text), value.cast("string"))
