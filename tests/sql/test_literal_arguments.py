"""Literals as arguments in SQL: they have the value that Spark's cast to the parameter's type gives."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from patternlake.sql_ext.declarations import arguments
from patternlake.sql_ext.declarations.arguments import SqlArguments
from patternlake.sql_ext.declarations.declaration import Parameter
from patternlake.udfs.errors import ArgumentError

LITERALS = [
    "'abc'", "''", "'it''s'", r"'it\'s'", r"'a\\b'", "'A -> B\nWITHIN 1 HOUR'", "'ä ☃'", "'5'", "'true'", '"two words"',
    r"r'\d'", "'a' 'b'", "'a' || 'b'", "'x' = 'y'", "5", "-5", "+5", "- 5", "5L", "5S", "2147483647", "2147483648",
    "-2147483649", "9223372036854775808", "0.5", "2.0", "1e3", "5D", "true", "FALSE", "NOT true", "NULL",
    "DATE'2025-01-01'", "TIMESTAMP'2025-01-01 00:00:00'", "INTERVAL 1 HOUR", "X'41'",
]  # fmt: skip
TYPES = ["STRING", "BIGINT", "INT", "DOUBLE", "BOOLEAN", "TIMESTAMP"]


def read(spark: SparkSession, text: str, type_: str) -> Any:
    """The value of an argument, or what is wrong with it."""
    column: Any = spark.range(1).selectExpr(text)._jdf.queryExecution().analyzed().expressions().apply(0)
    expression = column.child() if column.getClass().getSimpleName() == "Alias" else column
    try:
        return SqlArguments(spark).value("match_seq", Parameter("given", type_, None), expression)
    except ArgumentError as error:
        return str(error)


@pytest.mark.parametrize("type_", TYPES)
def test_literals_are_read_as_spark_casts_them(
    spark: SparkSession, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [read(spark, text, type_) for text in LITERALS]
    monkeypatch.setattr(arguments, "_read_literal", lambda text, type_: None)
    wanted = [read(spark, text, type_) for text in LITERALS]
    assert [(each, type(each)) for each in found] == [(each, type(each)) for each in wanted]


def test_a_text_without_quotes_inside_is_read_as_it_stands(spark: SparkSession) -> None:
    assert read(spark, "'A -> B'", "STRING") == "A -> B"
    assert read(spark, "1000", "BIGINT") == 1000
    assert read(spark, "false", "BOOLEAN") is False
    assert read(spark, "1.5", "INT") == "match_seq: given => 1.5 is no INT"
