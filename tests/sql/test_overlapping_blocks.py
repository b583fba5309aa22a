"""Blocks of time that overlap by a window are those of whole microseconds, however far from 1970."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from patternlake.delta_tables.arrow_rows import frame_of
from patternlake.delta_tables.overlapping_blocks import blocks
from patternlake.udfs.kleene.request import Portions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


def test_an_event_is_in_each_block_that_a_window_around_it_reaches(spark: SparkSession) -> None:
    rng = random.Random(7)
    width, within = 3_600_000_001, 61_000_003
    edges = [rng.randint(-62_000_000_000_000_000, LAST) // width * width for _ in range(200)]
    edges += [rng.randint(0, 10**9) * width for _ in range(200)]
    times = sorted({min(LAST, edge + sign * off) for edge in edges for sign in (-within, 0, within) for off in (0, 1)})
    events = frame_of(spark, pa.table({"micros": pa.array(times, pa.int64())}))
    events = events.select("micros", F.timestamp_micros("micros").alias("time"))
    low, high = min(times) // width, max(times) // width
    portions = Portions(low=low, high=high, width=width, within=within)
    found = sorted((row.micros, row.portion + low) for row in blocks(events, portions, "portion").collect())
    assert found == sorted(
        (at, block)
        for at in times
        for block in range((at - within) // width, (at + within) // width + 1)
        if low <= block <= high
    )
