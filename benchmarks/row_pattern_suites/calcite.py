"""Calcite's file for Quidem: statements with the table of their answer below.

Calcite's own runtime takes the rows as they are stored, whatever ORDER BY says, and gives each row of a match. The same
is asked of ours in the standard's words: ordered by their place, ALL ROWS PER MATCH.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Rows, Runs, View
from benchmarks.row_pattern_suites.dialects import Dialect, Token, clause_parts, each_clause, meaningful, translate

DIALECT = Dialect("calcite", nulls_last=False)
EMPS = View(
    "emps",
    "SELECT * FROM VALUES (0, 100, 1000), (1, 200, 500), (2, 150, NULL), (3, 110, 250) AS t(stored, empid, commission)",
)
"""The table of Calcite's small database that the cases read: the columns that they name."""


def read_files(path: Path) -> Iterator[Case]:
    """The cases of ``match.iq``."""
    file = path if path.is_file() else path / "match.iq"
    number = 0
    lines: list[str] = []
    off = False
    views: tuple[View, ...] = (EMPS,)
    for line in file.read_text().splitlines():
        if line.startswith("!if (false)"):
            off, lines = True, []
        elif line.startswith("!}"):
            off, lines = False, []
        elif line.startswith("!ok"):
            text = "\n".join(one for one in lines if not one.startswith("#"))
            lines = []
            if not re.search(r"(?i)match_recognize", text):
                continue
            number += 1
            sql, answer = re.split(r";\s*\n|;\s*$", text, maxsplit=1)
            label = f"{file.stem}:{number}"
            try:
                if off:
                    raise NotApplicableError("it is switched off in the file, without an answer of Calcite")
                sql = re.sub(r'"hr"\."emps"\."', '"', sql).replace('"hr".', "")
                sql = each_clause(translate(sql, DIALECT), _as_run)
                yield Case(label, sql, _answer(answer), views)
                views = ()
            except NotApplicableError as error:
                yield Case(label, "", Runs(), reason=str(error))
        elif not line.startswith("!"):
            lines.append(line)


def _as_run(tokens: list[Token]) -> list[Token]:
    """The clause as Calcite runs it, its variables in upper case, as the standard has names without quotes."""
    parts = dict(clause_parts(tokens))
    variables = {token.text for token in parts[5][1:] if token.kind == "word"}
    for place, part in parts.items():
        parts[place] = [Token("word", one.text.upper()) if one.text in variables else one for one in part]
    parts[1], parts[3] = meaningful("ORDER BY stored"), meaningful("ALL ROWS PER MATCH")
    return [token for place in sorted(parts) for token in parts[place]]


def _answer(text: str) -> Rows:
    """The rows below a line of dashes, which tells how wide the columns are."""
    lines = [line for line in text.splitlines() if line.strip()]
    at = next(at for at, line in enumerate(lines) if re.fullmatch(r"[- ]+", line))
    spans = [found.span() for found in re.finditer("-+", lines[at])]
    rows = [[line[begin:end].strip() or None for begin, end in spans] for line in lines[at + 1 :]]
    return Rows(rows, columns=tuple(lines[at - 1].split()))
