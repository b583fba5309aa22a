"""Predicates are judged as SQL judges them: NULL, NaN, division by zero, text beside numbers, times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from naive.predicate_trees import INF, NAN, TYPES, rows, stored, tree
from naive.predicates import judge

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Call, Expression
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, bind, evaluate, parse_predicate, value_of
from patternlake.udfs.language.predicate.references import Reference


def column(values: list[Any], type_: str) -> Column:
    filler: Any = {"string": "", "boolean": False}.get(type_, 0)
    raw = [filler if value is None else stored(value) for value in values]
    known = np.array([value is not None for value in values], dtype=bool)
    return Column(np.array(raw, dtype=object if type_ == "string" else None), known, type_)


def resolver(table: list[dict[str, Any]]) -> Callable[[Reference], Column]:
    return lambda reference: column([row[reference.column] for row in table], TYPES[reference.column])


def check_against_rows(root: Expression, table: list[dict[str, Any]]) -> None:
    predicate = Predicate(root)
    truth = evaluate(predicate, resolver(table))
    true = np.broadcast_to(truth.true, len(table)).tolist()
    known = np.broadcast_to(truth.known, len(table)).tolist()
    for at, row in enumerate(table):
        expected = judge(root, {Reference(None, None, name): value for name, value in row.items()})
        assert (true[at] if known[at] else None) == expected, (predicate.sql(), row)
        assert known[at] or not true[at]


@settings(max_examples=600)
@given(tree("boolean", 3), rows())
def test_a_vectorised_predicate_agrees_with_a_row_by_row_judge(root: Expression, table: list[dict[str, Any]]) -> None:
    check_against_rows(root, table)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(tree("boolean", 4), rows())
def test_deeper_predicates_agree_with_the_row_by_row_judge(root: Expression, table: list[dict[str, Any]]) -> None:
    check_against_rows(root, table)


@settings(max_examples=100)
@given(rows(), rows())
def test_columns_of_shape_n_1_and_1_m_judge_all_pairs(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    text = (
        "a.x > b.x * 2 AND (a.s = b.s OR a.s LIKE 'a%') AND COALESCE(a.n, b.n) IS NOT NULL "
        "OR a.time - b.time < 5 MIN OR CONCAT(a.s, b.u) = 'ab' OR SUBSTRING(a.s, b.n) = 'b' OR GREATEST(a.y, b.y) = 1"
    )
    predicate = parse_predicate(text)

    def resolve(reference: Reference) -> Column:
        of_a = reference.operand == "a"
        flat = resolver(left if of_a else right)(reference)
        shape = (-1, 1) if of_a else (1, -1)
        return Column(flat.values.reshape(shape), flat.known.reshape(shape), flat.type)

    truth = evaluate(predicate, resolve)
    assert truth.true.shape == truth.known.shape == (len(left), len(right))
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            row = {Reference("a", None, name): value for name, value in a.items()}
            row |= {Reference("b", None, name): value for name, value in b.items()}
            assert (bool(truth.true[i, j]) if truth.known[i, j] else None) == judge(predicate.root, row)


def truth_of(text: str, **values: Any) -> bool | None:
    """Truth of a predicate for one row; types from the values, NULL columns are doubles."""
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string", dt.datetime: "timestamp", dt.date: "date"}
    types = {name: kinds.get(type(value), "double") for name, value in values.items()}
    scope = Scope(attributes={name: kind for name, kind in types.items() if name != "time"})
    predicate = bind(parse_predicate(text), scope)
    truth = evaluate(predicate, lambda reference: column([values[reference.column]], types[reference.column]))
    return bool(np.all(truth.true)) if np.all(truth.known) else None


BY_HAND: list[tuple[str, dict[str, Any], bool | None]] = [
    # Three-valued logic
    ("x > 1", {"x": None}, None),
    ("x > 1 OR TRUE", {"x": None}, True),
    ("x > 1 AND FALSE", {"x": None}, False),
    ("x > 1 AND TRUE", {"x": None}, None),
    ("NOT x > 1", {"x": None}, None),
    ("x IS NULL", {"x": None}, True),
    ("x <=> NULL", {"x": None}, True),
    ("x = NULL", {"x": 1.0}, None),
    ("x IN (1, NULL)", {"x": 1.0}, True),
    ("x IN (1, NULL)", {"x": 2.0}, None),
    ("x NOT IN (1, NULL)", {"x": 2.0}, None),
    ("x BETWEEN 1 AND NULL", {"x": 0.0}, False),
    ("(x > 1) IS NOT TRUE", {"x": None}, True),
    ("CASE WHEN x > 1 THEN TRUE ELSE FALSE END", {"x": None}, False),
    # NaN and zero
    ("x = x", {"x": NAN}, True),
    ("x > 1e308", {"x": NAN}, True),
    ("x < y", {"x": INF, "y": NAN}, True),
    ("x <> x", {"x": NAN}, False),
    ("x = 0.0", {"x": -0.0}, True),
    ("GREATEST(x, 1.0) = x", {"x": NAN}, True),
    ("LEAST(x, 1.0) = 1", {"x": None}, True),
    ("1 / x IS NULL", {"x": 0.0}, True),
    ("n % 0 IS NULL", {"n": 5}, True),
    ("-7 % n = -1", {"n": 3}, True),
    ("7 % n = 1", {"n": -3}, True),
    ("n / 2 = 3.5", {"n": 7}, True),
    ("n + 1 < 0", {"n": 2**63 - 1}, True),
    # Functions
    ("ROUND(x, 2) = 2.68", {"x": 2.675}, True),
    ("ROUND(x) = 3", {"x": 2.5}, True),
    ("ROUND(x) = -3", {"x": -2.5}, True),
    ("ROUND(n, -1) = 20", {"n": 15}, True),
    ("ROUND(x) = 0", {"x": 0.49999999999999994}, True),
    ("FLOOR(x) = -3 AND CEIL(x) = -2", {"x": -2.5}, True),
    ("FLOOR(x) = 0", {"x": NAN}, True),
    ("SQRT(x) = 3 AND SQRT(-x) = CAST('NaN' AS DOUBLE)", {"x": 9.0}, True),
    ("LN(x) IS NULL", {"x": 0.0}, True),
    ("LOG(x) IS NULL", {"x": -1.0}, True),
    ("ABS(LOG(2, x) - 3) < 1e-9", {"x": 8.0}, True),
    ("POWER(x, 10) = 1024", {"x": 2.0}, True),
    ("POWER(1, x) > 2", {"x": NAN}, True),
    ("ABS(EXP(x) - 2.718281828459045) < 1e-12", {"x": 1.0}, True),
    ("SUBSTRING(s, 2, 2) = 'bc' AND SUBSTRING(s, -2) = 'cd' AND SUBSTR(s, 0, 1) = 'a'", {"s": "abcd"}, True),
    ("SUBSTRING(s, -5, 3) = 'ab'", {"s": "abcd"}, True),
    ("LENGTH(s) = 2 AND UPPER(s) = 'ÄB' AND s || 1 = 'äb1'", {"s": "äb"}, True),
    ("CONCAT(s, NULL) IS NULL", {"s": "a"}, True),
    ("NULLIF(n, 3) IS NULL AND NULLIF(n, 4) = 3", {"n": 3}, True),
    ("s LIKE 'a_%' AND s NOT LIKE 'b%' AND s LIKE '10!%%' ESCAPE '!' IS NULL", {"s": None}, None),
    ("s LIKE 'a\\%c'", {"s": "a%c"}, True),
    ("s LIKE 'a\\%c'", {"s": "abc"}, False),
    ("s LIKE 'a%c'", {"s": "a\nc"}, True),
    ("s = '\\ud83d\\ude00' AND s = '\\U0001f600' AND LENGTH(s) = 1 AND '\\101' = 'A'", {"s": "😀"}, True),
    # Text beside other types
    ("n = 2 AND s = n AND s = 2", {"s": "2.8", "n": 2}, True),
    ("s = 9007199254740992", {"s": "9007199254740993"}, False),
    ("s > 5", {"s": "10"}, True),
    ("s > 5", {"s": "ten"}, None),
    ("s > '5'", {"s": "10"}, False),
    ("s = 2.8", {"s": " 2.8 "}, True),
    ("s = TRUE", {"s": "yes"}, True),
    ("s = TIMESTAMP '2013-01-01 10:00:00'", {"s": "2013-01-01T10:00:00Z"}, True),
    # Times
    ("time > '2013-01-01'", {"time": dt.datetime(2013, 1, 1, 0, 0, 1)}, True),
    ("time = DATE '2013-01-01'", {"time": dt.datetime(2013, 1, 1)}, True),
    ("time - TIMESTAMP '2013-01-01 00:00:00' < 5 MIN", {"time": dt.datetime(2013, 1, 1, 0, 4, 59, 999999)}, True),
    ("time - TIMESTAMP '2013-01-01 00:00:00' < 5 MIN", {"time": dt.datetime(2013, 1, 1, 0, 5)}, False),
    ("time - 1.5 hours = TIMESTAMP '2012-12-31 22:30:00'", {"time": dt.datetime(2013, 1, 1)}, True),
    ("(time - DATE '2013-01-01') * 2 = 2day", {"time": dt.datetime(2013, 1, 2)}, True),
    ("(time - DATE '2013-01-01') / 0 IS NULL", {"time": dt.datetime(2013, 1, 2)}, True),
    ("d + 1 DAY = '2013-01-02 00:00:00'", {"d": dt.date(2013, 1, 1)}, True),
    ("-(5 MIN) < 0 SEC", {}, True),
    # Casts
    ("CAST(x AS INT) = -2", {"x": -2.9}, True),
    ("CAST(x AS BIGINT) = 9223372036854775807", {"x": 1e300}, True),
    ("CAST(n AS TINYINT) = 44", {"n": 300}, True),
    ("CAST(s AS TINYINT) IS NULL", {"s": "300"}, True),
    ("CAST(s AS BIGINT) = 12", {"s": "12.9"}, True),
    ("CAST(s AS BIGINT) = 0", {"s": "."}, True),
    ("CAST(s AS DOUBLE) IS NULL", {"s": "1_0"}, True),
    ("CAST(s AS DECIMAL(5,2)) = 2.35", {"s": "2.345"}, True),
    ("CAST(s AS DECIMAL(3,2)) IS NULL", {"s": "10"}, True),
    ("CAST(x AS FLOAT) > 0.1", {"x": 0.1}, True),
    ("CAST(x AS STRING) = '1.0E10' AND CAST(2 AS STRING) = '2'", {"x": 1e10}, True),
    ("CAST(f AS INT) = 1 AND CAST(f AS STRING) = 'true' AND CAST(0 AS BOOLEAN) = FALSE", {"f": True}, True),
    (
        "CAST(time AS DATE) = '1969-12-31' AND CAST(time AS BIGINT) = -2",
        {"time": dt.datetime(1969, 12, 31, 23, 59, 58, 500_000)},
        True,
    ),
    ("CAST(time AS STRING) = '2013-01-01 00:00:00.5'", {"time": dt.datetime(2013, 1, 1, 0, 0, 0, 500_000)}, True),
    (
        "CAST(time AS TINYINT) = -1 AND CAST(time AS SMALLINT) = -1",
        {"time": dt.datetime(1969, 12, 31, 23, 59, 59)},
        True,
    ),
    ("CAST(time AS TINYINT) IS NULL AND CAST(time AS INT) = 300", {"time": dt.datetime(1970, 1, 1, 0, 5)}, True),
    ("CAST(CAST(n AS TIMESTAMP) AS STRING) = '+294247-01-10 04:00:54.775807'", {"n": 2**63 - 1}, True),
    ("CAST(CAST(n AS TIMESTAMP) AS STRING) = '-290308-12-21 19:59:05.224192'", {"n": -(2**63)}, True),
    ("CAST(CAST(CAST(n AS TIMESTAMP) AS DATE) AS STRING) = '+10000-01-01'", {"n": 253_402_300_800}, True),
    ("CAST(CAST(n AS TIMESTAMP) AS DATE) IS NULL", {"n": -(2**63)}, True),
    ("CAST(x AS STRING) = '4.9E-324'", {"x": 5e-324}, True),
    ("ROUND(n, -1) = 9223372036854775806", {"n": -(2**63)}, True),
    ("CAST(s AS TIMESTAMP) = TIMESTAMP '2013-01-01 09:30:00'", {"s": "2013-1-1 10:30:00+01:00"}, True),
    ("CAST(s AS DATE) IS NULL", {"s": "2013-02-30"}, True),
]


@pytest.mark.parametrize(("text", "values", "expected"), BY_HAND, ids=[case[0] for case in BY_HAND])
def test_worked_answers(text: str, values: dict[str, Any], expected: bool | None) -> None:
    assert truth_of(text, **values) is expected


def test_texts_that_differ_behind_a_nul_are_distinct() -> None:
    texts = [{"s": text} for text in ("a", "a\0", "a\0b", "a")]
    for text, wanted in (
        ("LENGTH(s) = 1", [True, False, False, True]),
        ("s LIKE 'a'", [True, False, False, True]),
        ("s LIKE '%b'", [False, False, True, False]),
        ("UPPER(s) = 'A'", [True, False, False, True]),
        ("SUBSTRING(s, 3) = 'b'", [False, False, True, False]),
        ("s IN ('a', 'c')", [True, False, False, True]),
        ("s = 'a\\0'", [False, True, False, False]),
    ):
        truth = evaluate(parse_predicate(text), resolver(texts))
        assert np.broadcast_to(truth.true, 4).tolist() == wanted, text


def test_both_zeros_are_written_as_what_they_are() -> None:
    truth = evaluate(parse_predicate("CAST(x AS STRING) = '-0.0'"), resolver([{"x": 0.0}, {"x": -0.0}]))
    assert truth.true.tolist() == [False, True]


def test_a_predicate_without_columns_has_a_truth_of_no_dimension() -> None:
    truth = evaluate(parse_predicate("TRUE"), resolver([]))
    assert truth.true.shape == ()
    assert truth.true
    assert truth.known


def test_no_rows_give_no_truths() -> None:
    empty = parse_predicate("x > 1 AND s LIKE 'a%' AND CAST(s AS INT) IN (1, 2) AND ROUND(x, 2) = 1 AND LENGTH(u) > n")
    assert evaluate(empty, resolver([])).true.shape == (0,)


def test_each_column_is_fetched_once() -> None:
    asked = []

    def resolve(reference: Reference) -> Column:
        asked.append(reference.column)
        return column([1.0], "double")

    evaluate(parse_predicate("x > 1 AND x < 2 OR y = x"), resolve)
    assert asked == ["x", "y"]


def test_what_stands_in_a_null_slot_does_not_matter() -> None:
    values = np.array([None, "a"], dtype=object)
    truth = evaluate(parse_predicate("s < 'b'"), lambda _: Column(values, np.array([False, True])))
    assert truth.true.tolist() == [False, True]
    assert truth.known.tolist() == [False, True]


def test_a_part_of_a_predicate_has_a_value() -> None:
    root = parse_predicate("b.x > a.x * 2 + 1").root
    assert isinstance(root, Call)
    values = value_of(root.arguments[1], lambda _: column([1.0, None], "double"))
    assert values.type == "double"
    assert values.values[0] == 3.0
    assert values.known.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("x > ratio", {"ratio": "2.8"}, True),
        ("n < ratio", {"ratio": "2.8"}, True),
        ("COALESCE(n, ratio) + ratio = 4.8", {"ratio": "2.8"}, True),
        ("s = code", {"code": "007"}, True),
        ("time - start < gap", {"start": "2013-01-01", "gap": "5 MIN"}, True),
        ("ratio * 2 = 5.6", {"ratio": "2.8"}, True),
        ("s LIKE pattern", {"pattern": "0%"}, True),
        ("low < high", {"low": "9", "high": "10"}, True),
        ("x IN (a, b)", {"a": "1", "b": "3"}, True),
        ("flag", {"flag": "true"}, True),
        ("COALESCE(missing, x) = 3", {"missing": "3"}, True),
        ("x > ratio OR x <= ratio", {"ratio": None}, False),
        ("ratio IS NULL AND COALESCE(ratio, x) = 3", {"ratio": None}, True),
        ("s LIKE pattern OR flag", {"pattern": None, "flag": None}, False),
        ("time - start < gap", {"start": "2013-01-01", "gap": None}, False),
    ],
)
def test_a_parameter_takes_the_type_that_its_place_asks_for(
    text: str, parameters: dict[str, str | None], expected: bool
) -> None:
    table = {"x": 3.0, "n": 2, "s": "007", "time": dt.datetime(2013, 1, 1, 0, 4)}
    types = {"x": "double", "n": "bigint", "s": "string", "time": "timestamp"}
    scope = Scope(attributes={"x": "double", "n": "int", "s": "string"}, parameters=parameters)
    read = parse_predicate(text)

    def resolve(reference: Reference) -> Column:
        return column([table[reference.column]], types[reference.column])

    assert bool(np.all(evaluate(bind(read, scope), resolve).true)) is expected


def test_a_whole_match_equality_is_the_engines_to_judge() -> None:
    with pytest.raises(PredicateError, match=r"\[id\] must stand alone"):
        evaluate(parse_predicate("[id] AND x > 1"), resolver([{"x": 1.0}]))
