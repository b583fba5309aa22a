"""What Spark's tasks answer is what the driver's process answers; of the sketch, see test_planned_functions."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from sql.machine_lake import MachineStream
from sql.sketch_lake import E, SketchLake, by_tasks, shared
from sql.trend_lake import shared as shared_trends

from patternlake.delta_tables.schema.quoting import literal
from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.functions import cet_trends
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.lakes.lake import READER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRENDS = {
    "tasks_sliding": "PATTERN a+ e[] ; b WHERE e[i].x > e[i-1].x PARTITION BY who WITHIN 10 SEC SLIDE 5 SEC",
    "tasks_counted": "PATTERN a+ e[] WITHIN 6 EVENTS SLIDE 3 EVENTS",
    "tasks_whole": "PATTERN b ; a",
}
TREND_CALLS = [
    "cet_count('tasks_sliding')",
    "cet_count('tasks_sliding', key => 'k1')",
    "cet_count('tasks_sliding', from_time => TIMESTAMP '2024-01-01 00:00:05Z')",
    "cet_count('tasks_counted')",
    "cet_count('tasks_whole')",
    "cet_trends('tasks_sliding')",
    "cet_trends('tasks_sliding', key => 'k2')",
    "cet_trends('tasks_sliding', max_trends => 4, truncate => true)",
    "cet_trends('tasks_counted')",
    "cet_trends('tasks_whole', key => 'nobody')",
]
SHUFFLED = (0, 3, 6)


def as_text(trend_call: str) -> str:
    """The call with the query's text in the place of its name."""
    function, name, rest = re.fullmatch(r"(\w+)\('(\w+)'(.*)\)", trend_call).groups()  # type: ignore[union-attr]
    return f"{function}({literal(TRENDS[name])}{rest}, stream => 'tasks')"


MACHINES = {"tasks_chain": "a ; b @(t(b) - t(a) < 4 SEC) PARTITION BY key", "tasks_both": "(a & b) ; c"}
MACHINE_CALLS = [
    "match_subscription('tasks_chain')",
    "match_subscription('tasks_chain', key => 'k1')",
    "match_subscription('tasks_both', from_time => TIMESTAMP '2024-01-01 00:00:05Z')",
    "predict_match('tasks_chain')",
    "predict_match('tasks_chain', key => 'k1', lookahead => 3)",
    "predict_match('tasks_both', threshold => 0.1)",
]


def random_events(seed: int) -> list[E]:
    rng = random.Random(seed)
    return [
        E(number * 1000, rng.choice("aabc"), rng.choice(["k1", "k2", None]), {"x": rng.randint(0, 9)})
        for number in range(40)
    ]


def answers(spark: SparkSession, calls: Sequence[str]) -> list[list[str]]:
    return [rows for rows, _ in planned_answers(spark, calls)]


def planned_answers(spark: SparkSession, calls: Sequence[str]) -> list[tuple[list[str], bool]]:
    """The rows of each call, and whether tasks answered it without a scan of Spark's."""
    found = []
    for call in calls:
        frame = spark.sql(f"SELECT * FROM {call}")
        plan = str(frame._jdf.queryExecution().analyzed())
        by_reading = "MapInArrow" in plan and "Relation spark_catalog" not in plan
        found.append((sorted(map(str, frame.collect())), by_reading))
    return found


def test_trends_by_tasks_are_those_of_the_driver(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = shared_trends(spark, tmp_path_factory)
    made = random_events(1)
    lake.stream("tasks", TRENDS, made[:25], made[25:], attributes={"x": "double"})
    here = answers(spark, TREND_CALLS)
    assert all(here[:-1])
    with by_tasks(spark):
        by_reading = [bool(rows) for rows in here]
        assert planned_answers(spark, TREND_CALLS) == list(zip(here, by_reading, strict=True))
        # Where only Spark can read, rows are dealt out by a shuffle.
        spark.conf.set(READER, "spark")
        try:
            assert answers(spark, [TREND_CALLS[number] for number in SHUFFLED]) == [here[number] for number in SHUFFLED]
        finally:
            spark.conf.unset(READER)
    # Few vertices with many trends: each task reads all of them, and lists some.
    monkeypatch.setattr(cet_trends, "HERE_TRENDS", 0)
    forget(lake_of(spark).cache)
    by_reading = [5 <= number < 9 for number in range(len(here))]
    assert planned_answers(spark, TREND_CALLS) == list(zip(here, by_reading, strict=True))
    texts = list(map(as_text, TREND_CALLS))
    assert answers(spark, texts) == here
    summed = [f"cet_aggregate('{name}', 'COUNT(*), SUM(x), MIN(x)')" for name in TRENDS]
    summed_here = answers(spark, summed)
    assert all(summed_here)
    monkeypatch.undo()
    with by_tasks(spark):
        assert answers(spark, texts) == here
        assert answers(spark, summed) == summed_here
        spark.conf.set(READER, "spark")
        try:
            assert answers(spark, [texts[number] for number in SHUFFLED]) == [here[number] for number in SHUFFLED]
            assert answers(spark, summed) == summed_here
        finally:
            spark.conf.unset(READER)


def test_subscriptions_by_tasks_are_those_of_the_driver(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake: SketchLake = shared(spark, tmp_path_factory)
    made = random_events(2)
    MachineStream(lake, "by_tasks", MACHINES).deliver(made[:25], made[25:])
    here = answers(spark, MACHINE_CALLS)
    assert all(here)
    with by_tasks(spark):
        assert answers(spark, MACHINE_CALLS) == here
