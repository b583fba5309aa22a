"""The runner of other engines' suites reads their formats: cases of our own in each of them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.row_pattern_suites import calcite, duckdb, esper, flink, risingwave, trino, zetasql
from benchmarks.row_pattern_suites.cases import Case, Refusal, Rows, same_rows, same_value
from benchmarks.row_pattern_suites.dialects import Dialect, translate
from benchmarks.row_pattern_suites.java_sources import java_tokens, text_of

PLAIN = Dialect("plain")


def written(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / name
    file.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("SELECT \"a b\", 'it''s' -- why", r"SELECT `a b` , 'it\'s'"),
        ("SELECT concat_ws('', 'a', '''b''')", r"SELECT concat_ws ( '' , 'a' , '\'b\'' )"),
        ("SELECT CAST(z AS varchar), z::int4", "SELECT CAST ( z AS STRING ) , z :: INT"),
        ("SELECT CAST(z AS varchar(7))", "SELECT CAST ( z AS varchar ( 7 ) )"),
        ("SELECT VARCHAR 'a', DATE '2026-01-01'", "SELECT 'a' , DATE '2026-01-01'"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (DEFINE a AS v > 0 PATTERN (a+) ORDER BY v, w DESC NULLS FIRST)",
            "SELECT * FROM t MATCH_RECOGNIZE ( ORDER BY v NULLS LAST , w DESC NULLS FIRST PATTERN ( a + ) "
            "DEFINE a AS v > 0 )",
        ),
    ],
)
def test_statements_in_the_words_of_spark(theirs: str, ours: str) -> None:
    assert translate(theirs, PLAIN) == ours


def test_a_clause_that_says_a_part_twice_stays_as_it_is() -> None:
    text = "SELECT 1 FROM t MATCH_RECOGNIZE ( PATTERN ( a ) PATTERN ( b ) )"
    assert translate(text, PLAIN) == text


@pytest.mark.parametrize(
    ("expected", "answered", "same"),
    [
        ("NULL", None, True),
        ("0", None, False),
        ("45.8", 45.8, True),
        ("45.8", 45.9, False),
        ("1", True, True),
        ("2", 2, True),
        ("2", 3, False),
        ("[a, b]", ("a", "b"), True),
        ("[]", (), True),
        ([1, None], (1, None), True),
        ("2026-01-02 03:04:00", datetime(2026, 1, 2, 3, 4), True),
        ("2026-01-02", datetime(2026, 1, 2, 3, 4), False),
        ("(empty)", "", True),
    ],
)
def test_values_are_compared_by_the_type_that_is_answered(expected: Any, answered: Any, same: bool) -> None:
    assert same_value(expected, answered) is same


def test_rows_are_compared_in_any_order_and_as_often_as_they_come() -> None:
    assert same_rows([["1", "a"], ["2", "b"]], [(2, "b"), (1, "a")])
    assert not same_rows([["1"], ["1"]], [(1,), (2,)])
    assert not same_rows([["1"]], [(1,), (1,)])


def only(cases: Any) -> Case:
    (case,) = cases
    assert isinstance(case, Case)
    return case


def test_duckdb(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "one.test",
        "statement ok\ncreate table days(d integer, w varchar);\n\n"
        "statement ok\ninsert into days values (1, 'sun'), (2, 'rain');\n\n"
        "# a comment\nquery IT\nFROM days MATCH_RECOGNIZE (ORDER BY d MEASURES w AS w PATTERN (a) DEFINE a AS d = 2)\n"
        "----\n2\train\n\n"
        "statement error\nSELECT 1 FROM days MATCH_RECOGNIZE (PATTERN (a{2,1}))\n----\ncounts down\n",
    )
    case, refused = duckdb.read_files(folder)
    assert case.expected == Rows([["2", "rain"]])
    assert case.sql.startswith("SELECT * FROM days MATCH_RECOGNIZE ( ORDER BY d NULLS LAST MEASURES")
    assert [view.name for view in case.views] == ["days", "days"]
    assert case.views[1].sql == (
        "SELECT CAST(_0 AS integer) AS `d`, CAST(_1 AS STRING) AS `w` FROM "
        "(values ( 1 , 'sun' ) , ( 2 , 'rain' )) AS t(_0, _1)"
    )
    assert refused.expected == Refusal("counts down")


def test_what_an_engine_has_for_itself_is_not_applicable(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "one.test",
        "query I\nFROM t MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (a) DEFINE AUTO)\n----\n",
    )
    assert only(duckdb.read_files(folder)).reason == "DEFINE AUTO and DEFINES are DuckDB's own"


def test_risingwave(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "match_recognize_one.slt",
        "statement ok\ncreate table t (id int, ts int, watermark for ts as ts - 5) append only;\n\n"
        "statement ok\ncreate materialized view mv as select * from t match_recognize (\n"
        "partition by id order by ts measures count(*) as n pattern (a+) define a as ts > 0);\n\n"
        "statement ok\ninsert into t values (1, 1), (1, 9);\n\n"
        "query II rowsort\nselect * from mv;\n----\n1 1\n",
    )
    case = only(risingwave.read_files(folder))
    assert case.expected == Rows([["1", "1"]])
    assert [view.name for view in case.views] == ["t", "mv", "t", "mv"]
    assert "WHERE ts <= (SELECT max(ts) - 5 FROM" in case.views[2].sql


def test_within_of_risingwave_is_a_comparison_of_times(tmp_path: Path) -> None:
    text = (
        "statement ok\ncreate table t (id int, ts int, v int);\n\nstatement ok\ncreate materialized view mv as\n"
        "select * from t match_recognize (\n  partition by id order by ts measures a.ts as ts\n"
        "  pattern (a b c+) within 3\n  define a as a.v > 0, b as b.v < 0 or b.v > 9\n);\n\n"
        "query I\nselect * from mv;\n----\n1\n"
    )
    case = only(risingwave.read_files(written(tmp_path, "match_recognize_within.slt", text)))
    assert case.views[-1].sql.endswith(
        "pattern ( a b c + ) DEFINE a AS ( a . v > 0 ) AND ts - FIRST ( ts ) <= 3 , "
        "b AS ( b . v < 0 or b . v > 9 ) AND ts - FIRST ( ts ) <= 3 , c AS ( TRUE ) AND ts - FIRST ( ts ) <= 3 )"
    )


def test_zetasql(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "match_recognize.test",
        "[prepare_database]\nCREATE TABLE t AS SELECT * FROM UNNEST([STRUCT(1 AS a), STRUCT(2 AS a)]);\n--\nx\n==\n"
        '[name=one]\nSELECT * FROM t MATCH_RECOGNIZE(ORDER BY a\nMEASURES STRING_AGG("x") AS s PATTERN (v|))\n'
        '--\nARRAY<STRUCT<s STRING>>[known order:{"x"}, {NULL}]\n==\n',
    )
    case = only(zetasql.read_files(folder))
    assert case.expected == Rows([["x"], [None]])
    assert case.views[0].sql.replace(" ", "") == "SELECT*FROMinline(array(STRUCT(1ASa),STRUCT(2ASa)))"
    assert "PATTERN ( v | ( ) )" in case.sql
    assert "string_agg ( 'x' , ',' )" in case.sql


def test_trino(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "TestRowPatternMatching.java",
        'class T { void testOne() { String query = "SELECT m FROM t MATCH_RECOGNIZE (" + // why\n "%s" + ")";\n'
        'assertThat(assertions.query(format(query, "PATTERN (A)")))\n'
        '.matches("VALUES " + "(1, CAST(null AS varchar))");\n'
        'assertThat(assertions.query(format(query, "PATTERN (^)"))).returnsEmptyResult();\n'
        'assertThatThrownBy(() -> assertions.query(format(query, "PATTERN (B)"))).hasMessage("no");\n} }',
    )
    one, empty, refused = trino.read_files(folder)
    assert one.sql == "SELECT m FROM t MATCH_RECOGNIZE ( PATTERN ( A ) )"
    assert one.expected == Rows(sql="SELECT * FROM VALUES ( 1 , CAST ( null AS STRING ) )")
    assert empty.expected == Rows()
    assert refused.expected == Refusal("no")


def test_calcite(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "match.iq",
        'select * from "hr"."emps" match_recognize (order by "empid" desc measures "empid" as e, CLASSIFIER() as cl\n'
        'pattern (s up) define up as up."empid" > 1);\nE   CL\n--- --\n100 S\n    UP\n\n!ok\n',
    )
    case = only(calcite.read_files(folder))
    assert case.expected == Rows([["100", "S"], [None, "UP"]], columns=("E", "CL"))
    assert "ORDER BY stored" in case.sql
    assert "PATTERN ( S UP )" in case.sql.replace("pattern", "PATTERN")


def test_flink(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "MatchRecognizeITCase.scala",
        "class T {\n  @TestTemplate\n  def testOne(): Unit = {\n    val data = new mutable.ListBuffer[(Int, String)]\n"
        "    data.+=((1, \"a\"))\n    data.+=((2, null))\n    val t = x.toTable(tEnv, 'id, 'name, 'proctime.proctime)\n"
        '    tEnv.createTemporaryView("T", t)\n    val sqlQuery =\n      s"""\n         |SELECT * FROM T\n'
        '         |MATCH_RECOGNIZE (ORDER BY proctime MEASURES A.id AS i PATTERN (A))\n         |""".stripMargin\n'
        '    val expected = List("1", "2")\n    x\n  }\n}\n',
    )
    case = only(flink.read_files(folder))
    assert case.expected == Rows([["1"], ["2"]])
    assert case.views[0].sql == (
        "SELECT CAST(1 AS INT) AS id, CAST('a' AS STRING) AS name, now() + INTERVAL 0 SECOND AS proctime UNION ALL "
        "SELECT CAST(2 AS INT) AS id, CAST(NULL AS STRING) AS name, now() + INTERVAL 1 SECOND AS proctime"
    )


