"""Expressions of a clause are Spark SQL, and Spark computes what is written, in names and in strings, too."""

from __future__ import annotations

import re

import pytest

from patternlake.udfs.errors import PatternError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.language.row_pattern.statements import rewrite_statement
from patternlake.udfs.language.row_pattern.tokens import read_string, tokens_of
from patternlake.udfs.measures.row_terms import find_tests, guard_column
from patternlake.udfs.measures.translation import AggregateAtom, Measures, read_measures
from patternlake.udfs.rows.conditions import Label
from patternlake.udfs.rows.definitions import Definitions, read_definitions

COLUMNS = {
    "x": "double", "y": "int", "s": "string", "day": "date", "ts": "timestamp", "if": "int", "values": "int",
    "bin": "binary", "folded": "string collate UTF8_LCASE",
}  # fmt: skip


def read(clause: str) -> tuple[Measures, Definitions]:
    parsed = parse_clause(clause, COLUMNS)
    return read_measures(parsed, COLUMNS), read_definitions(parsed, COLUMNS)


def columns_of(condition: str, types: dict[str, str] | None = None) -> list[str]:
    """What the kernel is given of each row, for ``b`` of ``a b``."""
    _, definitions = read(f"PATTERN (a b) DEFINE b AS {condition}")
    known = {**COLUMNS, **(types or {})}
    return [column.sql for column in definitions.typed({sql: known[sql] for sql in definitions.columns}).columns]


@pytest.mark.parametrize(
    ("part", "type_"),
    [
        (r"s RLIKE r'\d'", "boolean"),
        (r"""s RLIKE R"\d'" """, "boolean"),
        (r"s RLIKE '\\d'", "boolean"),
        (r"s = 'it\'s'", "boolean"),
        ("to_char(day, 'MM') = '02'", "boolean"),
        ("to_timestamp(s, 'yyyy') > ts", "boolean"),
        ("s LIKE ANY ('a%', 'b%')", "boolean"),
        ("s LIKE ('a%')", "boolean"),
        ("s RLIKE ('a')", "boolean"),
        ("y DIV (y + 1) = 1", "boolean"),
        ("CASE (y) WHEN (1) THEN (2) ELSE (3) END = 2", "boolean"),
        ("EXISTS(sequence(1, y), v -> v > 3)", "boolean"),
    ],
)
def test_a_part_of_a_condition_is_computed_as_it_is_written(part: str, type_: str) -> None:
    assert columns_of(f"{part} OR b.x > a.x", {part.strip(): type_}) == [part.strip(), "x"]


@pytest.mark.parametrize(
    ("part", "type_"),
    [
        (r"regexp_extract(s, r'(\d+)', 1)", "string"),
        ("try_variant_get(parse_json(s), '$.k', 'int')", "int"),
        ("date_trunc('HOUR', ts)", "timestamp"),
        ("to_number(s, '999')", "int"),
    ],
)
def test_a_function_keeps_its_name_and_all_its_arguments(part: str, type_: str) -> None:
    earlier = part.replace("(s", "(a.s").replace(" ts", " a.ts")
    column = columns_of(
        f"{part} > {earlier}", {part: type_, part.replace("try_variant_get", "TRY_VARIANT_GET"): type_}
    )[0]
    assert column.casefold() == part.casefold()


def test_like_any_and_like_some_are_no_aggregates() -> None:
    measures, definitions = read(
        "MEASURES s LIKE ANY ('a%', 'b%') AS m, any(s LIKE 'a%') AS n PATTERN (a b) DEFINE b AS s LIKE SOME ('a%', 'b')"
    )
    assert measures.sql == ("__patternlake_atom_0 LIKE ANY ('a%', 'b%')", "__patternlake_atom_1")
    assert definitions.rows == {"b": "(s LIKE SOME ('a%', 'b'))"}


@pytest.mark.parametrize(
    ("clause", "guarded"),
    [
        ("MEASURES LAST(1 / b.x) AS m PATTERN (b+) DEFINE b AS x <> 0", True),
        ("MEASURES sum(1 / x) AS m PATTERN (b+) DEFINE b AS x <> 0", True),
        ("MEASURES LAST(1 / x) AS m PATTERN (a b) DEFINE a AS x <> 0, b AS x > 0", True),
        ("MEASURES LAST(1 / x) AS m PATTERN (a b) DEFINE b AS x <> 0", False),
        ("MEASURES PREV(1 / x) AS m PATTERN (b+) DEFINE b AS x <> 0", False),
    ],
)
def test_a_measure_is_computed_only_where_the_row_may_be_one_of_the_match(clause: str, guarded: bool) -> None:
    measures, definitions = read(clause)
    assert bool(find_tests(definitions.rows, measures.columns["1 / x"])) == guarded


def test_an_aggregate_of_all_variables_is_computed_only_of_rows_of_the_match() -> None:
    _, definitions = read("PATTERN (a+) DEFINE a AS x <> 0 AND sum(10 / a.x) < 20")
    (column,) = definitions.typed({"10 / x": "double"}).columns
    assert column.sql == guard_column(["(x <> 0)"], "10 / x")


