"""What is written in a clause of MATCH_RECOGNIZE is what Spark computes."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf
from sql.empty_database import common

import patternlake
from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    db = common(spark, tmp_path_factory)
    patternlake.enable(spark, db.name, db.location)
    rows = [(1, 2, "a1", 2**62), (2, 0, "b", 2**62), (3, 4, "a2", -1), (4, 5, "d", 7), (5, 1, "a3", 8)]
    frame_of_tuples(spark, rows, "at INT, x INT, s STRING, big BIGINT").createOrReplaceTempView("written_rows")
    return spark


def ask(lake: SparkSession, clause: str) -> list[tuple[object, ...]]:
    found = lake.sql(f"SELECT * FROM written_rows MATCH_RECOGNIZE (ORDER BY at {clause})")
    return [tuple(row) for row in found.collect()]


@pytest.mark.parametrize(
    "condition",
    [
        r"s RLIKE r'^a\d$' OR x > LAST(a.x) + 9",
        r"s RLIKE '^a\\d$' OR x > LAST(a.x) + 9",
        r"regexp_extract(s, r'(a)\d', 1) = 'a' OR x > LAST(a.x) + 9",
        "s LIKE ANY ('a%', 'z') OR x > LAST(a.x) + 9",
    ],
)
def test_a_part_beside_one_that_joins_rows_is_what_it_is_alone(lake: SparkSession, condition: str) -> None:
    assert ask(lake, f"MEASURES array_agg(at) AS rows PATTERN (a+) DEFINE a AS {condition}") == [([1],), ([3],), ([5],)]


def test_a_quotient_is_computed_only_of_rows_that_can_be_in_a_match(lake: SparkSession) -> None:
    measures = "MEASURES LAST(100 / a.x) AS q, sum(100 / a.x) AS t"
    assert ask(lake, f"{measures} PATTERN (a+) DEFINE a AS x <> 0") == [(50, 50), (100, 145)]
    alone = "MEASURES count(*) AS n PATTERN (a+) DEFINE a AS x <> 0 AND sum(100 / a.x) < 60"
    assert ask(lake, alone) == [(1,), (2,)]
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        ask(lake, f"{measures} PATTERN (a+)")


def test_a_filter_keeps_what_is_behind_it_from_rows_that_do_not_count(lake: SparkSession) -> None:
    measures = (
        "sum(100 / x) FILTER (WHERE x <> 0) AS s, stddev(100 / x) FILTER (WHERE x > 4) AS d, "
        "array_agg(DISTINCT 100 / x) FILTER (WHERE x > 3) AS l"
    )
    assert ask(lake, f"MEASURES {measures} PATTERN (a+)") == [(195, None, [25, 20])]
    measures = "any_value(a.at) FILTER (WHERE a.x > 2 AND CLASSIFIER(a) = 'a') IGNORE NULLS AS p"
    assert ask(lake, f"MEASURES {measures} PATTERN (a+)") == [(3,)]


def test_respect_nulls_keeps_them(lake: SparkSession) -> None:
    measures = (
        "array_agg(nullif(x, 0)) RESPECT NULLS AS r, array_agg(nullif(x, 0)) AS i, "
        "array_agg(nullif(x, 0)) IGNORE NULLS AS j, any_value(nullif(x, 2)) AS f"
    )
    (row,) = ask(lake, f"MEASURES {measures} PATTERN (a+)")
    assert row == ([2, None, 4, 5, 1], [2, 4, 5, 1], [2, 4, 5, 1], None)
    with pytest.raises(PySparkException, match="RESPECT NULLS cannot stand in a condition"):
        ask(lake, "PATTERN (a+) DEFINE a AS size(array_agg(x) RESPECT NULLS) < 3")


def test_distinct_takes_values_of_any_type(lake: SparkSession) -> None:
    measures = "count(DISTINCT array(x > 1)) AS n, size(array_agg(DISTINCT struct(x > 1, x > 2))) AS m"
    assert ask(lake, f"MEASURES {measures} PATTERN (a+)") == [(2, 3)]


def test_hours_that_make_a_day_are_added_as_spark_adds_them(lake: SparkSession) -> None:
    moments = "(TIMESTAMP '2025-03-08 12:00:00 America/New_York'), (TIMESTAMP '2025-03-09 12:30:00 America/New_York')"
    zone = lake.conf.get("spark.sql.session.timeZone")
    lake.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = [
            lake.sql(
                f"SELECT * FROM (VALUES {moments} AS t(at)) MATCH_RECOGNIZE (ORDER BY at MEASURES count(*) AS n "
                f"PATTERN (a b) DEFINE b AS b.at <= a.at + {amount})"
            ).count()
            for amount in (
                *("INTERVAL 23 HOUR", "INTERVAL 24 HOUR", "INTERVAL 25 HOUR"),
                *("2 * INTERVAL 12 HOUR", "INTERVAL 20 HOUR + INTERVAL 5 HOUR", "INTERVAL '24:00' HOUR TO MINUTE"),
            )
        ]
        assert found == [0, 0, 1, 0, 1, 0]
        assert (
            lake.sql(f"SELECT max(at) <= min(at) + INTERVAL 24 HOUR FROM VALUES {moments} AS t(at)").first()[0] is False
        )
    finally:
        lake.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize(
    "rows", ["(1), (2), (3)", "1, 2, 3", "1, -2, (3)", "DATE '2024-01-01', DATE '2024-01-02', NULL"]
)
def test_an_inline_table_has_rows_with_parentheses_or_without(lake: SparkSession, rows: str) -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY y MEASURES count(*) AS n PATTERN (a+))"
    assert [row.n for row in lake.sql(f"SELECT * FROM VALUES {rows} AS t(y) {clause}").collect()] == [3]
    (row,) = (
        lake.sql(f"SELECT * FROM VALUES {rows} AS t(z), written_rows {clause.replace('y', 'at')}").limit(1).collect()
    )
    assert row.n == 5


def test_all_rows_have_the_columns_of_the_order_in_front_once(lake: SparkSession) -> None:
    text = "MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (a+)"
    asked = {
        "call": f"match_recognize(TABLE(written_rows) PARTITION BY s ORDER BY (AT), '{text}')",
        "qualified": f"match_recognize(TABLE(written_rows) PARTITION BY written_rows.s ORDER BY (at), '{text}')",
        "clause": f"written_rows MATCH_RECOGNIZE (PARTITION BY s ORDER BY at {text})",
    }
    wanted = ["s", "at", "c", "x", "big"]
    assert {how: lake.sql(f"SELECT * FROM {called}").columns for how, called in asked.items()} == dict.fromkeys(
        asked, wanted
    )
    rows = lake.table("written_rows")
    frame = patternlake.match_recognize(rows, text, partition_by=F.col("S"), order_by=F.col("AT"))
    assert frame.columns == wanted


def test_only_a_text_that_is_no_column_makes_one_partition_with_a_warning(lake: SparkSession) -> None:
    clause = "ORDER BY at MEASURES count(*) AS n PATTERN (a+)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lake.sql(f'SELECT * FROM written_rows MATCH_RECOGNIZE (PARTITION BY "s" {clause})').count() == 5
    with pytest.warns(UserWarning, match="a text in quotes is the same for all rows"):
        lake.sql(f"SELECT * FROM written_rows MATCH_RECOGNIZE (PARTITION BY 's' {clause})").collect()


def test_structs_have_the_fields_that_they_have_elsewhere(lake: SparkSession) -> None:
    measures = "MEASURES to_json(struct(a.x, LAST(s), s AS t)) AS j, (at, s) AS p, array_agg(struct(x, s))[0] AS q"
    (row,) = ask(lake, f"{measures} PATTERN (^ a)")
    assert row == ('{"x":2,"col2":"a1","t":"a1"}', (1, "a1"), (2, "a1"))
    assert [field.asDict() for field in row[1:]] == [{"at": 1, "s": "a1"}, {"x": 2, "s": "a1"}]  # type: ignore[attr-defined]


def test_listagg_takes_any_order(lake: SparkSession) -> None:
    listed = "listagg(s, ' ') WITHIN GROUP (ORDER BY {})"
    orders = ["x", "x DESC", "left(s, 1) DESC NULLS LAST, x"]
    measures = ", ".join(f"{listed.format(order)} AS l{number}" for number, order in enumerate(orders))
    assert ask(lake, f"MEASURES {measures} PATTERN (a+)") == [("b a3 a1 a2 d", "d a2 a1 a3 b", "d b a3 a1 a2")]


def test_a_sum_beyond_its_type_is_an_error(lake: SparkSession) -> None:
    assert ask(lake, "MEASURES sum(big) AS b PATTERN (a{3})") == [(2**63 - 1,)]
    assert ask(lake, "MEASURES try_sum(big) AS t PATTERN (^ a{2})") == [(None,)]
    with pytest.raises(PySparkException, match=r"'sum\(big\)' is beyond BIGINT; write try_sum"):
        ask(lake, "MEASURES sum(big) AS b PATTERN (^ a{2})")


def test_a_measure_that_folds_rows_or_multiplies_them_is_refused(lake: SparkSession) -> None:
    @pandas_udf("double")
    def middle(values: pd.Series) -> float:
        return float(values.median())

    lake.udf.register("middle_of_all", middle)
    for measure in ("middle_of_all(a.x)", "explode(array_agg(s))"):
        with pytest.raises(PySparkException) as caught:
            ask(lake, f"MEASURES 1 AS y, {measure} AS m PATTERN (a b)")
        assert f"'{measure}' gives another number of rows than one for each match" in str(caught.value)


def test_strings_are_compared_by_their_collation_or_not_at_all(lake: SparkSession) -> None:
    lake.sql("SELECT at, s COLLATE UTF8_LCASE AS c FROM VALUES (1, 'A'), (2, 'a') AS t(at, s)").createOrReplaceTempView(
        "folded_rows"
    )

    def ask_folded(clause: str) -> list[tuple[object, ...]]:
        rows = lake.sql(f"SELECT * FROM folded_rows MATCH_RECOGNIZE (ORDER BY at {clause})").collect()
        return [tuple(row) for row in rows]

    assert ask_folded("MEASURES count(DISTINCT c) AS n, min(c) AS m PATTERN (a b)") == [(1, "A")]
    keyed = "lower(b.c) COLLATE UTF8_BINARY = lower(a.c) COLLATE UTF8_BINARY"
    assert ask_folded(f"MEASURES count(*) AS n PATTERN (a b) DEFINE b AS {keyed}") == [(2,)]
    with pytest.raises(PySparkException, match="compare by bytes"):
        ask_folded("MEASURES count(*) AS n PATTERN (a b) DEFINE b AS b.c = a.c")


DECIMALS = [
    "a.fee + b.fee = 0.3",
    "b.fee - a.fee = 0.1",
    "b.fee - a.fee >= 0.7",
    "abs(b.fee - a.fee) < 0.01",
    "-a.fee + b.fee <= b.rate - a.rate",
    "a.fee + b.fee > b.whole",
    "a.fee + b.fee = a.whole + b.whole",
    "a.fee + b.fee = b.big",
    "a.fee - b.fee = b.fine",
    "a.fine + b.fine > a.fee",
    "coalesce(a.fee, 0.1) + b.fee = 0.2",
    "greatest(a.fee, b.fee, 0.15) = 0.15",
    "a.fee + b.fee IN (0.1, 0.3, 0.7)",
    "a.fee + b.fee BETWEEN 0.1 AND b.fine + 0.2",
    "nullif(a.fee, b.fee) + b.fee = 0.4",
    "CASE WHEN b.fee > a.fee THEN b.fee - a.fee ELSE a.fee + 0.1 END = 0.2",
    "a.fee * b.fee > 0.06 + a.fee",
    "a.fee / nullif(b.fee, 0) > 1.5",
    "a.fee + b.fee = 3e-1",
    "a.fee + b.fee > b.double_",
]
"""Of neighbours: what a join of Spark's says as well."""