def test_esper(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "RowRecogOne.java",
        "class One implements RegressionExecution { public void run(RegressionEnvironment env) {\n"
        'String[] fields = "a0,b".split(",");\n'
        "String text = \"@name('s0') select * from SupportBean match_recognize (measures A[0].theString as a0, \" +\n"
        '"B.theString as b all matches pattern (match_recognize_permute(A, B)) " +\n'
        '"define A as A.theString like \\"A%\\")";\n'
        'env.compileDeploy(text).addListener("s0");\n'
        'send(env, "A1", 1);\nsend(env, "B1", 2);\n'
        'env.assertPropsNew("s0", fields, new Object[]{"A1", "B1"});\nenv.undeployAll();\n}\n'
        "private void send(RegressionEnvironment env, String name, int value) {\n"
        "env.sendEventBean(new SupportBean(name, value)); } }",
    )
    case = only(esper.read_files(folder))
    assert case.expected == Rows([["A1", "B1"]], columns=("a0", "b"))
    assert "ORDER BY place measures FIRST ( A . theString , 0 ) as a0" in case.sql
    assert "pattern ( PERMUTE ( A , B ) )" in case.sql
    assert "like 'A%'" in case.sql
    assert case.views[0].sql == (
        "SELECT 0 AS place, CAST('A1' AS STRING) AS theString, CAST(1 AS INT) AS intPrimitive UNION ALL "
        "SELECT 1 AS place, CAST('B1' AS STRING) AS theString, CAST(2 AS INT) AS intPrimitive"
    )


def test_strings_of_java() -> None:
    tokens = java_tokens('"a\\n" + part + format("%s-%s", "x", "y") + """\n    b\n      c\n    """.formatted()')
    assert text_of(tokens, {"part": "P"}) == "a\nPx-yb\n  c\n"
    assert text_of(java_tokens("other()"), {}) is None
