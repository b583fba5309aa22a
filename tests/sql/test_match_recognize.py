"""MATCH_RECOGNIZE over tables: in statements, as a function and in Python; random clauses beside the oracle."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from naive.row_pattern_random import NAMES, Case, expected, random_case
from naive.row_pattern_sql import clause_of
from naive.row_patterns import Excluded
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from sql.empty_database import common

import patternlake
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext.serving.java_classes import define
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PRICES = {"x": [9, 8, 7, 8, 9], "y": [5, 6, 4, 5]}
DOWN_UP = "PATTERN (start down+ up+) DEFINE down AS price < PREV(price), up AS price > PREV(price)"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    db = common(spark, tmp_path_factory)
    patternlake.enable(spark, db.name, db.location)
    rows = [(symbol, at, price, price / 2) for symbol, prices in PRICES.items() for at, price in enumerate(prices, 1)]
    made = frame_of_tuples(spark, rows[::-1], "symbol STRING, ts INT, price INT, half DOUBLE")
    made.createOrReplaceTempView("ticks")
    return spark


def rows(lake: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, lake.sql(text).collect()), key=repr)


def over(lake: SparkSession, clause: str, table: str = "ticks") -> list[tuple[Any, ...]]:
    return rows(lake, f"SELECT * FROM {table} MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clause})")


def test_a_text_in_quotes_as_a_partition_is_told(lake: SparkSession) -> None:
    clause = "PARTITION BY 'symbol' ORDER BY ts, price PATTERN (a) DEFINE a AS price > 8"
    with pytest.warns(UserWarning, match=r"a column stands in backquotes: `symbol`"):
        lake.sql(f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})")


def test_one_row_per_match(lake: SparkSession) -> None:
    question = lake.sql(
        f"""SELECT * FROM ticks MATCH_RECOGNIZE (
              PARTITION BY symbol ORDER BY ts
              MEASURES FIRST(down.ts) AS fell, LAST(up.price) AS to_price, count(down.*) AS days, MATCH_NUMBER() AS n
              ONE ROW PER MATCH
              AFTER MATCH SKIP PAST LAST ROW
              {DOWN_UP}
            ) AS v"""
    )
    assert question.columns == ["symbol", "fell", "to_price", "days", "n"]
    assert [field.dataType.simpleString() for field in question.schema] == ["string", "int", "int", "bigint", "bigint"]
    assert sorted(map(tuple, question.collect())) == [("x", 2, 9, 2, 1), ("y", 3, 5, 1, 1)]


def test_all_rows_per_match(lake: SparkSession) -> None:
    question = lake.sql(
        "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts DESC MEASURES CLASSIFIER() AS c, "
        f"sum(price) AS s, FINAL count(*) AS k ALL ROWS PER MATCH WITH UNMATCHED ROWS {DOWN_UP}) WHERE symbol = 'y'"
    )
    assert question.columns == ["symbol", "ts", "c", "s", "k", "price", "half"]
    assert [tuple(row) for row in question.orderBy(F.desc("ts")).collect()] == [
        ("y", 4, "start", 5, 3, 5, 2.5),
        ("y", 3, "down", 9, 3, 4, 2.0),
        ("y", 2, "up", 15, 3, 6, 3.0),
        ("y", 1, None, None, None, 5, 2.5),
    ]


def test_measures_of_unmatched_rows_are_null(lake: SparkSession) -> None:
    found = over(
        lake,
        "MEASURES 7 AS c, coalesce(LAST(a.price), 0) AS l, count(DISTINCT price > 1) AS d, regr_count(price, ts) AS k "
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b?) DEFINE a AS ts = 2, b AS false",
    )
    measured = {row[:2]: row[2:6] for row in found}
    assert {place: row for place, row in measured.items() if place[1] == 2} == dict.fromkeys(
        [("x", 2), ("y", 2)], (7, 8, 1, 1)
    ) | {("y", 2): (7, 6, 1, 1)}
    assert {row for place, row in measured.items() if place[1] != 2} == {(None,) * 4}


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT sum(n) FROM ticks MATCH_RECOGNIZE ({c})", [(9,)]),
        ("WITH t AS (SELECT * FROM ticks WHERE symbol = 'y') SELECT n FROM t MATCH_RECOGNIZE ({c})", [(4,)]),
        ("WITH t AS (SELECT * FROM ticks MATCH_RECOGNIZE ({c})) SELECT a.n + b.n FROM t a JOIN t b USING (symbol)",
         [(10,), (8,)]),
        ("SELECT m.n FROM (SELECT * FROM ticks WHERE ts > 1) MATCH_RECOGNIZE ({c}) m", [(3,), (4,)]),
        ("SELECT symbol, (SELECT max(n) FROM ticks MATCH_RECOGNIZE ({c})) FROM ticks WHERE ts = 1",
         [("x", 5), ("y", 5)]),
        ("SELECT n FROM ticks MATCH_RECOGNIZE ({c}) m JOIN ticks u ON u.symbol = m.symbol AND u.ts = m.n",
         [(4,), (5,)]),
        ("SELECT k FROM ticks MATCH_RECOGNIZE ({c}) MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS k PATTERN (a+))",
         [(2,)]),
        ("SELECT a, b FROM ticks t MATCH_RECOGNIZE ({c}) AS m (a, b)", [("x", 5), ("y", 4)]),
        ("SELECT n FROM match_recognize(TABLE(ticks) PARTITION BY symbol ORDER BY (ts), 'MEASURES count(*) AS n "
         "PATTERN (a+)')", [(4,), (5,)]),
        ("SELECT n FROM match_recognize(clause => 'MEASURES count(*) AS n PATTERN (a+)', input => TABLE(SELECT ts % 2 "
         "AS odd, * FROM ticks) PARTITION BY (odd, symbol) ORDER BY (ts DESC))", [(2,), (2,), (2,), (3,)]),
        ("SELECT n FROM ticks t MATCH_RECOGNIZE (PARTITION BY t.symbol ORDER BY t.ts MEASURES max(T.ts) AS n "
         "PATTERN (a+) DEFINE a AS t.price > 0)", [(4,), (5,)]),
        ("SELECT * FROM ticks MATCH_RECOGNIZE (MEASURES 42 AS m PATTERN (a{3}))", [(42,), (42,), (42,)]),
        ("SELECT count(*) FROM ticks MATCH_RECOGNIZE (PATTERN (a{4}))", [(2,)]),
        ("SELECT n FROM VALUES (1), (2) AS t(symbol) MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (a+))", [(2,)]),
    ],
)  # fmt: skip
def test_it_stands_wherever_a_table_does(lake: SparkSession, statement: str, wanted: list[Any]) -> None:
    clause = "PARTITION BY symbol ORDER BY ts MEASURES count(*) AS n PATTERN (a+)"
    assert rows(lake, statement.replace("{c}", clause)) == wanted


VALUES = [
    7, -7, 1 << 40, 2.5, Decimal("1.50"), True, None, b"\x00'", [1, 2], date(2024, 1, 2),
    datetime(2024, 1, 2, 3, 4, 5, 6), timedelta(seconds=90),
    "it's", "a\\b", "\\' OR true -- ", "x' OR '1' = '1", '"`?:p', "*/ ; DROP TABLE ticks", "\n", "é…", "",
]  # fmt: skip


def test_parameters_of_the_clause_are_bound(lake: SparkSession) -> None:
    names = {f"p{number}": value for number, value in enumerate(VALUES)}
    measures = ", ".join(f":{name} AS {name}" for name in names)
    text = f"SELECT * FROM ticks MATCH_RECOGNIZE (MEASURES {measures} PATTERN (a) DEFINE a AS symbol = :s AND ts = 1)"
    (row,) = lake.sql(text, args={**names, "s": "x"}).collect()
    assert [bytes(value) if isinstance(value, bytearray) else value for value in row] == VALUES

    def found(condition: str, args: Any) -> list[Any]:
        clause = f"ORDER BY symbol, ts MEASURES a.price AS p PATTERN (a b?) DEFINE {condition}"
        return sorted(row.p for row in lake.sql(f"SELECT p FROM ticks MATCH_RECOGNIZE ({clause})", args=args).collect())

    assert found("a AS symbol = :s", {"s": "y' OR symbol = 'x"}) == []
    assert found("a AS symbol = ? AND price > ?, b AS false", ["x", 8]) == [9, 9]
    assert found("a AS ts = 1, b AS price > a.price * :f AND price-a.price < :m + 9", {"f": 0.5, "m": -7}) == [5, 9]
    wrapped = "SELECT ?, n FROM ({}) WHERE n > ?"
    counted = "SELECT n FROM ticks MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (a??) DEFINE a AS price > ?)"
    text = wrapped.format(counted.replace("a??", "a?"))
    assert {tuple(row) for row in lake.sql(text, args=["w", 8, 0]).collect()} == {("w", 1)}
    for text, args in ((counted, []), (counted, None), (counted.replace("> ?", "> :p"), {"q": 1})):
        with pytest.raises(PySparkException, match="has no value; pass"):
            lake.sql(text, args=args)


def test_views_and_new_sessions(lake: SparkSession) -> None:
    clause = f"MEASURES LAST(price) AS p {DOWN_UP}"
    text = f"SELECT p FROM {{t}} MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clause})"
    lake.sql(f"CREATE OR REPLACE TEMP VIEW risen AS {text.format(t='ticks')}")
    assert rows(lake, "SELECT * FROM risen") == [(5,), (9,)]
    lake.sql("CREATE TABLE kept_ticks USING delta AS SELECT * FROM ticks")
    lake.sql(f"CREATE VIEW kept_risen AS {text.format(t='kept_ticks')}")
    other = lake.newSession()
    database = lake.catalog.currentDatabase()
    assert rows(other, f"SELECT * FROM {database}.kept_risen") == [(5,), (9,)]
    assert rows(other, text.format(t=f"{database}.kept_ticks")) == [(5,), (9,)]
    assert rows(lake, f"{text.format(t='kept_ticks VERSION AS OF 0')} WHERE p > 5") == [(9,)]


def test_a_question_in_python(lake: SparkSession) -> None:
    ticks, clause = lake.table("ticks"), f"MEASURES LAST(price) AS p {DOWN_UP}"

    def asked(**given: Any) -> list[Any]:
        return sorted(tuple(row) for row in patternlake.match_recognize(ticks, clause, **given).collect())

    assert asked(partition_by="symbol", order_by="ts") == [("x", 9), ("y", 5)]
    assert asked(partition_by=["Symbol"], order_by=[F.col("ts").asc()]) == [("x", 9), ("y", 5)]
    assert asked(partition_by=F.upper("symbol"), order_by="ts DESC NULLS LAST") == [("X", 9), ("Y", 6)]
    assert asked(order_by=["symbol", F.desc("ts")]) == [(6,), (9,)]


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("stddev_pop(price)", [0.748331477, 0.707106781]),
        ("percentile(a.price, 0.5)", [9.0, 5.0]),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY price DESC)", [8.0, 5.0]),
        ("min_by(ts, price)", [3, 3]),
        ("count(*) FILTER (WHERE CLASSIFIER() = 'b' AND price > 7)", [3, 0]),
        ("sum(CAST(price AS DECIMAL(4, 1))) + avg(price)", [49.2, 25.0]),
        ("listagg(CLASSIFIER(), '')", ["abbbb", "abbb"]),
        ("string_agg(b.price, '-')", ["8-7-8-9", "6-4-5"]),
        ("size(collect_set(price))", [3, 3]),
        ("bool_or(price > 8)", [True, False]),
        ("named_struct('p', LAST(price), 'q', PREV(LAST(price), 2)).q", [7, 6]),
        ("date_add(DATE '2024-01-01', LAST(ts))", ["2024-01-06", "2024-01-05"]),
    ],
)
def test_measures_are_sparks(lake: SparkSession, measure: str, wanted: list[Any]) -> None:
    found = over(lake, f"MEASURES {measure} AS m PATTERN (a b+) DEFINE b AS ts < 6")
    shown = [
        float(m) if type(m).__name__ == "Decimal" else str(m) if type(m).__name__ == "date" else m for _, m in found
    ]
    assert shown == pytest.approx(wanted) if isinstance(wanted[0], float) else shown == wanted


def test_running_aggregates_of_spark(lake: SparkSession) -> None:
    found = over(
        lake,
        "MEASURES max_by(ts, price) AS r, FINAL max_by(ts, price) AS f, count(DISTINCT price) AS d "
        "ALL ROWS PER MATCH PATTERN (a b+)",
        "(SELECT symbol, ts, price FROM ticks WHERE symbol = 'y')",
    )
    assert found == [("y", 1, 1, 2, 1, 5), ("y", 2, 2, 2, 2, 6), ("y", 3, 2, 2, 3, 4), ("y", 4, 2, 2, 3, 5)]


def test_conditions_of_the_match(lake: SparkSession) -> None:
    found = over(
        lake,
        "MEASURES FIRST(ts) AS f, LAST(ts) AS l AFTER MATCH SKIP TO NEXT ROW PATTERN (a b+ c) "
        "DEFINE b AS price < FIRST(price) AND avg(b.half) < 4.5, c AS upper(a.symbol) = 'X' AND c.price >= a.price",
    )
    assert found == [("x", 1, 5), ("x", 2, 4)]


def test_what_fails_in_rows_that_are_not_asked_stops_no_question(lake: SparkSession) -> None:
    """Under ANSI, 1 / x fails where x is 0; Spark computes columns of all rows before the search."""
    ratios = frame_of_tuples(lake, list(enumerate([5, 0, 4, 2, 0, 1])), "at INT, x INT")
    ratios.createOrReplaceTempView("ratios")
    assert lake.conf.get("spark.sql.ansi.enabled") == "true"

    def found(text: str) -> list[tuple[Any, ...]]:
        return rows(lake, f"SELECT * FROM ratios MATCH_RECOGNIZE (ORDER BY at {text})")

    measures = "MEASURES b.at AS at, sum(6 DIV b.x) AS s, LAST(6 DIV b.x) AS l, 6 DIV b.x AS r PATTERN (a b) DEFINE"
    assert found(f"{measures} b AS b.x <> 0 AND 8 DIV b.x >= a.x") == [(2, 1, 1, 1), (5, 6, 6, 6)]
    assert found("MEASURES b.at AS at PATTERN (a b) DEFINE b AS b.x = 0 OR 8 DIV b.x > a.x") == [(1,), (4,)]
    assert found("MEASURES b.at AS at PATTERN (a b) DEFINE a AS x <> 0, b AS b.x < 8 DIV a.x") == [(1,), (4,)]
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        found("MEASURES b.at AS at PATTERN (a b) DEFINE b AS 8 DIV b.x > a.x")


def test_empty_tables_and_no_matches(lake: SparkSession) -> None:
    assert over(lake, f"MEASURES LAST(ts) AS l {DOWN_UP}", "(SELECT * FROM ticks WHERE ts > 9)") == []
    assert over(lake, "MEASURES stddev(price) AS l PATTERN (a) DEFINE a AS price > 100") == []


def test_the_empty_pattern(lake: SparkSession) -> None:
    found = over(lake, "MEASURES MATCH_NUMBER() AS n, count(*) AS k, price AS p PATTERN ()")
    assert [row for row in found if row[0] == "y"] == [("y", n, 0, None) for n in range(1, 5)]


REFUSED = [
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES price + 1 PATTERN (a))",
        "line 1, column 22: a measure needs a name: write expression AS name\n"
        "  ORDER BY ts MEASURES price + 1 PATTERN (a)\n"
        "                       ^^^^^^^^^",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts PATTERN (a b) DEFINE b AS prise > 1)",
        "line 1, column 39: 'prise' is no column of the input (did you mean 'price'?); columns: "
        "half, price, symbol, ts\n"
        "  ORDER BY ts PATTERN (a b) DEFINE b AS prise > 1\n"
        "                                        ^^^^^",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts PATTERN (a b) DEFINE b AS price + 1)",
        "line 1, column 39: the condition of b is true or false, not of the type int\n"
        "  ORDER BY ts PATTERN (a b) DEFINE b AS price + 1\n"
        "                                        ^^^^^^^^^",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) FILTER (WHERE price) AS n PATTERN (a))",
        "line 1, column 22: the condition of FILTER is true or false, not of the type int\n"
        "  ORDER BY ts MEASURES count(*) FILTER (WHERE price) AS n PATTERN (a)\n"
        "                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts PATTERN (a b) DEFINE b AS b.price & 1 << 2 = a.price & 1)",
        "line 1, column 39: << and >> bind closer than &, ^ and |; put parentheses around them\n"
        "  ORDER BY ts PATTERN (a b) DEFINE b AS b.price & 1 << 2 = a.price & 1\n"
        "                                        ^^^^^^^",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY day PATTERN (a))",
        "line 1, column 10: A column, variable, or function parameter with name `day` cannot be resolved. Did you mean "
        "one of the following? [`ts`, `half`, `price`, `symbol`].\n"
        "  ORDER BY day PATTERN (a)\n"
        "           ^^^",
    ),
    (
        "SELECT * FROM match_recognize(TABLE(ticks) PARTITION BY ts ORDER BY (ts), 'ORDER BY ts PATTERN (a)')",
        "line 1, column 10: ORDER BY stands beside the table already; say it once\n"
        "  ORDER BY ts PATTERN (a)\n"
        "           ^^",
    ),
    (
        "SELECT * FROM match_recognize('ticks', 'PATTERN (a)')",
        "match_recognize: input must be a table: TABLE(name) or TABLE(SELECT …), and behind it perhaps PARTITION BY … "
        "ORDER BY …, not 'ticks'",
    ),
    (
        "SELECT * FROM ticks MATCH_RECOGNIZE (AFTER MATCH SKIP TO b PATTERN (a b?) DEFINE b AS false)",
        "line 1, column 21: AFTER MATCH SKIP TO 'b': a match has no row of 'b'; skip to a variable that each match "
        "has, or PAST LAST ROW\n"
        "  AFTER MATCH SKIP TO b PATTERN (a b?) DEFINE b AS false\n"
        "                      ^",
    ),
    (
        "SELECT * FROM (SELECT *, ts AS __PatternLake_atom_0 FROM ticks) MATCH_RECOGNIZE (PATTERN (a))",
        "a column of the table is called '__PatternLake_atom_0'; names that begin with '__patternlake_' are kept for "
        "PatternLake: rename it",
    ),
    (
        "SELECT * FROM (SELECT *, ts AS Price FROM ticks) MATCH_RECOGNIZE (PATTERN (a))",
        "the table has two columns called Price; give one of them another name",
    ),
]  # fmt: skip


def test_columns_may_have_names_like_our_own(lake: SparkSession) -> None:
    def asked(price: str, half: str) -> list[tuple[Any, ...]]:
        table = f"(SELECT symbol, ts, price AS {price}, half AS {half} FROM ticks)"
        sums = f"array_agg(down.{price} + down.{half}) AS sums"
        measures = f"LAST({price}) AS l, {sums}, CLASSIFIER() AS c, MATCH_NUMBER() AS n"
        clause = f"MEASURES {measures} ALL ROWS PER MATCH {DOWN_UP.replace('price', price)}"
        return over(lake, clause, table)

    plain = asked("price", "half")
    for names in (("__atom_0", "__partition_0"), ("__order_0", "__column_0"), ("__rank", "__size"),
                  ("__lists", "__number"), ("__classifier", "__match_number"), ("__id", "__row")):  # fmt: skip
        assert asked(*names) == plain
    assert len(plain) == 8


@pytest.mark.parametrize(("statement", "wanted"), REFUSED)
def test_what_is_wrong_is_said(lake: SparkSession, statement: str, wanted: str) -> None:
    with pytest.raises(PySparkException) as caught:
        lake.sql(statement).collect()
    assert message(caught.value) == wanted


def test_a_server_that_is_only_read_looks_into_the_clause(lake: SparkSession) -> None:
    jvm: Any = lake._jvm
    define(jvm, lake.sparkContext._gateway)

    def refused(measure: str) -> str | None:
        question: Any = lake.sql(f"SELECT * FROM ticks MATCH_RECOGNIZE (MEASURES {measure} AS m PATTERN (a))")
        found: str | None = jvm.patternlake.Reading.refused(question._jdf.queryExecution().analyzed(), False)
        return found

    assert refused("upper(symbol) || LAST(a.ts)") is None
    assert "by reflection" in (refused("reflect('java.lang.System', 'lineSeparator')") or "")
    assert "by reflection" in (refused("LAST(reflect('java.lang.System', 'getProperty', symbol))") or "")


def test_a_partition_that_is_too_large_is_refused(lake: SparkSession) -> None:
    lake.range(1000).createOrReplaceTempView("thousand")
    question = lake.sql("SELECT * FROM thousand MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS l PATTERN (a b))")
    assert question.count() == 500
    lake.conf.set("spark.patternlake.partitionBytes", "1k")
    try:
        with pytest.raises(PySparkException) as caught:
            lake.sql(
                "SELECT * FROM thousand MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS l PATTERN (a b))"
            ).collect()
    finally:
        lake.conf.unset("spark.patternlake.partitionBytes")
    assert re.fullmatch(
        r"a partition has 1,000 rows, about 0 MB for one task, which may hold 0 MB "
        r"\(spark.patternlake.partitionBytes\); partition by more columns, take fewer columns or rows, or raise the "
        "setting",
        message(caught.value),
    )


def test_a_search_ends_at_its_steps(lake: SparkSession) -> None:
    lake.conf.set("spark.patternlake.rowPatternSteps", "10")
    try:
        with pytest.raises(PySparkException, match=r"takes more than 10 steps .*rowPatternSteps = 10"):
            over(lake, "PATTERN (a b+ c) DEFINE c AS sum(price) > 1000")
    finally:
        lake.conf.unset("spark.patternlake.rowPatternSteps")


TIMES = "VALUES (1, TIMESTAMP '2024-01-01 10:00:00'), (2, TIMESTAMP '2024-01-01 11:00:00') AS t(n, at)"


@pytest.mark.parametrize(
    ("table", "clause", "wanted"),
    [
        (TIMES, "PATTERN (a b) DEFINE b AS b.at - INTERVAL 1 HOUR 30 MINUTES < a.at", 2),
        (TIMES, "PATTERN (a b) DEFINE b AS b.at < a.at + INTERVAL 1 HOUR 30 MINUTES", 2),
        (
            f"(SELECT n, at + INTERVAL 2 HOURS AS at, hour(at) FROM {TIMES})",
            "PATTERN (a b) DEFINE b AS max(hour(b.at)) = 13",
            2,
        ),
        ("(SELECT n, n AS desc FROM (VALUES (1), (2) AS t(n))) AS t", "PATTERN (a b) DEFINE b AS b.desc > a.desc", 2),
    ],
)
def test_parts_of_conditions_mean_what_they_mean_in_spark(
    lake: SparkSession, table: str, clause: str, wanted: int
) -> None:
    order = "t.desc" if "AS desc" in table else "n"
    found = lake.sql(f"SELECT l FROM {table} MATCH_RECOGNIZE (ORDER BY {order} MEASURES LAST(n) AS l {clause})")
    assert [row.l for row in found.collect()] == [wanted]


def test_an_integer_beside_a_double_is_a_double(lake: SparkSession) -> None:
    table = "(SELECT n, CAST(n AS INT) AS whole, n + 0.7D AS part FROM VALUES (1), (2), (3) AS t(n))"
    asked = f"SELECT * FROM {table} MATCH_RECOGNIZE (ORDER BY n PATTERN (x? b c) DEFINE x AS n > 9, c AS {{}} = 2)"
    with pytest.raises(PySparkException, match="this is not known of rows matched"):
        lake.sql(asked.format("CAST(coalesce(x.whole, b.part) AS INT)"))
    assert lake.sql(asked.format("CAST(coalesce(x.whole, b.whole) AS INT)")).count() == 1


def test_a_measure_is_no_column_that_is_called_like_it(lake: SparkSession) -> None:
    table = f"(SELECT n, at + INTERVAL 2 HOURS AS at, hour(at) FROM {TIMES})"
    found = lake.sql(f"SELECT h FROM {table} MATCH_RECOGNIZE (ORDER BY n MEASURES LAST(hour(at)) AS h PATTERN (a+))")
    assert [row.h for row in found.collect()] == [13]


def test_parameters_stand_behind_words_of_functions(lake: SparkSession) -> None:
    clause = "ORDER BY ts MEASURES count(*) AS n PATTERN (a+) DEFINE a AS substring(symbol FROM 1 FOR :n) = 'x'"
    plain = lake.sql(f"SELECT n FROM ticks MATCH_RECOGNIZE ({clause.replace(':n', '1')})").collect()
    assert lake.sql(f"SELECT n FROM ticks MATCH_RECOGNIZE ({clause})", args={"n": 1}).collect() == plain != []


def test_a_filter_that_is_null_counts_nothing(lake: SparkSession) -> None:
    clause = "ORDER BY ts MEASURES count(*) FILTER (WHERE NULL) AS n PATTERN (a+)"
    assert [row.n for row in lake.sql(f"SELECT n FROM ticks MATCH_RECOGNIZE ({clause})").collect()] == [0]


def test_python_is_told_as_sql_is(lake: SparkSession) -> None:
    ticks = lake.table("ticks")
    with pytest.raises(PatternLakeError, match="a measure needs a name"):
        patternlake.match_recognize(ticks, "MEASURES 1 PATTERN (a)")
    with pytest.raises(PatternLakeError, match="order_by takes names of columns, expressions of SQL or Columns, not 7"):
        patternlake.match_recognize(ticks, "PATTERN (a)", order_by=7)  # type: ignore[arg-type]


# Random clauses: each case a table of its own, both answers of it beside the oracle's.


def table_of(spark: SparkSession, case: Case) -> DataFrame:
    columns = [*NAMES, "i", "f", "t"]
    given = [
        (part, at, *(row[name] for name in columns))
        for part, partition in enumerate(case.partitions)
        for at, row in enumerate(partition)
    ]
    random.Random(0).shuffle(given)
    kinds = [*(f"{name} BOOLEAN" for name in NAMES), "i INT", "f DOUBLE", "t BIGINT"]
    return frame_of_tuples(spark, given, f"part INT, at INT, {', '.join(kinds)}")


def wanted_rows(case: Case) -> tuple[list[Any], list[Any]] | None:
    """What ONE ROW and ALL ROWS PER MATCH give; None for an error."""
    found = expected(case)
    if isinstance(found, tuple):
        return None
    one, every = [], []
    for part, each in enumerate(found):
        for match in each.matches:
            taken = list(range(match.start, match.start + len(match.labels)))
            one.append((part, match.number, taken, list(match.labels)))
            if not taken:
                every.append((part, match.start, match.number, None, 0))
            for count, (at, label, excluded) in enumerate(zip(taken, match.labels, match.excluded, strict=True), 1):
                if not excluded:
                    every.append((part, at, match.number, label, count))
        if not has_exclusion(case.pattern):
            every += [(part, at, None, None, None) for at in each.unmatched]
    return one, every


def has_exclusion(pattern: Any) -> bool:
    inner = getattr(pattern, "items", None) or ([pattern.item] if hasattr(pattern, "item") else [])
    return isinstance(pattern, Excluded) or any(map(has_exclusion, inner))


def check_random(spark: SparkSession, seeds: Sequence[int]) -> int:
    asked = 0
    # To the oracle what is divided by zero is NULL, as it is to Spark without ANSI.
    spark = spark.newSession()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    for seed in seeds:
        rng = random.Random(seed)
        case = random_case(rng, looks_back=rng.random() < 0.5)
        if case is None:
            continue
        asked += 1
        table, text, wanted = table_of(spark, case), clause_of(case), wanted_rows(case)
        shown = "SHOW EMPTY MATCHES" if has_exclusion(case.pattern) else "WITH UNMATCHED ROWS"
        questions = [
            f"MEASURES MATCH_NUMBER() AS n, array_agg(at) AS ats, array_agg(CLASSIFIER()) AS names {text}",
            f"MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS c, count(*) AS k ALL ROWS PER MATCH {shown} {text}",
        ]
        for number, question in enumerate(questions):
            answer = patternlake.match_recognize(table, question, partition_by="part", order_by="at")
            if wanted is None:
                with pytest.raises(PySparkException, match="AFTER MATCH SKIP TO"):
                    answer.collect()
                continue
            found = [tuple(row)[: 5 if number else 4] for row in answer.collect()]
            assert sorted(found, key=repr) == sorted(wanted[number], key=repr), (seed, question)
    return asked


def test_random_clauses_equal_the_oracle(lake: SparkSession) -> None:
    assert check_random(lake, range(8)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(4))
def test_many_random_clauses_equal_the_oracle(lake: SparkSession, hundred: int) -> None:
    assert check_random(lake, range(1000 + 100 * hundred, 1100 + 100 * hundred)) > 70


@pytest.mark.parametrize("way", ["sql", "table", "python"])
def test_texts_that_sort_wrong_are_told(lake: SparkSession, way: str, caplog: pytest.LogCaptureFixture) -> None:
    lake.sql("""
        CREATE OR REPLACE TEMPORARY VIEW texts AS SELECT * FROM VALUES
          ('9:00', '2025-03-03 09:00', '7', 1), ('10:00', '2025-03-03 10:00', '12', 2)
        AS texts(at, iso, number, n)""")
    clause = "MEASURES FIRST(n) AS first PATTERN (a+) DEFINE a AS true"

    def ask(order: str, table: str = "texts") -> list[Any]:
        if way == "sql":
            frame = lake.sql(f"SELECT * FROM {table} MATCH_RECOGNIZE (ORDER BY {order} {clause})")
        elif way == "table":
            frame = lake.sql(
                f"SELECT * FROM match_recognize(TABLE({table}) WITH SINGLE PARTITION ORDER BY ({order}), '{clause}')"
            )
        else:
            frame = patternlake.match_recognize(lake.table(table), clause, order_by=order)
        return [tuple(row) for row in frame.collect()]

    with pytest.warns(UserWarning, match="ORDER BY at sorts texts such as '9:00' by their first characters") as told:
        assert ask("at") == [(2,)]
    assert str(told[0].message).endswith("write ORDER BY to_timestamp(at, 'H:mm')")
    assert str(told[0].message) in caplog.text
    assert [each.filename for each in told] == [__file__]
    with pytest.warns(UserWarning, match=r"write ORDER BY CAST\(number AS BIGINT\)"):
        ask("number")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask("to_timestamp(at, 'H:mm')") == [(1,)]
        assert ask("iso") == ask("n") == [(1,)]