def test_fields_of_a_struct_have_the_names_that_spark_gives_them() -> None:
    measures, _ = read(
        "MEASURES to_json(struct(x, a.y, sum(x), x + 1, s AS z)) AS j, (x, `s`) AS p, x IN (1, x) AS q PATTERN (a b)"
    )
    j, p, q = (re.sub("__patternlake_atom_", "@", sql) for sql in measures.sql)
    assert j == "to_json(struct(@0 AS x, @1 AS y, @2 AS col3, @0 + 1, @3 AS z))"
    assert (p, q) == ("(@0 AS x, @4 AS `s`)", "@0 IN (1, @0)")


@pytest.mark.parametrize("measure", ["to_json(struct(*))", "array_agg(struct(*))", "hash(*)"])
def test_a_star_stands_only_in_count(measure: str) -> None:
    with pytest.raises(PredicateError, match=r"\* stands only in count\(\*\); name the columns"):
        read(f"MEASURES {measure} AS m PATTERN (a b)")
    read("MEASURES count(*) AS n, count(a.*) AS m PATTERN (a b)")


@pytest.mark.parametrize(
    "aggregate",
    [
        "listagg(s, ',') WITHIN GROUP (ORDER BY x DESC, y)",
        "listagg(s, ',') WITHIN GROUP (ORDER BY x DESC NULLS LAST, y ASC)",
        "listagg(s) WITHIN GROUP (ORDER BY x NULLS FIRST) FILTER (WHERE y > 1)",
        "sum(ALL x)",
        "any_value(x IGNORE NULLS)",
        "approx_top_k(x)",
        "count_min_sketch(x, 0.5d, 0.5d, 1)",
    ],
)
def test_measures_take_all_aggregates_of_spark(aggregate: str) -> None:
    measures, _ = read(f"MEASURES {aggregate} AS m PATTERN (a b)")
    (atom,) = measures.atoms
    assert measures.sql == ("__patternlake_atom_0",)
    assert isinstance(atom, AggregateAtom)
    assert atom.sql == aggregate.partition(" FILTER")[0]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("MEASURES first_value(a.x) AS m PATTERN (a b)", "FIRST_VALUE is not known here; write FIRST(price)"),
        ("PATTERN (a b) DEFINE b AS x > last_value(a.x)", "LAST_VALUE is not known here; write LAST(price)"),
        ("PATTERN (a b) DEFINE b AS IF x > sum(a.x) THEN true END", "this cannot be read as Spark SQL at 'x'"),
        ("MEASURES IF a.x > 1 THEN 2 END AS m PATTERN (a b)", "this cannot be read as Spark SQL at 'a'"),
    ],
)
def test_what_is_no_expression_of_the_clause_is_refused(clause: str, message: str) -> None:
    with pytest.raises(PatternError, match=re.escape(message)):
        read(clause)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("bin > LAST(a.s)", "a binary and a string stand here together; cast one of them"),
        (
            "b.folded = a.folded",
            "collate utf8_lcase cannot be compared with that of another row; compare by bytes",
        ),
        (
            "max(a.folded) > b.s",
            "collate utf8_lcase cannot be compared with that of another row; compare by bytes",
        ),
    ],
)
def test_values_are_compared_as_spark_compares_them_or_not_at_all(condition: str, message: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=re.escape(message)):
        columns_of(condition)
    assert columns_of("b.bin > a.bin") == ["bin"]


def test_words_of_the_clause_and_of_statements_may_be_names() -> None:
    measures, _ = read("MEASURES x AS measures, 2 * values AS seek, a.if + if AS initial PATTERN (a b)")
    assert measures.names == ("measures", "seek", "initial")
    assert [*measures.columns] == ["x", "values", "if"]


def test_the_name_of_a_variable_may_be_an_escaped_string() -> None:
    _, definitions = read(r"PATTERN (a `it's`) DEFINE `it's` AS LAST(CLASSIFIER(), 1) <> 'it\'s' AND x > a.x")
    assert repr(Label("it's")) in repr(definitions.typed({"x": "double"}).conditions["it's"])


def test_raw_strings_and_nested_comments_are_read_as_in_spark() -> None:
    text = r"""r'C:\' || R"a'\" || 'it''s' /* a /* n' */ b */ -- c"""
    assert [token.text for token in tokens_of(text)[:-1] if token.kind == "string"] == [
        r"r'C:\'",
        'R"a\'\\"',
        "'it''s'",
    ]
    written = ["'it''s'", r"'it\'s'", r'''"a'b"''', r"r'\d'", r"'\\'"]
    assert [read_string(one) for one in written] == ["it's", "it's", "a'b", r"\d", "\\"]
    statement = r"SELECT r'\' AS q, * FROM t /* ' /* */ */ MATCH_RECOGNIZE (PATTERN (a))"
    assert "match_recognize(TABLE(" in rewrite_statement(statement, lambda clause: f"'{clause}'").text


@pytest.mark.parametrize(
    ("relation", "what"),
    [
        ("t JOIN u USING (k)", "the condition of a join"),
        ("t LATERAL VIEW explode(xs) e AS x", "a lateral view"),
    ],
)
def test_a_clause_behind_no_table_is_refused(relation: str, what: str) -> None:
    with pytest.raises(
        PatternError, match=rf"MATCH_RECOGNIZE stands behind a table, not behind {what}; write \(SELECT"
    ):
        rewrite_statement(f"SELECT * FROM {relation} MATCH_RECOGNIZE (PATTERN (a))", str)
