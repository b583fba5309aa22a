"""Attributes as columns of their own types: their names, their texts, and what predicates and measures read of them."""

from __future__ import annotations

import random
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patternlake.udfs.attributes import (
    attribute_columns,
    attribute_of,
    column_of,
    is_attribute,
    stored_type,
    type_of,
    values_of,
    write_texts,
)
from patternlake.udfs.kept_attributes import keep_attributes, read_attributes
from patternlake.udfs.language.predicate.columns import typed_column
from patternlake.udfs.language.predicate.event_columns import column_of_values, event_columns
from patternlake.udfs.measures.event_values import arrow_type, event_values

NOON = datetime(2024, 2, 28, 12, tzinfo=timezone.utc)
VALUES: dict[str, list[Any]] = {
    "string": ["a", "", "ü 'b'", "NULL", "1.5"],
    "tinyint": [0, -128, 127],
    "smallint": [0, -7],
    "int": [1, -(2**31)],
    "bigint": [0, 2**62, -1],
    "float": [0.0, -0.0, 0.1, 1e-7, 3.4e38, float("inf"), float("nan")],
    "double": [0.0, 0.1, 1e-300, 1e300, 12345678.9, float("-inf"), float("nan")],
    "decimal(18,7)": [Decimal("0.0000001"), Decimal("-12345678901.5"), Decimal(0)],
    "boolean": [True, False],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "timestamp": [NOON, NOON.replace(year=1, microsecond=1), NOON.replace(year=9999)],
}


def stored(type_: str, values: list[Any]) -> pa.Array:
    return pa.array(values, arrow_type(type_))


def test_columns_are_called_by_attribute_and_type() -> None:
    assert column_of("dep_delay", "double") == "dep_delay:double"
    for attribute in ("Price", "price", "concept:name", "a b", "50 %", "größe", "x.y`z", "{}()=,;\t\n", "_"):
        for type_ in ("int", "decimal(10,2)"):
            column = column_of(attribute, type_)
            assert is_attribute(column)
            assert (attribute_of(column), type_of(column)) == (attribute, type_)
            assert not set(column) & set(" ,;{}()\n\t=.`")
            assert column == column.lower()
    # SQL would take them for one.
    assert column_of("Price", "int").lower() != column_of("price", "int").lower()
    assert not any(map(is_attribute, ("position", "time", "event_id")))


def test_columns_are_those_of_the_attributes_that_are_read() -> None:
    types = {"y": "int", "x": "double", "z": "string"}
    assert attribute_columns({"x", "y", "name", "key"}, types) == ("x:double", "y:int")
    assert attribute_columns(["time"], types) == ()


def test_moments_without_a_zone_and_values_of_other_types_are_texts() -> None:
    assert [*map(stored_type, VALUES)] == [*VALUES]
    assert {*map(stored_type, ("timestamp_ntz", "array<int>", "binary"))} == {"string"}


def test_values_are_found_by_the_attribute_whatever_their_type() -> None:
    rows = {"name": pa.array(["a"]), "xy:int": pa.array([1]), "x:double": pa.array([2.0])}
    found = values_of(rows, "x")
    assert found is not None
    assert found.to_pylist() == [2.0]
    assert values_of(pa.table(rows), "y") is None


@pytest.mark.parametrize("type_", VALUES)
def test_texts_cast_back_to_the_values(type_: str) -> None:
    values = stored(type_, [None, *VALUES[type_], VALUES[type_][0]])
    texts = write_texts(values)
    assert texts.type == pa.string()
    assert texts[0].as_py() is None
    ours, theirs = column_of_values(values, type_), typed_column(texts, type_)
    assert ours.type == theirs.type
    np.testing.assert_array_equal(ours.known, theirs.known)
    np.testing.assert_array_equal(ours.values[1:], theirs.values[1:])
    kept = read_attributes(keep_attributes(pa.table({column_of("x", type_): values})), {"x": type_})
    assert kept.column_names == [column_of("x", type_)]
    assert repr(kept.column(0).to_pylist()) == repr(values.to_pylist())


def test_a_map_of_texts_may_lack_attributes() -> None:
    kept = pa.array([[("x", "1.5"), ("s", None)], [], None], pa.map_(pa.string(), pa.string()))
    rows = read_attributes(pa.table({"attributes": kept, "n": [1, 2, 3]}), {"x": "double", "s": "string", "y": "int"})
    assert rows.to_pydict() == {
        "n": [1, 2, 3], "s:string": [None] * 3, "x:double": [1.5, None, None], "y:int": [None] * 3
    }  # fmt: skip
    assert read_attributes(pa.table({"n": [1]}), {"x": "double"}).column_names == ["n"]


def test_what_is_not_there_is_null() -> None:
    rows = {"name": pa.array(["a", "b"]), "time": pa.array([1, 2])}
    columns = event_columns(rows, {"x"}, {"x": "double"})
    assert not columns["x"].known.any()
    assert event_values(rows, {"x": "double"})["x"].to_pylist() == [None, None]


def test_texts_are_read_as_the_type_that_is_asked_for() -> None:
    rng = random.Random(5)
    for type_, values in VALUES.items():
        some = stored(type_, [rng.choice([None, *values]) for _ in range(20)])
        of_texts = event_values({"name": some, "x:string": write_texts(some)}, {"x": type_})["x"]
        as_they_are = event_values({"name": some, column_of("x", type_): some}, {"x": type_})["x"]
        assert repr(of_texts.to_pylist()) == repr(as_they_are.to_pylist()) == repr(some.to_pylist())
