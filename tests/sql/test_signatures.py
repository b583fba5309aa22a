"""The signatures of the SQL functions, as analysts see them: names, order, types, defaults, result columns."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType
from sql.sketch_lake import SketchLake, shared, worked

import patternlake
from patternlake.sql_ext.declarations.declaration import TableFunction, sql_text
from patternlake.sql_ext.functions import NAMES, load_declarations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUIRED = None
MATCH_SEQ = [
    ("stream", "STRING", REQUIRED),
    ("pattern", "STRING", REQUIRED),
    ("policy", "STRING", "'skip_till_next'"),
    ("after_match", "STRING", "'past_last'"),
    ("key", "STRING", "NULL"),
    ("from_position", "BIGINT", "NULL"),
    ("to_position", "BIGINT", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("level", "INT", "0"),
    ("verify", "BOOLEAN", "true"),
    ("params", "MAP<STRING, STRING>", "NULL"),
    ("max_matches", "BIGINT", "1000000"),
    ("truncate", "BOOLEAN", "false"),
    ("as_of", "TIMESTAMP", "NULL"),
]
MATCH_EXISTS = [
    ("stream", "STRING", REQUIRED),
    ("pattern", "STRING", REQUIRED),
    ("policy", "STRING", "'skip_till_next'"),
    ("key", "STRING", "NULL"),
    ("from_position", "BIGINT", "NULL"),
    ("to_position", "BIGINT", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
    ("verify", "BOOLEAN", "true"),
]
SKETCH_ERROR = [each for each in MATCH_SEQ if each[0] not in ("verify", "params")]
MATCH_PATTERN = [
    ("stream", "STRING", "NULL"),
    ("pattern", "STRING", "NULL"),
    ("policy", "STRING", "'skip_till_any'"),
    ("after_match", "STRING", "'next'"),
    ("key", "STRING", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("params", "MAP<STRING, STRING>", "NULL"),
    ("plan", "STRING", "NULL"),
    ("max_matches", "BIGINT", "1000000"),
    ("truncate", "BOOLEAN", "false"),
    ("as_of", "TIMESTAMP", "NULL"),
    ("query", "STRING", "NULL"),
    ("repetition", "STRING", "'maximal'"),
    ("partial", "BOOLEAN", "false"),
]
EXPLAIN_PATTERN = [
    ("stream", "STRING", REQUIRED),
    ("pattern", "STRING", REQUIRED),
    ("params", "MAP<STRING, STRING>", "NULL"),
    ("plan", "STRING", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
    ("analyze", "BOOLEAN", "false"),
]
MATCH_GROUPS = [
    ("stream", "STRING", REQUIRED),
    ("pattern", "STRING", REQUIRED),
    ("overlap", "STRING", "'single'"),
    ("threshold", "DOUBLE", "0"),
    ("within", "BIGINT", "NULL"),
    ("key", "STRING", "NULL"),
    ("from_step", "BIGINT", "NULL"),
    ("to_step", "BIGINT", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
]
MATCH_FUNNEL = [
    ("stream", "STRING", REQUIRED),
    ("pattern", "STRING", REQUIRED),
    ("within", "STRING", "NULL"),
    ("mode", "STRING", "'any_order_between'"),
    ("by", "STRING", "NULL"),
    ("key", "STRING", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("params", "MAP<STRING, STRING>", "NULL"),
    ("next", "INT", "3"),
    ("as_of", "TIMESTAMP", "NULL"),
]
MATCH_FUNNEL_ROWS = [each for each in MATCH_FUNNEL if each[0] not in ("by", "next")]
MATCH_PATHS = [
    ("stream", "STRING", REQUIRED),
    ("around", "STRING", "NULL"),
    ("before", "INT", "2"),
    ("after", "INT", "3"),
    ("by", "STRING", "NULL"),
    ("top", "INT", "20"),
    ("within", "STRING", "NULL"),
    ("key", "STRING", "NULL"),
    ("fold", "BOOLEAN", "true"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("max_paths", "BIGINT", "100"),
    ("as_of", "TIMESTAMP", "NULL"),
]
CET_COUNT = [
    ("query", "STRING", REQUIRED),
    ("key", "STRING", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
    ("stream", "STRING", "NULL"),
    ("params", "MAP<STRING, STRING>", "NULL"),
]
CET_TRENDS = [
    *CET_COUNT[:4],
    ("max_trends", "BIGINT", "1000000"),
    ("truncate", "BOOLEAN", "false"),
    *CET_COUNT[4:],
    ("from_trend", "BIGINT", "1"),
    ("sample", "BIGINT", "NULL"),
]
CET_AGGREGATE = [CET_COUNT[0], ("aggregate", "STRING", REQUIRED), *CET_COUNT[1:]]
GROUP_MEMBERS = [*MATCH_GROUPS[:8], ("best", "INT", "3"), MATCH_GROUPS[8]]
MATCH_SUBSCRIPTION = [
    ("subscription", "STRING", REQUIRED),
    ("key", "STRING", "NULL"),
    ("from_time", "TIMESTAMP", "NULL"),
    ("to_time", "TIMESTAMP", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
]
PREDICT_MATCH = [
    ("subscription", "STRING", REQUIRED),
    ("lookahead", "STRING", "NULL"),
    ("threshold", "DOUBLE", "NULL"),
    ("key", "STRING", "NULL"),
    ("as_of", "TIMESTAMP", "NULL"),
]
OF_TABLE = [("name", "STRING", "NULL"), ("time", "STRING", "NULL")]
PARAMETERS = {
    "match_seq": MATCH_SEQ,
    "match_exists": MATCH_EXISTS,
    "sketch_error": SKETCH_ERROR,
    "match_pattern": [*MATCH_PATTERN, *OF_TABLE],
    "explain_pattern": EXPLAIN_PATTERN,
    "match_groups": MATCH_GROUPS,
    "cet_count": [*CET_COUNT, *OF_TABLE],
    "cet_trends": [*CET_TRENDS, *OF_TABLE],
    "cet_aggregate": [*CET_AGGREGATE, *OF_TABLE],
    "group_members": GROUP_MEMBERS,
    "match_subscription": MATCH_SUBSCRIPTION,
    "predict_match": PREDICT_MATCH,
    "match_funnel": [*MATCH_FUNNEL, *OF_TABLE],
    "match_funnel_rows": [*MATCH_FUNNEL_ROWS, *OF_TABLE],
    "match_paths": [*MATCH_PATHS, *OF_TABLE],
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def described(lake: SketchLake, function: str) -> list[tuple[str, str, str | None]]:
    """The parameters in the usage that DESCRIBE FUNCTION shows: name, type, default."""
    lines = [row[0] for row in lake.rows(f"DESCRIBE FUNCTION {function}")]
    usage = next(line for line in lines if line.startswith("Usage:"))
    inside = re.fullmatch(rf"Usage: {function}\((.*)\) - .*", usage)
    assert inside is not None, usage
    found = []
    for text in re.split(r", (?![A-Z]+>)", inside[1]):
        match = re.fullmatch(r"(\w+) ([A-Z]+(?:<.*?>)?)(?: DEFAULT (.*))?", text)
        assert match is not None, text
        found.append((match[1], match[2], match[3]))
    return found


@pytest.mark.parametrize(("function", "expected"), PARAMETERS.items())
def test_parameters_are_pinned(lake: SketchLake, function: str, expected: list[tuple[str, str, str | None]]) -> None:
    assert described(lake, function) == expected


RETURNS = {
    "match_seq('worked', 'A ; B')": [
        ("match_no", "bigint"),
        ("key", "string"),
        ("first_position", "bigint"),
        ("last_position", "bigint"),
        ("first_time", "timestamp"),
        ("last_time", "timestamp"),
        ("steps", "array<struct<operand:string,from_position:bigint,to_position:bigint>>"),
        ("level", "int"),
        ("exact", "boolean"),
        ("fp_bound", "double"),
        ("truncated", "boolean"),
    ],
    "sketch_error('worked', 'A ; B')": [
        ("rows", "bigint"),
        ("expected_false", "double"),
        ("any_false_bound", "double"),
        ("truncated", "boolean"),
    ],
    "match_pattern('worked', 'A ; B')": [
        ("match_no", "bigint"),
        ("key", "string"),
        ("first_position", "bigint"),
        ("last_position", "bigint"),
        ("first_time", "timestamp"),
        ("last_time", "timestamp"),
        ("bindings", "map<string,array<bigint>>"),
        ("final", "boolean"),
        ("truncated", "boolean"),
    ],
    "match_pattern('worked', 'A ; B', policy => 'strict', partial => true)": [
        ("match_no", "bigint"),
        ("key", "string"),
        ("first_position", "bigint"),
        ("last_position", "bigint"),
        ("first_time", "timestamp"),
        ("last_time", "timestamp"),
        ("bindings", "map<string,array<bigint>>"),
        ("final", "boolean"),
        ("truncated", "boolean"),
        ("missing", "string"),
        ("deadline", "timestamp"),
    ],
    "explain_pattern('worked', 'A ; B')": [
        ("line", "int"),
        ("plan", "string"),
        ("cost", "double"),
        ("rows", "double"),
        ("actual_rows", "double"),
        ("actual_seconds", "double"),
    ],
}


MATCH_GROUPS_RETURNS = [
    ("key", "string"),
    ("t_start", "bigint"),
    ("t_first", "bigint"),
    ("t_end", "bigint"),
    ("probability", "double"),
    ("final", "boolean"),
]
MATCH_SUBSCRIPTION_RETURNS = [
    ("key", "string"),
    ("first_position", "bigint"),
    ("last_position", "bigint"),
    ("first_time", "timestamp"),
    ("last_time", "timestamp"),
    ("bindings", "map<string,array<bigint>>"),
]
PREDICT_MATCH_RETURNS = [
    ("key", "string"),
    ("state", "string"),
    ("bindings", "map<string,array<bigint>>"),
    ("alpha", "double"),
    ("probability", "double"),
    ("trained_on", "bigint"),
    ("is_best", "boolean"),
]
CET_COUNT_RETURNS = [
    ("key", "string"),
    ("window_start", "timestamp"),
    ("window_end", "timestamp"),
    ("trends", "string"),
    ("trends_approx", "double"),
    ("longest", "int"),
    ("total_length", "string"),
    ("final", "boolean"),
]
CET_TRENDS_RETURNS = [
    ("key", "string"),
    ("window_start", "timestamp"),
    ("window_end", "timestamp"),
    ("positions", "array<bigint>"),
    ("length", "int"),
    ("first_time", "timestamp"),
    ("last_time", "timestamp"),
    ("final", "boolean"),
    ("truncated", "boolean"),
]


CET_AGGREGATE_RETURNS = [
    ("key", "string"),
    ("window_start", "timestamp"),
    ("window_end", "timestamp"),
    ("aggregate", "string"),
    ("value", "string"),
    ("value_approx", "double"),
    ("final", "boolean"),
]
GROUP_MEMBERS_RETURNS = [
    ("key", "string"),
    ("t_start", "bigint"),
    ("t_first", "bigint"),
    ("t_end", "bigint"),
    ("match_no", "int"),
    ("from_step", "bigint"),
    ("to_step", "bigint"),
    ("items", "array<string>"),
    ("positions", "array<array<bigint>>"),
    ("probability", "double"),
    ("final", "boolean"),
]
MATCH_FUNNEL_RETURNS = [
    ("group", "string"),
    ("step", "int"),
    ("operand", "string"),
    ("reached", "bigint"),
    ("share_of_first", "double"),
    ("share_of_previous", "double"),
    ("dropped", "bigint"),
    ("seconds_p50", "double"),
    ("seconds_p90", "double"),
    ("next_events", "array<struct<name:string,partitions:bigint>>"),
]
MATCH_FUNNEL_ROWS_RETURNS = [
    ("key", "string"),
    ("reached", "int"),
    ("positions", "array<bigint>"),
    ("first_time", "timestamp"),
    ("last_time", "timestamp"),
    ("waited_seconds", "double"),
    ("next_position", "bigint"),
    ("next_name", "string"),
    ("final", "boolean"),
]
MATCH_PATHS_RETURNS = [
    ("path", "array<string>"),
    ("partitions", "bigint"),
    ("occurrences", "bigint"),
    ("share", "double"),
    ("seconds_p50", "double"),
    ("group", "string"),
]


@pytest.mark.parametrize(("call", "expected"), RETURNS.items())
def test_result_columns_are_pinned(lake: SketchLake, call: str, expected: list[tuple[str, str]]) -> None:
    worked(lake)
    schema = lake.spark.sql(f"SELECT * FROM {call}").schema
    assert [(field.name, field.dataType.simpleString()) for field in schema] == expected


PINNED = [
    ("match_groups", MATCH_GROUPS_RETURNS),
    ("cet_count", CET_COUNT_RETURNS),
    ("cet_trends", CET_TRENDS_RETURNS),
    ("cet_aggregate", CET_AGGREGATE_RETURNS),
    ("group_members", GROUP_MEMBERS_RETURNS),
    ("match_subscription", MATCH_SUBSCRIPTION_RETURNS),
    ("predict_match", PREDICT_MATCH_RETURNS),
    ("match_funnel", MATCH_FUNNEL_RETURNS),
    ("match_funnel_rows", MATCH_FUNNEL_ROWS_RETURNS),
    ("match_paths", MATCH_PATHS_RETURNS),
]


@pytest.mark.parametrize(("name", "expected"), PINNED)
def test_result_columns_of_what_is_configured_are_pinned(name: str, expected: list[tuple[str, str]]) -> None:
    (function,) = (one for one in load_declarations() if one.name == name)
    assert isinstance(function, TableFunction)
    schema = StructType.fromDDL(function.schema)
    assert [(field.name, field.dataType.simpleString()) for field in schema] == expected


def test_every_function_is_pinned_and_stands_in_the_package() -> None:
    assert sorted(PARAMETERS) == sorted(NAMES)
    assert set(NAMES) <= set(patternlake.__all__)


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_function_stands_in_python_with_the_same_parameters(name: str) -> None:
    taken = list(inspect.signature(getattr(patternlake, name)).parameters.values())
    assert taken[0].name == "spark"
    defaults = [None if one.default is one.empty else sql_text(one.default) for one in taken[1:]]
    shown = [(one.name, default) for one, default in zip(taken[1:], defaults, strict=True)]
    assert shown == [(parameter, default) for parameter, _, default in PARAMETERS[name]]


def test_the_type_of_match_exists_is_pinned(lake: SketchLake) -> None:
    (exists,) = lake.spark.sql("SELECT match_exists('worked', 'A ; B') AS said").schema
    assert exists.dataType.simpleString() == "boolean"


def test_every_parameter_can_be_named_in_any_order(lake: SketchLake) -> None:
    worked(lake)
    (row,) = lake.rows(
        "SELECT * FROM match_seq(truncate => true, max_matches => 5, params => map('limit', '1'), verify => true, "
        "level => 0, to_time => TIMESTAMP '2030-01-01', from_time => TIMESTAMP '2020-01-01', to_position => 2, "
        "from_position => 1, key => NULL, after_match => 'next', policy => 'strict', as_of => NULL, "
        "pattern => 'A , B', stream => 'worked')"
    )
    assert (row["first_position"], row["last_position"]) == (1, 2)


def test_all_parameters_can_be_given_by_place(lake: SketchLake) -> None:
    worked(lake)
    (row,) = lake.rows(
        "SELECT * FROM match_seq('worked', 'A ; B', 'skip_till_next', 'past_last', NULL, 1, 2, "
        "TIMESTAMP '2020-01-01', TIMESTAMP '2030-01-01', 0, false, NULL, 10, false, NULL)"
    )
    assert (row["first_position"], row["last_position"]) == (1, 2)
    (said,) = lake.rows(
        "SELECT match_exists('worked', 'A ; B', 'strict', NULL, 1, 2, TIMESTAMP '2020-01-01', "
        "TIMESTAMP '2030-01-01', NULL) AS said"
    )
    assert said["said"]
