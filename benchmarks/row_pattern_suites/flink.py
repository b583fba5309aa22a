"""Flink's MatchRecognizeITCase.scala: rows in lists, a query in a string, the answer's rows as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Rows, Runs, View
from benchmarks.row_pattern_suites.dialects import Dialect, translate
from benchmarks.row_pattern_suites.java_sources import JavaToken, arguments_of, java_tokens, string_of

DIALECT = Dialect("flink", nulls_last=False)
_TYPES = {"Int": "INT", "INT": "INT", "String": "STRING", "STRING": "STRING", "Long": "BIGINT", "Double": "DOUBLE"}
_UNKNOWN = {
    r"(?i)\btumble\w*\s*\(": "group windows (TUMBLE) are Flink's own",
    r"(?i)\bmatch_rowtime\s*\(": "MATCH_ROWTIME is Flink's own",
    r"createTemporarySystemFunction": "it calls functions that the test defines in Scala",
    r"(?i)\bwithin\s+interval\b": "WITHIN is Flink's own",
}

_DEPARTURES = {
    "testLogicalOffsets": "a greedy quantifier of Flink gives no rows back; by the standard two matches are there",
}
"""Cases whose answer is not that of the standard, and why."""


def read_files(path: Path) -> Iterator[Case]:
    """The cases of the file."""
    file = path if path.is_file() else path / "MatchRecognizeITCase.scala"
    for block in re.split(r"(?m)^  @TestTemplate\s*$", file.read_text())[1:]:
        name = re.search(r"def (\w+)", block)
        assert name, block
        try:
            if name[1] in _DEPARTURES:
                raise NotApplicableError(_DEPARTURES[name[1]])
            yield _case(name[1], block)
        except NotApplicableError as error:
            yield Case(name[1], "", Runs(), reason=str(error))


def _case(name: str, block: str) -> Case:
    for pattern, reason in _UNKNOWN.items():
        if re.search(pattern, block):
            raise NotApplicableError(reason)
    query = re.search(r'(?s)val sqlQuery =\s*s"""(.*?)"""', block)
    view = re.search(r'createTemporaryView\("(\w+)"', block)
    expected = re.search(r"(?s)val expected = \S*?List(?:Buffer)?\((.*?)\)\n", block)
    if query is None or view is None or expected is None:
        raise NotApplicableError("the test is put together by code that is not read")
    sql = re.sub(r"\\u(\w{4})", lambda m: chr(int(m[1], 16)), re.sub(r"(?m)^\s*\|", "", query[1]))
    texts = [string_of(token) for token in java_tokens(expected[1]) if token.kind == "string"]
    return Case(
        name, translate(sql, DIALECT), Rows([text.split(",") for text in texts]), (View(view[1], _table(block)),)
    )


def _table(block: str) -> str:
    """The table as a query: the rows with their columns, and the time of each row's arrival."""
    columns = re.search(r"(?s)\.toTable\(tEnv,(.*?)\)\n", block)
    declared = re.search(r"(?s)(?:ListBuffer|TypeInformation)\[\((.*?)\)\]", block)
    assert columns, block
    names = re.findall(r"'(\w+)(\.\w+)?", columns[1])
    kinds = declared[1].split(",") if declared else re.findall(r"BasicTypeInfo\.(\w+)_TYPE_INFO", block)
    types = [_TYPES[kind.strip()] for kind in kinds]
    rows = []
    for place, (time, values) in enumerate(_rows(block)):
        given = iter(f"CAST({value} AS {type_})" for value, type_ in zip(values, types, strict=True))
        row = []
        for name, time_kind in names:
            if time_kind == ".proctime":
                row.append(f"now() + INTERVAL {place} SECOND AS {name}")
            elif time_kind == ".rowtime":
                row.append(f"timestamp_millis({time if time is not None else next(given)}) AS {name}")
            else:
                row.append(f"{next(given)} AS {name}")
        rows.append(f"SELECT {', '.join(row)}")
    return " UNION ALL ".join(rows)


def _rows(block: str) -> Iterator[tuple[str | None, list[str]]]:
    """The rows, each with the time that stands before it, if one does."""
    tokens = java_tokens(block)
    for at, token in enumerate(tokens):
        if token.text == "Left":
            time, row = arguments_of(tokens, at + 1)
            yield time[0].text.rstrip("L"), [_value(one) for one in arguments_of(row, 0)]
        elif "".join(one.text for one in tokens[at : at + 4]) in ("+=((", "Row.of("):
            yield None, [_value(one) for one in arguments_of(tokens, at + 3)]


def _value(tokens: list[JavaToken]) -> str:
    """A value in Spark SQL."""
    text = "".join(token.text for token in tokens)
    found = re.fullmatch(r"Duration\.ofSeconds\((\d+)\)\.toMillis", text)
    if found:
        return f"{found[1]}000"
    found = re.fullmatch(r"Int\.box\((-?\d+)\)", text)
    if found:
        return found[1]
    if tokens[0].kind == "string":
        return "'" + string_of(tokens[0]) + "'"
    return "NULL" if text == "null" else re.sub(r"[LdDfF]$", "", text)