@pytest.fixture(scope="module")
def fees(lake: SparkSession) -> SparkSession:
    lake.sql(
        """SELECT id AS at, CAST(IF(hash(id) % 7 = 0, NULL, abs(hash(id, 1)) % 9) / 10 AS DECIMAL(10, 2)) AS fee,
           CAST(abs(hash(id, 2)) % 9 / 10 AS DECIMAL(4, 1)) AS rate,
           CAST(abs(hash(id, 3)) % 900 / 1000 AS DECIMAL(6, 3)) AS fine, CAST(abs(hash(id, 4)) % 2 AS INT) AS whole,
           abs(hash(id, 5)) % 2 AS big, CAST(abs(hash(id, 6)) % 9 / 10 AS DOUBLE) AS double_,
           CAST(id AS DECIMAL(38, 0)) AS huge FROM range(400)"""
    ).createOrReplaceTempView("fees")
    return lake


@pytest.mark.parametrize("condition", DECIMALS)
def test_decimals_are_counted_as_spark_counts_them(fees: SparkSession, condition: str) -> None:
    found = fees.sql(
        "SELECT at FROM fees MATCH_RECOGNIZE (ORDER BY at MEASURES a.at AS at AFTER MATCH SKIP TO NEXT ROW "
        f"PATTERN (a b) DEFINE b AS {condition})"
    )
    joined = fees.sql(f"SELECT a.at FROM fees AS a JOIN fees AS b ON b.at = a.at + 1 WHERE {condition} ORDER BY a.at")
    assert found.collect() == joined.collect()


