"""Statements with MATCH_RECOGNIZE, rewritten to calls of the table function of that name.

``FROM ticks MATCH_RECOGNIZE (…) AS v`` becomes ``FROM match_recognize(TABLE(SELECT * FROM ticks), '…') AS v``. What
stands before the word, from FROM, JOIN, a comma or a parenthesis on, is the input, with its alias, version or sample.
Subqueries of the clause become columns of the input, where they may name what the statement knows, such as a CTE. All
else of the statement stays as it is written.

A clause becomes a string, in which Spark looks for no parameters. So their values are written into it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from patternlake.udfs.errors import PatternLakeError, PatternSyntaxError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.language.row_pattern.rewritten import Edit, Rewritten
from patternlake.udfs.language.row_pattern.tokens import CLOSING, OPENING, Token, find_closing, tokens_of

_WORD = "MATCH_RECOGNIZE"
_BEFORE = frozenset({"FROM", "JOIN", "LATERAL", "USING", "TABLE"})
"""Words behind which a relation begins."""
_TYPED = frozenset({"DATE", "INTERVAL", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"})
"""Words that belong to the string behind them."""
_NO_RELATION = frozenset({"SELECT", "WITH"})
_BEFORE_VALUE = frozenset(
    {"AFTER", "ALL", "AND", "ANY", "AS", "BETWEEN", "BOTH", "BY", "CASE", "DEFINE", "DISTINCT", "DIV", "ELSE"}
    | {"ESCAPE", "EXISTS", "FOR", "FROM", "ILIKE", "IN", "INTERVAL", "LEADING", "LIKE", "MEASURES", "NOT", "ON", "OR"}
    | {"PLACING", "REGEXP", "RLIKE", "SOME", "THEN", "TRAILING", "WHEN", "WHERE"}
)
"""Words behind which a value may stand; behind any other, ``:x`` is a field of what is called so."""


@dataclass(frozen=True)
class Values:
    """Parameters of a statement, in Spark SQL.

    Attributes
    ----------
    named
        Those of ``:name``.
    positional
        Those of ``?``, in the order of the statement.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    positional: Sequence[str] = ()


def rewrite_statement(text: str, literal: Callable[[str], str], values: Values | None = None) -> Rewritten:
    """Rewrite a statement for a parser that does not know the clause.

    Parameters
    ----------
    text
        The statement.
    literal
        From any text to the literal of Spark SQL that says it.
    values
        Of its parameters. Those named outside of clauses are left to Spark.

    Returns
    -------
    Rewritten
        The statement with table functions in the place of clauses; the same text if it has none.

    Raises
    ------
    PatternSyntaxError
        A clause is not closed, stands behind the condition of a join, or has a parameter without a value.

    Examples
    --------
    >>> rewrite_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a)) AS m", lambda clause: f"'{clause}'").text
    "SELECT * FROM match_recognize(TABLE(SELECT * FROM t), 'PATTERN (a)') AS m"
    """
    bound = Rewritten.of(text).edit(_bind(text, values or Values()))
    return bound.edit(_rewrite(bound.text, literal, inside=False))


def _bind(text: str, values: Values) -> list[Edit]:
    """Write the values of parameters into a statement that has clauses."""
    try:
        tokens = tokens_of(text)
    except PatternSyntaxError:
        return []  # which Spark says in its own words
    clauses = [range(at + 1, _require_closing(text, tokens, at + 1)) for at in _find_clauses(tokens)]
    if not clauses:
        return []
    # A question mark of a pattern is a quantifier.
    in_pattern = {place for clause in clauses for place in _find_pattern(tokens, clause)}
    in_clause = {place for clause in clauses for place in clause}
    edits, question = [], 0
    for at, token in enumerate(tokens):
        end = token.end
        if token.sign == "?" and at not in in_pattern:
            # All are counted, in clauses and outside of them, and Spark would count those that are left anew.
            value = values.positional[question] if question < len(values.positional) else None
            question += 1
            shown, how = f"parameter {question}, '?'", "pass one value for each '?': spark.sql(text, args=[…])"
        elif at in in_clause and _names_parameter(tokens, at):
            name, end = tokens[at + 1].name, tokens[at + 1].end
            value = values.named.get(name)
            shown, how = f"parameter :{name}", f"pass it: spark.sql(text, args={{'{name}': …}})"
        else:
            continue
        if value is None:
            raise PatternSyntaxError(f"{shown} has no value; {how}", text, token.start, end)
        # Of a minus in front, a negative number would make a comment.
        edits.append(Edit(token.start, end, f"({value})" if value.startswith("-") else value, token.start))
    return edits


def _find_clauses(tokens: Sequence[Token]) -> Iterator[int]:
    """Where the word stands that begins a clause."""
    return (at for at in range(len(tokens)) if _relation(tokens, at, inside=False) is not None)


def _find_pattern(tokens: Sequence[Token], clause: range) -> range:
    """What stands between the parentheses of PATTERN."""
    depth = 0
    for at in clause:
        depth += (tokens[at].sign in OPENING) - (tokens[at].sign in CLOSING)
        if depth == 1 and tokens[at].word == "PATTERN" and tokens[at + 1].sign == "(":
            return range(at + 1, find_closing(tokens, at + 1) or clause.stop)
    return range(0)


def _names_parameter(tokens: Sequence[Token], at: int) -> bool:
    """Whether a colon begins a parameter, not a part of ``::`` or of a path into a value."""
    before, behind = tokens[at - 1], tokens[at + 1]
    if tokens[at].sign != ":" or behind.kind not in ("word", "quoted") or behind.start != tokens[at].end:
        return False
    if before.kind == "sign":
        return before.sign not in CLOSING and before.sign not in (":", "?")
    return before.word in _BEFORE_VALUE


