"""What a MATCH_RECOGNIZE clause says, and what is wrong with one that says nothing."""

from __future__ import annotations

import re

import pytest

from patternlake.udfs.errors import PatternError, PatternSyntaxError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.language.row_pattern.tree import (
    Alternation,
    Clause,
    Concatenation,
    Definition,
    Exclusion,
    Measure,
    Node,
    PartitionEnd,
    PartitionStart,
    Permutation,
    Quantified,
    Skip,
    SqlText,
    Subset,
    Variable,
)

A, B, C = (Variable(name=name) for name in "ABC")
EMPTY = Concatenation(items=())


def pattern(text: str) -> Node:
    return parse_clause(f"PATTERN ({text})").pattern


def quantified(item: Node, least: int, most: int | None, *, reluctant: bool = False) -> Node:
    return Quantified(item=item, least=least, most=most, reluctant=reluctant)


def then(*items: Node) -> Node:
    return Concatenation(items=items)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("A B C", then(A, B, C)),
        ("A | B C", Alternation(items=(A, then(B, C)))),
        ("(A | B) C", then(Alternation(items=(A, B)), C)),
        ("A (B C)", then(A, then(B, C))),
        ("A* B+ C?", then(quantified(A, 0, None), quantified(B, 1, None), quantified(C, 0, 1))),
        (
            "A*? B+? C??",
            then(
                quantified(A, 0, None, reluctant=True),
                quantified(B, 1, None, reluctant=True),
                quantified(C, 0, 1, reluctant=True),
            ),
        ),
        ("A{3}", quantified(A, 3, 3)),
        ("A{3}?", quantified(A, 3, 3, reluctant=True)),
        ("A{3,}", quantified(A, 3, None)),
        ("A{3,5}?", quantified(A, 3, 5, reluctant=True)),
        ("A { , 5 }", quantified(A, 0, 5)),
        ("A{0,1}", quantified(A, 0, 1)),
        ("A{,}", quantified(A, 0, None)),
        ("A{,}?", quantified(A, 0, None, reluctant=True)),
        ("(A B)+", quantified(then(A, B), 1, None)),
        ("(A+)*", quantified(quantified(A, 1, None), 0, None)),
        ("^ A $", then(PartitionStart(), A, PartitionEnd())),
        ("^* A", then(quantified(PartitionStart(), 0, None), A)),
        ("PERMUTE(A, B C, C*)", Permutation(items=(A, then(B, C), quantified(C, 0, None)))),
        ("permute(A)+", quantified(A, 1, None)),
        ("PERMUTE A", then(Variable(name="PERMUTE"), A)),
        ("A {- B+ -} C", then(A, Exclusion(item=quantified(B, 1, None)), C)),
        ("A{- B | C -}", then(A, Exclusion(item=Alternation(items=(B, C))))),
        ("{- A -}*", quantified(Exclusion(item=A), 0, None)),
        ("()", EMPTY),
        ("", EMPTY),
        ("A | ()", Alternation(items=(A, EMPTY))),
        ("()* A", then(quantified(EMPTY, 0, None), A)),
        ('"A" `B` /* or */ C -- not D\n', then(A, B, C)),
        ('"a b" "say ""no"""', then(Variable(name="a b"), Variable(name='say "no"'))),
        ("été 東", then(Variable(name="été"), Variable(name="東"))),
    ],
)
def test_patterns(text: str, tree: Node) -> None:
    assert pattern(text) == tree


def test_a_variable_keeps_the_case_of_its_first_place() -> None:
    clause = parse_clause('PATTERN (down+ Up "DOWN"?) SUBSET All_Of = (UP, Down) DEFINE DOWN AS x < 1, up AS x > 1')
    assert clause.variables == ("down", "Up")
    assert clause.subsets == (Subset("All_Of", ("Up", "down")),)
    assert [definition.variable for definition in clause.definitions] == ["down", "Up"]


