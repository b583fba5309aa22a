"""Trino's TestRowPatternMatching.java: queries in strings, and the rows that each is to match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Refusal, Rows, Runs
from benchmarks.row_pattern_suites.dialects import Dialect, translate
from benchmarks.row_pattern_suites.java_sources import JavaToken, arguments_of, java_tokens, matching, text_of

DIALECT = Dialect("trino", functions={"ARRAY_AGG": "array_agg"})


def read_files(path: Path) -> Iterator[Case]:
    """The cases of the file, method by method."""
    file = path if path.is_file() else path / "TestRowPatternMatching.java"
    tokens = java_tokens(file.read_text())
    known: dict[str, str] = {}
    method = ""
    for at, token in enumerate(tokens):
        following = [one.text for one in tokens[at + 1 : at + 3]]
        if token.text == "void":
            method, known = tokens[at + 1].text, {}
        elif token.kind == "word" and following[:1] == ["="]:
            end = next(place for place in range(at, len(tokens)) if tokens[place].text == ";")
            text = text_of(tokens[at + 2 : end], known)
            if text is not None:
                known[token.text] = text
        elif token.text == "query" and following[:1] == ["("] and tokens[at - 1].text == ".":
            yield _case(method, tokens, at, known)


def _case(method: str, tokens: list[JavaToken], at: int, known: dict[str, str]) -> Case:
    label = f"{method}:{tokens[at].line}"
    sql = text_of(arguments_of(tokens, at + 1)[0], known)
    if sql is None:
        return Case(label, "", Runs(), reason="the query is put together by code that is not read")
    # What is asserted stands behind the parentheses that hold the query.
    behind = matching(tokens, at + 1) + 1
    while tokens[behind].text == ")":
        behind += 1
    asserted = tokens[behind + 1].text if tokens[behind].text == "." else ""
    try:
        return Case(label, translate(sql, DIALECT), _expect(tokens, behind, asserted, known))
    except NotApplicableError as error:
        return Case(label, "", Runs(), reason=str(error))


def _expect(tokens: list[JavaToken], at: int, asserted: str, known: dict[str, str]) -> Rows | Refusal | Runs:
    if asserted == "returnsEmptyResult":
        return Rows()
    if asserted == "matches":
        text = text_of(arguments_of(tokens, at + 2)[0], known)
        if text is None:
            raise NotApplicableError("the expected rows are put together by code that is not read")
        rows = re.sub(r"(?i)^\s*values", "VALUES", translate(text, DIALECT))
        return Rows(sql=f"SELECT * FROM {rows}")
    end = next(place for place in range(at, len(tokens)) if tokens[place].text == ";")
    words = [one.text for one in tokens[at:end]]
    if any(word.startswith(("hasMessage", "nonTrinoExceptionFailure", "failure")) for word in words):
        strings = [text_of([one], known) for one in tokens[at:end] if one.kind == "string"]
        return Refusal(" ".join(one for one in strings if one))
    return Runs()
