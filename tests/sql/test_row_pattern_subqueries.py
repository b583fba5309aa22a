"""Subqueries in DEFINE and MEASURES of MATCH_RECOGNIZE: Spark computes them before the match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from sql.empty_database import common

import patternlake
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext.serving.java_classes import define

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRICES = {"x": [9, 8, 7, 8, 9], "y": [5, 6, 4, 5]}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    db = common(spark, tmp_path_factory)
    patternlake.enable(spark, db.name, db.location)
    rows = [(symbol, at, price) for symbol, prices in PRICES.items() for at, price in enumerate(prices, 1)]
    made = frame_of_tuples(spark, rows, "symbol STRING, ts INT, price INT")
    made.createOrReplaceTempView("asked_ticks")
    wanted = frame_of_tuples(spark, [(8,), (7,), (5,)], "p INT")
    wanted.createOrReplaceTempView("wanted_prices")
    return spark


def rows(lake: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, lake.sql(text).collect()), key=repr)


def over(lake: SparkSession, clause: str, table: str = "asked_ticks") -> list[tuple[Any, ...]]:
    return rows(lake, f"SELECT * FROM {table} MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clause})")


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("price > (SELECT avg(price) FROM asked_ticks)", [("x", 1, 5)]),
        ("price * 2 > (SELECT max(price) FROM asked_ticks) AND ts < (SELECT 4)", [("x", 1, 3), ("y", 1, 2)]),
        ("price IN (SELECT p FROM wanted_prices)", [("x", 2, 4), ("y", 1, 1), ("y", 4, 4)]),
        ("a.price + 1 NOT IN (SELECT p FROM wanted_prices)", [("x", 1, 2), ("x", 4, 5), ("y", 1, 1), ("y", 4, 4)]),
        ("price NOT IN (SELECT p FROM wanted_prices UNION ALL SELECT NULL)", []),
        ("(symbol, price) IN (SELECT 'x', p FROM wanted_prices)", [("x", 2, 4)]),
        ("EXISTS (SELECT 1 FROM wanted_prices) AND price > 8", [("x", 1, 1), ("x", 5, 5)]),
        ("NOT EXISTS (SELECT 1 FROM wanted_prices WHERE p = price)", [("x", 1, 1), ("x", 5, 5), ("y", 2, 3)]),
        ("price = (SELECT max(u.price) FROM asked_ticks u WHERE u.symbol = asked_ticks.symbol)",
         [("x", 1, 1), ("x", 5, 5), ("y", 2, 2)]),
        ("PREV(price IN (SELECT p FROM wanted_prices))", [("x", 3, 5), ("y", 2, 2)]),
        ("sum(price) < 3 * (SELECT max(price) FROM asked_ticks)", [("x", 1, 3), ("x", 4, 5), ("y", 1, 4)]),
        ("sum(price - (SELECT 4)) < 10", [("x", 1, 2), ("x", 3, 4), ("x", 5, 5), ("y", 1, 4)]),
        ("FIRST(price) > (SELECT avg(price) FROM asked_ticks)", [("x", 1, 5)]),
        ("count_if(price IN (SELECT p FROM wanted_prices)) < 2 AND price > 4",
         [("x", 1, 2), ("x", 3, 3), ("x", 4, 5), ("y", 1, 2), ("y", 4, 4)]),
        ("count(CLASSIFIER()) < (SELECT 3)", [("x", 1, 2), ("x", 3, 4), ("x", 5, 5), ("y", 1, 2), ("y", 3, 4)]),
        ("price > (SELECT max(l) FROM wanted_prices MATCH_RECOGNIZE (ORDER BY p MEASURES LAST(p) AS l PATTERN (a b?)))",
         [("x", 1, 1), ("x", 5, 5)]),
    ],
)  # fmt: skip
def test_subqueries_in_conditions(lake: SparkSession, condition: str, wanted: list[Any]) -> None:
    assert over(lake, f"MEASURES FIRST(ts) AS f, LAST(ts) AS l PATTERN (a+) DEFINE a AS {condition}") == wanted


def test_conditions_of_another_variables_row(lake: SparkSession) -> None:
    found = over(
        lake,
        "MEASURES a.ts AS f, LAST(ts) AS l PATTERN (a b+) DEFINE b AS a.price IN (SELECT p FROM wanted_prices) AND "
        "price - a.price >= (SELECT min(p) - 5 FROM wanted_prices)",
    )
    assert found == [("x", 3, 5), ("y", 1, 2)]


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("LAST(price) - (SELECT min(price) FROM asked_ticks)", [5, 1]),
        ("(SELECT max(price) FROM asked_ticks) || ''", ["9", "9"]),
        ("sum(price - (SELECT min(price) FROM asked_ticks))", [21, 4]),
        ("array_agg(price > (SELECT avg(price) FROM asked_ticks))", [[True] * 5, [False] * 4]),
        ("max_by(ts, price * (SELECT -1))", [3, 3]),
        ("count(*) FILTER (WHERE price IN (SELECT p FROM wanted_prices))", [3, 2]),
        ("FIRST(price IN (SELECT p FROM wanted_prices))", [False, True]),
        ("LAST(b.price + (SELECT 1000)) + (SELECT 1)", [1010, 1006]),
        ("FIRST(a.price < 0 OR 1 IN (SELECT 1) AND EXISTS(SELECT 2))", [True, True]),
        ("b.price IN (SELECT p FROM wanted_prices)", [False, True]),
        ("CASE WHEN EXISTS (SELECT 1 WHERE false) THEN 1 ELSE count(*) END", [5, 4]),
        ("(SELECT sum(u.price) FROM asked_ticks u WHERE u.symbol = asked_ticks.symbol)", [41, 20]),
    ],
)
def test_subqueries_in_measures(lake: SparkSession, measure: str, wanted: list[Any]) -> None:
    assert [m for _, m in over(lake, f"MEASURES {measure} AS m PATTERN (a b+)")] == wanted


def test_all_rows_show_the_tables_columns_only(lake: SparkSession) -> None:
    question = lake.sql(
        "SELECT * FROM asked_ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES (SELECT 7) AS seven, "
        "price > (SELECT 7) AS high, count(*) AS k ALL ROWS PER MATCH PATTERN (a*) DEFINE a AS price > (SELECT 7))"
    )
    assert question.columns == ["symbol", "ts", "seven", "high", "k", "price"]
    assert sorted(map(tuple, question.where("symbol = 'x'").collect())) == [
        ("x", 1, 7, True, 1, 9),
        ("x", 2, 7, True, 2, 8),
        ("x", 3, 7, None, 0, 7),
        ("x", 4, 7, True, 1, 8),
        ("x", 5, 7, True, 2, 9),
    ]


CLAUSE = (
    "PARTITION BY symbol ORDER BY ts MEASURES count(*) AS n PATTERN (a+) DEFINE a AS price > (SELECT l FROM limits)"
)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("WITH limits AS (SELECT 7 AS l) SELECT n FROM asked_ticks MATCH_RECOGNIZE ({c})", [(2,), (2,)]),
        ("WITH limits AS (SELECT 7 AS l), found AS (SELECT * FROM asked_ticks MATCH_RECOGNIZE ({c})) "
         "SELECT a.n + b.n FROM found a, found b", [(4,), (4,), (4,), (4,)]),
        ("WITH limits AS (SELECT 5 AS l) SELECT n, w.p FROM wanted_prices w JOIN asked_ticks MATCH_RECOGNIZE ({c}) m "
         "ON w.p > m.n + 4", [(1, 7), (1, 8), (5, 8)][:2]),
        ("SELECT * FROM (WITH limits AS (SELECT 5 AS l) SELECT sum(n) FROM asked_ticks MATCH_RECOGNIZE ({c}))",
         [(6,)]),
        ("WITH limits AS (SELECT 7 AS l) SELECT k FROM asked_ticks MATCH_RECOGNIZE ({c}) MATCH_RECOGNIZE (ORDER BY n "
         "MEASURES sum(n) + (SELECT l FROM limits) AS k PATTERN (a+) DEFINE a AS n IN (SELECT 2))", [(11,)]),
    ],
)  # fmt: skip
def test_a_subquery_sees_what_the_statement_knows(lake: SparkSession, statement: str, wanted: list[Any]) -> None:
    assert rows(lake, statement.replace("{c}", CLAUSE)) == wanted


def test_views_that_stay_keep_their_subqueries(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE asked_kept USING delta AS SELECT * FROM asked_ticks")
    lake.sql(
        f"CREATE VIEW asked_view AS WITH limits AS (SELECT avg(price) AS l FROM asked_kept) "
        f"SELECT symbol, n FROM asked_kept MATCH_RECOGNIZE ({CLAUSE})"
    )
    other, database = lake.newSession(), lake.catalog.currentDatabase()
    assert rows(other, f"SELECT * FROM {database}.asked_view") == [("x", 5)]
    lake.sql("INSERT INTO asked_kept VALUES ('z', 1, 100)")
    assert rows(other, f"SELECT * FROM {database}.asked_view") == [("z", 1)]


def test_parameters_of_subqueries(lake: SparkSession) -> None:
    text = CLAUSE.replace("l FROM limits", "max(p) - :less FROM wanted_prices WHERE p < :most")
    found = lake.sql(f"SELECT n FROM asked_ticks MATCH_RECOGNIZE ({text})", args={"less": 1, "most": 8}).collect()
    assert sorted(map(tuple, found)) == [(5,)]


def test_a_clause_in_a_string_and_in_python(lake: SparkSession) -> None:
    clause = "MEASURES count(*) AS n, (SELECT max(p) FROM wanted_prices) AS m PATTERN (a+) DEFINE a AS price > " + (
        "(SELECT avg(u.price) FROM asked_ticks u WHERE u.symbol = symbol)"
    )
    text = f"SELECT n, m FROM match_recognize(TABLE(asked_ticks) PARTITION BY symbol ORDER BY (ts), '{clause}')"
    wanted = [(5, 8)]
    assert rows(lake, text) == wanted
    found = patternlake.match_recognize(lake.table("asked_ticks"), clause, partition_by="symbol", order_by="ts")
    assert sorted((row.n, row.m) for row in found.collect()) == wanted


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (
            "price > (SELECT p FROM wanted_prices WHERE p = a.price)",
            "line 1, column 72: 'a', a variable of the pattern, stands in a subquery, which is computed before the "
            "match; it may name columns of the input. Compare its value with what was matched, as in v.x > (SELECT …)",
        ),
        (
            "LAST(price, 1) IN (SELECT p FROM wanted_prices)",
            "line 1, column 25: LAST looks at the match, and IN (SELECT …) is computed before it; it compares one "
            "row's columns, as in LAST(v.x IN (SELECT …))",
        ),
        ("price > (SELECT p FROM nowhere)", "The table or view `nowhere` cannot be found."),
    ],
)
def test_what_is_wrong_with_a_subquery_is_said(lake: SparkSession, condition: str, wanted: str) -> None:
    with pytest.raises(PySparkException) as caught:
        rows(lake, f"SELECT * FROM asked_ticks MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS {condition})")
    assert wanted in str(caught.value)


def test_a_string_shows_the_place_of_a_subquery_that_spark_does_not_take(lake: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        rows(lake, "SELECT * FROM match_recognize(TABLE(asked_ticks), 'PATTERN (a) DEFINE a AS price > (SELECT q)')")
    assert message(caught.value).endswith(
        "\n  PATTERN (a) DEFINE a AS price > (SELECT q)\n                                  ^^^^^^^^^^"
    )


def test_columns_of_subqueries_are_ours_alone(lake: SparkSession) -> None:
    with pytest.raises(PySparkException, match="a column of the table is called '__patternlake_subquery_0'"):
        rows(lake, "SELECT * FROM (SELECT *, 1 AS __patternlake_subquery_0 FROM asked_ticks) MATCH_RECOGNIZE "
                   "(PATTERN (a))")  # fmt: skip


def test_a_server_that_is_only_read_looks_into_subqueries(lake: SparkSession) -> None:
    jvm: Any = lake._jvm
    define(jvm, lake.sparkContext._gateway)
    for text in (
        "SELECT * FROM asked_ticks MATCH_RECOGNIZE (MEASURES {m} AS m PATTERN (a))",
        'SELECT * FROM match_recognize(TABLE(asked_ticks), "MEASURES {m} AS m PATTERN (a)")',
    ):
        question: Any = lake.sql(text.replace("{m}", "(SELECT reflect('java.lang.System', 'lineSeparator'))"))
        assert "by reflection" in jvm.patternlake.Reading.refused(question._jdf.queryExecution().analyzed(), False)