def test_a_whole_clause() -> None:
    text = """
      PARTITION BY symbol, upper(place)  ORDER BY ts DESC NULLS LAST, id
      MEASURES FIRST(down.ts) AS fell, CAST(LAST(up.price, 1) AS int) AS `to price`,
               count(down.*) AS days, MATCH_NUMBER() AS n
      ALL ROWS PER MATCH OMIT EMPTY MATCHES
      AFTER MATCH SKIP TO FIRST both
      PATTERN (start down+ up+)
      SUBSET both = (down, up)
      DEFINE down AS price < PREV(price), up AS CASE WHEN one THEN price END > PREV(price) AND pattern = (3)
    """
    assert parse_clause(text) == Clause(
        text=text,
        partition_by=(SqlText("symbol"), SqlText("upper(place)")),
        order_by=(SqlText("ts DESC NULLS LAST"), SqlText("id")),
        measures=(
            Measure("fell", SqlText("FIRST(down.ts)")),
            Measure("to price", SqlText("CAST(LAST(up.price, 1) AS int)")),
            Measure("days", SqlText("count(down.*)")),
            Measure("n", SqlText("MATCH_NUMBER()")),
        ),
        all_rows=True,
        rows="OMIT EMPTY MATCHES",
        skip=Skip("TO FIRST", "both"),
        pattern=then(
            Variable(name="start"),
            quantified(Variable(name="down"), 1, None),
            quantified(Variable(name="up"), 1, None),
        ),
        variables=("start", "down", "up"),
        subsets=(Subset("both", ("down", "up")),),
        definitions=(
            Definition("down", SqlText("price < PREV(price)")),
            Definition("up", SqlText("CASE WHEN one THEN price END > PREV(price) AND pattern = (3)")),
        ),
    )


def test_expressions_say_where_they_stand() -> None:
    text = "MEASURES  a . x  AS m PATTERN (a) DEFINE a AS ( x = ',' )"
    clause = parse_clause(text)
    for part in (clause.measures[0].expression, clause.definitions[0].condition):
        assert text[part.span.start : part.span.end] == part.text
    assert [part.text for part in (clause.measures[0].expression, clause.definitions[0].condition)] == [
        "a . x",
        "( x = ',' )",
    ]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("", (False, "SHOW EMPTY MATCHES")),
        ("ONE ROW PER MATCH", (False, "SHOW EMPTY MATCHES")),
        ("all rows per match", (True, "SHOW EMPTY MATCHES")),
        ("ALL ROWS PER MATCH SHOW EMPTY MATCHES", (True, "SHOW EMPTY MATCHES")),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", (True, "OMIT EMPTY MATCHES")),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", (True, "WITH UNMATCHED ROWS")),
    ],
)
def test_rows_per_match(written: str, wanted: tuple[bool, str]) -> None:
    clause = parse_clause(f"MEASURES a.x AS x {written} PATTERN (a)")
    assert (clause.all_rows, clause.rows) == wanted
    assert [measure.expression.text for measure in clause.measures] == ["a.x"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("", Skip("PAST LAST ROW")),
        ("AFTER MATCH SKIP PAST LAST ROW", Skip("PAST LAST ROW")),
        ("AFTER MATCH SKIP TO NEXT ROW", Skip("TO NEXT ROW")),
        ("AFTER MATCH SKIP TO FIRST a", Skip("TO FIRST", "a")),
        ("AFTER MATCH SKIP TO LAST A", Skip("TO LAST", "a")),
        ("AFTER MATCH SKIP TO s", Skip("TO LAST", "s")),
        ("AFTER MATCH SKIP TO last", Skip("TO LAST", "last")),
    ],
)
def test_after_match(written: str, wanted: Skip) -> None:
    assert parse_clause(f"{written} PATTERN (a last) SUBSET s = (a)").skip == wanted


def test_words_of_the_clause_may_name_columns() -> None:
    text = "MEASURES a.pattern AS pattern, one + a.all AS define, measures AS m ONE ROW PER MATCH PATTERN (a)"
    assert [(made.expression.text, made.name) for made in parse_clause(text).measures] == [
        ("a.pattern", "pattern"),
        ("one + a.all", "define"),
        ("measures", "m"),
    ]


def test_a_function_of_another_database_may_be_called_like_navigation() -> None:
    text = "PARTITION BY first ORDER BY tools.next(x), last DESC PATTERN (a)"
    assert [term.text for term in parse_clause(text).order_by] == ["tools.next(x)", "last DESC"]


