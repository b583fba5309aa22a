"""Predicates are read from SQL that patterns allow; everything else is refused at its place."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.predicate_trees import tree

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.expressions import EqualAlong, Expression, Field, Variable, join_parts
from patternlake.udfs.language.predicate.predicates import (
    Join,
    Predicate,
    Reference,
    Scope,
    bind,
    conjunction,
    names_admitted,
    parse_predicate,
)

CANONICAL = [
    ("a.x + 5 > -3 % 2 AND name IN ('a','b') OR NOT y", "a.x + 5 > -3 % 2 AND name IN ('a', 'b') OR NOT y"),
    ("b[i].x > b[ i - 1 ].x * 2.5", "b[i].x > b[i-1].x * 2.5"),
    ("[id] AND s[i].price > ratio * s[i - 1].price", "[id] AND s[i].price > ratio * s[i-1].price"),
    ("t(e[i]) - t(e[i-1]) < 5min", "e[i].time - e[i-1].time < 5 MINUTE"),
    ("t(s3) - t(s1) < 300 Seconds", "s3.time - s1.time < 5 MINUTE"),
    ("t3 - t(1) < 1.5 hours", "t3 - t(1) < 90 MINUTE"),
    ("t(a) - t(b) < 0 SEC", "a.time - b.time < 0 MICROSECOND"),
    ("id = $x AND col == 3", "id = $x AND col = 3"),
    ("x ≠ 1 ∧ y ≥ 2 ∨ z ≤ −3", "x <> 1 AND y >= 2 OR z <= -3"),
    ("x != 1 AND !y", "x <> 1 AND NOT y"),
    ("x BETWEEN 1 AND 2", "x >= 1 AND x <= 2"),
    ("x NOT BETWEEN 1 AND 2", "NOT (x >= 1 AND x <= 2)"),
    ("x IS NOT NULL", "NOT x IS NULL"),
    ("x IS NOT TRUE", "NOT x <=> TRUE"),
    ("x IS DISTINCT FROM y", "NOT x <=> y"),
    ("x NOT LIKE 'a!%' ESCAPE '!'", "NOT x LIKE 'a!%' ESCAPE '!'"),
    ("x || 'a' || y = 'b'", "CONCAT(x, 'a', y) = 'b'"),
    ("CASE x WHEN 1 THEN TRUE ELSE FALSE END", "CASE WHEN x = 1 THEN TRUE ELSE FALSE END"),
    ("CAST(x AS decimal( 10, 2 )) > 1e3", "CAST(x AS DECIMAL(10,2)) > 1000.0"),
    ("cast(x as Integer) > ceiling(pow(y, 2))", "CAST(x AS INT) > CEIL(POWER(y, 2))"),
    ("name = 'it''s'", "name = 'it''s'"),
    ('name = "it\'s"', "name = 'it''s'"),
    (r"name = 'a\'b\\c\u0041'", r"name = 'a''b\\cA'"),
    ("time > TIMESTAMP '2013-01-01T10:00:00+02:00'", "time > TIMESTAMP '2013-01-01 08:00:00'"),
    ("d = date '2013-1-1'", "d = DATE '2013-01-01'"),
    ("`we ird`.`x``y` > `end`", "`we ird`.`x``y` > `end`"),
    ("a.end = a.`select`", "a.end = a.select"),
    ("a - (b - c) - d > -(-1)", "a - (b - c) - d > -(-1)"),
    ("(a AND b) AND (c OR (d OR e))", "a AND b AND (c OR d OR e)"),
    ("(x = 1) = (y = 2)", "(x = 1) = (y = 2)"),
    ("x <=> (y < LENGTH(z))", "x <=> (y < LENGTH(z))"),
    ("((x) < y) IS DISTINCT FROM z", "NOT (x < y) <=> z"),
    ("x\n  >\t1", "x > 1"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL, ids=[text for text, _ in CANONICAL])
def test_canonical_text(text: str, canonical: str) -> None:
    assert parse_predicate(text).sql() == canonical
    assert parse_predicate(canonical) == parse_predicate(text)


NAMES = st.sampled_from(["a", "Name", "end", "we ird", "x`y", "A#2", "t", "t3", "within", "ä", "5", "null", "select"])
OTHER_LEAVES = st.one_of(
    st.builds(Reference, st.none() | NAMES, st.none(), NAMES),
    st.builds(Reference, NAMES, st.sampled_from(["i", "i-1"]), NAMES),
    st.builds(Reference, st.none(), st.none(), st.just("time"), st.integers(1, 20)),
).map(lambda reference: Field(reference=reference))
EXTRA = st.one_of(OTHER_LEAVES, st.builds(EqualAlong, attribute=NAMES), st.builds(Variable, name=st.just("x")))


@settings(max_examples=300)
@given(tree("boolean", 4), st.lists(EXTRA, max_size=2))
def test_reading_the_canonical_text_gives_the_same_predicate(root: Expression, extra: list[Expression]) -> None:
    predicate = Predicate(join_parts("AND", [root, *extra]))
    assert parse_predicate(predicate.sql()) == predicate


@settings(max_examples=300)
@given(st.text(alphabet="ab.x[i-1]()'\"`$ 5<>=!+*/%,|\\\nANDORTNI", max_size=25))
def test_no_text_gives_anything_but_a_predicate_or_an_error_with_a_place(text: str) -> None:
    predicate, refusal = read_or_refuse(text)
    if refusal is not None:
        assert 6 <= refusal.start <= 6 + len(text)
        assert str(refusal).startswith("line ")
    else:
        assert predicate is not None
        assert parse_predicate(predicate.sql()) == predicate


def read_or_refuse(text: str) -> tuple[Predicate | None, PredicateError | None]:
    try:
        return parse_predicate(text, query_text="WHERE " + text, offset=6), None
    except PredicateError as refusal:
        return None, refusal


def test_references_stand_in_text_order_each_once() -> None:
    predicate = parse_predicate("b[i].x > b[i-1].x AND a.y = x + a.y AND t(2) > t(a)")
    assert predicate.references == (
        Reference("b", "i", "x"),
        Reference("b", "i-1", "x"),
        Reference("a", None, "y"),
        Reference(None, None, "x"),
        Reference(None, None, "time", 2),
        Reference("a", None, "time"),
    )
    assert predicate.operands == {"a", "b"}


def test_conjuncts_are_the_parts_of_the_top_and_know_their_operands() -> None:
    predicate = parse_predicate("a.x > 1 AND (b.x > 2 OR a.x > 3) AND [id] AND col = $v AND $w = d")
    assert [part.sql() for part in predicate.conjuncts] == [
        "a.x > 1",
        "b.x > 2 OR a.x > 3",
        "[id]",
        "col = $v",
        "$w = d",
    ]
    assert [sorted(part.operands) for part in predicate.conjuncts] == [["a"], ["a", "b"], [], [], []]
    assert predicate.equal_along == ("id",)
    assert predicate.joins == (Join(Reference(None, None, "col"), "v"), Join(Reference(None, None, "d"), "w"))
    assert predicate.variables == ("v", "w")
    assert [part.sql() for part in predicate.ordinary] == ["a.x > 1", "b.x > 2 OR a.x > 3"]
    assert conjunction(predicate.conjuncts) == predicate
    assert conjunction([]).sql() == "TRUE"


REFUSED = [
    ("f(x) > 1", "f", "function f is not allowed in a predicate; allowed: ABS"),
    ("COUNT(*) > 1", "COUNT", "COUNT(*) names no operand; COUNT(b.position) counts the events of b"),
    ("MEDIAN(x) > 1", "MEDIAN", "function MEDIAN is not allowed"),
    ("x IN (SELECT 1)", "SELECT", "a subquery is not allowed"),
    ("EXISTS(SELECT 1)", "EXISTS", "a subquery is not allowed"),
    ("x RLIKE 'a'", "RLIKE", "unexpected RLIKE after an operand; allowed here: ="),
    ("INTERVAL 5 MINUTES < x", "INTERVAL", "write a duration as 5 MIN"),
    ("INTERVAL '5' MINUTES < x", "INTERVAL", "write a duration as 5 MIN"),
    ("x -- y", "--", "comments are not allowed"),
    ("x /* y */", "/*", "comments are not allowed"),
    ("x = ?", "?", "unexpected '?' in a predicate; a parameter is its bare name here, with its value in params =>"),
    ("x = :least", ":", "unexpected ':' in a predicate; a parameter is its bare name here"),
    ("x = ${least}", "$", "unexpected '$' in a predicate; a parameter is its bare name here"),
    ("x = ٣", "٣", "unexpected '٣' in a predicate"),
    ("x::int = 1", ":", "unexpected ':' in a predicate"),
    ("x = 1; DROP TABLE y", ";", "unexpected ';' in a predicate"),
    ("x = 1 AS y", "AS", "AS is allowed only in CAST"),
    ("CAST(x AS map) = 1", "map", "CAST to map is not allowed; types are string"),
    ("CAST(x AS decimal(40,2)) = 1", "decimal", "CAST to decimal(40,2) is not allowed"),
    ("CAST(x) = 1", "(", "CAST needs a type"),
    ("ROUND(x, 1, 2) = 1", "ROUND(x, 1, 2", "ROUND takes 1 to 2 arguments, not 3"),
    ("GREATEST(x) = 1", "GREATEST(x", "GREATEST takes 2 or more arguments, not 1"),
    ("1 < x < 5", "1 < x < 5", "comparisons cannot be chained"),
    ("x = y IN (1)", "x = y IN (1", "comparisons cannot be chained"),
    ("x <=> s LIKE 'a%'", "x <=> s LIKE 'a%'", "comparisons cannot be chained"),
    ("x <=> y < z", "x <=> y < z", "comparisons cannot be chained"),
    ("(x < y <=> z)", "x < y <=> z", "comparisons cannot be chained"),
    ("x <=> (y) < (z)", "x <=> (y) < (z", "comparisons cannot be chained"),
    ("x IS NOT DISTINCT FROM y IN (1)", "x IS NOT", "comparisons cannot be chained"),
    ("'a' || x + 1 = 'b'", "'a' || x + 1", "needs parentheses"),
    ("(x, y) = 1", "x, y", "this construct (Tuple) is not allowed"),
    ("LENGTH(DISTINCT x) = 1", "DISTINCT", "DISTINCT stands in COUNT alone"),
    ("b[i+1].x > 2", "[i+1]", "b[i+1] is not allowed; events of an operand are b[i] and b[i-1]"),
    ("x[1] > 2", "x[1]", "x[1] is an event; name an attribute of it"),
    ("b[i] > 2", "b[i]", "name an attribute of it, as in b[i].x"),
    ("a.b.c = 1", ".", "an attribute has no parts"),
    ("t() > x", ")", "t() takes an operand"),
    ("t(0) > x", "0", "operands are numbered from 1"),
    ("[a] OR x", "[a]", "[a] must stand alone"),
    ("[a, b]", ",", "several are [a] AND [b]"),
    ("x = 5 FOO", "FOO", "'FOO' is not a unit of time; units are MILLISECOND"),
    ("x = 5 EVENTS", "EVENTS", "events are counted in WITHIN only"),
    ("x > 1e999", "1e999", "out of the range of DOUBLE"),
    ("x < 99999999999 WEEKS", "99999999999 WEEKS", "does not fit 64 bits"),
    ("x < 1e999999 SEC", "1e999999 SEC", "does not fit 64 bits"),
    ("x = DATE '2013-02-30'", "'2013-02-30'", "is not a date; write DATE '2013-01-31'"),
    ("x = 'abc", "'", "no closing quote"),
    ("x LIKE 'a' ESCAPE 'bc'", "'bc'", "ESCAPE takes one character"),
    ("(x > 1", "(", "this parenthesis is not closed"),
    ("x > 1)", ")", "this parenthesis was never opened"),
    ("x > = 1", "=", "an operand is missing before it"),
    ("x + > 1", ">", "an operand is missing before it"),
    ("x IN 1", "1", "IN needs a list"),
    ("x IN ()", "x", "IN needs a list"),
    ("x BETWEEN 1", "1", "BETWEEN is written x BETWEEN low AND high"),
    ("x AND", "AND", "an operand is missing after AND"),
    ("CASE WHEN x THEN 1", "1", "CASE is written"),
    ("x IS 5", "x IS 5", "IS is followed by [NOT] NULL"),
    ("x y", "y", "unexpected y after an operand"),
    ("", "", "a predicate is missing here"),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_is_not_allowed_is_refused_at_its_place(text: str, place: str, message: str) -> None:
    before = "A ; B\nWHERE "
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text, query_text=before + text, offset=len(before))
    assert message in caught.value.message
    assert caught.value.line == 2
    assert caught.value.text[caught.value.start :].startswith(place)


def test_an_error_shows_the_line_with_a_caret_in_the_query() -> None:
    query = "A AS a ; B AS b\nWHERE a.x > foo(b.x)"
    with pytest.raises(PredicateError) as caught:
        parse_predicate("a.x > foo(b.x)", query_text=query, offset=query.index("a.x"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("line 2, column 13: function foo is not allowed in a predicate; allowed: ABS, CASE")
    assert lines[1:] == ["  WHERE a.x > foo(b.x)", "              ^^^"]


@pytest.mark.parametrize("text", ["(" * 3000 + "x" + ")" * 3000, "NOT " * 5000 + "x", "- " * 5000 + "x > 1"])
def test_nesting_without_end_is_an_error_not_a_crash(text: str) -> None:
    with pytest.raises(PredicateError, match="nested"):
        parse_predicate(text)


def test_a_predicate_can_be_sent_to_workers() -> None:
    predicate = bind(parse_predicate("a.x > ratio AND [s] AND CASE WHEN a.flag THEN 1 END = 1"), SCOPE)
    assert pickle.loads(pickle.dumps(predicate)) == predicate


def test_long_runs_of_and_are_read() -> None:
    assert len(parse_predicate(" AND ".join(["x > 1"] * 3000)).conjuncts) == 3000


SCOPE = Scope(
    operands=("a", "b", "c#2", "A", "A#2"),
    attributes={"x": "double", "s": "string", "flag": "boolean", "n": "int", "m": "map<string,string>"},
    parameters={"ratio": "2.8", "gap": "5 min", "word": "abc", "aeon": "150000000 DAYS"},
    key="tailnum",
)
EVENT = Scope(attributes=SCOPE.attributes, parameters=SCOPE.parameters, key="tailnum")
KEYED_BY_NAME = Scope(key="name")
"""Of a source whose column ``name`` is the key, which events call ``key``: ``name`` is the event's own."""
OF_TABLE = Scope(operands=("a",), measured={"seen": "timestamp_ntz", "tags": "array<string>"})
ONE = Scope(operands=("e",), attributes={**SCOPE.attributes, "t1": "double"})

