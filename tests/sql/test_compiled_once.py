"""What Spark makes of a stream's rows is compiled once: what moves from batch to batch is no part of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.sessions import temporary_settings
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPILING = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own settings, which tests set otherwise, in spark-tests.conf."""


def test_batches_of_a_stream_with_allowed_lateness(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = Lake(common(spark, tmp_path_factory), tmp_path)
    lake.stream["source"] = {"format": "parquet", "path": "data"}

    def ingest(batch: int, day: int) -> int:
        rows = {
            "at": [datetime(2024, 1, day, 10, tzinfo=UTC)] * 2,
            "what": ["a", "b"],
            "who": ["k"] * 2,
            "x": [1.0] * 2,
        }
        pq.write_table(pa.table(rows), lake.data / f"{batch}.parquet")
        lake.ingest(allowed_lateness="30 minutes")
        return _compilations(spark)

    with temporary_settings(spark, COMPILING):
        first, *later = (ingest(day, day) for day in range(1, 5))
    # The first batch has no watermark.
    assert first < later[0]
    assert later == [later[0]] * 3
    ingest(5, 3)
    assert {row["detail"] for row in lake.quarantine()} == {"late: before the watermark 2024-01-04 09:30:00"}


def _compilations(spark: SparkSession) -> int:
    assert spark._jvm is not None
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())
