"""The values that partition events are the same texts to Spark and to Arrow, and so is what is shown of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from patternlake.delta_tables.arrow_rows import frame_of
from patternlake.delta_tables.partition_values import frame_of_key, partition_column, shown_text
from patternlake.udfs.partitions import PART, number_partitions, partition_values, rows_of_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = [
    None,
    "",
    " ",
    "NULL",
    "null",
    "a",
    "A",
    "a,b",
    ",",
    "É",
    "e\u0301",
    "\U0001f600",
    "\uffff",
    "1",
    "1.0",
    "'",
    "\\",
]
EVENTS = pa.table(
    {
        "position": pa.array(range(len(ODD) ** 2), pa.int64()),
        "key": pa.array([text for text in ODD for _ in ODD], pa.string()),
        "name": pa.array([text or "n" for _ in ODD for text in ODD], pa.string()),
        # Of the last event one attribute is not there at all.
        "attributes": pa.array(
            [*([("x.y`z", text), ("s", None)] for _ in ODD for text in ODD), [("s", "t")]][1:],
            pa.map_(pa.string(), pa.string()),
        ),
    }
)


@pytest.mark.parametrize("columns", [(), ("key",), ("x.y`z",), ("s",), ("key", "x.y`z"), ("x.y`z", "name", "key")])
def test_values_and_what_is_shown_of_them_are_the_same_to_spark_and_arrow(
    spark: SparkSession, columns: tuple[str, ...]
) -> None:
    ours = partition_values(EVENTS, columns)
    codes, shown = number_partitions(ours)
    assert shown == sorted(set(shown), key=lambda text: (text is not None, text or "")) or len(columns) > 1
    rows = frame_of(spark, EVENTS).withColumn(PART, partition_column(columns))
    shown_rows = rows.select("position", PART, F.expr(shown_text(PART)).alias("shown")).orderBy("position").collect()
    assert [row[PART] for row in shown_rows] == ours.to_pylist()
    assert [row.shown for row in shown_rows] == [shown[code] for code in codes.tolist()]
    for key in ("NULL", "a,b", "a,NULL", "É,É", ""):
        found = {row.position for row in frame_of_key(rows, columns, key).collect()}
        mine = rows_of_key(EVENTS.append_column(PART, ours), columns, key)
        assert found == set(mine["position"].to_pylist()), key