BOUND = [
    (SCOPE, "t(2) - t1 < gap", "b.time - a.time < gap"),
    (SCOPE, "a.x > ratio * b.x", "a.x > ratio * b.x"),
    (SCOPE, "a.tailnum = b.key AND [tailnum]", "a.key = b.key AND [key]"),
    (SCOPE, "`c#2`.position > 3", "`c#2`.position > 3"),
    (SCOPE, "t(a) > '2013-01-01' AND a.probability > 0.5", "a.time > '2013-01-01' AND a.probability > 0.5"),
    (EVENT, "name = word AND tailnum = 'N1' AND x > 1", "name = word AND key = 'N1' AND x > 1"),
    (EVENT, "s = $v AND x > 1", "s = $v AND x > 1"),
    (KEYED_BY_NAME, "name = 'pay' AND key = 'home'", "name = 'pay' AND key = 'home'"),
    (replace(KEYED_BY_NAME, operands=("a",)), "a.name = 'pay' AND [name]", "a.name = 'pay' AND [name]"),
    (ONE, "x > 1 AND e[i].x > e[i-1].x", "e.x > 1 AND e[i].x > e[i-1].x"),
    (ONE, "t1 > 1 AND t(1) > DATE '2013-01-01'", "e.t1 > 1 AND e.time > DATE '2013-01-01'"),
]


