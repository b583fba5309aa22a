"""ZetaSQL's compliance files: the statement, a line of ``--``, and the answer as a value of its types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Refusal, Rows, Runs, View
from benchmarks.row_pattern_suites.dialects import (
    Dialect,
    Token,
    closing,
    each_clause,
    meaningful,
    split_list,
    tokens_of,
    translate,
    write_tokens,
)

DIALECT = Dialect(
    "zetasql",
    strings=True,
    nulls_last=False,
    hash_comments=True,
    functions={"UNNEST": "inline", "ARRAY_TRANSFORM": "transform"},
    unknown={"MATCH_ROW_NUMBER": "MATCH_ROW_NUMBER() is ZetaSQL's own"},
)
_FEATURES = {
    "MULTILEVEL_AGGREGATION": "GROUP BY in an aggregate is ZetaSQL's own",
    "LIMIT_IN_AGGREGATE": "LIMIT in an aggregate is not in Spark",
    "HAVING_IN_AGGREGATE": "HAVING MAX in an aggregate is not in Spark",
    "INLINE_LAMBDA_ARGUMENT": "a subquery in a lambda function is not in Spark",
}


def read_files(path: Path) -> Iterator[Case]:
    """The cases of ``match_recognize*.test``."""
    for file in sorted(path.glob("match_recognize*.test")):
        yield from _read(file)


def _read(file: Path) -> Iterator[Case]:
    views: list[View] = []
    # Both files make the same table.
    for number, section in enumerate(re.split(r"(?m)^==\s*$", file.read_text())):
        before, _, answer = section.partition("\n--\n")
        options = re.findall(r"(?m)^\[(\w+)(?:[= ](.*))?\]\s*$", before)
        sql = re.sub(r"(?m)^\[(?:default )?(?:\w+)(?:[= ].*)?\]\s*$", "", before).strip()
        if not sql:
            continue
        named = dict(options)
        label = f"{file.stem}:{named.get('name', number)}"
        if "prepare_database" in named:
            views.append(_table(sql))
            continue
        try:
            case = Case(label, _translate(sql, named), _expect(answer.strip()), tuple(views))
            views = []
        except NotApplicableError as error:
            case = Case(label, "", Runs(), reason=str(error))
        yield case


def _table(sql: str) -> View:
    sql = re.sub(r"(?m)^\s*#.*$", "", sql)
    found = re.search(r"(?is)create\s+table\s+(\w+)\s+as\s+(.*?);?\s*$", sql)
    assert found, sql
    return View(found[1], _arrays(translate(found[2], DIALECT)))


def _arrays(sql: str) -> str:
    """Arrays by Spark's function."""
    return "".join({"[": "array(", "]": ")"}.get(t.text, t.text) for t in tokens_of(sql))


def _translate(sql: str, named: Mapping[str, str]) -> str:
    for feature, reason in _FEATURES.items():
        if feature in named.get("required_features", ""):
            raise NotApplicableError(reason)
    for value, name in re.findall(r"(\S+) (?:AS|as) (\w+)", named.get("parameters", "")):
        sql = sql.replace(f"@{name}", value)
    if re.search(r"(?i)use_longest_match\s*=\s*true", sql):
        raise NotApplicableError("use_longest_match is ZetaSQL's own")
    sql = re.sub(r"(?i)options\s*\(\s*use_longest_match\s*=\s*false\s*\)", "", sql)
    if re.search(r"(?i)\bouter_(col|tbl)\b", sql):
        raise NotApplicableError("columns of an outer query in the clause: Spark's table functions are not correlated")
    sql = re.sub(r"(?i)collate\s+\"und:ci\"", "COLLATE UNICODE_CI", sql)
    sql = each_clause(translate(sql, DIALECT), _clause)
    return _arrays(sql)


def _clause(tokens: list[Token]) -> list[Token]:
    """The clause with ``()`` where an alternative is left empty, and aggregates as Spark writes them."""
    done: list[Token] = []
    for at, token in enumerate(tokens):
        if token.text == "|" and done[-1].text in ("(", "|"):
            done += meaningful("()")
        done.append(token)
        if token.text == "|" and tokens[at + 1].text == ")":
            done += meaningful("()")
    return _aggregates(done)


def _aggregates(tokens: Sequence[Token]) -> list[Token]:
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.word in ("STRING_AGG", "ARRAY_AGG") and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            end = closing(tokens, at + 1)
            done += _aggregate(token.word, list(tokens[at + 2 : end]))
            at = end
        else:
            done.append(token)
        at += 1
    return done


def _aggregate(name: str, inside: list[Token]) -> list[Token]:
    words = [token.word for token in inside]
    order: list[Token] = []
    if "ORDER" in words:
        order, inside = inside[words.index("ORDER") :], inside[: words.index("ORDER")]
    if name == "ARRAY_AGG":
        if order:
            raise NotApplicableError("ORDER BY in array_agg is not in Spark")
        return meaningful(f"array_agg({write_tokens(inside)})")
    if len(split_list(inside)) == 1:
        inside = [*inside, *meaningful(", ','")]
    within = f" WITHIN GROUP ({write_tokens(order)})" if order else ""
    return meaningful(f"string_agg({write_tokens(inside)}){within}")


def _expect(answer: str) -> Rows | Refusal:
    answer = answer.split("\n\nNOTE:")[0]
    if answer.startswith("ERROR:"):
        return Refusal(answer)
    head = re.match(r"(?s)ARRAY<STRUCT<.*?>>\s*\[", answer)
    assert head, answer
    values, _ = _Value(meaningful(answer[head.end() - 1 :])).read(0)
    return Rows(values)


class _Value:
    """Reads values as the files write them."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens

    def read(self, at: int) -> tuple[Any, int]:
        """The value that begins at a token, and what follows it."""
        token = self.tokens[at]
        if token.text == "ARRAY":
            while self.tokens[at].text != "[":
                at += 1
            return self.read(at)
        if token.text in ("[", "{"):
            return self._list(at)
        if token.text == "-":
            return "-" + self.tokens[at + 1].text, at + 2
        if token.word == "NULL":
            return None, at + 1
        text = token.text
        return (text[1:-1] if text[0] in "'\"" else text), at + 1

    def _list(self, at: int) -> tuple[list[Any], int]:
        close = {"[": "]", "{": "}"}[self.tokens[at].text]
        at += 1
        if self.tokens[at].word in ("KNOWN", "UNKNOWN"):
            at += 3  # "known order:"
        values: list[Any] = []
        while self.tokens[at].text != close:
            value, at = self.read(at)
            values.append(value)
            if self.tokens[at].text == ",":
                at += 1
        return values, at + 1
