"""What is shown of a partition is the same text in the answer of every function, whatever the type of its value."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from sql.sketch_lake import E, by_tasks, call
from sql.trend_lake import TrendLake, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {"x": "double", "f": "float", "m": "decimal(20,2)", "b": "boolean", "day": "date", "ts": "timestamp"}
VALUES = {
    "x": [20, "-0.0", 0, "NaN", "1e-7", "Infinity", None],
    "f": [20, "-0.0", 0, "NaN", "0.1", "-Infinity", None],
    "m": ["1.10", "1.1", "123456789012345678.90", "123456789012345678.91", 0, -1, None],
    "b": [True, False, None, True, False, None, True],
    "day": ["2024-02-29", "1969-12-31", None, "2024-02-29", None, "9999-12-31", "0001-01-01"],
    "ts": ["2024-02-29 00:00:00", "1969-12-31 23:59:59.5", None, None, "2024-02-29T00:00:00Z", "1970-01-01", None],
}
SHOWN = {
    "x": {None: 1, "0.0": 2, "1.0E-7": 1, "20.0": 1, "Infinity": 1, "NaN": 1},
    "f": {None: 1, "-Infinity": 1, "0.0": 2, "0.1": 1, "20.0": 1, "NaN": 1},
    "m": {None: 1, "-1.00": 1, "0.00": 1, "1.10": 2, "123456789012345678.90": 1, "123456789012345678.91": 1},
    "b": {None: 2, "false": 2, "true": 3},
    "day": {None: 2, "0001-01-01": 1, "1969-12-31": 1, "2024-02-29": 2, "9999-12-31": 1},
    "ts": {
        None: 3,
        "1969-12-31T23:59:59.500000Z": 1,
        "1970-01-01T00:00:00.000000Z": 1,
        "2024-02-29T00:00:00.000000Z": 2,
    },
}
"""By attribute: how many events each partition has."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return shared(spark, tmp_path_factory)


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_partitions_of_any_type_are_shown_alike(lake: TrendLake, way: str) -> None:
    events = [
        E(at * 1000, "e", None, {name: values[at] for name, values in VALUES.items()}) for at in range(len(VALUES["x"]))
    ]
    if "by x" not in lake.asked:
        queries = {f"by {name}": f"PATTERN e PARTITION BY {name}" for name in TYPES}
        lake.stream("typed", queries, events, ingested=True, attributes=TYPES)
    for name, shown in SHOWN.items():
        one = f"e PARTITION BY {name}"
        calls = {
            "match_pattern": call("match_pattern", "typed", one),
            "match_funnel_rows": call("match_funnel_rows", "typed", one),
            "cet_count of a text": call("cet_count", f"PATTERN {one}", stream="typed"),
            "cet_count of what is kept": call("cet_count", f"by {name}"),
        }
        for function, text in calls.items():
            with by_tasks(lake.spark) if way == "tasks" else nullcontext():
                keys = [row["key"] for row in lake.rows(f"SELECT key FROM {text}")]
            once = dict.fromkeys(shown, 1) if function != "match_pattern" else shown
            assert {key: keys.count(key) for key in keys} == once, (function, name)