@pytest.mark.parametrize(("scope", "text", "bound"), BOUND, ids=[text for _, text, _ in BOUND])
def test_names_are_resolved_in_their_scope(scope: Scope, text: str, bound: str) -> None:
    assert bind(parse_predicate(text), scope).sql() == bound


UNBOUND = [
    (SCOPE, "a.y > 1", "a.y", "y is not an attribute of the stream (in scope: x, s, flag, n, m, name, time"),
    (SCOPE, "a.flog", "a.flog", "did you mean flag?"),
    (SCOPE, "z.x > 1", "z.x", "z is not an operand of the pattern (operands: a, b, c#2"),
    (SCOPE, "A.x > 1", "A.x", "A stands for several operands; give each an alias, as in A AS first"),
    (SCOPE, "x > 1", "x", "x of which operand? write a.x; operands are a, b"),
    (SCOPE, "a.x > ratoi", "ratoi", "ratoi is not a parameter; did you mean ratio? (in scope: a, b"),
    (EVENT, "ratoi < x", "ratoi", "ratoi is not a column or a parameter; did you mean ratio?"),
    (EVENT, "Name = 'a'", "Name", "did you mean name?"),
    (EVENT, "s = App", "App", "; put text in single quotes: 'App'"),
    (EVENT, "t(1) > time", "t(1)", "there are no operands here"),
    (SCOPE, "t(9) > t(1)", "t(9)", "the pattern has 5 operands"),
    (SCOPE, "[zz]", "[zz]", "zz is not an attribute of the stream"),
    (SCOPE, "a.m = 1", "a.m", "attribute m is of type map<string,string>, which predicates cannot use"),
    (
        OF_TABLE,
        "a.seen > a.time",
        "a.seen",
        "; cast it, as in TABLE(SELECT *, CAST(seen AS TIMESTAMP) AS its_seen",
    ),
    (OF_TABLE, "a.tags = 'x'", "a.tags", "; cast it, as in TABLE(SELECT *, CAST(tags AS STRING) AS its_tags"),
    (SCOPE, "a.s + 1 > 2", "a.s", "+ takes numbers, this is a string; write CAST(… AS DOUBLE)"),
    (SCOPE, "a.x > 1 + word", "word", "+ takes numbers, this is a string"),
    (SCOPE, "a.x = 'abc'", "'abc'", "'abc' cannot be read as a double"),
    (SCOPE, "a.x = word", "word", "'abc' cannot be read as a double"),
    (SCOPE, "a.flag = 1", "a.flag = 1", "= cannot compare a boolean with a bigint"),
    (SCOPE, "t(a) - t(b) < aeon", "aeon", "this duration does not fit 64 bits of microseconds"),
    (SCOPE, "t(a) - t(b) > -3 * aeon", "aeon", "this duration does not fit 64 bits of microseconds"),
    (SCOPE, "t(a) - t(b) < 5", "t(a) - t(b) < 5", "give the number a unit, as in 5 MIN"),
    (SCOPE, "t(a) + 5 > t(b)", "t(a) + 5", "give the number a unit, as in 5 MIN"),
    (SCOPE, "t(a) + t(b) > 5 MIN", "t(a) + t(b", "+ cannot take a timestamp and a timestamp"),
    (SCOPE, "a.x AND b.flag", "a.x", "a predicate must be TRUE or FALSE, this is a double"),
    (SCOPE, "NOT a.x OR b.flag", "a.x", "an operand of NOT must be TRUE or FALSE"),
    (SCOPE, "COALESCE(a.x, 'a') = 1", "'a'", "COALESCE takes values of one type, this is a string beside a double"),
    (SCOPE, "a.s LIKE b.s", "b.s", "LIKE takes a constant pattern"),
    (SCOPE, "a.s LIKE 'a\\\\b'", "'a\\\\b'", "must be followed by %"),
    (SCOPE, "ROUND(a.x, a.n) = 1", "a.n", "ROUND takes a constant whole number of digits"),
    (SCOPE, "SUBSTRING(a.s, 1.5) = 'a'", "1.5", "SUBSTRING takes a whole number here"),
    (SCOPE, "CAST(t(a) - t(b) AS DOUBLE) > 1", "CAST", "a duration cannot be cast to DOUBLE"),
    (EVENT, "s > $v", "$v", "$v can only be joined to a column, as a conjunct of its own: col = $v"),
    (EVENT, "s = $v OR flag", "$v", "$v can only be joined to a column"),
]


