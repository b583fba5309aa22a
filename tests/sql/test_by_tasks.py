"""What Spark's tasks answer is what the driver's process answers; of the sketch, see test_planned_functions."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from sql.machine_lake import MachineStream
from sql.sketch_lake import E, SketchLake, by_tasks, shared
from sql.trend_lake import TrendLake

from patternlake.delta_tables.quoting import literal
from patternlake.sql_ext import cet_trends
from patternlake.sql_ext.enabled import lake_of
from patternlake.sql_ext.lake import READER
from patternlake.sql_ext.remembered import forget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRENDS = {
    "sliding": "PATTERN a+ e[] ; b WHERE e[i].x > e[i-1].x PARTITION BY who WITHIN 10 SEC SLIDE 5 SEC",
    "counted": "PATTERN a+ e[] WITHIN 6 EVENTS SLIDE 3 EVENTS",
    "whole": "PATTERN b ; a",
}
TREND_CALLS = [
    "cet_count('sliding')",
    "cet_count('sliding', key => 'k1')",
    "cet_count('sliding', from_time => TIMESTAMP '2024-01-01 00:00:05Z')",
    "cet_count('counted')",
    "cet_count('whole')",
    "cet_trends('sliding')",
    "cet_trends('sliding', key => 'k2')",
    "cet_trends('sliding', max_trends => 4, truncate => true)",
    "cet_trends('counted')",
    "cet_trends('whole', key => 'nobody')",
]
SHUFFLED = (0, 3, 6)


def as_text(trend_call: str) -> str:
    """The call with the query's text in the place of its name."""
    function, name, rest = re.fullmatch(r"(\w+)\('(\w+)'(.*)\)", trend_call).groups()  # type: ignore[union-attr]
    return f"{function}({literal(TRENDS[name])}{rest}, stream => 's')"


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
    return [sorted(map(str, spark.sql(f"SELECT * FROM {call}").collect())) for call in calls]


def test_trends_by_tasks_are_those_of_the_driver(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = TrendLake(spark, tmp_path_factory.mktemp("by_tasks"))
    made = random_events(1)
    lake.stream("s", TRENDS, made[:25], made[25:], attributes={"x": "double"})
    here = answers(spark, TREND_CALLS)
    assert all(here[:-1])
    with by_tasks(spark):
        assert reading_plans(spark, TREND_CALLS) == TREND_CALLS[:4]
        assert answers(spark, TREND_CALLS) == here
        # Where only Spark can read, rows are dealt out by a shuffle.
        spark.conf.set(READER, "spark")
        try:
            assert answers(spark, [TREND_CALLS[number] for number in SHUFFLED]) == [here[number] for number in SHUFFLED]
        finally:
            spark.conf.unset(READER)
    # Few vertices with many trends: each task reads all of them, and lists some.
    monkeypatch.setattr(cet_trends, "HERE_TRENDS", 0)
    forget(lake_of(spark).cache)
    assert reading_plans(spark, TREND_CALLS) == TREND_CALLS[5:9]
    assert answers(spark, TREND_CALLS) == here
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


def reading_plans(spark: SparkSession, calls: Sequence[str]) -> list[str]:
    """The calls that tasks answer without a scan of Spark's."""
    plans = {call: str(spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {call}").collect()[0][0]) for call in calls}
    return [call for call, plan in plans.items() if "MapInArrow" in plan and "Relation spark_catalog" not in plan]


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
