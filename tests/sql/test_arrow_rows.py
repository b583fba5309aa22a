"""Rows that the driver holds, as Spark gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from patternlake.delta_tables.writing.arrow_rows import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("threshold", ["1MB", "0"])
@pytest.mark.parametrize("pieces", [[[1], [], [2]], [[], [1], [2], []], [[1, 2]], [[]], [[], []]])
def test_no_row_is_lost_behind_an_empty_piece(spark: SparkSession, pieces: list[list[int]], threshold: str) -> None:
    """Up to the threshold they are part of Spark's plan."""
    rows = pa.table({"number": pa.chunked_array([pa.array(piece, pa.int64()) for piece in pieces])})
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.localRelationThreshold", threshold)
    found = frame_of(session, rows).collect()
    assert [row["number"] for row in found] == [number for piece in pieces for number in piece]
