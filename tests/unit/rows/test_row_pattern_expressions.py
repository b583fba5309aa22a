"""From the expressions of a clause to Spark SQL and to the kernel's conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patternlake.udfs.errors import PatternError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.seen import CURRENT, FIRST, LAST, Seen
from patternlake.udfs.measures.translation import (
    AggregateAtom,
    ClassifierAtom,
    MatchNumberAtom,
    Measures,
    NavigationAtom,
    read_measures,
)
from patternlake.udfs.rows.condition_trees import KernelConditions
from patternlake.udfs.rows.conditions import Aggregate, Call, Classifier, Constant, Fetch, Label, MatchNumber, Value
from patternlake.udfs.rows.definitions import Definitions, read_definitions
from patternlake.udfs.rows.kernel_columns import encode_columns
from patternlake.udfs.rows.matches import match_rows
from patternlake.udfs.rows.query import compile_pattern

COLUMNS = {
    "price": "int",
    "rate": "double",
    "fee": "decimal(10,2)",
    "symbol": "string",
    "ts": "timestamp",
    "day": "date",
    "addr": "struct<city:string>",
    "xs": "array<int>",
}
LAST_A = Seen(LAST, ("a",))


def definitions(condition: str) -> Definitions:
    """Of ``b``, the last variable of a pattern."""
    return read_definitions(
        parse_clause(f"PATTERN (a+ b c?) SUBSET s = (a, b) DEFINE b AS {condition}", COLUMNS), COLUMNS
    )


def kernel(condition: str, types: Mapping[str, str] | None = None) -> KernelConditions:
    read = definitions(condition)
    return read.typed({sql: (types or {}).get(sql) or COLUMNS[sql] for sql in read.columns})


def measures(text: str, rows: str = "") -> Measures:
    return read_measures(
        parse_clause(f"MEASURES {text} AS m {rows} PATTERN (a+ b c?) SUBSET s = (a, b), every = (a, b, c)"), COLUMNS
    )


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("price < PREV(price)", "(price < lag(price, 1) OVER {window})"),
        ("b.price > NEXT(b.price + 1, 2)", "(price > lead(price + 1, 2) OVER {window})"),
        ("LAST(price) = PREV(LAST(s.price), 3)", "(price = lag(price, 3) OVER {window})"),
        ('"b"."price" > PREV("b".price)', "(`price` > lag(price, 1) OVER {window})"),
        ("prev(Price + 1, 0) > 1", "((Price + 1) > 1)"),
        (
            "price > 1 AND (b.symbol RLIKE 'AND' AND price BETWEEN 1 AND 2)",
            "(price > 1) AND (symbol RLIKE 'AND') AND (price BETWEEN 1 AND 2)",
        ),
        ("price = 1 OR price = 2 AND PREV(price) = 3", "(price = 1 OR price = 2 AND lag(price, 1) OVER {window} = 3)"),
        ("CASE WHEN price > 1 AND true THEN true END", "(CASE WHEN price > 1 AND true THEN true END)"),
        ("b.addr.city = 'LAST(a.x) {y}' -- PREV(x)", "(addr.city = 'LAST(a.x) {{y}}')"),
        ("exists(xs, x -> x > b.price) /* FIRST(y) */", "(exists(xs, x -> x > price))"),
        ("exists(xs, x -> x.price > b.price)", "(exists(xs, x -> x.price > price))"),
        ("aggregate(xs, 0, (n, x) -> n + x.price) > 1", "(aggregate(xs, 0, (n, x) -> n + x.price) > 1)"),
        ("timestampdiff(MINUTE, PREV(ts), ts) < 30", "(timestampdiff(MINUTE, lag(ts, 1) OVER {window}, ts) < 30)"),
        ("ts > dateadd(day, 1, PREV(b.ts))", "(ts > dateadd(day, 1, lag(ts, 1) OVER {window}))"),
        ("shop.score(price) > 3", "(shop.score(price) > 3)"),
        ('symbol = "a.b" AND `price` = 1', '(symbol = "a.b") AND (`price` = 1)'),
    ],
)
def test_what_looks_at_the_row_alone_is_a_boolean_of_spark(condition: str, wanted: str) -> None:
    read = definitions(condition)
    assert read.rows == {"b": wanted}
    assert not read.columns
    assert not read.typed({}).conditions


def test_a_variable_may_be_called_as_a_statement_begins() -> None:
    clause = parse_clause(
        "MEASURES LAST(drop.price) AS m, show.addr.city AS r PATTERN (show drop+) "
        "DEFINE drop AS drop.price < PREV(drop.price) AND drop.rate > 2 * show.rate",
        COLUMNS,
    )
    read = read_definitions(clause, COLUMNS)
    assert read.rows == {"drop": "(price < lag(price, 1) OVER {window})"}
    made = read.typed(dict.fromkeys(read.columns, "double"))
    assert made.conditions == {"drop": Call(">", (Value("c0"), Value("c1", Seen(LAST, ("show",)))))}
    assert [column.sql for column in made.columns] == ["rate", "2 * rate"]
    assert read_measures(clause, COLUMNS).columns == {"price": ("drop",), "addr.city": ("show",)}


@pytest.mark.parametrize("name", ["any", "on", "from", "then"])
def test_a_variable_may_be_called_as_sql_has_words(name: str) -> None:
    clause = parse_clause(
        f"MEASURES array_agg({name}.price) AS m PATTERN (b {name}+) DEFINE {name} AS {name}.rate > 2 * b.rate", COLUMNS
    )
    read = read_definitions(clause, COLUMNS)
    made = read.typed(dict.fromkeys(read.columns, "double"))
    assert made.conditions == {name: Call(">", (Value("c0"), Value("c1", Seen(LAST, ("b",)))))}
    assert read_measures(clause, COLUMNS).columns == {"price": (name,)}


def test_the_inputs_table_may_stand_before_a_column() -> None:
    text = "MEASURES max(Ticks.price) + ticks.addr.city AS m PATTERN (b) DEFINE b AS ticks.price > PREV(`ticks`.price)"
    clause = parse_clause(text, COLUMNS, ["ticks"])
    assert read_definitions(clause, COLUMNS).rows == {"b": "(price > lag(price, 1) OVER {window})"}
    assert [*read_measures(clause, COLUMNS).columns] == ["price", "addr.city"]
    with pytest.raises(PredicateError, match="'prise' is no column of the input"):
        read_measures(parse_clause("MEASURES ticks.prise AS m PATTERN (b)", COLUMNS, ["ticks"]), COLUMNS)
    # A variable of the name comes first.
    own = parse_clause("MEASURES t.price AS m PATTERN (t b)", COLUMNS, ["t"])
    assert read_measures(own, COLUMNS).atoms == (NavigationAtom("price", Seen(LAST, ("t",)), final=True),)


def test_an_offset_that_no_match_has_rows_for() -> None:
    made = measures("LAST(price, 9223372036854775807)")
    assert made.atoms == (NavigationAtom("price", Seen(LAST, (), 2147483647), final=True),)
    with pytest.raises(PredicateError, match="the offset of LAST is a whole number from 0"):
        measures("LAST(price, 9223372036854775808)")
    assert rows_of_match("price > LAST(price, 9223372036854775807)", price=pa.array([1, 2])) == []


def test_a_condition_is_split_between_spark_and_the_kernel() -> None:
    read = definitions("price < PREV(price) AND price > a.price AND MATCH_NUMBER() < 3")
    assert read.rows == {"b": "(price < lag(price, 1) OVER {window})"}
    assert read.columns == ("price",)
    made = read.typed({"price": "int"})
    above = Call(">", (Value("c0"), Value("c0", LAST_A)))
    assert made.conditions == {"b": Call("and", (above, Call("<", (MatchNumber(), Constant(3)))))}
    assert made.types == {"c0": "int"}


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("price > FIRST(a.price, 2)", Call(">", (Value("c0"), Value("c0", Seen(FIRST, ("a",), 2))))),
        ("price = PREV(LAST(a.price, 1), 2)", Call("=", (Value("c0"), Value("c0", Seen(LAST, ("a",), 1, -2))))),
        ("price = LAST(price, 1)", Call("=", (Value("c0"), Value("c0", Seen(LAST, (), 1))))),
        ("a.price > 5", Value("c0", LAST_A)),
        ("count(*) < 3", Call("<", (Aggregate("count"), Constant(3)))),
        ("RUNNING count(s.*) < 3", Call("<", (Aggregate("count", None, ("a", "b")), Constant(3)))),
        ("sum(a.price) <> -1", Call("<>", (Aggregate("sum", "c0", ("a",)), Constant(-1)))),
        ("avg(price) IS NULL", Call("is null", (Aggregate("avg", "c0"),))),
        ("CLASSIFIER(a) = 'a'", Call("=", (Classifier(LAST_A), Label("a")))),
        ("'z' <> LAST(CLASSIFIER(), 1)", Call("<>", (Constant(-1), Classifier(Seen(LAST, (), 1))))),
        ("PREV(CLASSIFIER()) = 'a'", Call("=", (Classifier(Seen(LAST, (), 0, -1)), Label("a")))),
        (
            "count(*) IN (1, 2)",
            Call("or", (Call("=", (Aggregate("count"), Constant(1))), Call("=", (Aggregate("count"), Constant(2))))),
        ),
        (
            "ts - LAST(a.ts) <= INTERVAL 1 HOUR",
            Call("<=", (Call("-", (Value("c1"), Value("c1", LAST_A))), Constant(3_600_000_000))),
        ),
        (
            "ts <= a.ts + INTERVAL '30' MINUTES",
            Call("<=", (Value("c0"), Call("+", (Value("c0", LAST_A), Constant(1_800_000_000))))),
        ),
    ],
)
def test_what_was_matched_is_a_tree(condition: str, wanted: object) -> None:
    types = {"price > 5": "boolean", "ts + INTERVAL '30' MINUTES": "timestamp"}
    assert kernel(condition, types).conditions["b"] == wanted


def test_functions_of_one_row_are_columns_of_spark() -> None:
    made = kernel(
        "upper(a.symbol || 'x') > LAST(lower(c.symbol))", {"UPPER(symbol || 'x')": "string", "lower(symbol)": "string"}
    )
    assert made.conditions == {"b": Call(">", (Value("c0", LAST_A), Value("c1", Seen(LAST, ("c",)))))}
    assert [(column.sql, column.encoding) for column in made.columns] == [
        ("UPPER(symbol || 'x')", "ranks"),
        ("lower(symbol)", "ranks"),
    ]
    assert len({column.group for column in made.columns}) == 1


def test_strings_stay_as_they_are_written() -> None:
    condition = r"""a.symbol || 'it''s' = 'a\'b{' OR count(*) = 1 OR symbol IN ("a""b", '\\d')"""
    columns = definitions(condition).columns
    assert columns == (r"symbol || 'it''s' = 'a\'b{{'", r"""symbol IN ("a""b", '\\d')""")


def test_a_function_that_makes_something_of_null_does_so_where_there_is_no_row() -> None:
    made = kernel("coalesce(c.price, 7) = 7", {"coalesce(price, 7) = 7": "boolean"})
    value, there, missing = (column.name for column in made.columns)
    of_c = Seen(LAST, ("c",))
    assert made.conditions["b"] == Call(
        "if", (Call("is null", (Value(there, of_c),)), Value(missing, Seen(CURRENT)), Value(value, of_c))
    )
    assert [column.sql for column in made.columns] == [
        "coalesce(price, 7) = 7",
        "true",
        "coalesce((CASE WHEN false THEN price END), 7) = 7",
    ]


def test_a_function_of_classifier_is_computed_for_each_variable() -> None:
    texts = [f"lower({one}) || symbol" for one in ("CAST(NULL AS STRING)", "'c'", "'b'", "'a'")]
    sqls = [text.replace("lower", "LOWER") for text in texts]
    made = kernel("lower(LAST(CLASSIFIER(), 1)) || symbol = a.symbol", dict.fromkeys(sqls, "string"))
    null, c, b, a, other = (column.name for column in made.columns)
    assert [column.sql for column in made.columns] == [*sqls, "symbol"]
    assert len({column.group for column in made.columns}) == 1
    classifier = Classifier(Seen(LAST, (), 1))
    tree: Any = Value(null)
    for name, column in (("c", c), ("b", b), ("a", a)):
        tree = Call("if", (Call("=", (classifier, Label(name))), Value(column), tree))
    assert made.conditions["b"] == Call("=", (tree, Value(other, LAST_A)))


def test_classifier_has_the_order_of_texts() -> None:
    # Rows of 'a', then one of 'b': 'b' is above 'a2', 'a' is not.
    assert rows_of_match("CLASSIFIER() > 'a2'", price=pa.array([1, 2])) == [0, 1]
    assert rows_of_match("LAST(CLASSIFIER(), 1) > 'a2'", price=pa.array([1, 2])) == []
    assert rows_of_match("LAST(CLASSIFIER(), 1) < symbol", symbol=pa.array(["z", "a1"])) == [0, 1]
    assert rows_of_match("LAST(CLASSIFIER(), 1) < symbol", symbol=pa.array(["z", "a"])) == []


@pytest.mark.parametrize(
    ("condition", "prices", "wanted"),
    [
        # A match is the longest run of a's with a b behind it.
        ("greatest(price, FIRST(a.price), 3) = 4", [1, 4, 5], [0, 1]),
        ("greatest(price, FIRST(a.price)) = 2", [2, None], [0, 1]),
        ("least(price, FIRST(a.price)) = 2", [None, 2], [0, 1]),
        ("least(price, LAST(a.price), LAST(a.price, 1)) = 1", [1, 2, 2, 2], [0, 1, 2]),
        ("nullif(price, FIRST(a.price)) IS NULL", [1, 2, 1, 2], [0, 1, 2]),
        ("coalesce(LAST(a.price, 1), price) = 5", [1, 5], [0, 1]),
        ("FIRST(s.price) < LAST(s.price)", [1, 2, 0], [0, 1]),
    ],
)
def test_answers_of_conditions(condition: str, prices: list[int | None], wanted: list[int]) -> None:
    assert rows_of_match(condition, price=pa.array(prices, pa.int32())) == wanted


def test_differences_of_rows_are_computed_by_spark_where_it_can() -> None:
    change = "ABS(price - lag(price, 1) OVER {window})"
    made = kernel("abs(price - PREV(price)) > a.price", {change: "int"})
    assert [column.sql for column in made.columns] == [change, "price"]


@pytest.mark.parametrize(
    ("condition", "encodings"),
    [
        ("price > a.price", {"price": "integer"}),
        ("rate > a.rate", {"rate": "double"}),
        ("fee > a.fee", {"fee": "ranks"}),
        ("fee - a.fee > 1", {"CAST((fee) * 100 AS BIGINT)": "integer"}),
        ("symbol = a.symbol", {"symbol": "ranks"}),
        ("ts = a.ts", {"ts": "microseconds"}),
        ("day = a.day", {"day": "microseconds"}),
        ("fee * a.fee > 1", {"CAST(fee AS DOUBLE)": "double"}),
        ("fee - a.fee > rate", {"CAST((fee) * 100 AS BIGINT)": "integer", "rate": "double"}),
        ("fee - a.fee > count(*)", {"CAST((fee) * 100 AS BIGINT)": "integer"}),
        ("fee - a.fee > 0.001", {"CAST((fee) * 100 AS BIGINT)": "integer"}),
        ("max(fee) - min(a.fee) > 1", {"CAST((fee) * 100 AS BIGINT)": "integer"}),
        ("coalesce(LAST(a.fee, 1), fee) + 1 > a.fee", {"CAST((fee) * 100 AS BIGINT)": "integer"}),
        ("max(day) > a.ts", {"CAST(day AS TIMESTAMP)": "microseconds", "ts": "microseconds"}),
        ("day = a.ts", {"CAST(day AS TIMESTAMP)": "microseconds", "ts": "microseconds"}),
        ("ts - a.ts > INTERVAL 1 DAY", {"CAST(ts AS TIMESTAMP_NTZ)": "microseconds"}),
        ("max(symbol) = symbol", {"symbol": "ranks"}),
    ],
)
def test_columns_say_how_they_come_to_the_kernel(condition: str, encodings: Mapping[str, str]) -> None:
    assert {column.sql: column.encoding for column in kernel(condition).columns} == encodings


def test_integers_beside_decimals_are_scaled_only_where_they_fit_64_bits() -> None:
    assert f"Constant(value={10**2})" in repr(kernel("fee - a.fee > price").conditions["b"])
    wide = kernel("fee - a.fee > price", {"fee": "decimal(17,16)"}).conditions["b"]
    assert f"Constant(value={10**16})" not in repr(wide)
    assert f"Constant(value={1e16})" in repr(wide)


def test_days_and_casts_of_several_rows() -> None:
    day = definitions("datediff(ts, a.ts) < 2").columns[0]
    made = kernel("datediff(ts, a.ts) < 2", {day: "date"})
    days = Call("-", (Value("c0"), Value("c0", LAST_A)))
    assert made.conditions["b"] == Call("<", (Call("/", (days, Constant(86_400_000_000))), Constant(2)))
    assert [(column.sql, column.encoding) for column in made.columns] == [(day, "microseconds")]
    count = Aggregate("count")
    assert kernel("CAST(count(*) AS DOUBLE) > 2").conditions["b"] == Call(
        ">", (Call("*", (count, Constant(1.0))), Constant(2))
    )
    assert kernel("CAST(count(*) AS BIGINT) > 2").conditions["b"] == Call(">", (count, Constant(2)))


def test_numbers_are_looked_for_among_others_as_doubles() -> None:
    made = kernel("array_contains(array_agg(a.rate), price)")
    assert [(column.sql, column.encoding) for column in made.columns] == [
        ("CAST(rate AS DOUBLE)", "ranks"),
        ("CAST(price AS DOUBLE)", "ranks"),
    ]
    assert len({column.group for column in made.columns}) == 1


def test_a_time_where_another_column_is_greatest_is_one_to_reckon_with() -> None:
    made = kernel("ts - max_by(a.ts, a.price) < INTERVAL 1 HOUR")
    time, place = (column.name for column in made.columns)
    assert [column.sql for column in made.columns] == ["price", "CAST(ts AS TIMESTAMP_NTZ)"]
    row = Aggregate("greatest row", time, ("a",))
    assert made.conditions["b"] == Call("<", (Call("-", (Value(place), Fetch(place, row))), Constant(3_600_000_000)))


def rows_of_match(condition: str, **columns: Any) -> list[int]:
    """Rows of the first match of ``a+ b``."""
    clause = parse_clause(f"PATTERN (a+ b) SUBSET s = (a, b) DEFINE b AS {condition}")
    read = read_definitions(clause, COLUMNS)
    assert not read.rows
    made = read.typed({sql: COLUMNS.get(sql, "string") for sql in read.columns})
    count = len(next(iter(columns.values())))
    arrays = [
        columns[column.sql] if column.sql in columns else pa.array([column.sql[1:-1]] * count)
        for column in made.columns
    ]
    values = encode_columns(made.columns, arrays)
    pattern = compile_pattern(clause, made.conditions, made.types)
    found = match_rows(pattern, np.full((2, count), True), np.array([0, count]), values)
    return found.rows[: found.offsets[1]].tolist() if len(found.starts) else []


def test_encoded_values_keep_their_order_and_equality() -> None:
    # Texts by their bytes: 'Z' < 'a' < 'é', and NULL is neither.
    texts = pa.array(["b", "Z", None, "é", "a"])
    assert rows_of_match("symbol < FIRST(a.symbol)", symbol=texts) == [0, 1, 2, 3, 4]
    assert rows_of_match("symbol > FIRST(a.symbol)", symbol=texts) == [0, 1, 2, 3]
    assert rows_of_match("max(a.symbol) = 'b'", symbol=texts) == [0, 1, 2, 3]
    fees = pa.array([Decimal("1.00"), None, Decimal("0.10"), Decimal("1.00")], pa.decimal128(10, 2))
    assert rows_of_match("fee = FIRST(a.fee)", fee=fees) == [0, 1, 2, 3]
    times = pa.array([10, 30, 20]).cast(pa.timestamp("us", "UTC"))
    assert rows_of_match("ts > LAST(a.ts)", ts=times) == [0, 1]
    days = pa.array([10, 30, 20]).cast(pa.int32()).cast(pa.date32())
    assert rows_of_match("day - FIRST(a.day) = INTERVAL 10 DAYS", day=days) == [0, 1, 2]


REFUSED: list[tuple[type[PatternError], str, str, str]] = [
    (PredicateError, "prise > 1", "prise", "'prise' is no column of the input (did you mean 'price'?)"),
    (PredicateError, "a.prise > 1", "prise", "did you mean 'price'?"),
    (PredicateError, "LAST(a.prise) > 1", "prise", "did you mean 'price'?"),
    (PredicateError, "a > 1", "a", "but a variable of the pattern; write a.column"),
    (PredicateError, "PREV(price, -1) > 1", "-1", "the offset of PREV is a whole number from 0"),
    (PredicateError, "LAST(price, price) > 1", "price", "the offset of LAST is a whole number from 0"),
    (PredicateError, "FIRST(a.price, 1.5) > 1", "1.5", "whole number from 0, written out, not '1.5'"),
    (PredicateError, "LAST(1) > 1", "LAST(1)", "LAST needs a column"),
    (PredicateError, "PREV() > 1", "PREV()", "PREV takes an expression and an offset"),
    (PredicateError, "LAST(price, ) > 1", "LAST(price, )", "an argument of LAST is missing"),
    (PredicateError, "count(DISTINCT) > 1", "count(DISTINCT)", "COUNT needs an argument"),
    (PredicateError, "count(DISTINCT a.*) > 1", "count(DISTINCT a.*)", "DISTINCT needs a column"),
    (PredicateError, "count(a.*, 1) > 1", "a.*", "a.* stands only in count"),
    (PredicateError, "sum() > 1", "sum()", "SUM needs an argument"),
    (PredicateError, "sum(a.price + price) > 1", "price", "rows of 'a' and at all rows at once"),
    (PredicateError, "LAST(price - a.price) > 1", "a.price", "all rows and at rows of 'a' at once"),
    (PredicateError, "LAST(CLASSIFIER(a) || c.symbol) = 'x'", "c.symbol", "rows of 'a' and at rows of 'c'"),
    (PredicateError, "PREV(LAST(a.price) + 1) > 1", "LAST(a.price)", "PREV takes LAST as its whole argument"),
    (PredicateError, "MATCH_NUMBER(1) = 1", "MATCH_NUMBER(1)", "takes no argument"),
    (PredicateError, "price symbol = 1", "symbol", "cannot be read as Spark SQL"),
    (UnsupportedOperatorError, "concat(symbol, a.symbol) = 'x'", "symbol, a.symbol", "is said with + - * / %"),
    (UnsupportedOperatorError, "CAST(count(*) AS STRING) = '1'", "count(*)", "is said with + - * / %"),
    (UnsupportedOperatorError, "datediff(DAY, a.ts, ts) < 1", "a.ts, ts", "is said with + - * / %"),
    (UnsupportedOperatorError, "median(a.price) > 1", "median(a.price)", "cannot stand in a condition"),
    (
        UnsupportedOperatorError,
        "array_agg(a.price)[0] > 1",
        "array_agg(a.price)",
        "write array_contains(array_agg(v.x)",
    ),
    (UnsupportedOperatorError, "skewness(a.price) > 1", "skewness(a.price)", "cannot stand in a condition"),
    (
        UnsupportedOperatorError,
        "sum(price * MATCH_NUMBER()) > 1",
        "sum(price * MATCH_NUMBER())",
        "write MATCH_NUMBER()",
    ),
    (
        UnsupportedOperatorError,
        "max_by(CLASSIFIER(), price) = 'a'",
        "max_by(CLASSIFIER(), price)",
        "in count, sum, avg,",
    ),
    (UnsupportedOperatorError, "max_by(price) = 1", "max_by(price)", "MAX_BY takes two arguments"),
    (UnsupportedOperatorError, "stddev(symbol) > 1", "stddev(symbol)", "STDDEV needs numbers, not a string"),
    (
        UnsupportedOperatorError,
        "count(DISTINCT xs) > 1",
        "count(DISTINCT xs)",
        "cannot be compared with that of another",
    ),
    (
        UnsupportedOperatorError,
        "array_contains(array_agg(price), a.price + 1 + c.price)",
        "array_agg(price), a.price + 1 + c.price",
        "must be the value of one row",
    ),
    (UnsupportedOperatorError, "price = a.symbol", "price = a.symbol", "a string and an int stand here together"),
    (UnsupportedOperatorError, "symbol - a.symbol > 1", "symbol - a.symbol", "a number is needed here, not a string"),
    (UnsupportedOperatorError, "xs = a.xs", "xs = a.xs", "an array<int> cannot be compared with that of another"),
    (UnsupportedOperatorError, "a.symbol LIKE CLASSIFIER()", "a.symbol LIKE CLASSIFIER()", "is said with + - * / %"),
    (UnsupportedOperatorError, "sum(a.symbol) > 1", "sum(a.symbol)", "SUM needs numbers, not a string"),
    (UnsupportedOperatorError, "price + a.price", "price + a.price", "a boolean is needed here, not an int"),
]


@pytest.mark.parametrize(("kind", "condition", "place", "says"), REFUSED, ids=[text for _, text, _, _ in REFUSED])
def test_conditions_that_are_refused(kind: type[PatternError], condition: str, place: str, says: str) -> None:
    with pytest.raises(PatternError, match=re.escape(says)) as error:
        kernel(condition)
    assert type(error.value) is kind
    assert error.value.text[error.value.start : error.value.end] == place


@pytest.mark.parametrize(
    ("text", "sql", "atoms"),
    [
        (
            "FIRST(a.price) - LAST(price + 1, 2)",
            "__patternlake_atom_0 - __patternlake_atom_1",
            [
                NavigationAtom("price", Seen(FIRST, ("a",)), final=True),
                NavigationAtom("price + 1", Seen(LAST, (), 2), final=True),
            ],
        ),
        (
            "price + every.price",
            "__patternlake_atom_0 + __patternlake_atom_0",
            [NavigationAtom("price", Seen(LAST), final=True)],
        ),
        (
            "NEXT(LAST(s.addr.city), 2)",
            "__patternlake_atom_0",
            [NavigationAtom("addr.city", Seen(LAST, ("a", "b"), 0, 2), final=True)],
        ),
        ("PREV(price)", "__patternlake_atom_0", [NavigationAtom("price", Seen(LAST, (), 0, -1), final=True)]),
        (
            "MATCH_NUMBER() || CLASSIFIER(b)",
            "__patternlake_atom_0 || __patternlake_atom_1",
            [MatchNumberAtom(), ClassifierAtom(Seen(LAST, ("b",)), final=True)],
        ),
        (
            "FIRST(lower(CLASSIFIER()))",
            "CASE WHEN __patternlake_atom_0 THEN lower(__patternlake_atom_1) END",
            [NavigationAtom("true", Seen(FIRST), final=True), ClassifierAtom(Seen(FIRST), final=True)],
        ),
        (
            "round(Count(a.*) / count(*), 2)",
            "round(__patternlake_atom_0 / __patternlake_atom_1, 2)",
            [
                AggregateAtom("count", "*", None, False, ("a",), True, "count(*)"),
                AggregateAtom("count", "*", None, False, (), True, "count(*)"),
            ],
        ),
        (
            "sum(DISTINCT a.price) FILTER (WHERE a.rate>1)",
            "__patternlake_atom_0",
            [
                AggregateAtom("sum", "price", "rate>1", True, ("a",), True, "sum(DISTINCT price)"),
            ],
        ),
        (
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY a.price DESC)",
            "__patternlake_atom_0",
            [
                AggregateAtom(
                    "percentile_cont",
                    None,
                    None,
                    False,
                    ("a",),
                    True,
                    "percentile_cont(0.5) WITHIN GROUP (ORDER BY price DESC)",
                ),
            ],
        ),
        (
            "RUNNING mode() WITHIN GROUP (ORDER BY price DESC)",
            "__patternlake_atom_0",
            [
                AggregateAtom("mode", None, None, False, (), True, "mode() WITHIN GROUP (ORDER BY price DESC)"),
            ],
        ),
        (
            "count(*) FILTER (WHERE CLASSIFIER() = 'a')",
            "__patternlake_atom_0",
            [
                AggregateAtom("count", None, None, False, (), True, "count(*)", "__patternlake_classifier = 'a'"),
            ],
        ),
        (
            "max_by(CLASSIFIER(s), s.price)",
            "__patternlake_atom_0",
            [
                AggregateAtom("max_by", None, None, False, ("a", "b"), True, "max_by(__patternlake_classifier, price)"),
            ],
        ),
        (
            "array_agg(CLASSIFIER())",
            "__patternlake_atom_0",
            [
                AggregateAtom(
                    "array_agg",
                    "__patternlake_classifier",
                    None,
                    False,
                    (),
                    True,
                    "array_agg(__patternlake_classifier)",
                ),
            ],
        ),
        (
            "any_value(a.price) FILTER (WHERE CLASSIFIER(a) = 'a') IGNORE NULLS",
            "__patternlake_atom_0",
            [
                AggregateAtom(
                    "any_value",
                    None,
                    None,
                    False,
                    ("a",),
                    True,
                    "any_value(price)  IGNORE NULLS",
                    "__patternlake_classifier = 'a'",
                ),
            ],
        ),
        (
            "listagg(a.symbol, ', ')",
            "CASE WHEN size(__patternlake_atom_0) > 0 THEN array_join(__patternlake_atom_0, ', ') END",
            [
                AggregateAtom(
                    "array_agg",
                    "CAST(symbol AS STRING)",
                    None,
                    False,
                    ("a",),
                    True,
                    "array_agg(CAST(symbol AS STRING))",
                ),
            ],
        ),
        ("timestampdiff(DAY, b.ts, b.ts)", "timestampdiff(DAY, __patternlake_atom_0, __patternlake_atom_0)", [
            NavigationAtom("ts", Seen(LAST, ("b",)), True),
        ]),
        ("1 + 1", "1 + 1", []),
    ],
)  # fmt: skip
def test_measures_are_sql_over_atoms(text: str, sql: str, atoms: list[object]) -> None:
    made = measures(text)
    assert made.sql == (sql,)
    assert list(made.atoms) == atoms


def test_all_rows_are_running_unless_final_is_said() -> None:
    made = measures("LAST(price) + FINAL LAST(price) + RUNNING sum(price) + FINAL sum(price)", "ALL ROWS PER MATCH")
    assert made.sql == ("__patternlake_atom_0 + __patternlake_atom_1 + __patternlake_atom_2 + __patternlake_atom_3",)
    assert [atom.final for atom in made.atoms if not isinstance(atom, MatchNumberAtom)] == [False, True, False, True]
    # The first row of all is before every row; that of a variable may still come.
    made = measures("FIRST(price) + FINAL FIRST(price) + FIRST(b.price)", "ALL ROWS PER MATCH")
    assert made.sql == ("__patternlake_atom_0 + __patternlake_atom_0 + __patternlake_atom_1",)
    assert [atom.final for atom in made.atoms if isinstance(atom, NavigationAtom)] == [True, False]


def test_one_row_is_the_last_one_so_running_and_final_are_one() -> None:
    assert measures("RUNNING LAST(price) + FINAL LAST(price) + price").sql == (
        "__patternlake_atom_0 + __patternlake_atom_0 + __patternlake_atom_0",
    )


def test_the_columns_that_atoms_need() -> None:
    made = measures("count(*) + sum(price * 2) FILTER (WHERE rate > 1) + max(price * 2) || CLASSIFIER() || symbol")
    guarded = "CASE WHEN rate > 1 THEN price * 2 END"
    assert [*made.columns] == [guarded, "rate > 1", "price * 2", "symbol"]


def test_what_several_variables_need_is_needed_of_the_rows_of_each() -> None:
    made = measures(
        "a.price + sum(b.price * 2) + LAST(a.price * 2) + sum(b.rate / 2) + sum(rate / 2) + PREV(b.rate + 1)"
    )
    assert made.columns == {
        "price": ("a",), "price * 2": ("a", "b"), "rate / 2": ("a", "b", "c"), "rate + 1": ()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ("b AS b.rate <> 0 AND 1 / b.rate > a.price", ["CASE WHEN ((rate <> 0)) THEN 1 / rate END", "price"]),
        ("a AS rate > 0, b AS b.price > 1 / a.rate", ["price", "CASE WHEN ((rate > 0)) THEN 1 / rate END"]),
        ("a AS rate > 0, b AS b.price > 1 / PREV(a.rate)", ["price", "1 / rate"]),
        (
            "b AS b.rate = 0 OR 1 / b.rate > a.price",
            ["rate = 0", "CASE WHEN ((rate = 0) IS NOT TRUE) THEN 1 / rate END", "price"],
        ),
        (
            "b AS NOT (b.rate <> 0 AND (b.price > a.price AND 1 / b.rate > a.price))",
            ["rate <> 0", "price", "CASE WHEN ((rate <> 0) IS NOT FALSE) THEN 1 / rate END"],
        ),
        (
            "b AS a.price > CASE WHEN b.rate > 1 THEN sqrt(b.rate) + a.rate WHEN b.rate = 0 THEN a.rate "
            "ELSE 1 / b.rate + a.rate END",
            [
                "price", "rate > 1", "CASE WHEN ((rate > 1) IS TRUE) THEN sqrt(rate) END", "rate",
                "CASE WHEN ((rate > 1) IS NOT TRUE) THEN rate = 0 END",
                "CASE WHEN ((rate > 1) IS NOT TRUE) AND ((rate = 0) IS NOT TRUE) THEN 1 / rate END",
            ],
        ),
        (
            "a AS rate > 0, b AS sum(1 / a.rate) > 2 AND max(rate) > 1",
            ["CASE WHEN ((rate > 0)) THEN 1 / rate END", "rate"],
        ),
        (
            "b AS b.rate <> PREV(b.rate) AND b.price / PREV(b.rate) > a.price",
            ["CASE WHEN ((rate <> lag(rate, 1) OVER {window})) THEN price / lag(rate, 1) OVER {window} END", "price"],
        ),
    ],
)  # fmt: skip
def test_a_column_is_computed_only_where_the_row_may_be_asked_for_it(conditions: str, wanted: list[str]) -> None:
    clause = parse_clause(f"PATTERN (a b+) DEFINE {conditions}", COLUMNS)
    read = read_definitions(clause, COLUMNS)
    types = {sql: "boolean" if "=" in sql or ">" in sql else "double" for sql in read.columns}
    assert [column.sql for column in read.typed(types).columns] == wanted
