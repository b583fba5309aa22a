"""RisingWave's files of sqllogictest, where a view that is kept up holds the clause and queries read the view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, View
from benchmarks.row_pattern_suites.dialects import (
    Dialect,
    Token,
    clause_parts,
    closing,
    each_clause,
    meaningful,
    name_of,
    split_list,
    write_tokens,
)
from benchmarks.row_pattern_suites.sqllogictest import CLAUSE, Reading

_FIRST = "RisingWave's first version refuses what the standard has"
_WITHIN = "what WITHIN may be is RisingWave's own"
_NEVER = {"mv_first"}
"""A view whose last match is open to the end."""
_HELD = {"mv_same_start", "mv_gap", "mv_term_open", "mv_term_alt_rev", "mv_wm_wakeup", "mv_held", *_NEVER}
"""Views that are to be empty until rows come that decide a match."""


class RisingwaveReading(Reading):
    """One reading of a file.

    What a stream has not released yet is no row of the table: a row is there once the watermark, so much behind the
    latest time, has reached it.
    """

    dialect = Dialect("risingwave")
    limits: ClassVar[Mapping[str, str]] = {
        "PERMUTE|ascending|positive integer literal|MEASURES|physical NEXT": _FIRST,
        "PREV.. offset|from the match start|range quantifier": _FIRST,
        "append-only": "it is about what a stream can keep up",
        "WITHIN|within|NULL, zero or negative|widens": _WITHIN,
    }

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.holding: dict[str, View] = {}
        self.late: dict[str, str] = {}
        self.partition = "partition_0"

    def case(self, label: str, words: list[str], sql: str, tail: list[str]) -> Iterator[Case]:
        """A statement or a query."""
        partition = re.search(r"(?i)partition by (\w+)", sql)
        self.partition = partition[1] if partition else self.partition
        sql = re.sub(r"\bpartition_0\b", self.partition, sql)
        sql = re.sub(r"generate_series\((\d+), *(\d+)\)", lambda m: f"range({m[1]}, {int(m[2]) + 1})", sql)
        return super().case(label, words, sql, tail)

    def query(self, label: str, columns: str, sql: str, tail: list[str]) -> Case | None:
        """What gives rows."""
        view = re.search(r"(?i)from (\w+)", sql)
        if view and view[1] in _HELD and (view[1] in _NEVER or not any(tail)):
            raise NotApplicableError("a stream holds a match back that later rows may change")
        return super().query(label, columns, sql, tail)

    def rows(self, columns: str, lines: list[str]) -> list[list[str]]:
        """The expected rows: a line each, its values between blanks."""
        return [line.split() for line in lines if line]

    def statement(self, label: str, sql: str) -> Case | None:
        """What must not fail."""
        found = re.search(r"(?i)create table (\w+) \(.*watermark for (\w+) as (\w+(?: - \d+)?)", sql)
        if found:
            self.late[found[1]] = f"{found[2]} <= (SELECT max({found[3].replace(' -', ') -')}"
            if ")" not in found[3].replace(" -", ") -"):
                self.late[found[1]] += ")"
        if CLAUSE.search(sql) and re.search(r"(?i)\bwithin\b(?! group)", sql):
            sql = each_clause(sql, _compare_times)
        return super().statement(label, sql)

    def made(self, sql: str, view: View) -> None:
        """A view is to be made, and those that read it."""
        if view.name in self.late:
            view = replace(view, sql=f"SELECT * FROM ({view.sql}) WHERE {self.late[view.name]} FROM ({view.sql}))")
        elif CLAUSE.search(sql) or self.reads_clause(sql):
            self.holding[view.name] = view
        self.views += [view, *(self.holding.values() if view.name not in self.holding else [])]

    def reads_clause(self, sql: str) -> bool:
        """Whether a query reads a view that holds a clause."""
        return any(re.search(rf"\b{name}\b", sql) for name in self.holding)


def _compare_times(tokens: list[Token]) -> list[Token]:
    """A clause with a condition of each variable in the place of WITHIN: so much behind the first row at most."""
    parts = dict(clause_parts(tokens))
    end = closing(parts[5], 1) + 1
    pattern, within = parts[5][:end], parts[5][end:]
    if not within or within[0].word != "WITHIN":
        return tokens
    order = write_tokens(split_list(parts[1][2:])[0][:1])
    soon = f"{order} - FIRST({order}) <= {write_tokens(within[1:])}"
    define = split_list(parts.get(7, [])[1:])
    conditions = {name_of(one[0]).lower(): write_tokens(one[2:]) for one in define if one}
    names = dict.fromkeys(name_of(token).lower() for token in pattern[1:] if token.kind == "word")
    defined = ", ".join(f"{name} AS ({conditions.get(name, 'TRUE')}) AND {soon}" for name in names if name != "permute")
    parts[5], parts[7] = pattern, meaningful(f"DEFINE {defined}")
    return [token for place in sorted(parts) for token in parts[place]]


def read_files(path: Path) -> Iterator[Case]:
    """The cases of ``match_recognize*.slt``."""
    for file in [path] if path.is_file() else sorted(path.glob("match_recognize*.slt*")):
        yield from RisingwaveReading(file).cases()
