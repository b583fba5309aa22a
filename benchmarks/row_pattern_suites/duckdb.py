"""DuckDB's files of sqllogictest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError
from benchmarks.row_pattern_suites.dialects import Dialect, Token, clauses_of, closing, meaningful, write_tokens
from benchmarks.row_pattern_suites.sqllogictest import CLAUSE, Reading

_OWN = {
    r"(?i)\bdefines\b|\bdefine\s+auto\b": "DEFINE AUTO and DEFINES are DuckDB's own",
    r"(?i)\bunnest\s*\(": "rows made of a list in a measure are DuckDB's own",
    r"(?i)\b(list|array_agg)\s*\([^()]*\border by\b": "ORDER BY in array_agg is not in Spark",
    r"(?i)\blambda\b": "DuckDB's own words for lambda functions",
    r"(?is)\bon\s+true\s+match_recognize": "a clause behind the condition of a join is DuckDB's own",
    r"(?is)\blateral\s*\(.*\bmatch_recognize\b.*\bu\.k\b": (
        "columns of an outer query in the clause: Spark's table functions are not correlated"
    ),
}
_IN_CLAUSE = {
    r"(?i)\bover\s*\(": "a window function in the clause is DuckDB's own, the standard forbids it",
}


class DuckdbReading(Reading):
    """One reading of a file."""

    dialect = Dialect("duckdb", functions={"LIST": "array_agg"})
    limits: ClassVar[Mapping[str, str]] = {
        "Not implemented Error": "DuckDB does not have it yet, the standard has it",
        r"over CLASSIFIER(\(\))? reads": "DuckDB does not have it yet, the standard has it",
        "cannot be an aggregate|only means something while the matcher": "an older file refuses what newer files have",
        "PERMUTE takes at most": "DuckDB permutes so many at most, the standard any number",
        "DISTINCT, FILTER and ORDER BY are not supported": "DuckDB does not have it yet, the standard has it",
    }

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.macros: set[str] = set()
        self.holding: set[str] = set()

    def statement(self, label: str, sql: str) -> Case | None:
        """What must not fail."""
        macro = re.match(r"(?i)\s*create (?:temp )?(?:macro|function) (\w+)", sql)
        if macro:
            self.macros.add(macro[1].lower())
            return None
        if CLAUSE.search(sql):
            self.holding |= {one.lower() for one in re.findall(r"(?i)(?:view|table|into)\s+(\w+)", sql)}
        return super().statement(label, sql)

    def query(self, label: str, columns: str, sql: str, tail: list[str]) -> Case | None:
        """What gives rows."""
        if re.search(r"(?is)with unmatched rows.*\{-", sql):
            raise NotApplicableError("WITH UNMATCHED ROWS and an exclusion, which the standard forbids")
        return super().query(label, columns, sql, tail)

    def reads_clause(self, sql: str) -> bool:
        """Whether a query reads a view or a table that a clause made."""
        return bool(self.holding & {token.text.lower() for token in meaningful(sql)})

    def translated(self, sql: str) -> str:
        """A query in Spark SQL."""
        for pattern, reason in _OWN.items():
            if re.search(pattern, sql):
                raise NotApplicableError(reason)
        tokens = meaningful(sql)
        clauses = " ".join(write_tokens(clause) for clause in clauses_of(tokens))
        for pattern, reason in _IN_CLAUSE.items():
            if re.search(pattern, clauses):
                raise NotApplicableError(reason)
        if any(token.text.lower() in self.macros for token in tokens):
            raise NotApplicableError("macros are DuckDB's own")
        return super().translated(write_tokens(_collections(_from_first(tokens))))


def _from_first(tokens: list[Token]) -> list[Token]:
    """``(FROM t)`` as ``(SELECT * FROM t)``."""
    done: list[Token] = []
    for token in tokens:
        if token.word == "FROM" and done and done[-1].text == "(":
            done += meaningful("SELECT *")
        done.append(token)
    return done


def _collections(tokens: list[Token]) -> list[Token]:
    """Lists and structs that are written with brackets by Spark's functions."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        begins = not done or done[-1].text in ("(", ",", "=", "[") or done[-1].word in ("SELECT", "VALUES", "IN")
        if token.text == "[" and begins:
            end = closing(tokens, at)
            done += [*meaningful("array ("), *_collections(tokens[at + 1 : end]), Token("sign", ")")]
            at = end
        elif token.text == "{" and begins and tokens[at + 2].text == ":":
            end = closing(tokens, at)
            inside = [Token("sign", ",") if one.text == ":" else one for one in tokens[at + 1 : end]]
            done += [*meaningful("named_struct ("), *_collections(inside), Token("sign", ")")]
            at = end
        else:
            done.append(token)
        at += 1
    return done


def read_files(path: Path) -> Iterator[Case]:
    """The cases of the files in a folder, or of one file."""
    for file in [path] if path.is_file() else sorted([*path.glob("*.test"), *path.glob("*.test_slow")]):
        yield from DuckdbReading(file).cases()
