"""CREATE TABLE, INSERT and their like as temporary views, which Spark makes at no cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.row_pattern_suites.cases import NotApplicableError, View
from benchmarks.row_pattern_suites.dialects import (
    Dialect,
    Token,
    closing,
    meaningful,
    name_of,
    split_list,
    translate,
    type_of,
    write_tokens,
)

_CONSTRAINTS = {"NOT", "NULL", "PRIMARY", "DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "GENERATED", "COLLATE"}


@dataclass
class Table:
    """What a table holds: the queries that were inserted into it."""

    names: list[str]
    types: list[str]
    inserted: list[str] = field(default_factory=list)

    def view(self, name: str) -> View:
        """The view of that name."""
        columns = ", ".join(f"CAST(NULL AS {t}) AS `{n}`" for n, t in zip(self.names, self.types, strict=True))
        queries = self.inserted or [f"SELECT {columns} WHERE false"]
        return View(name, " UNION ALL ".join(queries))


class Tables:
    """The tables of a session, by what is said to it."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.tables: dict[str, Table] = {}

    def take(self, statement: str) -> View | None:
        """Do what a statement says; the view that is to be made, None where there is none.

        Raises
        ------
        NotApplicableError
            It is none of CREATE TABLE, CREATE VIEW and INSERT.
        """
        tokens = meaningful(statement)
        while tokens and tokens[-1].text == ";":
            tokens.pop()
        words = [token.word for token in tokens]
        if words[0] == "CREATE":
            return self._create(tokens, words)
        if words[:2] == ["INSERT", "INTO"]:
            return self._insert(tokens)
        if words[0] in ("DROP", "SET", "PRAGMA", "FLUSH", "RESET", "RECOVER", "WAIT", "USE"):
            return None
        raise NotApplicableError(f"{words[0]} changes a table, which a view cannot be")

    def _create(self, tokens: list[Token], words: list[str]) -> View:
        at = next((at for at, word in enumerate(words) if word in ("TABLE", "VIEW")), None)
        if at is None:
            raise NotApplicableError(f"CREATE {words[1]} is of another engine")
        at += 1
        if words[at] == "IF":
            at += 3
        name = name_of(tokens[at])
        at += 1
        if at < len(tokens) and tokens[at].text == "(" and words[at + 1] not in ("SELECT", "WITH", "VALUES", "FROM"):
            end = closing(tokens, at)
            table = self._declared(tokens[at + 1 : end])
            if end + 1 < len(tokens) and words[end + 1] == "AS" and "VIEW" in words:
                query = translate(write_tokens(tokens[end + 2 :]), self.dialect)
                return View(name, f"SELECT * FROM ({query}) AS t({', '.join(table.names)})")
            self.tables[name.lower()] = table
            return table.view(name)
        if words[at] != "AS":
            raise NotApplicableError("a table without columns")
        return View(name, self.query(tokens[at + 1 :]))

    def query(self, tokens: Sequence[Token]) -> str:
        """A query in Spark SQL."""
        if tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        text = translate(write_tokens(tokens), self.dialect)
        return f"SELECT * {text}" if tokens[0].word == "FROM" else text

    def _declared(self, tokens: list[Token]) -> Table:
        table = Table([], [])
        for part in split_list(tokens):
            if part[0].word in ("WATERMARK", "PRIMARY", "UNIQUE", "CHECK"):
                continue
            end = next((at for at, token in enumerate(part) if at and token.word in _CONSTRAINTS), len(part))
            table.names.append(name_of(part[0]))
            table.types.append(type_of(part[1:end]) if end > 1 else "INT")
        return table

    def _insert(self, tokens: list[Token]) -> View:
        name = name_of(tokens[2])
        table = self.tables.get(name.lower())
        if table is None:
            raise NotApplicableError(f"{name} is no table that can be written into")
        at, names = 3, table.names
        if tokens[at].text == "(" and tokens[at + 1].word not in ("SELECT", "WITH", "VALUES"):
            end = closing(tokens, at)
            names, at = [name_of(token) for token in tokens[at + 1 : end] if token.text != ","], end + 1
        given = {one.lower(): f"_{number}" for number, one in enumerate(names)}
        columns = ", ".join(
            f"CAST({given.get(n.lower(), 'NULL')} AS {t}) AS `{n}`"
            for n, t in zip(table.names, table.types, strict=True)
        )
        inner = self.query(tokens[at:])
        table.inserted.append(f"SELECT {columns} FROM ({inner}) AS t({', '.join(given.values())})")
        return table.view(name)
