"""Aggregates in DEFINE of MATCH_RECOGNIZE, through Spark and with its types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from sql.empty_database import common

import patternlake
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRICES = {"x": [9, 8, 7, 8, 9], "y": [5, 6, 4, 5]}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    db = common(spark, tmp_path_factory)
    patternlake.enable(spark, db.name, db.location)
    rows = [(symbol, at, price, price / 2) for symbol, prices in PRICES.items() for at, price in enumerate(prices, 1)]
    made = frame_of_tuples(spark, rows, "symbol STRING, ts INT, price INT, half DOUBLE")
    made.createOrReplaceTempView("aggregated_ticks")
    return spark


def lengths(lake: SparkSession, pattern: str) -> list[int]:
    """How long the first match of each symbol is."""
    found = lake.sql(
        "SELECT symbol, n FROM aggregated_ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts "
        f"MEASURES count(*) AS n, MATCH_NUMBER() AS m PATTERN {pattern}) WHERE m = 1"
    )
    by_symbol = dict(map(tuple, found.collect()))
    return [by_symbol.get(symbol, 0) for symbol in PRICES]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("count(DISTINCT price) < 3", [2, 2]),
        ("count(DISTINCT price) = count(price)", [3, 3]),
        ("count(DISTINCT half) < 3", [2, 2]),
        ("count(DISTINCT symbol || price) < 3", [2, 2]),
        ("count(DISTINCT CAST(price AS DECIMAL(5, 1))) < 3", [2, 2]),
        ("count(DISTINCT timestamp_seconds(price)) < 3", [2, 2]),
        ("count(DISTINCT date_add(DATE '2024-01-01', price)) < 3", [2, 2]),
        ("count(DISTINCT make_dt_interval(price)) < 3", [2, 2]),
        ("count(DISTINCT price > 8) < 2", [1, 4]),
        ("count(DISTINCT price) FILTER (WHERE price < 9) < 2", [2, 1]),
        ("size(collect_set(price)) < 3", [2, 2]),
        ("cardinality(array_agg(price)) < 3", [2, 2]),
        ("sum(DISTINCT price) < 20", [2, 4]),
        ("avg(DISTINCT price) >= 8", [5, 0]),
        ("var_pop(price) < 0.6", [2, 2]),
        ("stddev_pop(half) < 0.4", [2, 2]),
        ("coalesce(stddev(price), 0) < 0.8", [2, 2]),
        ("max_by(ts, price) = 1", [4, 1]),
        ("max_by(symbol, half) = symbol AND min_by(half, price) >= 2.5", [5, 2]),
        ("ts - max_by(ts, price) < 1", [1, 2]),
        ("timestamp_seconds(ts) - max_by(timestamp_seconds(ts), price) < INTERVAL 1 SECOND", [1, 2]),
        ("NOT array_contains(array_agg(half), 4)", [1, 4]),
        ("sum(MATCH_NUMBER()) < 3", [2, 2]),
        ("count(*) FILTER (WHERE MATCH_NUMBER() = 1) < 3", [2, 2]),
        ("count(CLASSIFIER()) < 3", [2, 2]),
    ],
)
def test_rows_are_taken_while_an_aggregate_says_so(lake: SparkSession, condition: str, wanted: list[int]) -> None:
    assert lengths(lake, f"(^ a+) DEFINE a AS {condition}") == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("max(CLASSIFIER()) = 'b' AND min(CLASSIFIER()) = 'a'", [5, 4]),
        ("max(CLASSIFIER() || '!') = 'b!'", [5, 4]),
        ("max(lower(CLASSIFIER())) < symbol", [5, 4]),
        ("count(DISTINCT CLASSIFIER()) = 2", [5, 4]),
        ("count(CLASSIFIER(b)) < 3", [3, 3]),
        ("count_if(CLASSIFIER() = 'b') < 3", [3, 3]),
        ("count(*) FILTER (WHERE CLASSIFIER() = 'b') < 3", [3, 3]),
        ("sum(CASE WHEN CLASSIFIER() = 'a' THEN 10 ELSE price END) < 30", [3, 4]),
        ("avg(price) FILTER (WHERE CLASSIFIER() <> 'a') > 7.4", [5, 0]),
        ("NOT array_contains(array_agg(a.price), price)", [4, 3]),
        ("array_contains(collect_list(s.price), 8)", [5, 0]),
    ],
)
def test_aggregates_of_variables(lake: SparkSession, condition: str, wanted: list[int]) -> None:
    assert lengths(lake, f"(^ a b+) SUBSET s = (a, b) DEFINE b AS {condition}") == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("percentile(price, 0.5) > 7", "computed in a subquery before the clause"),
        ("array_agg(price)[0] > 7", "write array_contains(array_agg(v.x), y) or size(array_agg(v.x))"),
        ("approx_count_distinct(price) > 7", "write count(DISTINCT v.x)"),
        ("any_value(price) > 7", "write FIRST(v.x)"),
        ("kurtosis(price) > 7", "stddev and variance, with DISTINCT too"),
    ],
)
def test_what_is_not_kept_from_row_to_row_is_refused(lake: SparkSession, condition: str, wanted: str) -> None:
    with pytest.raises(PySparkException) as caught:
        lengths(lake, f"(a+) DEFINE a AS {condition}")
    assert wanted in str(caught.value)