@pytest.mark.parametrize(("scope", "text", "place", "message"), UNBOUND, ids=[text for _, text, _, _ in UNBOUND])
def test_what_does_not_fit_its_scope_is_an_error_with_its_place(
    scope: Scope, text: str, place: str, message: str
) -> None:
    predicate = parse_predicate(text, query_text="WHERE " + text, offset=6)
    with pytest.raises(PredicateError) as caught:
        bind(predicate, scope)
    assert message in caught.value.message
    assert caught.value.text[caught.value.start :].startswith(place)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name = 'late' AND x > 60", {"late"}),
        ("name IN ('a', 'b')", {"a", "b"}),
        ("'a' = name OR name IN ('b', NULL) AND x > 1", {"a", "b"}),
        ("name IN ('a', 'b') AND name IN ('b', 'c')", {"b"}),
        ("name = 'a' AND name = 'b'", set()),
        ("name = word", {"abc"}),
        ("name <=> 'a'", {"a"}),
        ("FALSE", set()),
        ("TRUE", None),
        ("x > 1", None),
        ("name = 'a' OR x > 1", None),
        ("NOT name = 'a'", None),
        ("name = s", None),
        ("name <> 'a'", None),
    ],
)
def test_names_that_a_definition_admits(text: str, names: set[str] | None) -> None:
    assert names_admitted(bind(parse_predicate(text), EVENT)) == names


def test_names_that_a_condition_on_one_operand_admits() -> None:
    predicate = parse_predicate("a.name = 'late' AND b.name = 'early'")
    assert names_admitted(predicate, "a") == {"late"}
    assert names_admitted(predicate) is None
