"""Events without partitions as blocks of time, or of ranks, that overlap by a window: each match lies whole in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.udfs.kleene.request import Portions

RANK = "rank"
"""The place of an event among all that are given, by time and position."""


def blocks(events: DataFrame, portions: Portions, portion: str) -> DataFrame:
    """Give each event to every block that a window around it reaches.

    Parameters
    ----------
    events
        Those of the stream; where it matters how many lie between two, those that the pattern can't take among them.
    portions
        How the work is dealt out.
    portion
        The column that gets the number of the block, from 0.
    """
    width, within, low, high = portions.width, portions.within, portions.low, portions.high
    if portions.ranked:
        events = _ranked(events, portions.bucket)
        # All were needed to rank them.
        events = events if portions.matched is None else events.where(F.col("name").isin(*portions.matched))
    if width is None:
        return events.withColumn(portion, F.lit(0))
    place = RANK if portions.counted else "unix_micros(time)"
    first, last = (_block(f"({place} {sign} {within}L)", width) for sign in "-+")
    # Spark takes `explode` for itself only, so blocks are numbered from 0 before it.
    begin, end = (f"CAST(greatest(0L, least({high - low}L, {block} - {low}L)) AS INT)" for block in (first, last))
    return events.withColumn(portion, F.explode(F.expr(f"sequence({begin}, {end})")))


def _block(place: str, width: int) -> str:
    """The number of a place's block, as SQL; `/` would divide microseconds as DOUBLE, which is exact until 2255."""
    return f"(({place} - pmod({place}, {width}L)) DIV {width}L)"


def _ranked(events: DataFrame, bucket: int) -> DataFrame:
    """Events with their rank by time and position: inside buckets of time, after the events of the buckets before."""
    named = events.withColumn("bucket", F.expr(f"unix_micros(time) DIV {bucket}"))
    counts = named.groupBy("bucket").agg(F.count(F.lit(1)).alias("events"))
    before = F.sum("events").over(Window.orderBy("bucket")) - F.col("events")
    inside = F.row_number().over(Window.partitionBy("bucket").orderBy("time", "position")) - F.lit(1)
    joined = named.join(F.broadcast(counts.select("bucket", before.alias("before"))), "bucket")
    return joined.withColumn(RANK, (inside + F.col("before")).cast("bigint")).drop("bucket", "before")
