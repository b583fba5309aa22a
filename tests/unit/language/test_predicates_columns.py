"""Attribute texts become typed columns as Spark casts them: what does not cast is NULL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import Column, canonical_type, typed_column, value_type

HOUR = 3_600_000_000
NEW_YEAR = 1_356_998_400_000_000


def listed(column: Column) -> list[Any]:
    values, known = column.values.tolist(), column.known.tolist()
    return [value if sure else None for value, sure in zip(values, known, strict=True)]


@pytest.mark.parametrize(
    ("spark_type", "texts", "values"),
    [
        ("double", ["1.5", "-1.0E10", None, "Infinity"], [1.5, -1e10, None, float("inf")]),
        ("double", ["1.5", "x", "", " 2 ", "1d", "1_0", "-inf", "--inf"], [1.5, None, None, 2, 1, None, -np.inf, None]),
        ("float", ["0.1", "x"], [float(np.float32(0.1)), None]),
        ("bigint", ["9223372036854775807", "-1", None], [2**63 - 1, -1, None]),
        ("long", ["9223372036854775808", "1.9", ".5", ".", "1e3", "+7"], [None, 1, 0, None, None, 7]),
        ("int", ["2147483648", "5"], [None, 5]),
        ("tinyint", ["127", "128", "-128"], [127, None, -128]),
        ("short", ["32767", "32768"], [32767, None]),
        ("boolean", ["true", "F", "yes", "0", "maybe", None], [True, False, True, False, None, None]),
        ("string", ["", "a", None], ["", "a", None]),
        ("decimal(5,2)", ["1.005", "-1.005", "999.99", "999.999", "x", "NaN"], [1.01, -1.01, 999.99, None, None, None]),
        ("date", ["2013-01-01", "2013-02-30", "2013", "2013-1-1 10:00"], [NEW_YEAR, None, NEW_YEAR, NEW_YEAR]),
        ("timestamp", ["2013-01-01 00:00:00", None], [NEW_YEAR, None]),
        (
            "timestamp",
            ["2013-01-01T01:00:00.0000019Z", "2013-01-01 00:00:00 America/New_York", "2013-01-01 25:00:00", "10:00"],
            [NEW_YEAR + HOUR + 1, NEW_YEAR + 5 * HOUR, None, None],
        ),
    ],
)
def test_texts_become_values(spark_type: str, texts: list[str | None], values: list[Any]) -> None:
    assert listed(typed_column(np.array(texts, dtype=object), spark_type)) == values
    assert listed(typed_column(pa.array(texts, pa.string()), spark_type)) == values


def test_timestamps_without_a_zone_are_in_the_given_one() -> None:
    texts = np.array(["2013-01-01 00:00:00", "2013-07-01 00:00:00", "2013-01-01 00:00:00Z"], dtype=object)
    winter, summer, utc = listed(typed_column(texts, "timestamp", "America/New_York"))
    assert winter == NEW_YEAR + 5 * HOUR
    assert summer == NEW_YEAR + 181 * 24 * HOUR + 4 * HOUR
    assert utc == NEW_YEAR


def test_a_column_without_rows_has_its_type() -> None:
    for spark_type in ("double", "string", "date", "decimal(10,2)"):
        column = typed_column(np.array([], dtype=object), spark_type)
        assert column.values.shape == column.known.shape == (0,)
        assert column.type == value_type(spark_type)


def test_an_unknown_type_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ArgumentError, match=r"type 'array<int>' cannot be used in predicates; types are string"):
        typed_column(np.array([], dtype=object), "array<int>")


@pytest.mark.parametrize(
    ("name", "canonical", "computed"),
    [
        ("INTEGER", "int", "bigint"),
        ("Decimal( 10, 2 )", "decimal(10,2)", "double"),
        ("decimal", "decimal(10,0)", "double"),
        ("real", "float", "double"),
        ("timestamp", "timestamp", "timestamp"),
        ("decimal(39,2)", None, None),
        ("binary", None, None),
    ],
)
def test_types_by_the_names_that_spark_gives_them(name: str, canonical: str | None, computed: str | None) -> None:
    assert canonical_type(name) == canonical
    assert value_type(name) == computed


def test_a_column_of_numpy_values_knows_its_type() -> None:
    yes = np.array([True])
    assert Column(np.array([1.5]), yes).type == "double"
    assert Column(np.array([1], dtype=np.int32), yes).type == "bigint"
    assert Column(np.array([True]), yes).type == "boolean"
    assert Column(np.array(["a"]), yes).type == "string"
