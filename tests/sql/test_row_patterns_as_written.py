"""What is written in a clause of MATCH_RECOGNIZE is what Spark computes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from pyspark.errors import PySparkException
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
