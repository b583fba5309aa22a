"""Files of sqllogictest: DuckDB's and RisingWave's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Refusal, Rows, Runs, View
from benchmarks.row_pattern_suites.dialects import Dialect, meaningful
from benchmarks.row_pattern_suites.tables import Tables

CLAUSE = re.compile(r"\bmatch_recognize\b\s*\(", re.IGNORECASE)


class Reading:
    """One reading of a file, which is a session of its own."""

    dialect: Dialect
    limits: ClassVar[Mapping[str, str]] = {}
    """By patterns of the messages of errors, what the engine refuses and the standard, or Spark, has."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tables = Tables(self.dialect)
        self.views: list[View] = []
        self.broken: str | None = None

    def cases(self) -> Iterator[Case]:
        """The cases in the file's order."""
        for number, record in _records(self.file.read_text()):
            head, *body = record
            words = head.split()
            if words[:2] == ["require", "parquet"]:
                self.broken = "it reads a file of data that is not with the suite"
            if words[0] not in ("query", "statement"):
                continue
            at = body.index("----") if "----" in body else len(body)
            sql, tail = "\n".join(body[:at]), body[at + 1 :]
            yield from self.case(f"{self.file.stem}:{number}", words, sql, tail)

    def case(self, label: str, words: list[str], sql: str, tail: list[str]) -> Iterator[Case]:
        """A statement or a query."""
        try:
            if words[0] == "statement" and words[1] == "error":
                # The message stands behind the words (RisingWave) or below a line (DuckDB).
                found = self.refused(label, sql, " ".join(words[2:]) or " ".join(tail))
            elif words[0] == "statement":
                found = self.statement(label, sql)
            else:
                found = self.query(label, words[1], sql, tail)
        except NotApplicableError as error:
            found = Case(label, "", Runs(), reason=str(error)) if CLAUSE.search(sql) else None
        if found is None:
            return
        if self.broken and found.reason is None:
            found = replace(found, reason=self.broken)
        if found.reason is None:
            found = replace(found, views=tuple(self.views))
            self.views.clear()
        yield found

    def statement(self, label: str, sql: str) -> Case | None:
        """What must not fail."""
        first = meaningful(sql)[0].word
        if first in ("SELECT", "FROM", "WITH"):
            return Case(label, self.translated(sql), Runs()) if CLAUSE.search(sql) else None
        view = self.tables.take(sql)
        if view is not None:
            self.made(sql, view)
        return None

    def made(self, sql: str, view: View) -> None:
        """A view is to be made, or made again."""
        self.views.append(view)

    def refused(self, label: str, sql: str, message: str) -> Case | None:
        """What must fail."""
        if not CLAUSE.search(sql):
            return None
        for pattern, reason in self.limits.items():
            if re.search(pattern, message):
                raise NotApplicableError(reason)
        first = meaningful(sql)[0].word
        if first == "CREATE":
            sql = sql[re.search(r"(?i)\bas\b", sql).end() :]  # type: ignore[union-attr]
        return Case(label, self.translated(sql), Refusal(message))

    def query(self, label: str, columns: str, sql: str, tail: list[str]) -> Case | None:
        """What gives rows."""
        if not CLAUSE.search(sql) and not self.reads_clause(sql):
            return None
        if any("values hashing to" in line for line in tail):
            raise NotApplicableError("its answer is told as a hash only")
        return Case(label, self.translated(sql), Rows(self.rows(columns, tail)))

    def reads_clause(self, sql: str) -> bool:
        """Whether a query without a clause is a case: where views stand for the answers."""
        return False

    def rows(self, columns: str, lines: list[str]) -> list[list[str]]:
        """The expected rows: a line each, or a value a line."""
        lines = [line for line in lines if line != ""]
        width = len(columns)
        if all("\t" not in line for line in lines) and width > 1:
            if all(len(line.split()) == width for line in lines) and lines:
                return [line.split() for line in lines]
            if len(lines) % width == 0:
                return [lines[at : at + width] for at in range(0, len(lines), width)]
        return [line.split("\t") for line in lines]

    def translated(self, sql: str) -> str:
        """A query in Spark SQL."""
        return self.tables.query(meaningful(sql))


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Paragraphs with the number of their first line; comments are left out."""
    record: list[str] = []
    begun = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("#") and "----" not in record:
            continue
        if line.strip():
            if not record:
                begun = number
            record.append(line.rstrip("\n"))
        elif record:
            yield begun, record
            record = []
