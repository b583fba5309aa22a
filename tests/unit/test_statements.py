"""Where a statement ends. The pattern language is full of semicolons, inside quotes."""

from __future__ import annotations

import pytest

from patternlake.jobs.command_line.statements import Statements


def cut(*lines: str) -> tuple[list[str], str]:
    """The statements of some lines, and what is left."""
    statements = Statements()
    found = [statement for line in lines for statement in statements.add(line)]
    return found, statements.rest()


@pytest.mark.parametrize(
    ("lines", "found", "rest"),
    [
        (["SELECT 1;"], ["SELECT 1"], ""),
        (["SELECT 1; SELECT 2 ;"], ["SELECT 1", "SELECT 2"], ""),
        (["SELECT", "  1", ";"], ["SELECT\n  1"], ""),
        (["SELECT 1"], [], "SELECT 1"),
        ([";", " ; ;"], [], ""),
        (["SELECT * FROM match_seq('s', 'A ; B');"], ["SELECT * FROM match_seq('s', 'A ; B')"], ""),
        (["SELECT '''late:BOS'' ; C';"], ["SELECT '''late:BOS'' ; C'"], ""),
        (["SELECT 'A ;", " B';"], ["SELECT 'A ;\n B'"], ""),
        (['SELECT "a;b", `c;d`;'], ['SELECT "a;b", `c;d`'], ""),
        ([r"SELECT 'it\'s; so';"], [r"SELECT 'it\'s; so'"], ""),
        ([r"SELECT r'\'; SELECT 2;"], [r"SELECT r'\'", "SELECT 2"], ""),
        ([r"SELECT 'a\\'; SELECT 2;"], [r"SELECT 'a\\'", "SELECT 2"], ""),
        (["SELECT 'a\\", "b;c';"], ["SELECT 'a\\\nb;c'"], ""),
        (["SELECT 1 -- one; two", "+ 1;"], ["SELECT 1 -- one; two\n+ 1"], ""),
        (["SELECT /* ; ' */ 1;"], ["SELECT /* ; ' */ 1"], ""),
        (["SELECT /* ;", "; */ 1;"], ["SELECT /* ;\n; */ 1"], ""),
        (
            ["/* /* old */ SELECT 2;", "DROP TABLE x; */", "SELECT 3;"],
            ["/* /* old */ SELECT 2;\nDROP TABLE x; */\nSELECT 3"],
            "",
        ),
        (["/* a /* b */ don't */ SELECT 1;"], ["/* a /* b */ don't */ SELECT 1"], ""),
        (
            ["SELECT /*+ REPARTITION(1) */ 1; /* SELECT /*+ COALESCE(1) */ SELECT 2;"],
            ["SELECT /*+ REPARTITION(1) */ 1", "/* SELECT /*+ COALESCE(1) */ SELECT 2"],
            "",
        ),
        (["-- only a remark;", ";"], [], ""),
        (["-- a remark"], [], ""),
        (["SELECT 1; SELECT 'A ; B"], ["SELECT 1"], "SELECT 'A ; B"),
        (["SELECT 3 - 1;"], ["SELECT 3 - 1"], ""),
    ],
)
def test_a_semicolon_outside_of_quotes_and_comments_ends_a_statement(
    lines: list[str], found: list[str], rest: str
) -> None:
    assert cut(*lines) == (found, rest)


def test_a_statement_is_given_with_the_line_that_ends_it() -> None:
    statements = Statements()
    assert list(statements.add("SELECT 1; SELECT")) == ["SELECT 1"]
    assert not statements.empty
    assert list(statements.add("2;")) == ["SELECT\n2"]
    assert statements.empty


def test_what_was_begun_can_be_dropped() -> None:
    statements = Statements()
    assert list(statements.add("SELECT 'never closed")) == []
    assert statements.rest() == "SELECT 'never closed"
    assert list(statements.add("SELECT 1;")) == ["SELECT 1"]