@pytest.mark.parametrize(
    "condition", ["sum(fee) <= 0.8", "sum(a.fee) + 0.1 < 1", "sum(fee) = a.at", "max(fee) - min(fee) < 0.3"]
)
def test_sums_of_decimals_are_exact(fees: SparkSession, condition: str) -> None:
    rows = fees.sql(
        "SELECT at, n FROM fees MATCH_RECOGNIZE (ORDER BY at MEASURES FIRST(at) AS at, count(*) AS n "
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN (a+) DEFINE a AS {condition})"
    ).collect()
    given = {row.at: row.fee for row in fees.table("fees").collect()}
    wanted = []
    for first in range(len(given)):
        length, known = 0, []
        while first + length < len(given):
            known += [fee for fee in (given[first + length],) if fee is not None]
            if not known:
                break
            total, at = sum(known), first + length
            holds = {
                "sum(fee) <= 0.8": total <= Decimal("0.8"),
                "sum(a.fee) + 0.1 < 1": total + Decimal("0.1") < 1,
                "sum(fee) = a.at": total == at,
                "max(fee) - min(fee) < 0.3": max(known) - min(known) < Decimal("0.3"),
            }[condition]
            if not holds:
                break
            length += 1
        if length:
            wanted.append((first, length))
    assert [tuple(row) for row in rows] == wanted
