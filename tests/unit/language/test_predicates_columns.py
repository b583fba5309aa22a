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
DAY = 24 * HOUR
YEAR_0, Y10K = -719_528 * DAY, 2_932_897 * DAY
Y12345 = Y10K + 856_675 * DAY


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
        ("long", ["9223372036854775808", "1.9", ".5", ".", "1e3", "+7"], [None, 1, 0, 0, None, 7]),
        ("int", ["2147483648", "5"], [None, 5]),
        ("int", ["0x1F"], [None]),
        ("bigint", ["\x7f1\0", "\u00a01", "1\u2003", "1" * 5000, "0" * 5000], [1, None, None, None, 0]),
        ("double", ["\x1f1\0", "\x7f1", "\u00a01", "0x1p3", "0x1p5000"], [1, None, None, 8, np.inf]),
        ("double", ["-nan"], [None]),
        ("decimal(5,2)", ["\u00a01", "٣", "1e-99999", "0e99999"], [None, 3.0, 0.0, None]),
        ("boolean", ["\u00a0true", "\x7ftrue\0"], [None, True]),
        ("tinyint", ["127", "128", "-128"], [127, None, -128]),
        ("short", ["32767", "32768"], [32767, None]),
        ("boolean", ["true", "F", "yes", "0", "maybe", None], [True, False, True, False, None, None]),
        ("string", ["", "a", None], ["", "a", None]),
        ("decimal(5,2)", ["1.005", "-1.005", "999.99", "999.999", "x", "NaN"], [1.01, -1.01, 999.99, None, None, None]),
        ("date", ["2013-01-01", "2013-02-30", "2013", "2013-1-1 10:00"], [NEW_YEAR, None, NEW_YEAR, NEW_YEAR]),
        ("date", ["10000-01-01", "+10000-01-01", "-0001-12-31", "0000-01-01"], [Y10K, Y10K, YEAR_0 - DAY, YEAR_0]),
        ("date", ["294247-01-10", "294247-01-11", "1000000-01-01"], [2**63 // DAY * DAY, None, None]),
        ("timestamp", ["2013-01-01 00:00:00", None], [NEW_YEAR, None]),
        ("timestamp", ["294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808"], [2**63 - 1, None]),
        ("timestamp", ["10000-01-01T01:00:00+0100", "2013-01-01T01:00:00+1:0", "\u00a02013"], [Y10K, NEW_YEAR, None]),
        ("timestamp", ["2013-01-01T18:00:00+18:00", "2013-01-01T18:00:00+18:01"], [NEW_YEAR, None]),
        ("timestamp", ["2012-12-31T16:00:00 PST", "2013-01-01 00:00:00.0000000000"], [NEW_YEAR, NEW_YEAR]),
        ("timestamp", ["12345-07-01T02:00:00 Europe/Berlin", "12345-07-01"], [Y12345, Y12345]),
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
