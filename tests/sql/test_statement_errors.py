"""What is said of statements that Spark cannot read or resolve: the user's own text, and what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException
from sql.empty_database import common

import patternlake
from patternlake.jobs.terminal.messages import message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLAUSE = "MATCH_RECOGNIZE (ORDER BY at\n MEASURES count(*) AS n PATTERN (a b) DEFINE b AS x > 1)"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    db = common(spark, tmp_path_factory)
    session = spark.newSession()
    patternlake.enable(session, db.name, db.location)
    session.sql("CREATE OR REPLACE TEMP VIEW steps AS SELECT * FROM VALUES (1, 2), (2, 3) AS t(at, x)")
    return session


def refuse(session: SparkSession, text: str) -> AnalysisException:
    with pytest.raises(AnalysisException) as caught:
        session.sql(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELECT * FROM «match_sec»('clicks', 'a ; b')", "match_seq"),
        ("SELECT * FROM «match_funel»('clicks', 'a ; b')", "match_funnel"),
        ("SELECT * FROM «Match_Groupss»('clicks', 'a ; b')", "match_groups"),
        ("SELECT x,\n «match_exist»('clicks', 'a ; b') AS e FROM steps", "match_exists"),
        ("SELECT x FROM steps WHERE NOT upper(«sketch_eror»('s', 'a')) = 'A'", "sketch_error"),
        ("WITH q AS (SELECT * FROM «predict_matches»('s')) SELECT * FROM q", "predict_match"),
        ("SELECT * FROM steps WHERE x > (SELECT count(*) FROM «cet_trend»('s'))", "cet_trends"),
        ("SELECT * FROM «match_recognise»(TABLE(steps), 'PATTERN (a)')", "match_recognize"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM «matchseq»('clicks', 'a')", "match_seq"),
        (f"SELECT n, «match_exist»('s', 'a') FROM steps {CLAUSE} m", "match_exists"),
        (f"SELECT * FROM steps {CLAUSE} m JOIN «match_sequence»('s', 'a') ON true", "match_seq"),
    ],
)
def test_a_function_of_ours_that_is_misspelt_is_told_with_the_one_that_is_meant(
    lake: SparkSession, text: str, meant: str
) -> None:
    before, name, behind = text.replace("«", "\0").replace("»", "\0").split("\0")
    error = refuse(lake, before + name + behind)
    line, position = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    assert (error.getCondition(), error.getSqlState()) == ("UNRESOLVED_ROUTINE", "42883")
    assert f"Cannot resolve routine `{name}` (did you mean `{meant}`?) on search path [" in str(error)
    assert f"(line {line}, pos {position})\n\n== SQL ==\n" in str(error)
    # Spark's parser marks the place in the line below the user's own.
    lines = (before + name + behind).split("\n")
    marked = [*lines[:line], "-" * position + "^^^", *lines[line:]]
    assert str(error).rstrip().endswith("\n".join(marked))
    assert message(error).endswith(f"SQLSTATE: 42883 (line {line}, pos {position})")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT no_such(1)", "UNRESOLVED_ROUTINE"),
        ("SELECT * FROM matching('s')", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"),
        ("SELECT default.match_sec('s')", "UNRESOLVED_ROUTINE"),
        ("SELECT match_seq('s', 'a')", "NOT_A_SCALAR_FUNCTION"),
        ("SELECT * FROM match_exists('s', 'a')", "NOT_A_TABLE_FUNCTION"),
    ],
)
def test_what_is_close_to_none_of_ours_is_left_to_spark(lake: SparkSession, text: str, condition: str) -> None:
    error = refuse(lake, text)
    assert error.getCondition() == condition
    assert "did you mean" not in str(error)


def test_a_users_own_function_of_a_close_name_is_called(lake: SparkSession, spark: SparkSession) -> None:
    session = lake.newSession()
    session.sql("CREATE TEMPORARY FUNCTION match_sec(x INT) RETURNS INT RETURN x + 1")
    session.sql("CREATE OR REPLACE FUNCTION default.match_sek(x INT) RETURNS INT RETURN x + 2")
    session.sql("CREATE TEMPORARY FUNCTION match_sed(x INT) RETURNS TABLE (y INT) RETURN SELECT x + 3")
    try:
        session.catalog.setCurrentDatabase("default")
        calls = "SELECT match_sec(1) + match_sek(10), y FROM match_sed(100)"
        assert [tuple(row) for row in session.sql(calls).collect()] == [(14, 103)]
        # Statements of a script may make what later ones call.
        script = "BEGIN CREATE TEMPORARY FUNCTION match_sef() RETURNS INT RETURN 7; SELECT match_sef() AS x; END"
        session.conf.set("spark.sql.scripting.enabled", "true")
        assert session.sql(script).collect()[0]["x"] == 7
    finally:
        spark.sql("DROP FUNCTION IF EXISTS default.match_sek")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        (f"SELECT * FROM steps {CLAUSE} AS m WHERE n > «> 3", ">"),
        (f"SELECT * FROM steps {CLAUSE} m «LIMT 3", "LIMT"),
        (f"SELECT * FROM (SELECT * FORM «steps) {CLAUSE} m", "steps"),
        (f"SELECT * FORM «x FROM steps {CLAUSE} m", "x"),
        (f"SELECT * FROM (SELECT * FROM steps {CLAUSE} m WHERE n >«) {CLAUSE} k", ")"),
        (f"SELECT * FROM steps {CLAUSE} AS m GROUP BY«", "end of input"),
        (f"SELECT 'ä😀' AS `é`, * FROM steps {CLAUSE.replace(chr(10), '')} m «LIMT 3", "LIMT"),
    ],
)
def test_a_syntax_error_beside_a_clause_shows_the_users_text(lake: SparkSession, text: str, near: str) -> None:
    before, behind = text.split("«")
    error = refuse(lake, before + behind)
    assert isinstance(error, ParseException)
    assert error.getCondition() == "PARSE_SYNTAX_ERROR"
    line, position = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    assert near in str(error).split("SQLSTATE")[0]
    assert f"(line {line}, pos {position})" in str(error)
    shown = str(error).split("== SQL ==\n")[1]
    assert "\n".join(each for each in shown.split("\n") if not each.endswith("^^^")).strip() == before + behind
    assert "TABLE(" not in shown


def test_a_syntax_error_of_a_subquery_in_a_clause_is_placed_there(lake: SparkSession) -> None:
    text = f"SELECT * FROM steps {CLAUSE.replace('x > 1', 'x > (SELECT max(x) FORM u v w)')}"
    error = refuse(lake, text)
    assert f"(line 2, pos {text.split(chr(10))[1].index('(SELECT')})" in str(error)
    assert "TABLE(" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT «nn FROM steps {CLAUSE} m",
        f"SELECT n FROM steps {CLAUSE} m\nWHERE n > 1 AND «mm > 2",
        f"SELECT n FROM (SELECT «zz FROM steps) {CLAUSE} m",
        f"WITH q AS (SELECT n FROM steps {CLAUSE} m ORDER BY «yy) SELECT * FROM q",
        f"SELECT n FROM steps {CLAUSE} m WHERE n IN (SELECT «vv FROM steps)",
    ],
)
def test_an_error_of_analysis_has_its_place_in_the_users_text(lake: SparkSession, text: str) -> None:
    before, behind = text.split("«")
    error = refuse(lake, before + behind)
    assert error.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    (context,) = error.getQueryContext()
    assert (context.startIndex(), context.stopIndex()) == (len(before), len(before) + 1)
    assert context.fragment() == behind[:2]
    line, position = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    assert f"; line {line} pos {position}" in str(error)
    assert f"(line {line}, position {position + 1}) ==" in context.summary()
    assert "TABLE(" not in context.summary()


def test_parameters_beside_a_clause_keep_the_users_text(lake: SparkSession) -> None:
    text = f"SELECT :p AS p, * FROM steps {CLAUSE.replace('x > 1', 'x > :q')} m WHERE n = :p LIMT 3"
    with pytest.raises(ParseException) as caught:
        lake.sql(text, args={"p": 1, "q": -123456})
    shown = str(caught.value)
    assert "TABLE(" not in shown
    assert text.split("\n")[0] in shown
    good = text.replace("LIMT", "LIMIT").replace("n = :p", "n > :p")
    assert [tuple(row) for row in lake.sql(good, args={"p": 1, "q": -123456}).collect()] == [(1, 2)]
