"""Esper's regression tests of MATCH_RECOGNIZE: statements of its language, events that are sent, answers that are told.

A statement is asked once, of all events that were sent before its last answer: of what its iterator is to give, which
matches all events that it keeps; without one, of all rows that it is to have sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.row_pattern_suites.cases import Case, NotApplicableError, Refusal, Rows, Runs, View
from benchmarks.row_pattern_suites.dialects import Dialect, Token, each_clause, meaningful, translate, write_tokens
from benchmarks.row_pattern_suites.java_sources import (
    JavaToken,
    arguments_of,
    java_tokens,
    matching,
    string_of,
    text_of,
)

DIALECT = Dialect("esper", strings=True, nulls_last=False)
_EVENTS: dict[tuple[str, int], str] = {
    ("SupportRecogBean", 2): "theString STRING, value INT",
    ("SupportRecogBean", 3): "theString STRING, cat STRING, value INT",
    ("SupportBean", 2): "theString STRING, intPrimitive INT",
    ("TemperatureSensorEvent", 3): "id STRING, device INT, temp DOUBLE",
    ("SupportBean_A", 1): "id STRING",
}
"""The fields of events, by class and number of arguments."""
_OWN = {
    r"(?i)\binterval\b": "INTERVAL (a match is given when time has passed) is Esper's own",
    r"(?i)skip\s+to\s+current\s+row": "SKIP TO CURRENT ROW is Esper's own: each end of a match is a match",
    r"#(?!keepall)": "a window that events leave, of a stream",
    r"(?i)\btypeof\s*\(": "typeof() is of streams of several types",
    r"(?i)\bcreate\s+(window|variant|table|schema)\b": "a window or a stream that other statements change",
    r"(?i)\b(insert into|on \w+ delete|update)\b": "a stream that other statements change",
    r"=>|(?i:\.(anyof|firstof|lastof|countof|aggregate)\s*\()": "enumeration methods are Esper's own",
    r"(?i)\bfrom\s+\w+(#keepall)?\s*,": "a table beside the clause is a join, which SQL has and Esper refuses",
    r"(?i)\bcontext\b": "contexts are Esper's own",
}


@dataclass
class _Statement:
    """A statement that was deployed, what was sent to it and what it is to give."""

    method: str
    line: int
    sql: str
    events: list[tuple[str, list[Any]]] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    kept: tuple[int, list[list[Any]]] | None = None
    sent: list[list[Any]] = field(default_factory=list)
    timed: bool = False
    unread: str | None = None
    refused: str | None = None


def read_files(path: Path) -> Iterator[Case]:
    """The cases of ``RowRecog*.java``."""
    for file in [path] if path.is_file() else sorted(path.glob("RowRecog*.java")):
        seen = set()
        for statement in _Reading(java_tokens(file.read_text())).statements():
            label = f"{file.stem}:{statement.method}:{statement.line}"
            key = (statement.sql, str(statement.events))
            if key in seen:  # the same once more, from its model
                continue
            seen.add(key)
            try:
                yield _case(label, statement)
            except NotApplicableError as error:
                yield Case(label, "", Runs(), reason=str(error))


class _Reading:
    """Reads the methods of a file as far as they are plain sequences of calls.

    A method of the file that is called stands for its body, with what it is given in the place of its parameters.
    """

    def __init__(self, tokens: list[JavaToken]) -> None:
        self.tokens = tokens
        self.methods: dict[str, tuple[list[str], list[JavaToken]]] = {}
        self.done: list[_Statement] = []
        self.current: _Statement | None = None

    def statements(self) -> list[_Statement]:
        """All statements in their order."""
        runs = []
        owner = ""
        for at, token in enumerate(self.tokens):
            if token.text == "class":
                owner = self.tokens[at + 1].text
            if token.kind == "word" and self.tokens[at + 1 : at + 2] and self.tokens[at + 1].text == "(":
                close = matching(self.tokens, at + 1)
                brace = close + 1
                if self.tokens[at - 1].kind == "word" and self.tokens[at - 1].text not in ("new", "return"):
                    if self.tokens[brace].text != "{":
                        continue
                    names = [part[-1].text for part in arguments_of(self.tokens, at + 1)]
                    body = self.tokens[brace + 1 : matching(self.tokens, brace)]
                    if token.text == "run" and names == ["env"]:
                        runs.append((owner, body))
                    else:
                        self.methods.setdefault(token.text, (names, body))
        for owner, body in runs:
            self.read(owner, body, {}, {})
            self.finish()
        return self.done

    def finish(self) -> None:
        """The current statement is withdrawn."""
        if self.current is not None:
            self.done.append(self.current)
        self.current = None

    def read(
        self, owner: str, tokens: list[JavaToken], texts: dict[str, str], held: dict[str, list[JavaToken]]
    ) -> None:
        """The statements of a body; `held` is what its variables hold."""
        at = 0
        while at < len(tokens):
            token = tokens[at]
            following = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if token.text in ("for", "while") and following == "(":
                at = self.loop(owner, tokens, at, texts, held)
            elif token.kind == "word" and following == "=":
                stop = next(place for place in range(at, len(tokens)) if tokens[place].text == ";")
                value = tokens[at + 2 : stop]
                held[token.text] = value
                text = text_of(value, texts)
                if text is not None:
                    texts[token.text] = text
                if value[0].kind == "word" and value[0].text in self.methods:
                    self.call(owner, value, 0, texts, held)
                at += 2
            elif token.kind == "word" and following == "(":
                self.call(owner, tokens, at, texts, held)
                at = matching(tokens, at + 1)
            at += 1

    def loop(
        self,
        owner: str,
        tokens: list[JavaToken],
        at: int,
        texts: dict[str, str],
        held: dict[str, list[JavaToken]],
    ) -> int:
        """A loop over the rows of an array is its body for each row; where it ends."""
        close = matching(tokens, at + 1)
        end = matching(tokens, close + 1) if tokens[close + 1].text == "{" else close
        head = tokens[at + 2 : close]
        colon = next((place for place, token in enumerate(head) if token.text == ":"), None)
        rows = [] if colon is None else _resolve(head[colon + 1 :], held)
        if colon is None or not any(token.text == "{" for token in rows):
            self.unread("a loop of Java sends its events or makes its statements")
            return end
        name, brace = head[colon - 1].text, next(place for place, token in enumerate(rows) if token.text == "{")
        for row in arguments_of(rows, brace):
            body = []
            inside = tokens[close + 2 : end]
            place = 0
            while place < len(inside):
                if inside[place].text == name and inside[place + 1].text == "[":
                    body += arguments_of(row, 0)[int(inside[place + 2].text)]
                    place += 3
                else:
                    body.append(inside[place])
                place += 1
            self.read(owner, body, dict(texts), dict(held))
        return end

    def call(
        self,
        owner: str,
        tokens: list[JavaToken],
        at: int,
        texts: dict[str, str],
        held: dict[str, list[JavaToken]],
    ) -> None:
        """What a call does to the current statement."""
        name, given, line = tokens[at].text, arguments_of(tokens, at + 1), tokens[at].line
        if name in ("compileDeploy", "eplToModelCompileDeploy", "compile"):
            self.deployed(owner, line, [text_of(one, texts) for one in given])
        elif name == "tryInvalidCompile":
            told = [text_of(one, texts) for one in given]
            self.finish()
            if told[0] is None:
                self.done.append(_Statement(owner, line, "", unread=_MADE))
            else:
                self.done.append(_Statement(owner, line, told[0], refused=told[1] or "an error"))
        elif name in ("undeployAll", "undeployModuleContaining"):
            self.finish()
        elif name == "runAssertion" and len(given) == 7:
            self.repeated(owner, line, given, texts)
        elif name in self.methods and (at == 0 or tokens[at - 1].text != "."):
            names, body = self.methods[name]
            values = dict(zip(names, given, strict=False))
            inner = [
                one
                for place, token in enumerate(body)
                for one in (
                    _wrap(values[token.text])
                    if token.text in values and token.text != "env" and body[place - 1].text != "."
                    else [token]
                )
            ]
            self.read(owner, inner, dict(texts), {**held})
        elif self.current is not None:
            self.told(name, given, texts, held)

    def deployed(self, owner: str, line: int, given: list[str | None]) -> None:
        """A statement that is deployed."""
        sql = next((text for text in given if text is not None), None)
        if sql is None:
            if len(given) == 1:
                self.finish()
                self.current = _Statement(owner, line, "", unread=_MADE)
        elif re.search(r"(?i)match_recognize", sql):
            self.finish()
            self.current = _Statement(owner, line, sql)

    def repeated(self, owner: str, line: int, given: list[list[JavaToken]], texts: dict[str, str]) -> None:
        """A pattern with the sequences that it is to match and not to match, each of them a partition.

        The names of events begin with their variable; of a repeated variable all events are told.
        """
        pattern, names = text_of(given[2], texts), text_of(given[3], texts)
        assert pattern is not None
        assert names is not None
        lists = [token.text == "true" for token in given[4] if token.text in ("true", "false")]
        measures = ", ".join(
            f"array_agg({name}.theString) as {name}" if repeated else f"{name}.theString as {name}"
            for name, repeated in zip(names.split(","), lists, strict=True)
        )
        defines = ", ".join(f"{name} as {name}.theString like '{name.upper()}%'" for name in names.split(","))
        sql = (
            f"select * from SupportBean match_recognize (partition by intPrimitive measures {measures} "
            f"pattern ({pattern.lower()}) define {defines})"
        )
        statement = _Statement(owner, line, sql, fields=names.split(","))
        place = 0
        for matched, sequences in ((True, given[5]), (False, given[6])):
            for token in sequences:
                if token.kind != "string":
                    continue
                events = string_of(token).split(",")
                statement.events += [("SupportBean", [event, place]) for event in events]
                if matched:
                    of = [[one for one in events if one[0].lower() == name] for name in names.split(",")]
                    statement.sent.append([o if r else next(iter(o), None) for o, r in zip(of, lists, strict=True)])
                place += 1
        self.done.append(statement)

    def unread(self, why: str) -> None:
        """What follows cannot be read."""
        if self.current is not None:
            self.current.unread = why

    def told(
        self, name: str, given: list[list[JavaToken]], texts: dict[str, str], held: dict[str, list[JavaToken]]
    ) -> None:
        """An event that is sent to the current statement, or an answer that is told."""
        assert self.current is not None
        try:
            if name in ("sendEventBean", "sendEventObjectArray"):
                self.current.events.append(_event([_resolve(one, held) for one in given]))
            elif name.startswith("set") and len(given) == 1:
                raise ValueError
            elif name in ("advanceTime", "sendTimer", "advanceTimeSpan"):
                self.current.timed = True
            elif name in ("assertPropsPerRowIterator", "assertPropsPerRowLastNew", "assertPropsNew"):
                fields, rows = _resolve(given[1], held), _rows(given[2])
                self.current.fields = string_of(next(one for one in fields if one.kind == "string")).split(",")
                if name == "assertPropsPerRowIterator":
                    self.current.kept = (len(self.current.events), rows)
                else:
                    self.current.sent += rows
            elif name == "assertIterator" and any(token.text == "assertFalse" for token in given[-1]):
                self.current.kept = (len(self.current.events), [])
            elif name == "assertIterator":
                raise ValueError
        except (ValueError, IndexError, StopIteration):
            self.unread("its events or its answer are put together by code that is not read")


_MADE = "its statement is made by code that is not read"


def _wrap(tokens: list[JavaToken]) -> list[JavaToken]:
    """An argument in the place of a parameter."""
    if len(tokens) == 1 or tokens[0].text == "new":
        return tokens
    line = tokens[0].line
    return [JavaToken("sign", "(", line), *tokens, JavaToken("sign", ")", line)]


def _resolve(tokens: list[JavaToken], held: dict[str, list[JavaToken]]) -> list[JavaToken]:
    """What an expression stands for, where it is a variable."""
    if len(tokens) == 1 and tokens[0].text in held:
        return _resolve(held[tokens[0].text], {k: v for k, v in held.items() if k != tokens[0].text})
    return tokens


def _event(given: list[list[JavaToken]]) -> tuple[str, list[Any]]:
    """An event that is sent: its class and its fields."""
    first = given[0]
    if first[0].text == "new" and first[1].text == "Object":
        brace = next(at for at, token in enumerate(first) if token.text == "{")
        return string_of(given[1][0]), [_value(one) for one in arguments_of(first, brace)]
    if first[0].text == "new" and first[2].text == "(":
        return first[1].text, [_value(one) for one in arguments_of(first, 2)]
    raise ValueError


def _rows(tokens: list[JavaToken]) -> list[list[Any]]:
    """The rows of an array of Java."""
    if tokens[0].text == "null":
        return []
    brace = next(at for at, token in enumerate(tokens) if token.text == "{")
    parts = arguments_of(tokens, brace)
    if parts and parts[0][0].text == "{":
        return [[_value(one) for one in arguments_of(part, 0)] for part in parts]
    return [[_value(one) for one in parts]]


def _value(tokens: Sequence[JavaToken]) -> Any:
    """A literal of Java."""
    while len(tokens) > 1 and tokens[0].text == "(":  # a cast, or an argument in the place of a parameter
        tokens = tokens[1:-1] if matching(tokens, 0) == len(tokens) - 1 else tokens[matching(tokens, 0) + 1 :]
    text = "".join(token.text for token in tokens)
    if len(tokens) == 1 and tokens[0].kind == "string":
        return string_of(tokens[0])
    if text in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[text]
    return float(re.sub(r"[LdDfF]$", "", text)) if "." in text or text[-1] in "dDfF" else int(text.rstrip("L"))


def _case(label: str, statement: _Statement) -> Case:
    text = re.sub(r"(?i)@(name|hint)\s*\([^)]*\)", "", statement.sql)
    for pattern, reason in _OWN.items():
        if re.search(pattern, text):
            raise NotApplicableError(reason)
    if statement.unread:
        raise NotApplicableError(statement.unread)
    if statement.timed:
        raise NotApplicableError("its answers depend on the time at which they are asked for")
    if statement.refused is None and (not statement.events or not statement.fields):
        raise NotApplicableError("it tells no answer: it is compiled, or measured, only")
    sql = translate(text.replace("#keepall", ""), DIALECT)
    sql = each_clause(sql, _clause)
    if statement.refused is not None:
        return _refused_case(label, sql, statement.refused)
    # Without a window nothing is kept that an iterator could give.
    kept = statement.kept if "#keepall" in text else None
    count, rows = kept if kept is not None else (len(statement.events), statement.sent)
    view = _view(statement.events[:count])
    if not re.search(rf"(?i)\bfrom {view.name}\b", sql):
        raise NotApplicableError("a window or a stream that other statements change")
    return Case(label, sql, Rows(rows, columns=tuple(statement.fields)), (view,))


_LOOSER = {
    "Failed to find a stream named 'B'": "a condition may look at another variable of the pattern: the standard's rule",
    "indexed property": "a column of a repeated variable is that of its last row: the standard's rule",
    "exactly one group variable returning": "an aggregate may be of a variable that comes once: the standard's rule",
    "may not appear in a DEFINE": "a condition may hold aggregates: the standard's rule",
}
"""What Esper refuses and the standard allows, by its message."""


def _refused_case(label: str, sql: str, message: str) -> Case:
    """A statement that is to fail."""
    for words, reason in _LOOSER.items():
        if words in message and "A . value + B . value" not in sql:
            raise NotApplicableError(reason)
    schema = ", ".join(f"CAST(NULL AS {one.split()[1]}) AS {one.split()[0]}" for one in _ALL_FIELDS)
    kinds = ("SupportRecogBean", "SupportBean")
    views = tuple(View(kind, f"SELECT 1 AS place, {schema}") for kind in kinds)
    return Case(label, sql, Refusal(message), views)


_ALL_FIELDS = ("theString STRING", "value INT", "intPrimitive INT")


def _view(events: Sequence[tuple[str, list[Any]]]) -> View:
    """The events as a table, with the place of each."""
    kinds = {(kind, len(values)) for kind, values in events}
    if len(kinds) != 1 or next(iter(kinds)) not in _EVENTS:
        raise NotApplicableError(f"events of {', '.join(sorted({kind for kind, _ in kinds}))} with other fields")
    names = [one.split() for one in _EVENTS[next(iter(kinds))].split(", ")]
    rows = []
    for place, (_, values) in enumerate(events):
        cells = (f"CAST({_sql(v)} AS {type_}) AS {name}" for v, (name, type_) in zip(values, names, strict=True))
        rows.append(f"SELECT {place} AS place, {', '.join(cells)}")
    return View(events[0][0], " UNION ALL ".join(rows))


def _sql(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _clause(tokens: list[Token]) -> list[Token]:
    """A clause in the standard's words."""
    text = write_tokens(tokens)
    text = re.sub(r"(?i)\ball matches\b", "", text)
    text = re.sub(r"(?i)\bmatch_recognize_permute\b", "PERMUTE", text)
    text = re.sub(r"(\w+) \[ (\d+) \] \. (\w+)", r"FIRST ( \1 . \3 , \2 )", text)
    head = re.match(r"(?i)partition by .*?(?=\bmeasures\b)", text)
    at = head.end() if head else 0
    two = re.search(r"(?i)\bsum \( (\w+) \. \w+ \+ (\w+) \. \w+ \) as", text)
    if two and two[1] != two[2] and "mytotal" not in text:
        raise NotApplicableError("an aggregate over rows of two variables, which the standard forbids")
    variables = {token.text for token in meaningful(re.split(r"(?i)\bpattern\b", text, maxsplit=1)[1])}
    before = text[: text.lower().index("pattern")]
    for measure in re.findall(r"(?i)(?:measures|,) (\w+)(?: \[ \d+ \])? as \w+", before):
        if measure in variables:
            raise NotApplicableError("a measure that is a whole event, or a list of events")
    return meaningful(f"{text[:at]} ORDER BY place {text[at:]}")