def _rewrite(text: str, literal: Callable[[str], str], *, inside: bool) -> list[Edit]:
    """Rewrite a statement, or what is `inside` of one: a relation."""
    try:
        tokens = tokens_of(text)
    except PatternSyntaxError:
        return []  # which Spark says in its own words
    calls: list[tuple[int, list[Edit]]] = []
    at = 0
    while at < len(tokens):
        begin = _relation(tokens, at, inside=inside)
        if begin is None:
            at += 1
            continue
        close = _require_closing(text, tokens, at + 1)
        _check_relation(text, tokens, begin, at)
        start, end = tokens[begin].start, tokens[at - 1].end
        while calls and calls[-1][0] >= start:
            calls.pop()  # a clause in the relation, which is rewritten with it
        relation = [edit.shift(start) for edit in _rewrite(text[start:end], literal, inside=True)]
        inside_begin = tokens[at + 1].end
        clause = text[inside_begin : tokens[close].start]
        columns = [(f", {sql}", inside_begin + place) for sql, place in _move_subqueries(clause, literal)]
        # MERGE takes a table or a query, and no function.
        query, behind = ("(SELECT * FROM ", ")") if begin and tokens[begin - 1].word == "USING" else ("", "")
        written = [(f"{query}match_recognize(TABLE(SELECT *", start), *columns, (" FROM ", start)]
        head = [Edit(start, start, one, place) for one, place in written]
        tail = Edit(end, tokens[close].end, f"), {literal(clause)}){behind}", tokens[at].start)
        calls.append((start, [*head, *relation, tail]))
        at = close + 1
    return [edit for _, edits in calls for edit in edits]


def _move_subqueries(clause: str, literal: Callable[[str], str]) -> list[tuple[str, int]]:
    """The columns of the input that are a clause's subqueries, and where these stand."""
    try:
        subqueries = parse_clause(clause).subqueries if "select" in clause.lower() else ()
    except PatternLakeError:
        return []  # which is said where the clause is planned
    return [
        (f"{Rewritten.of(one.sql).edit(_rewrite(one.sql, literal, inside=False)).text} AS {one.column}", one.span.start)
        for one in subqueries
    ]


def _relation(tokens: Sequence[Token], at: int, *, inside: bool) -> int | None:
    """Where the relation begins that a clause at a token is about; None where no clause is."""
    if tokens[at].word != _WORD or tokens[min(at + 1, len(tokens) - 1)].sign != "(":
        return None
    begin = at
    while begin:
        before = tokens[begin - 1]
        if before.sign in CLOSING:
            begin = _find_opening(tokens, begin - 1)
        elif before.sign == "," and (values := _values(tokens, begin - 1)) is not None:
            begin = values
        elif (before.word in _BEFORE and tokens[begin - 2].sign != ".") or (before.sign and before.sign in "([,;"):
            # Without a relation, or behind SELECT, it is a function.
            return begin if begin < at and tokens[begin].word not in _NO_RELATION else None
        else:
            begin -= 1
    return 0 if inside and at else None


def _check_relation(text: str, tokens: Sequence[Token], begin: int, end: int) -> None:
    """Fail at a relation that ends with the condition of a join or with a lateral view, which is none."""
    before = tokens[begin - 1] if begin else tokens[begin]
    at = begin
    if before.word == "USING" and tokens[begin].sign == "(" and tokens[begin + 2].sign in (",", ")"):
        _fail_behind("the condition of a join", text, before)
    if before.word == "LATERAL" and tokens[begin].word == "VIEW":
        _fail_behind("a lateral view", text, before)
    while at < end:
        if tokens[at].word == "ON":
            _fail_behind("the condition of a join", text, tokens[at])
        at = _require_closing(text, tokens, at) + 1 if tokens[at].sign in OPENING else at + 1


def _fail_behind(what: str, text: str, token: Token) -> NoReturn:
    """Refuse a clause that stands behind no table."""
    message = f"MATCH_RECOGNIZE stands behind a table, not behind {what}; write (SELECT * FROM … ) MATCH_RECOGNIZE (…)"
    raise PatternSyntaxError(message, text, token.start, token.end)


def _find_opening(tokens: Sequence[Token], at: int) -> int:
    """The parenthesis that opens one; the first token where none does."""
    depth = 0
    for begin in range(at, -1, -1):
        depth += (tokens[begin].sign in CLOSING) - (tokens[begin].sign in OPENING)
        if not depth:
            return begin
    return 0


def _values(tokens: Sequence[Token], at: int) -> int | None:
    """Where an inline table begins of which a comma is a part; None where it is none."""
    while at > 0 and tokens[at].sign == ",":
        at = _row_begin(tokens, at - 1) - 1
    return at if at >= 0 and tokens[at].word == "VALUES" else None


def _row_begin(tokens: Sequence[Token], at: int) -> int:
    """Where a row of an inline table begins that ends at a token: ``(1, 2)``, ``struct(1, 2)``, ``1``, ``-1``."""
    begin = _find_opening(tokens, at) if tokens[at].sign in CLOSING else at
    before = tokens[begin - 1]
    called = begin < at and before.is_name and before.word != "VALUES"
    return begin - (called or before.sign in ("+", "-") or before.word in _TYPED)


def _require_closing(text: str, tokens: Sequence[Token], at: int) -> int:
    """The parenthesis that closes one."""
    close = find_closing(tokens, at)
    if close is not None:
        return close
    raise PatternSyntaxError("this '(' of MATCH_RECOGNIZE is never closed", text, tokens[at].start)