def test_navigation_and_aggregates_that_the_standard_has() -> None:
    parse_clause(
        """MEASURES PREV(LAST(a.x + a.y, 2), 3) AS p, FINAL LAST(a.x) - RUNNING sum(a.x * 2) AS q, CLASSIFIER(s) AS c,
        NEXT(x) + PREV(b.x) AS r, sum(a.x) / sum(b.x) AS t, addr.city AS u, final AS v, s.x AS w
        PATTERN (a b) SUBSET s = (a, b) DEFINE b AS RUNNING count(*) < 3 AND FIRST(a.x, 1) > 2"""
    )


WRONG: list[tuple[type[PatternError], str, str, str]] = [
    # (error, clause, what is underlined, what the message says)
    (PatternSyntaxError, "PATTERN (A B", "(", "never closed"),
    (PatternSyntaxError, "PATTERN (A))", ")", "expected SUBSET, DEFINE or the end"),
    (PatternSyntaxError, "PATTERN A", "A", "expected '(' after PATTERN, found 'A'"),
    (PatternSyntaxError, "PATTERN (A |)", ")", "expected a variable"),
    (PatternSyntaxError, "PATTERN (+ A)", "+", "stands behind what it repeats"),
    (PatternSyntaxError, "PATTERN (A**)", "*", "(A+)*"),
    (PatternSyntaxError, "PATTERN (A+{2})", "{", "(A+)*"),
    (PatternSyntaxError, "PATTERN (A{0})", "{0}", "count to 1 or more"),
    (PatternSyntaxError, "PATTERN (A{5,2})", "{5,2}", "smaller count first"),
    (PatternSyntaxError, "PATTERN (A{,0})", "{,0}", "count to 1 or more"),
    (PatternSyntaxError, "PATTERN (A{,x})", "x", "a count after ','"),
    (PatternSyntaxError, "PATTERN (A{x})", "x", "a count or ','"),
    (PatternSyntaxError, "PATTERN (A{1.5})", "1.5", "a count or ','"),
    (PatternSyntaxError, "PATTERN (A{1000001})", "1000001", "1,000,000 at most"),
    (PatternSyntaxError, "PATTERN (A{2)", ")", "'}' after the count"),
    (PatternSyntaxError, "PATTERN (A, B)", ",", "'|' or ')'"),
    (PatternSyntaxError, "PATTERN (A ; B)", ";", "expected a variable"),
    (PatternSyntaxError, "PATTERN ({- A)", ")", "expected '-}'"),
    (PatternSyntaxError, "PATTERN ({- A", "{-", "never closed"),
    (PatternSyntaxError, "PATTERN (A -})", "-}", "closes no '{-'"),
    (PatternSyntaxError, "PATTERN (PERMUTE())", ")", "expected a variable"),
    (PatternSyntaxError, 'PATTERN ("")', '""', "cannot be empty"),
    (PatternSyntaxError, "PATTERN ('A')", "'A'", "found 'A'"),
    (PatternSyntaxError, "PATTERN (`A)", "`", "never closed"),
    (PatternSyntaxError, "PATTERN (A /* B)", "/*", "never closed"),
    (PatternSyntaxError, f"PATTERN ({'(' * 52}A{')' * 52})", "(", "deeper than 50"),
    (PatternSyntaxError, "", " ", "expected PATTERN"),
    (PatternSyntaxError, "MEASURES a.x AS x", " ", "expected PATTERN"),
    (PatternSyntaxError, "DEFINE a AS x PATTERN (a)", "DEFINE", "cannot stand here"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a AS x MEASURES a.x AS x", "MEASURES", "in this order: PARTITION BY"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a AS x > 1 SUBSET s = (a)", "SUBSET", "cannot stand here"),
    (PatternSyntaxError, "PARTITION BY y, NEXT(x) PATTERN (a)", "NEXT", "NEXT looks at a match"),
    (PatternSyntaxError, "ORDER BY y + match_number() DESC PATTERN (a)", "match_number", "ORDER BY come before it"),
    (PatternSyntaxError, "MEASURES a.x PATTERN (a)", "a.x", "needs a name"),
    (PatternSyntaxError, "MEASURES a.x AS x, CAST(a.x AS int) PATTERN (a)", "CAST(a.x AS int)", "needs a name"),
    (PatternSyntaxError, "MEASURES AS x PATTERN (a)", "AS", "expected an expression"),
    (PatternSyntaxError, "MEASURES (a.x AS x PATTERN (a)", "(", "never closed"),
    (PatternSyntaxError, "MEASURES a.x] AS x PATTERN (a)", "]", "closes nothing"),
    (PatternSyntaxError, "MEASURES a.x AS x, 1 AS X PATTERN (a)", "X", "measure 'X' stands here twice"),
    (PatternSyntaxError, "ONE ROW MATCH PATTERN (a)", "MATCH", "expected PER MATCH"),
    (PatternSyntaxError, "ONE ROW PER MATCH SHOW EMPTY MATCHES PATTERN (a)", "SHOW", "belongs to ALL ROWS"),
    (PatternSyntaxError, "ALL ROWS PER MATCH OMIT MATCHES PATTERN (a)", "MATCHES", "expected EMPTY MATCHES"),
    (PatternSyntaxError, "AFTER MATCH TO a PATTERN (a)", "TO", "expected SKIP"),
    (PatternSyntaxError, "AFTER MATCH SKIP FIRST a PATTERN (a)", "FIRST", "PAST LAST ROW, TO NEXT ROW"),
    (PatternSyntaxError, "AFTER MATCH SKIP TO b PATTERN (a)", "b", "'b' is no variable of the pattern; there are: a"),
    (PatternSyntaxError, "PATTERN (a) SUBSET s = (a, b)", "b", "'b' is no variable of the pattern"),
    (PatternSyntaxError, "PATTERN (a) SUBSET s = (a), t = (s)", "s", "'s' is no variable of the pattern"),
    (PatternSyntaxError, "PATTERN (a b) SUBSET s = (a), S = (b)", "S", "subset 'S' stands here twice"),
    (PatternSyntaxError, "PATTERN (a b) SUBSET b = (a)", "b", "give the subset another name"),
    (PatternSyntaxError, "PATTERN (a b) SUBSET s = (a, A)", "A", "'A' stands here twice"),
    (PatternSyntaxError, "PATTERN (a) SUBSET s (a)", "(", "expected '='"),
    (PatternSyntaxError, "PATTERN (a) DEFINE b AS x > 1", "b", "'b' is no variable of the pattern; there are: a"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a AS x > 1, A AS x < 1", "A", "variable 'A' stands here twice"),
    (PatternSyntaxError, "PATTERN (a) SUBSET s = (a) DEFINE s AS x", "s", "has no condition of its own"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a AS", " ", "expected an expression, found the end"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a x > 1", "x", "expected AS"),
    (PatternSyntaxError, "PATTERN (a) DEFINE a AS x > 1,", " ", "expected a definition"),
    (
        PatternSyntaxError,
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a {- b -})",
        "{- b -}",
        "cannot stand with ALL ROWS PER MATCH WITH UNMATCHED ROWS",
    ),
    (UnsupportedOperatorError, "INITIAL PATTERN (a)", "INITIAL", "leave it out"),
    (UnsupportedOperatorError, "AFTER MATCH SKIP TO NEXT ROW SEEK PATTERN (a)", "SEEK", "windows"),
    (UnsupportedOperatorError, "PATTERN (a) DEFINE a AS SELECT 1", "SELECT", "in parentheses of its own"),
    (PredicateError, "PATTERN (a) DEFINE a AS abs(SELECT 1) = x", "abs(SELECT", "of its own: abs((SELECT …))"),
    (
        PredicateError,
        "PATTERN (a) DEFINE a AS x > (SELECT y FROM t WHERE z = a.z)",
        "a",
        "'a', a variable of the pattern",
    ),
    (PredicateError, "PATTERN (a) DEFINE a AS x > (SELECT PREV(y) FROM t)", "PREV", "computed before the match"),
    (PredicateError, "MEASURES (SELECT CLASSIFIER()) AS x PATTERN (a)", "CLASSIFIER", "computed before the match"),
    (PredicateError, "PATTERN (a) DEFINE a AS x AND IN (SELECT 1)", "IN", "IN compares something, which is missing"),
    (
        UnsupportedOperatorError,
        "PATTERN (a) DEFINE a AS FIRST(x) IN (SELECT 1)",
        "FIRST",
        "as in LAST(v.x IN (SELECT …))",
    ),
    (
        UnsupportedOperatorError,
        "PATTERN (a) DEFINE a AS sum(x) NOT IN (SELECT 1)",
        "sum",
        "as in LAST(v.x IN (SELECT …))",
    ),
    (
        UnsupportedOperatorError,
        "PATTERN (a) DEFINE a AS (SELECT 1) IN (SELECT 2)",
        "(SELECT 1)",
        "no subquery of its own",
    ),
    (UnsupportedOperatorError, "MEASURES lag(x) OVER (ORDER BY y) AS m PATTERN (a)", "OVER", "a window function"),
    (UnsupportedOperatorError, "PATTERN (a) DEFINE a AS x < LAG(x)", "LAG", "LAG is not known here; write PREV(price)"),
    (
        UnsupportedOperatorError,
        "MEASURES MATCH_SEQUENCE_NUMBER() AS n PATTERN (a)",
        "MATCH_SEQUENCE_NUMBER",
        "count(*)",
    ),
    (UnsupportedOperatorError, "PATTERN (a b) WITHIN INTERVAL '1' HOUR", "WITHIN", "compare times in the definition"),
    (PredicateError, "MEASURES CLASSIFIER(b) AS c PATTERN (a)", "b", "'b' is no variable of the pattern and no subset"),
    (PredicateError, "MEASURES count(b.*) AS c PATTERN (a)", "b", "'b' is no variable"),
    (PredicateError, "PATTERN (a) DEFINE a AS FINAL LAST(a.x) > 1", "FINAL", "always RUNNING"),
    (PredicateError, "MEASURES FINAL PREV(a.x) AS p PATTERN (a)", "FINAL PREV", "not before PREV"),
    (PredicateError, "MEASURES sum(1 + count(a.x)) AS s PATTERN (a)", "count", "COUNT stands in SUM"),
    (PredicateError, "PATTERN (a) DEFINE a AS max((min(x))) > 1", "min", "cannot be nested"),
    (PredicateError, "MEASURES LAST(sum(a.x)) AS s PATTERN (a)", "sum", "which looks at one row"),
    (PredicateError, "MEASURES sum(LAST(a.x)) AS s PATTERN (a)", "LAST", "LAST cannot stand in SUM"),
    (PredicateError, "PATTERN (a) DEFINE a AS max(PREV(x)) > 1", "PREV", "PREV cannot stand in MAX"),
    (PredicateError, "MEASURES FIRST(PREV(a.x)) AS s PATTERN (a)", "PREV", "write PREV(LAST(v.x, 1), 2)"),
    (PredicateError, "MEASURES PREV(PREV(a.x)) AS s PATTERN (a)", "PREV", "PREV(x, 2)"),
    (PredicateError, "MEASURES LAST(FIRST(a.x)) AS s PATTERN (a)", "FIRST", "LAST(v.x, 1)"),
    (PredicateError, "PATTERN (a b) DEFINE b AS NEXT(a.x + b.x) > 1", "b.x", "NEXT looks at rows of 'a' and of 'b'"),
    (PredicateError, "PATTERN (a b) DEFINE b AS sum(a.x - b.x) > 1", "b.x", "all of its argument must be of one"),
]


