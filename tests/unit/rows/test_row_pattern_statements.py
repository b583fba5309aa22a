"""Statements with MATCH_RECOGNIZE as statements that Spark's parser knows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.row_pattern.rewritten import Edit, Piece, Rewritten
from patternlake.udfs.language.row_pattern.statements import Values, rewrite_statement


def rewritten(text: str, values: Values | None = None) -> str:
    """The statement with `C` for each clause, and `F(…)` for each function that has it."""
    text = text.replace("«", "MATCH_RECOGNIZE (").replace("»", ")")
    made = rewrite_statement(text, lambda clause: f"<{clause}>", values)
    return made.text.replace("match_recognize(TABLE(SELECT * FROM ", "F(")


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT * FROM t «c» AS m", "SELECT * FROM F(t), <c>) AS m"),
        ("SELECT * FROM t «c»", "SELECT * FROM F(t), <c>)"),
        ("SELECT m.n FROM a.b.`t x` «c» m WHERE n > 1", "SELECT m.n FROM F(a.b.`t x`), <c>) m WHERE n > 1"),
        ("SELECT * FROM t AS x «c» m (p, q)", "SELECT * FROM F(t AS x), <c>) m (p, q)"),
        ("SELECT * FROM (SELECT 1 AS x, 2) «c» m", "SELECT * FROM F((SELECT 1 AS x, 2)), <c>) m"),
        ("SELECT * FROM range(1, 5) r «c»", "SELECT * FROM F(range(1, 5) r), <c>)"),
        ("SELECT * FROM t VERSION AS OF 3 «c»", "SELECT * FROM F(t VERSION AS OF 3), <c>)"),
        (
            "SELECT * FROM VALUES (1, 2), (3, 4) AS t(x, y) «c»",
            "SELECT * FROM F(VALUES (1, 2), (3, 4) AS t(x, y)), <c>)",
        ),
        ("SELECT * FROM t, u «c» m, w", "SELECT * FROM t, F(u), <c>) m, w"),
        ("SELECT * FROM t JOIN u «c» m ON t.x = m.x", "SELECT * FROM t JOIN F(u), <c>) m ON t.x = m.x"),
        ("SELECT * FROM t «c» m JOIN u «d» n USING (x)", "SELECT * FROM F(t), <c>) m JOIN F(u), <d>) n USING (x)"),
        ("WITH m AS (SELECT * FROM t «c») SELECT * FROM m", "WITH m AS (SELECT * FROM F(t), <c>)) SELECT * FROM m"),
        ("SELECT * FROM (SELECT * FROM t «c» m) «d» n", "SELECT * FROM F((SELECT * FROM F(t), <c>) m)), <d>) n"),
        ("SELECT * FROM t «c» «d» n", "SELECT * FROM F(F(t), <c>)), <d>) n"),
        ("SELECT * FROM (t «c» m)", "SELECT * FROM (F(t), <c>) m)"),
        ("CREATE VIEW v AS SELECT * FROM t «c» -- so\n", "CREATE VIEW v AS SELECT * FROM F(t), <c>) -- so\n"),
        ("FROM t «c» SELECT x", "FROM F(t), <c>) SELECT x"),
        ("MERGE INTO t USING u «c» m ON true", "MERGE INTO t USING (SELECT * FROM F(u), <c>)) m ON true"),
        ("SELECT * FROM t match_recognize /* so */ (c)", "SELECT * FROM F(t), <c>)"),
        ("SELECT * FROM t «x AS ')' OR \"(\" -- )\n»", "SELECT * FROM F(t), <x AS ')' OR \"(\" -- )\n>)"),
    ],
)
def test_a_clause_becomes_a_table_function(statement: str, wanted: str) -> None:
    assert rewritten(statement) == wanted


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM match_recognize(TABLE(t) PARTITION BY k, 'PATTERN (a)')",
        "SELECT * FROM t, match_recognize(TABLE(t), 'PATTERN (a)')",
        "SELECT * FROM t, LATERAL match_recognize(TABLE(t), 'PATTERN (a)')",
        "SELECT 'FROM t MATCH_RECOGNIZE (' AS x",
        "SELECT `match_recognize` FROM t -- FROM t MATCH_RECOGNIZE (x)",
        "SELECT match_recognize FROM t",
        "SELECT match_recognize (x) FROM t",
        "SELECT x, match_recognize (x) FROM t",
        "SELECT * FROM (SELECT match_recognize (x) FROM t)",
        "SELECT f(x, match_recognize (y)) FROM t",
        "SELECT * FROM t AS match_recognize",
        "SELECT 'never closed MATCH_RECOGNIZE (",
    ],
)
def test_other_statements_stay_as_they_are(statement: str) -> None:
    assert rewrite_statement(statement, lambda clause: f"<{clause}>").text == statement


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("x > (SELECT avg(y) FROM t)", ["(SELECT avg(y) FROM t)"]),
        ("(select 1) + f(2, (WITH q AS (SELECT 3) SELECT * FROM q)) = 4",
         ["(select 1)", "(WITH q AS (SELECT 3) SELECT * FROM q)"]),
        ("NOT EXISTS (SELECT * FROM t WHERE t.k = u.k)", ["EXISTS (SELECT * FROM t WHERE t.k = u.k)"]),
        ("b.x + (b.y) NOT IN (SELECT z FROM t) OR y", ["x + (y) NOT IN (SELECT z FROM t)"]),
        ("NOT (p OR lower(`S`.x) IN (SELECT z FROM t))", ["lower(x) IN (SELECT z FROM t)"]),
        ("(b.x, u.y) IN (SELECT p, q FROM t)", ["(x, u.y) IN (SELECT p, q FROM t)"]),
        ("count_if(b.x IN (SELECT z FROM t)) > 2", ["x IN (SELECT z FROM t)"]),
        ("CASE WHEN p THEN x IN (SELECT 1) ELSE y IN (SELECT 2) END", ["x IN (SELECT 1)", "y IN (SELECT 2)"]),
        ("x > (SELECT max(b.x) FROM t b)", ["(SELECT max(b.x) FROM t b)"]),
        ("x > (SELECT max(n) FROM t MATCH_RECOGNIZE (d))", ["(SELECT max(n) FROM F(t), <d>))"]),
        ("x IN (1, 2) AND (select) = with AND f(select, 1)", []),
    ],
)  # fmt: skip
def test_subqueries_become_columns_of_the_input(expression: str, columns: list[str]) -> None:
    for clause in (
        f"PATTERN (a b) SUBSET s = (a, b) DEFINE b AS {expression}",
        f"MEASURES {expression} AS m PATTERN (a b) SUBSET s = (a, b)",
    ):
        made = rewrite_statement(f"SELECT * FROM u MATCH_RECOGNIZE ({clause})", lambda text: f"<{text}>")
        named = "".join(f", {sql} AS __patternlake_subquery_{number}" for number, sql in enumerate(columns))
        wanted = named.replace("F(", "match_recognize(TABLE(SELECT * FROM ")
        assert made.text == f"SELECT * FROM match_recognize(TABLE(SELECT *{wanted} FROM u), <{clause}>)"


def test_a_clause_behind_a_joins_condition_is_refused() -> None:
    statement = "SELECT * FROM t JOIN (SELECT 1 FROM u JOIN v ON true) w ON t.x = w.x MATCH_RECOGNIZE (PATTERN (a))"
    with pytest.raises(PatternSyntaxError, match=r"line 1, column 57: .* not behind the condition of a join; write"):
        rewrite_statement(statement, str)


def test_a_clause_that_is_never_closed_is_shown() -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        rewrite_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a)", str)
    assert str(caught.value) == (
        "line 1, column 33: this '(' of MATCH_RECOGNIZE is never closed\n"
        "  SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a)\n"
        "                                  ^"
    )


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT :p FROM t «:p + x»", "SELECT :p FROM F(t), <1 + x>)"),
        ("SELECT * FROM t «MEASURES (:p) AS x, f(y,:p), -:m, `a`-:m»", "<MEASURES (1) AS x, f(y,1), -(-2), `a`-(-2)>"),
        ("SELECT * FROM t «x = :q AND y BETWEEN :p AND :m»", "<x = 'it\\'s' AND y BETWEEN 1 AND (-2)>"),
        ("SELECT * FROM t «x::p, v:p, v :p, f(x):p, ':p', a[0]:p» -- :p", "<x::p, v:p, v :p, f(x):p, ':p', a[0]:p>"),
        ("SELECT * FROM (SELECT * FROM t «:p») «:m» n", "F((SELECT * FROM F(t), <1>))), <(-2)>) n"),
        ("SELECT ? FROM t «? AS '?' -- ?\n» WHERE ?", "SELECT 5 FROM F(t), <6 AS '?' -- ?\n>) WHERE '?'"),
        ("SELECT ? FROM t «PATTERN ((a? b??)?) DEFINE a AS ?»", "5 FROM F(t), <PATTERN ((a? b??)?) DEFINE a AS 6>)"),
        ("SELECT * FROM t WHERE x = :gone", "SELECT * FROM t WHERE x = :gone"),
        ("SELECT ?, ?, ?, ? FROM t", "SELECT ?, ?, ?, ? FROM t"),
    ],
)  # fmt: skip
def test_parameters_of_a_clause_are_written_into_it(statement: str, wanted: str) -> None:
    values = Values({"p": "1", "m": "-2", "q": "'it\\'s'"}, ["5", "6", "'?'"])
    assert wanted in rewritten(statement, values)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SELECT :gone FROM t «x = :other»", ":other has no value; pass it: spark.sql(text, args={'other': …})"),
        ("SELECT ? FROM t «x = ? PATTERN (a?)»", "parameter 2, '?' has no value; pass one value for each '?'"),
    ],
)  # fmt: skip
def test_a_parameter_without_a_value_is_named(statement: str, wanted: str) -> None:
    with pytest.raises(PatternSyntaxError) as error:
        rewritten(statement, Values(positional=["1"]))
    assert wanted in str(error.value)


def test_a_place_of_a_rewritten_statement_is_one_of_the_users() -> None:
    clause = "(MEASURES :p AS n PATTERN (a b?) DEFINE a AS x > (SELECT max(x) FROM u))"
    text = f"SELECT :p,\n x FROM (SELECT * FROM t MATCH_RECOGNIZE {clause} m) MATCH_RECOGNIZE {clause} WHERE :p LIMT 3"
    made = rewrite_statement(text, lambda clause: f"<{clause}>", Values({"p": "-123456"}))
    copied = 0
    for piece, following in pairwise(made.pieces):
        if piece.is_copied:
            size = following.begin - piece.begin
            copied += size
            assert text[piece.place : piece.place + size] == made.text[piece.begin : following.begin]
    assert copied == len("SELECT :p,\n x FROM (SELECT * FROM t m) WHERE :p LIMT 3")
    assert made.pieces[-1] == Piece(len(made.text), len(text), True)
    assert made.locate(len(made.text)) == len(text)
    for word, there in {"x FROM": "x FROM", "t), ": "t MATCH", " m)": " m)", "WHERE": "WHERE", "LIMT": "LIMT"}.items():
        assert made.locate(made.text.index(word)) == text.index(there), word
    # What was put in belongs to what it was made of.
    calls = [made.text.index("match_recognize"), made.text.rindex("match_recognize")]
    assert [made.locate(call) for call in calls] == [text.index("(SELECT * FROM t"), text.index("t MATCH")]
    assert made.locate(made.text.rindex("<MEASURES (-123456)") + 30) == text.rindex("MATCH_RECOGNIZE")
    assert made.locate(made.text.index("(SELECT max")) == text.rindex("(SELECT max")


def test_edits_of_an_edited_text_are_traced_to_the_first() -> None:
    once = Rewritten.of("abcdef").edit([Edit(1, 3, "12345", 1), Edit(4, 4, "67", 4)])
    assert once.text == "a12345d67ef"
    twice = once.edit([Edit(0, 0, "<<", 0), Edit(3, 7, "--", 4), Edit(8, 9, "", 8)])
    assert twice.text == "<<a12--6ef"
    assert [twice.locate(offset) for offset in range(len(twice.text) + 1)] == [0, 0, 0, 1, 1, 1, 1, 4, 4, 5, 6]
    assert Rewritten.of("").edit([]) == Rewritten("", (Piece(0, 0, True),))
