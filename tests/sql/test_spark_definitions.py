"""Conditions of DEFINE that only Spark knows: dates, regular expressions, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sql.sketch_lake import E, SketchLake, Stream, call, shared

import patternlake
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = [
    E(0, "cart", "u", {"page": "shoes", "seen": "2024-05-03 10:00:00"}),
    E(60_000, "view", "u", {"page": "red", "seen": "2024-05-04 23:59:59"}),
    E(90_000, "view", "u", {"page": "blue", "seen": None, "wall": "2024-05-04 00:00:00"}),
    E(120_000, "view", "u", {"page": "green", "seen": "2024-05-05 00:00:00"}),
    E(300_000, "pay", "u", {"page": "done", "seen": None}),
]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def views(lake: SketchLake) -> Stream:
    section = {"key": "who", "attributes": {"page": "string", "seen": "timestamp", "wall": "timestamp_ntz"}}
    made = lake.streams["viewed"] = Stream(lake, "viewed", {}, section, ingested=True)
    made.write(VIEWS)
    made.ingest()
    return made


def taken(lake: SketchLake, stream: Stream, condition: str, **arguments: Any) -> list[list[int]]:
    """The events that a condition holds for, as an operand between the cart and the payment takes them."""
    text = f"cart ; odd+ ; pay DEFINE odd AS {condition} PARTITION BY key"
    (rows,) = lake.ask([call("match_pattern", stream.name, text, **arguments)])
    return [row["bindings"]["odd"] for row in rows]


def test_spark_evaluates_what_the_predicate_language_does_not_have(lake: SketchLake, views: Stream) -> None:
    assert taken(lake, views, "page RLIKE '^(red|blue)$'") == [[2, 3]]
    assert taken(lake, views, "dayofweek(seen) IN (1, 7)") == [[2, 4]]
    assert taken(lake, views, "name = 'view' AND minute(time) = 1") == [[2, 3]]
    assert taken(lake, views, "page RLIKE wanted AND size(split(page, 'e')) > least_parts", params={
        "wanted": "e", "least_parts": "2",
    }) == [[4]]  # fmt: skip


def test_such_conditions_stand_beside_others_and_measures(lake: SketchLake, views: Stream) -> None:
    text = (
        "cart ; short ; odd+ ; pay DEFINE short AS LENGTH(page) = 3, odd AS page RLIKE 'e$|n$' "
        "WHERE odd.page <> short.page MEASURES LAST(odd.page) AS last, short.page AS short PARTITION BY key"
    )
    (rows,) = lake.ask([call("match_pattern", views.name, text)])
    assert [(row["bindings"]["short"], row["bindings"]["odd"], row["last"], row["short"]) for row in rows] == [
        ([2], [3, 4], "green", "red")
    ]


@pytest.mark.parametrize(
    ("condition", "odd"),
    [
        ("10 / (minute(time) - 1) > 0", [4]),  # of minute 1 it is NULL, and no error
        ("CAST(regexp_extract(page, '([0-9]+)', 1) AS INT) IS NULL", [2, 3, 4]),
        ("hour(seen) = 0", [4]),
        ("date_trunc('hour', seen) = TIMESTAMP '2024-05-05 00:00:00'", [4]),
    ],
)
def test_they_mean_the_same_in_whatever_session(
    lake: SketchLake, views: Stream, condition: str, odd: list[int]
) -> None:
    zone = lake.spark.conf.get("spark.sql.session.timeZone")
    try:
        for other in ("UTC", "Europe/Berlin"):
            lake.spark.conf.set("spark.sql.session.timeZone", other)
            assert taken(lake, views, f"name = 'view' AND {condition}") == [odd]
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", zone)


def test_what_the_language_has_narrows_what_is_read(lake: SketchLake, views: Stream) -> None:
    """Names that AND joins to a condition of Spark's are names of the pattern still."""
    warned = "cart ; odd ; pay DEFINE odd AS name = 'vew' AND page RLIKE 'e' PARTITION BY key"
    with pytest.warns(UserWarning, match="'vew'"):
        assert patternlake.match_pattern(lake.spark, views.name, warned).collect() == []


@pytest.mark.parametrize(
    ("condition", "odd"),
    [
        ("concat('a ', page) LIKE concat('%', page)", [2, 3, 4]),
        ("page LIKE wanted", [2]),
        ("name = 'view' AND CAST(seen AS DATE) + 1 > DATE '2024-05-05'", [4]),
        ("wall = '2024-05-04'", [3]),
        ("wall < TIMESTAMP_NTZ '2024-05-04 00:00:00.5'", [3]),
    ],
)
def test_types_that_the_language_refuses_may_be_sparks(
    lake: SketchLake, views: Stream, condition: str, odd: list[int]
) -> None:
    assert taken(lake, views, condition, params={"wanted": "red"} if "wanted" in condition else None) == [odd]


@pytest.mark.parametrize(
    ("condition", "odd", "params"),
    [
        ("page RLIKE '^red$'", [2], {"page": "blue"}),
        ("name RLIKE '^view$'", [2, 3, 4], {"name": "blue"}),
        ("who RLIKE '^u$'", [2, 3, 4], {"who": "blue"}),
    ],
)
def test_a_parameter_hides_no_column(
    lake: SketchLake, views: Stream, condition: str, odd: list[int], params: dict[str, str]
) -> None:
    assert taken(lake, views, f"minute(time) < 5 AND {condition}", params=params) == [odd]


def test_tables_have_such_conditions(lake: SketchLake) -> None:
    frame = lake.spark.sql(
        "SELECT * FROM VALUES (TIMESTAMP '2024-01-01 10:00:00', 'cart', '{}'), "
        "(TIMESTAMP '2024-01-01 10:01:00', 'event', '{\"kind\": \"help\"}'), "
        "(TIMESTAMP '2024-01-01 10:02:00', 'event', '{\"kind\": \"look\"}') AS t (at, page, body)"
    )
    text = "cart ; help DEFINE help AS get_json_object(body, '$.kind') = 'help' MEASURES help.position AS place"
    (row,) = patternlake.match_pattern(lake.spark, frame, text, time="at", name="page").collect()
    assert row["place"] == 2


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("rand() < 0.5 AND page RLIKE 'e'", "gives another value each time it is asked"),
        ("seen > current_timestamp() - INTERVAL 1 DAY", "gives another value each time it is asked"),
        ("page = current_user()", "gives another value each time it is asked"),
        ("nothing_like_it(page)", "nor does Spark take the condition"),
        ("concat_ws('-', page, name)", "true or false, not of the type string"),
        ("colour RLIKE 'e'", "colour"),
        ("sum(length(page)) > 3", "aggregates"),
    ],
)
def test_what_is_wrong_is_said_at_the_conditions_place(
    lake: SketchLake, views: Stream, condition: str, said: str
) -> None:
    with pytest.raises(PatternLakeError, match=said):
        patternlake.match_pattern(lake.spark, views.name, f"cart ; odd DEFINE odd AS {condition}")


def test_explain_pattern_says_what_to_do_with_them(lake: SketchLake, views: Stream) -> None:
    text = "cart ; odd DEFINE odd AS dayofweek(seen) = 1"
    with pytest.raises(PatternLakeError) as raised:
        patternlake.explain_pattern(lake.spark, views.name, text)
    message, line, caret = str(raised.value).rsplit("\n", 2)
    assert "only where match_pattern is given the text: elsewhere, make the condition" in (message)
    assert "of odd an attribute of the stream, of type boolean, and write its name here" in message
    assert line[caret.index("^") : caret.rindex("^") + 1] == "dayofweek"
