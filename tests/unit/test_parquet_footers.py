"""How a stream's columns are read from a Parquet file whose footer says otherwise, column by column."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from patternlake.jobs.sources.parquet_footers import ParquetColumn, Reading, learn_types, missing_columns, readings

UTC = ParquetColumn("at", T.TimestampType(), "TIMESTAMP(NANOS,true)", nanoseconds=True)
CLOCK = ParquetColumn("clock", None, "TIME(MICROS,true)")
EMPTY = ParquetColumn("x", T.NullType(), "UNKNOWN")


def column(name: str, type: T.DataType) -> ParquetColumn:
    return ParquetColumn(name, type, "as Spark has it")


def fields(*names: str) -> list[T.StructField]:
    return [T.StructField(name, T.StringType()) for name in names]


def read(type: T.DataType, there: ParquetColumn | None, *, used: bool) -> Reading:
    """How a column `x` of the stream, of some type, is read from a file."""
    schema = T.StructType([T.StructField("x", type)])
    columns = {} if there is None else {"x": there}
    (reading,) = readings(schema, columns, ["X"] if used else [])
    return reading


def test_a_column_of_the_streams_type_is_read_as_it_is() -> None:
    for used in (True, False):
        assert read(T.LongType(), column("x", T.LongType()), used=used) == Reading(T.LongType(), "`x`")
    # Whether a list's values may be NULL makes no other type.
    strict = T.ArrayType(T.StringType(), containsNull=False)
    assert read(T.ArrayType(T.StringType()), column("x", strict), used=True).sql == "`x`"


def test_a_column_without_a_value_or_a_type_is_null() -> None:
    nothing = Reading(T.NullType(), "CAST(NULL AS bigint)")
    assert read(T.LongType(), EMPTY, used=True) == nothing
    assert read(T.LongType(), CLOCK, used=False) == nothing
    assert read(T.NullType(), column("x", T.LongType()), used=True) == Reading(T.NullType(), "CAST(NULL AS void)")


def test_another_type_is_left_to_spark_where_it_is_used_and_never_matters_where_it_is_not() -> None:
    text = column("x", T.StringType())
    assert read(T.LongType(), text, used=True) == Reading(T.LongType(), "`x`")
    assert read(T.LongType(), text, used=False) == Reading(T.StringType(), "TRY_CAST(CAST(`x` AS STRING) AS bigint)")
    nested = column("x", T.ArrayType(T.LongType()))
    assert read(T.LongType(), nested, used=False) == Reading(T.NullType(), "CAST(NULL AS bigint)")
    # Without a word on what is used, all is.
    schema = T.StructType([T.StructField("x", T.LongType())])
    assert readings(schema, {"x": text}, None) == (Reading(T.LongType(), "`x`"),)


@pytest.mark.parametrize(
    ("type", "told"),
    [(T.TimestampType(), "TIMESTAMP(NANOS,true)"), (T.TimestampNTZType(), "TIMESTAMP(NANOS,false)")],
)
def test_nanoseconds_are_read_as_numbers_and_become_microseconds(type: T.DataType, told: str) -> None:
    there = ParquetColumn("x", type, told, nanoseconds=True)
    for used in (True, False):
        reading = read(type, there, used=used)
        assert reading.type == T.LongType()
        assert "pmod(`x`, 1000L)" in reading.sql
        assert reading.sql.endswith(f"AS {type.simpleString()})")
    assert read(T.StringType(), there, used=False) == Reading(T.NullType(), "CAST(NULL AS string)")


def test_a_column_gets_its_type_from_the_first_file_that_has_one() -> None:
    schema = T.StructType([T.StructField("At", T.NullType()), T.StructField("x", T.NullType())])
    files = ["cannot be read: it is short", {"x": EMPTY}, {"at": UTC, "x": EMPTY}, {"x": CLOCK}]
    assert learn_types(schema, files).simpleString() == "struct<At:timestamp,x:void>"
    later = [*files, {"at": column("at", T.StringType()), "x": column("x", T.LongType())}]
    assert learn_types(schema, later).simpleString() == "struct<At:timestamp,x:bigint>"


def test_files_that_lack_columns_or_have_no_footer_are_told() -> None:
    footers = {"a": {"at": UTC, "x": EMPTY}, "b": {"at": UTC}, "c": "cannot be read: it is short"}
    assert missing_columns(footers, fields("AT", "x", "Y")) == {
        "a": "lacks the columns Y; it has at, x",
        "b": "lacks the columns x, Y; it has at",
        "c": "cannot be read: it is short",
    }
    assert missing_columns(footers, fields("at")) == {"c": "cannot be read: it is short"}


def test_a_field_of_a_nested_column_that_is_renamed_is_told_where_it_is_used() -> None:
    ids = T.StructType([T.StructField("id", T.LongType()), T.StructField("more", T.LongType())])
    known = T.StructType(
        [T.StructField("user", ids), T.StructField("items", T.ArrayType(ids)), T.StructField("x", T.LongType())]
    )

    def file(*names: str) -> dict[str, ParquetColumn]:
        some = T.StructType([T.StructField(name, T.LongType()) for name in names])
        return {each.name: each for each in (column("user", some), column("items", T.ArrayType(some)), EMPTY)}

    footers = {"same": file("more", "ID"), "less": file("id"), "more": file("id", "more", "y")}
    read = [("user", "id"), ("user", "more")]
    assert missing_columns(footers, known.fields, read) == {}
    renamed = {"other": file("uid", "more")}
    assert missing_columns(renamed, known.fields) == {}
    assert missing_columns(renamed, known.fields, [("user", "more")]) == {}
    assert missing_columns(renamed, known.fields, [("User", "ID")]) == {
        "other": "lacks the columns user.id; it has user, items, x, user.uid"
    }
    deep = [T.StructField("deep", T.StructType([known["user"]]))]
    there = {
        "deep": column(
            "deep", T.StructType([T.StructField("user", T.StructType([T.StructField("uid", T.LongType())]))])
        )
    }
    assert missing_columns({"one": there}, deep, [("deep", "user", "id")]) == {
        "one": "lacks the columns deep.user.id; it has deep, deep.user.uid"
    }
