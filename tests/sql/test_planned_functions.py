"""Functions that are planned in Python, whatever their engine: arguments, errors, where they stand, where they run."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, call, shared, worked

import patternlake
from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext import enabling
from patternlake.sql_ext.calls import registering
from patternlake.sql_ext.calls.declaring import declaration_of
from patternlake.sql_ext.declarations.declaration import Answer, TableFunction
from patternlake.sql_ext.lakes import lake as lakes
from patternlake.sql_ext.lakes.enabled import CACHE_BYTES
from patternlake.udfs.errors import ArgumentError, PatternSyntaxError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    found = shared(spark, tmp_path_factory)
    worked(found)
    return found


@pytest.fixture(scope="module")
def keyed(lake: SketchLake) -> Stream:
    """Leaves of two events, three keys, one of them NULL, in two batches."""
    rng = random.Random(3)
    made = [E(n * 1000, rng.choice("ABCD"), rng.choice(["k1", "k2", None])) for n in range(80)]
    sketch = {"events_per_leaf": 2, "keyed": True}
    return lake.stream("planned", made[:50], made[50:], sketch=sketch, key="who")


def error(spark: SparkSession, query: str) -> str:
    with pytest.raises(PySparkException) as caught:
        spark.sql(query).collect()
    assert "Traceback" not in str(caught.value)
    return message(caught.value)


QUESTIONS = [
    call("match_seq", "planned", "A ; B"),
    call("match_seq", "planned", "A ; B", key="k1"),
    call("match_seq", "planned", "A ; B PARTITION BY key"),
    call("match_seq", "planned", "A ; B ; C", verify=True),
    call("match_seq", "planned", "A ; B PARTITION BY key", verify=True, policy="skip_till_any"),
    call("match_pattern", "planned", "A ; B+ ; C WITHIN 6 SEC"),
    call("match_pattern", "planned", "A ; B ; C WITHIN 5 EVENTS"),
    call("match_pattern", "planned", "A ; B PARTITION BY key", key="k2", policy="skip_till_next"),
    call("explain_pattern", "planned", "A ; B"),
]


@pytest.fixture
def settings(lake: SketchLake) -> Iterator[None]:
    yield
    for name in (lakes.DRIVER_BYTES, lakes.READER, CACHE_BYTES):
        lake.spark.conf.unset(name)


@pytest.mark.usefixtures("settings")
def test_the_driver_and_sparks_tasks_give_the_same_rows(lake: SketchLake, keyed: Stream) -> None:
    here = [sorted(map(str, rows)) for rows in lake.ask(QUESTIONS)]
    assert all(here)
    lake.spark.conf.set(lakes.DRIVER_BYTES, "0")
    assert [sorted(map(str, rows)) for rows in lake.ask(QUESTIONS)] == here


@pytest.mark.usefixtures("settings")
def test_state_that_spark_reads_gives_the_same_rows(lake: SketchLake, keyed: Stream) -> None:
    direct = [sorted(map(str, rows)) for rows in lake.ask(QUESTIONS[:2])]
    lake.spark.conf.set(lakes.READER, "spark")
    assert [sorted(map(str, rows)) for rows in lake.ask(QUESTIONS[:2])] == direct
    lake.spark.conf.set(lakes.READER, "telepathy")
    assert "'telepathy'; one of auto, direct, spark would be right" in error(
        lake.spark, f"SELECT * FROM {QUESTIONS[0]}"
    )


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("name", [lakes.DRIVER_BYTES, CACHE_BYTES])
def test_a_setting_that_is_no_size_is_refused_by_name(lake: SketchLake, keyed: Stream, name: str) -> None:
    lake.spark.conf.set(name, "64m")
    (before,) = lake.ask(QUESTIONS[4:5])
    lake.spark.conf.set(name, "-5")
    assert f"{name} must be a number of bytes, or a size such as 64m or 1g, not '-5'" in error(
        lake.spark, f"SELECT * FROM {QUESTIONS[4]}"
    )
    lake.spark.conf.set(name, "0")
    assert lake.ask(QUESTIONS[4:5]) == [before]


def test_existence_for_rows_of_a_table_is_that_of_each_call(lake: SketchLake, keyed: Stream) -> None:
    patterns = ["A ; B", "A , B , C , D", "D ; D ; D"]
    rows = [(pattern, key) for pattern in patterns for key in ("k1", "k2", "nobody")]
    values = ", ".join(f"('{pattern}', '{key}')" for pattern, key in rows)
    found = lake.rows(f"SELECT p, k, match_exists('planned', p, key => k) AS said FROM VALUES {values} AS t (p, k)")
    calls = [keyed.exists(pattern, key=key) for pattern, key in rows]
    assert {(row["p"], row["k"]): row["said"] for row in found} == dict(zip(rows, lake.said(calls), strict=True))


def test_the_mark_below_a_wrong_place_stands_alone_in_its_line(lake: SketchLake) -> None:
    with pytest.raises(PySparkException) as caught:
        lake.spark.sql("SELECT * FROM match_seq('worked', 'A ; ; B')")
    assert "\n  A ; ; B\n      ^\n" in str(caught.value)


def test_an_error_is_raised_whatever_is_asked_of_the_rows(lake: SketchLake) -> None:
    for query in (
        "SELECT * FROM predict_match('nonsense') WHERE is_best",
        "SELECT count(*) FROM match_subscription('nonsense')",
        "SELECT 1 FROM match_seq('nonsense', 'A ; B') WHERE key = 'x' LIMIT 1",
        "CREATE TEMPORARY VIEW never AS SELECT * FROM match_pattern('nonsense', 'A ; B')",
    ):
        assert "'nonsense'" in error(lake.spark, query)


def test_arguments_may_be_anything_that_is_the_same_in_each_row(lake: SketchLake) -> None:
    (plain,) = lake.spans([call("match_seq", "worked", "A ; B", to_position=16)])
    for text in (
        "match_seq(concat('wor', 'ked'), 'A ; B', to_position => 4 * 4)",
        "match_seq('worked', 'A ; B', to_position => '16', key => NULL, as_of => now() + INTERVAL 1 SECOND)",
        "match_seq(pattern => 'A ; B', stream => 'worked', to_position => CAST(16 AS TINYINT), params => map('a', 1))",
        "match_seq('worked', 'A ; B', to_position => 1.6e1, level => 0.0)",
    ):
        assert lake.spans([text]) == [plain], text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("'worked'", "match_seq: pattern is missing; it takes stream, pattern, policy"),
        ("'worked', 'A ; B', polcy => 'strict'", "match_seq has no parameter polcy; did you mean policy?"),
        ("'worked', 'A ; B', nonsense => 1", "match_seq has no parameter nonsense. Its parameters: stream, pattern"),
        ("'worked', 'A ; B', stream => 'x'", "match_seq: stream is given twice"),
        ("'worked', 'A ; B', level => 'x'", "match_seq: level => 'x' is no INT"),
        ("'worked', 'A ; B', from_position => 1.5", "match_seq: from_position => 1.5 is no BIGINT"),
        ("'worked', 'A ; B', level => 5e-1", "match_seq: level => 0.5 is no INT"),
        ("'worked', 'A ; B', from_time => 'noon'", "match_seq: from_time => 'noon' is no TIMESTAMP"),
        ("'worked', 'A ; B', max_matches => 0", "max_matches must be 1 or more, not 0"),
        ("(SELECT 'worked'), 'A ; B'", "match_seq: stream must be a constant, not scalarsubquery()"),
        ("NULL, 'A ; B'", "stream is NULL; give the name of a stream"),
    ],
)
def test_wrong_arguments_are_told(lake: SketchLake, arguments: str, told: str) -> None:
    assert told in error(lake.spark, f"SELECT * FROM match_seq({arguments})")


def test_a_column_as_an_argument_is_told_with_the_way_in_python(lake: SketchLake) -> None:
    query = "SELECT * FROM VALUES ('A ; B') AS t (p), LATERAL match_seq('worked', t.p)"
    assert "match_seq: pattern must be a constant, not outer(t.p)" in error(lake.spark, query)
    assert "patternlake.match_seq(spark, …)" in error(lake.spark, query)


def test_functions_stand_in_new_sessions_views_and_other_queries(lake: SketchLake) -> None:
    later, text = lake.spark.newSession(), call("match_seq", "worked", "A ; B", to_position=16)
    expected = later.sql(f"SELECT * FROM {text}").count()
    assert expected == 4
    later.sql(f"CREATE OR REPLACE TEMPORARY VIEW found AS SELECT * FROM {text}")
    assert later.table("found").count() == expected
    joined = f"WITH m AS (SELECT * FROM {text}) SELECT a.match_no FROM m a JOIN m b USING (match_no)"
    assert later.sql(joined).count() == expected
    assert "LocalTableScan" in later.sql(f"EXPLAIN SELECT * FROM {text}").collect()[0][0]
    later.sql(f"CREATE TABLE {DATABASE}.kept USING DELTA AS SELECT * FROM {text}")
    assert later.table(f"{DATABASE}.kept").count() == expected
    later.sql(f"DROP TABLE {DATABASE}.kept")


def test_views_that_stay_may_use_the_functions(lake: SketchLake) -> None:
    rows = "SELECT first_position FROM match_pattern('worked', 'A ; B WITHIN 2 SEC') WHERE last_position <= 16"
    patternlake.enable(lake.spark, DATABASE, lake.location)
    for maker in (lake.spark, lake.spark.newSession()):
        maker.sql(f"CREATE VIEW {DATABASE}.stays AS {rows}")
        maker.sql(f"CREATE VIEW {DATABASE}.known AS SELECT match_exists('worked', 'A ; Z') AS said")
        for reader in (lake.spark, maker, maker.newSession()):
            assert sorted(row[0] for row in reader.table(f"{DATABASE}.stays").collect()) == [1, 13]
            assert [row[0] for row in reader.table(f"{DATABASE}.known").collect()] == [False]
        for view in ("stays", "known"):
            maker.sql(f"DROP VIEW {DATABASE}.{view}")


def test_arguments_may_be_parameters_of_the_query(lake: SketchLake) -> None:
    later = lake.spark.newSession()
    patternlake.enable(later, DATABASE, lake.location)
    expected = lake.rows(f"SELECT * FROM {call('match_seq', 'worked', 'A ; B', to_position=16)}")
    named = "SELECT * FROM match_seq(:stream, :pattern, to_position => :last)"
    for session in (lake.spark, later):
        assert session.sql(named, args={"stream": "worked", "pattern": "A ; B", "last": 16}).collect() == expected
        assert session.sql("SELECT * FROM match_seq(?, ?, to_position => ?)", args=["worked", "A ; B", 16]).count() == 4
        assert session.sql("SELECT match_exists('worked', :p)", args={"p": "A ; Z"}).collect()[0][0] is False
        assert session.sql("SELECT ?, ?, ?, ?", args=[*"abcd"]).collect() == [tuple("abcd")]
        if session.version.startswith("4.1.") or session.version == "4.2.0":
            with pytest.raises(PySparkException, match="mixes up more than 4 positional parameters"):
                session.sql("SELECT ?, ?, ?, ?, ?", args=[*"abcde"])
        else:
            assert session.sql("SELECT ?, ?, ?, ?, ?", args=[*"abcde"]).collect() == [tuple("abcde")]
        within = (
            "WITH one AS (SELECT :x AS x) SELECT x, (SELECT :y) FROM one WHERE EXISTS (SELECT 1 WHERE x = :x) LIMIT :n"
        )
        assert session.sql(within, args={"x": 1, "y": "${user.name}", "n": 1}).collect() == [(1, "${user.name}")]
        for text in (
            "SELECT match_exists('worked', ?) USING 'A ; B'",
            "SELECT match_exists('worked', :p) USING 'A ; B' AS p",
        ):
            statement, using = text.split(" USING ")
            quoted = statement.replace("'", "''")
            assert session.sql(f"EXECUTE IMMEDIATE '{quoted}' USING {using}").collect() == [(True,)]


def test_an_answer_is_remembered_until_something_is_published(lake: SketchLake) -> None:
    planned: list[str] = []
    declared = declaration_of(patternlake.match_seq)
    assert isinstance(declared, TableFunction)

    def plan(lake: Any, arguments: dict[str, Any]) -> Answer:
        planned.append(arguments["pattern"])
        return declared.plan(lake, arguments)

    function = replace(declared, plan=plan)

    def rows(pattern: str = "A ; B") -> int:
        defaults = {parameter.name: parameter.default for parameter in function.parameters}
        given = {**defaults, "stream": "remembered", "pattern": pattern}
        return registering.call(function, lake.spark, given).count()

    stream = lake.stream("remembered", [E(1, "A"), E(2, "B")])
    assert (rows(), rows(), len(planned)) == (1, 1, 1)
    with pytest.warns(UserWarning, match="Z"):
        assert rows("A ; Z") == 0
    with pytest.warns(UserWarning, match="Z"):
        assert rows("A ; Z") == 0
    assert len(planned) == 3
    stream.deliver([E(3, "A"), E(4, "B")])
    assert (rows(), rows(), len(planned)) == (2, 2, 4)


def test_no_helper_stands_among_the_users_functions(lake: SketchLake) -> None:
    shown = {row["function"] for row in lake.spark.sql("SHOW USER FUNCTIONS").collect()}
    of_delta = {"table_changes", "table_changes_by_path"}
    assert shown - of_delta == {f.name for f in (*enabling.FUNCTIONS, *enabling.ROWS_FUNCTIONS)}


def test_words_are_taken_whatever_their_case_and_no_moment_that_is_yet_to_come(lake: SketchLake, keyed: Stream) -> None:
    lower, upper = lake.ask(
        [
            f"match_pattern('{keyed.name}', 'A ; B', policy => {policy}, after_match => {after})"
            for policy, after in (("'skip_till_next'", "'past_last'"), ("'Skip_Till_Next'", "'PAST_LAST'"))
        ]
    )
    assert lower == upper
    assert lower
    with pytest.raises(PySparkException, match=r"as_of 2999-01-01.* is yet to come"):
        lake.rows(f"SELECT * FROM match_pattern('{keyed.name}', 'A ; B', as_of => TIMESTAMP '2999-01-01')")


def test_many_threads_ask_at_once(lake: SketchLake, keyed: Stream) -> None:
    expected = [len(rows) for rows in lake.ask(QUESTIONS)]
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda text: len(lake.rows(f"SELECT * FROM {text}")), QUESTIONS * 3))
    assert again == expected * 3


def test_an_object_of_another_enabled_database_is_named_with_it(lake: SketchLake) -> None:
    other = lake.spark.newSession()
    patternlake.enable(other, "planned_elsewhere", f"{lake.folder}/elsewhere", create=True)
    try:
        assert "there is no sketch of a stream 'worked'" in error(other, "SELECT * FROM match_seq('worked', 'A ; B')")
        text = f"SELECT * FROM match_seq('{DATABASE}.worked', 'A ; B', to_position => 16)"
        assert other.sql(text).count() == 4
    finally:
        other.sql("DROP DATABASE planned_elsewhere CASCADE")
        patternlake.enable(lake.spark, DATABASE, lake.location)


def test_python_takes_the_same_arguments_and_gives_the_same_rows(lake: SketchLake, keyed: Stream) -> None:
    def rows(frame: DataFrame) -> list[str]:
        return sorted(map(str, frame.collect()))

    moment = datetime(2024, 1, 1, 0, 0, 30, tzinfo=timezone.utc)
    asked = patternlake.match_seq(lake.spark, "planned", "A ; B", key="k1", to_time=moment, verify=True)
    text = call("match_seq", "planned", "A ; B", key="k1", to_time=moment, verify=True)
    assert rows(asked) == rows(lake.spark.sql(f"SELECT * FROM {text}"))
    said = patternlake.match_seq(lake.spark, "planned", "A ; B", key="k1", to_time="2024-01-01 00:00:30", verify=True)
    assert rows(said) == rows(asked)
    assert patternlake.match_exists(lake.spark, "worked", "A ; B") is True
    with pytest.raises(PatternSyntaxError, match="line 1, column 5"):
        patternlake.match_seq(lake.spark, "worked", "A ; ; B")
    with pytest.raises(ArgumentError, match="match_seq: level = 'x' is no INT"):
        patternlake.match_seq(lake.spark, "worked", "A ; B", level="x")  # type: ignore[arg-type]


def test_an_argument_may_be_a_variable_that_a_query_gave_a_value(lake: SketchLake) -> None:
    lake.spark.sql("DECLARE OR REPLACE VARIABLE asked STRING")
    lake.spark.sql("SET VARIABLE asked = (SELECT concat(min(name), ' ; B') FROM events)")
    rows = lake.spark.sql("SELECT * FROM match_seq('worked', asked)").collect()
    assert rows == lake.spark.sql("SELECT * FROM match_seq('worked', 'A ; B')").collect() != []
    with pytest.raises(PySparkException, match=r"SET VARIABLE v = \(SELECT …\)"):
        lake.spark.sql("SELECT * FROM match_seq('worked', (SELECT 'A ; B'))")


def test_a_name_that_never_occurred_is_told(lake: SketchLake) -> None:
    with pytest.warns(UserWarning, match="'Z' never occurred in the stream"):
        patternlake.match_pattern(lake.spark, "worked", "A ; Z")


@pytest.mark.parametrize("verify", [True, False])
def test_match_exists_tells_of_names_and_keys_that_never_occurred(
    lake: SketchLake, keyed: Stream, verify: bool
) -> None:
    with pytest.warns(UserWarning, match="'Z' never occurred in the stream"):
        assert patternlake.match_exists(lake.spark, "worked", "A ; Z", verify=verify) is False
    with pytest.warns(UserWarning, match=r"the key 'K1' never occurred in the stream; did you mean 'k1'\?"):
        assert patternlake.match_exists(lake.spark, "planned", "A ; B", key="K1", verify=verify) is False


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("match_seq('worked', 'A ; Z ; Y')", "'Z' never occurred in the stream; 'Y' never occurred in the stream"),
        ("match_pattern('worked', 'A ; Z')", "'Z' never occurred in the stream"),
        ("match_funnel('worked', 'A ; Z WITHIN 1 HOUR')", "'Z' never occurred in the stream"),
        ("match_paths('worked', around => 'Z')", "'Z' never occurred in the stream"),
        ("(SELECT match_exists('worked', 'A ; Z'))", "'Z' never occurred in the stream"),
        ("cet_count('PATTERN Z+ s[] WITHIN 1 HOUR', stream => 'worked')", "'Z' never occurred in the stream"),
        ("match_seq('planned', 'A ; B', key => 'K1')", "the key 'K1' never occurred in the stream; did you mean 'k1'?"),
    ],
)
def test_a_session_may_have_what_never_occurred_refused(lake: SketchLake, keyed: Stream, asked: str, said: str) -> None:
    lake.spark.conf.set("spark.patternlake.unseen", "error")
    try:
        with pytest.raises(Exception, match=re.escape(said)):
            lake.spark.sql(f"SELECT * FROM {asked}").collect()
        assert lake.spark.sql("SELECT * FROM match_seq('worked', 'A ; B')").count() == 7
        lake.spark.conf.set("spark.patternlake.unseen", "raise")
        with pytest.raises(Exception, match=r"spark\.patternlake\.unseen must be warn or error, not 'raise'"):
            lake.spark.sql(f"SELECT * FROM {asked}").collect()
    finally:
        lake.spark.conf.unset("spark.patternlake.unseen")


def test_an_after_match_that_does_nothing_is_told(lake: SketchLake) -> None:
    for _ in range(2):
        with pytest.warns(UserWarning, match="after_match => 'past_last' does nothing under policy => 'skip_till_any'"):
            patternlake.match_pattern(lake.spark, "worked", "A ; B", after_match="past_last")


@pytest.mark.parametrize(
    "asked",
    [
        "match_seq('planned', 'A ; B', key => {})",
        "match_pattern('planned', 'A ; B PARTITION BY key', key => {})",
        "match_pattern('planned', 'A ; B', key => {})",
        "match_funnel('planned', 'A ; B WITHIN 1 HOUR', key => {})",
        "match_funnel_rows('planned', 'A ; B WITHIN 1 HOUR', key => {})",
        "match_paths('planned', around => 'A', key => {})",
        "cet_count('PATTERN A ; B WITHIN 1 HOUR', stream => 'planned', key => {})",
        "cet_trends('PATTERN A ; B PARTITION BY key', stream => 'planned', key => {})",
        "cet_aggregate('PATTERN A ; B', 'COUNT(*)', stream => 'planned', key => {})",
    ],
)
def test_a_key_that_never_occurred_is_told_as_often_as_it_is_asked(lake: SketchLake, keyed: Stream, asked: str) -> None:
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"the key 'K1' never occurred in the stream; did you mean 'k1'\?"):
            lake.spark.sql(f"SELECT * FROM {asked.format(repr('K1'))}").collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lake.spark.sql(f"SELECT * FROM {asked.format(repr('k1'))}").collect()
