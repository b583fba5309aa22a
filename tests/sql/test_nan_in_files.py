"""NaN is greater than every number to Spark, whichever way a file of a table was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake import write_deltalake as write

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.writing import direct_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("at", pa.int64()), ("price:double", pa.float64()), ("small", pa.float32())])
FEW, MANY = 100, 20_000
"""Rows that delta-rs writes as a file, and rows that are written here."""


def append(folder: str, version: int, count: int, layout: Layout) -> None:
    """Rows of prices from 0 to 4, of which every tenth is NaN."""
    prices = [float("nan") if at % 10 == 0 else float(at % 5) for at in range(count)]
    rows = pa.table([pa.array(range(count)), pa.array(prices), pa.array(prices, pa.float32())], schema=SCHEMA)
    assert direct_writer.append(TableFolder(folder), rows, application="a", version=version, layout=layout)


def counts(spark: SparkSession, folder: str) -> list[int]:
    """Of some conditions, for how many rows each holds."""
    rows = spark.read.format("delta").load(folder)
    where = ("`price:double` > 100", "small > 100", "`price:double` = double('NaN')", "NOT `price:double` <= 4")
    return [rows.where(condition).count() for condition in where]


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.PACKED])
@pytest.mark.parametrize("count", [FEW, MANY])
def test_spark_finds_nan_above_every_number(spark: SparkSession, tmp_path: Path, count: int, layout: Layout) -> None:
    folder = str(tmp_path / "table")
    write(folder, SCHEMA.empty_table())
    append(folder, 1, count, layout)
    assert counts(spark, folder) == [count // 10] * 4


def test_merged_files_keep_it(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "table")
    write(folder, SCHEMA.empty_table())
    for version in (1, 2):
        append(folder, version, FEW, Layout.PLAIN)
    direct_writer.compact(folder)
    assert len(DeltaTable(folder).file_uris()) == 1
    assert counts(spark, folder) == [20] * 4
