"""Positions: one order of a batch, whatever the ranges, the partitions and the sample."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from patternlake.jobs.ingest import ordering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(1969, 12, 31, 23, 59, 55, tzinfo=timezone.utc)
ROWS = [
    (
        EPOCH + timedelta(seconds=n * 7 % 11),
        ("é", "b'", "", "\\")[n % 4],
        (None, "k", "j")[n * 5 % 3],
        hash((n,)) % 997 - 500,
    )
    for n in range(600)
]


def _numbered(spark: SparkSession, rows: list[Any], first: int = 1) -> list[tuple[Any, ...]]:
    frame = spark.createDataFrame(rows, "time timestamp, name string, key string, hash bigint").repartition(3)
    quantiles = frame.select(ordering.times()).collect()[0][0] or ()
    cut = ordering.ranges(frame, len(rows), quantiles, parallelism=2)
    sizes = {row["range"]: row["count"] for row in frame.groupBy(cut.number.alias("range")).count().collect()}
    found = ordering.number(frame, cut, sizes, first).collect()
    return [(row["position"], row["time"], row["name"], row["key"], row["hash"]) for row in found]


def _order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    time, name, key, hashed = row
    return (time, name.encode(), key is not None, (key or "").encode(), hashed)


@pytest.mark.parametrize("ranges", [1, 2, 7, 60])
def test_positions_follow_time_name_key_and_hash(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ranges: int
) -> None:
    monkeypatch.setattr(ordering, "RANGE_ROWS", 6000 if ranges == 1 else len(ROWS) // ranges)
    shuffled = random.Random(ranges).sample(ROWS, len(ROWS))
    found = sorted(_numbered(spark, shuffled, first=11))
    assert [row[0] for row in found] == list(range(11, 611))
    local = [(time.replace(tzinfo=None), *rest) for time, *rest in sorted(ROWS, key=_order)]
    assert [(time, name, key, hashed) for _, time, name, key, hashed in found] == [
        (_as_spark_shows(spark, time), *rest) for time, *rest in local
    ]


def test_rows_of_many_times_are_cut_evenly_without_reading_them_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "RANGE_ROWS", 100)
    monkeypatch.setattr(ordering, "_sample", None)
    monkeypatch.setattr(ordering, "_LOOKED_AT", 1)
    rows = [(EPOCH + timedelta(seconds=n * n), "a", None, n) for n in range(600)]
    frame = spark.createDataFrame(rows, "time timestamp, name string, key string, hash bigint")
    quantiles = frame.select(ordering.times()).collect()[0][0] or ()
    cut = ordering.ranges(frame, len(rows), quantiles)
    sizes = [row["count"] for row in frame.groupBy(cut.number).count().collect()]
    assert len(sizes) == len(cut) == 6
    assert min(sizes) >= 90
    assert max(sizes) <= 110
    assert [row[4] for row in sorted(_numbered(spark, rows))] == list(range(600))


def test_rows_that_are_all_equal_are_numbered_all_the_same(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "RANGE_ROWS", 10)
    assert sorted(row[0] for row in _numbered(spark, [ROWS[0]] * 50)) == list(range(1, 51))


def _as_spark_shows(spark: SparkSession, moment: datetime) -> datetime:
    """A UTC moment as collect() gives it: in the process's zone, without one."""
    return moment.replace(tzinfo=timezone.utc).astimezone().replace(tzinfo=None)
