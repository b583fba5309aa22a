"""When a forecast is told: two hundred random histories, each read in random portions, as the oracle tells them."""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING

import pytest
from naive.alerts import told_of_forecasts
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.jobs.alerts.rows import FOUND_IN, ORDINAL, SAME, number_rows, risen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIALS, THINGS = 200, "pqrs"
LEAST = 0.5


@pytest.fixture(scope="module")
def histories() -> list[list[dict[str, float]]]:
    """By trial and batch: what was forecast. A thing may be away for a while."""
    rng = random.Random(25)
    return [
        [
            {thing: rng.choice([0.1, 0.4, 0.5, 0.6, 0.9]) for thing in THINGS if rng.random() < 0.7}
            for _ in range(rng.randint(1, 12))
        ]
        for _ in range(TRIALS)
    ]


def portions(rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Batches from, to (exclusive) that are read together."""
    cuts = sorted(rng.sample(range(1, count), rng.randint(0, count - 1))) if count > 1 else []
    return list(zip([0, *cuts], [*cuts, count], strict=True))


def read(spark: SparkSession, histories: list[list[dict[str, float]]], seed: int) -> set[tuple[int, str, int]]:
    """What is told, (trial, thing, batch), where each history is read in portions; a portion twice is an error."""
    rng = random.Random(seed)
    rows: dict[bool, list[tuple[int, int, str, float, int, int]]] = {False: [], True: []}
    for trial, history in enumerate(histories):
        for begin, end in portions(rng, len(history)):
            # What was read last is looked at again, to know what held there.
            first = max(0, begin - 1)
            rows[begin > 0] += [
                (trial, begin, thing, probability, batch, batch - first)
                for batch in range(first, end)
                for thing, probability in history[batch].items()
                if probability >= LEAST
            ]
    columns = f"trial int, portion int, thing string, probability double, batch int, {ORDINAL} int"
    frames = [
        risen(
            spark.createDataFrame(given, columns)
            .withColumn(SAME, F.struct("trial", "portion", "thing"))
            .withColumn("state", F.lit("N1")),
            known=known,
        )
        for known, given in rows.items()
    ]
    found = [(row.trial, row.thing, row.batch) for row in reduce(DataFrame.unionByName, frames).collect()]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_portions_tell_what_the_whole_history_tells(
    spark: SparkSession, histories: list[list[dict[str, float]]], seed: int
) -> None:
    expected = {
        (trial, thing, batch)
        for trial, history in enumerate(histories)
        for thing, batch in told_of_forecasts(history, lambda probability: probability >= LEAST)
    }
    assert len(expected) > TRIALS
    assert read(spark, histories, seed) == expected


def test_a_batch_is_numbered_among_those_that_were_published(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(4,), (5,), (7,), (7,), (9,)], f"{FOUND_IN} bigint")
    found = sorted((row[FOUND_IN], row[ORDINAL]) for row in number_rows(rows, [4, 7, 9]).collect())
    assert found == [(4, 0), (7, 1), (7, 1), (9, 2)], "batch 5 was never published"


def test_of_two_rows_of_one_forecast_the_most_probable_is_told(spark: SparkSession) -> None:
    given = [("p", 0.5, "N1", 0), ("p", 0.7, "N2", 0), ("p", 0.6, "N1", 1)]
    rows = spark.createDataFrame(given, f"{SAME} string, probability double, state string, {ORDINAL} int")
    assert [tuple(row) for row in risen(rows, known=False).collect()] == [("p", 0.7, "N2", 0)]
