"""Expressions of a stream: which are refused, with their key, before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.sources.columns import EventColumns
from patternlake.jobs.sources.expressions import columns_read, fields_read
from patternlake.udfs.errors import ConfigurationError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _check(spark: SparkSession, columns: str = "at string, what string, x string", **changes: Any) -> None:
    stream = {"source": {"format": "json", "path": "a"}, "time": "at", "name": "what", **changes}
    loaded = Configuration.from_text(yaml.safe_dump({"streams": {"s": stream}}))
    EventColumns("s", loaded.streams["s"]).check(spark.createDataFrame([], columns))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": "att"}, "time: no column 'att' in the source (did you mean 'at'?); columns: at, what, x"),
        ({"name": "what ||"}, "name: 'what ||' is not SQL"),
        ({"key": "rand()"}, "key: rand gives another value when a batch is replayed"),
        ({"name": "concat(what, uuid ())"}, "name: uuid gives another value"),
        ({"time": "current_timestamp()"}, "time: current_timestamp gives another value"),
        ({"time": "CURRENT_TIMESTAMP"}, "time: current_timestamp gives another value"),
        ({"time": "timestamp_seconds(unix_timestamp( ))"}, "time: unix_timestamp gives another value"),
        *[
            ({"name": f"concat(what, {text})"}, f"name: {told} gives another value when a batch is replayed")
            for text, told in (
                ("cast(now() AS string)", "now"),
                ("current_date()", "current_date"),
                ("date_diff(curdate(), at)", "current_date"),
                ("current_timestamp", "current_timestamp"),
                ("localtimestamp()", "localtimestamp"),
                ("current_time()", "current_time"),
                ("current_user()", "current_user"),
                ("session_user()", "session_user"),
                ("user()", "user"),
                ("current_timezone()", "current_timezone"),
                ("current_catalog()", "current_catalog"),
                ("current_database()", "current_schema"),
                ("current_schema()", "current_schema"),
                ("version()", "version"),
                ("input_file_name()", "input_file_name"),
                ("randn()", "randn"),
                ("monotonically_increasing_id()", "monotonically_increasing_id"),
                ("spark_partition_id()", "spark_partition_id"),
                ("reflect('java.lang.System', 'nanoTime')", "reflect"),
                ("aes_encrypt(x, '0000111122223333')", "aes_encrypt"),
                ("timestamp 'now'", "the moment 'now'"),
                ('DATE/* */"Yesterday"', "the moment 'yesterday'"),
                ("cast('today UTC' AS timestamp)", "the moment 'today'"),
                ("to_date(' tomorrow')", "the moment 'tomorrow'"),
                ("cast('10:30' AS timestamp)", "the moment '10:30'"),
                ("TIMESTAMP 'T09:15:00'", "the moment 't09:15:00'"),
                ("CASE WHEN cast(at AS timestamp) > 'now' THEN 1 END", "the moment 'now'"),
            )
        ],
        ({"name": "max(what)"}, "name: must give one value per row"),
        ({"name": "explode(array(what))"}, "name: must give one value per row"),
        ({"name": "(SELECT 'a')"}, "name: must give one value per row"),
        ({"name": "row_number() OVER (ORDER BY what)"}, "name: must give one value per row"),
        ({"name": "nosuch(what)"}, "name: 'nosuch(what)'"),
        ({"name": "*"}, "name: "),
        ({"time": "1700000000"}, "time: is int; the time of an event is a timestamp"),
        ({"step": "true", "probability": "x"}, "step: is boolean; expected a number"),
        ({"attributes": {"y": "int"}}, "attributes.y: no column 'y' in the source"),
        (
            {"attributes": {"y": {"type": "int", "expr": "array(x)"}}},
            "attributes.y: is array<string>; expected a single value",
        ),
        ({"tokens": ["name", "nme"]}, "tokens.1: no column 'nme' in the source (did you mean 'name'?)"),
        ({"tokens": ["array(name)"]}, "tokens.0: is array<string>; tokens are text"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_by_its_key(
    spark: SparkSession, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        _check(spark, **changes)
    assert str(raised.value).startswith(f"streams.s.{message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "concat(what, ' rand() now() -- uuid()')",
        "`now`",
        "now",
        "what -- rand()",
        "from_unixtime(unix_timestamp(at))",
        "CASE WHEN what = 'now' THEN 'now' WHEN at > timestamp '2024-01-01' THEN 'today' END",
        "cast(timestamp 'epoch' AS string)",
    ],
)
def test_a_function_name_that_is_no_call_is_no_harm(spark: SparkSession, name: str) -> None:
    _check(spark, "at string, what string, now string", name=name)


def test_two_columns_that_sql_cannot_tell_apart_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="two columns of the source are called 'what' and 'What'"):
        _check(spark, "at string, what string, What string")


def test_what_an_expression_reads_is_found_whatever_its_case(spark: SparkSession) -> None:
    source = spark.createDataFrame([], "userId string, User struct<Id: string, plan: string>, `a.b` int, x int")
    assert columns_read(source, "concat(USERID, x)") == ["userId", "x"]
    assert columns_read(source, "`A.B` + X") == ["a.b", "x"]
    assert fields_read(source, "user.ID || userid") == {("User", "Id")}