@pytest.mark.parametrize(("kind", "text", "place", "says"), WRONG, ids=[text for _, text, _, _ in WRONG])
def test_what_is_wrong_and_where(kind: type[PatternError], text: str, place: str, says: str) -> None:
    with pytest.raises(PatternError, match=re.escape(says)) as error:
        parse_clause(text)
    assert type(error.value) is kind
    assert (text[error.value.start : error.value.end] or " ") == place
    line, marks = error.value.render().splitlines()[-2:]
    assert "^" in marks
    assert len(marks) <= len(line) + 1


def test_the_caret_stands_below_the_place_in_its_line() -> None:
    with pytest.raises(PatternSyntaxError) as error:
        parse_clause("PATTERN (a b)\nDEFINE a AS x > 1,\n  c AS x < 1")
    assert str(error.value).splitlines() == [
        "line 3, column 3: 'c' is no variable of the pattern; there are: a, b",
        "    c AS x < 1",
        "    ^",
    ]


def test_an_unknown_prefix_is_an_error_once_the_columns_are_known() -> None:
    text = "PATTERN (a) DEFINE a AS b.x > addr.zip"
    parse_clause(text)
    parse_clause(text, ["B", "addr"])
    with pytest.raises(PredicateError, match="'b' is no variable of the pattern and no subset; there are: a"):
        parse_clause(text, ["addr", "x"])
