"""The values that partition events are the same texts to Spark and to Arrow, and so is what is shown of them."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.sessions import own_session
from patternlake.delta_tables.schema.quoting import identifier, shown_text
from patternlake.delta_tables.schema.timestamps import ISO
from patternlake.delta_tables.writing.arrow_rows import frame_of
from patternlake.udfs.attributes import column_of
from patternlake.udfs.measures.event_values import arrow_type
from patternlake.udfs.partitions import (
    CAST,
    PART,
    TEXTS,
    number_partitions,
    partition_values,
    portions_by_partition,
    rows_of_key,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

MOMENTS = [None, -62_135_596_800_000_000, -1, 0, 1, 500_000, 86_400_000_000, 253_402_300_799_999_999]
NUMBERS = [None, 0.0, 1.0, 0.5, 1e-7, 1 / 3, float("nan")]
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
COUNT = len(ODD) ** 2
ATTRIBUTES: dict[tuple[str, str], list[Any]] = {
    ("x.y`z", "string"): ODD,
    ("s", "string"): [None],
    ("D", "double"): [*NUMBERS, -0.0, 1e7, 123456789.125, -1e-3, 9.999e-4, float("inf")],
    ("f", "float"): [None, 0.1, 1e7, -1.5e-5, 123456.7, float("nan"), float("-inf")],
    ("m", "decimal(18,7)"): [None, Decimal("0.0000001"), Decimal(-1), Decimal("12345678901.5")],
    ("i", "int"): [None, 0, -7],
    ("b", "boolean"): [True, None, False],
    ("day", "date"): [None, date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    ("at", "timestamp"): MOMENTS,
}
"""Values of attributes, by their names and types."""
TYPES = dict([*ATTRIBUTES])
EVENTS = pa.table(
    {
        "position": pa.array(range(COUNT), pa.int64()),
        "time": pa.array([MOMENTS[at % len(MOMENTS)] for at in range(COUNT)], pa.timestamp("us", "UTC")),
        "step": pa.array([None if at % 5 == 0 else at - 7 for at in range(COUNT)], pa.int64()),
        "probability": pa.array([NUMBERS[at % len(NUMBERS)] for at in range(COUNT)], pa.float64()),
        "key": pa.array([text for text in ODD for _ in ODD], pa.string()),
        "name": pa.array([text or "n" for _ in ODD for text in ODD], pa.string()),
        **{
            column_of(name, kind): pa.array([values[at % len(values)] for at in range(COUNT)], arrow_type(kind))
            for (name, kind), values in ATTRIBUTES.items()
        },
    }
)


COLUMNS: list[tuple[str, ...]] = [
    (), ("key",), ("x.y`z",), ("s",), ("key", "x.y`z"), ("x.y`z", "name", "key"),
    ("position",), ("time",), ("step", "probability"), ("probability", "key", "time"),
    ("D",), ("f",), ("m",), ("i", "b"), ("day",), ("at",),
]  # fmt: skip


def partition_column(columns: Sequence[str]) -> Column:
    """`PART` as Spark computes it."""

    def text(column: str) -> Column:
        if column in TEXTS or column in CAST:
            return F.col(column).cast("string")
        value = F.col(identifier(column_of(column, TYPES[column])))
        if TYPES[column] in ("float", "double"):
            value += F.lit(0).cast(TYPES[column])  # as Spark groups them, -0.0 is 0.0
        return F.date_format(value, ISO) if TYPES[column] == "timestamp" else value.cast("string")

    return F.array(*map(text, columns)).cast("array<string>").alias(PART)


@pytest.mark.parametrize("columns", COLUMNS)
def test_values_and_what_is_shown_of_them_are_the_same_to_spark_and_arrow(
    spark: SparkSession, columns: tuple[str, ...]
) -> None:
    ours = partition_values(EVENTS, columns)
    codes, shown = number_partitions(ours)
    assert shown == sorted(set(shown), key=lambda text: (text is not None, text or "")) or len(columns) > 1
    with own_session(spark) as own:
        rows = frame_of(own, EVENTS).withColumn(PART, partition_column(columns))
        shown_rows = (
            rows.select("position", PART, F.expr(shown_text(PART)).alias("shown")).orderBy("position").collect()
        )
        assert [row[PART] for row in shown_rows] == ours.to_pylist()
        assert [row.shown for row in shown_rows] == [shown[code] for code in codes.tolist()]
        for key in ("NULL", "a,b", "a,NULL", "É,É", "", "1970-01-01 00:00:00.5"):
            shown_so = F.expr(shown_text(PART)) if columns else F.col("key")
            found = {row.position for row in rows.where(shown_so == F.lit(key)).select("position").collect()}
            mine = rows_of_key(EVENTS.append_column(PART, ours), columns, key)
            assert found == set(mine["position"].to_pylist()), key


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floats_make_the_groups_that_spark_makes(spark: SparkSession, kind: str) -> None:
    values = pa.array([0.0, -0.0, None, float("nan"), -float("nan"), 1.5, -0.0], arrow_type(kind))
    events = pa.table({column_of("x", kind): values, "position": pa.array(range(7), pa.int64())})
    codes, shown = number_partitions(partition_values(events, ("x",)))
    assert shown == [None, "0.0", "1.5", "NaN"]
    assert codes.tolist() == [1, 1, 0, 3, 3, 2, 1]
    with own_session(spark) as own:
        grouped = frame_of(own, events).groupBy(identifier(column_of("x", kind))).count().collect()
    assert sorted(row["count"] for row in grouped) == [1, 1, 2, 3]


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_partition_is_dealt_to_one_portion(columns: tuple[str, ...]) -> None:
    values = partition_values(EVENTS, columns)
    portions = portions_by_partition(values, 7)
    placed = {
        (json.dumps(value), portion) for value, portion in zip(values.to_pylist(), portions.tolist(), strict=True)
    }
    assert len(placed) == len({value for value, _ in placed})
    assert {portion for _, portion in placed} <= {*range(7)}
    assert len({portion for _, portion in placed}) > 2 or len(placed) < 7
