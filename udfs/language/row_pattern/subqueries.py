"""Subqueries in DEFINE and MEASURES: where they stand, and which column of the input has their value.

A subquery looks at tables, not at the match. So Spark computes it before the match, as a column of the input:
``price > (SELECT avg(price) FROM t)`` asks for ``(SELECT avg(price) FROM t)``, and ``a.x IN (SELECT y FROM t)`` for all
of ``x IN (SELECT y FROM t)``, which is a column of the variable's rows. It may name columns of the input, bare or by
the name of their table: these are of the row that the column is of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from patternlake.udfs.errors import PredicateError, UnsupportedOperatorError, shorten
from patternlake.udfs.language.query.tree import NOWHERE, Span
from patternlake.udfs.language.row_pattern.tokens import CLOSING, OPENING, Token, find_closing
from patternlake.udfs.own_names import OWN

COLUMN = f"{OWN}subquery_"
"""What the columns of subqueries are called; their number in the clause follows."""
_QUERY = frozenset({"SELECT", "WITH"})
_BEFORE_PREDICATE = frozenset({"AND", "CASE", "DISTINCT", "ELSE", "NOT", "OR", "THEN", "WHEN", "WHERE"})
"""Words that end what stands before IN."""
_BEFORE_OPERAND = _BEFORE_PREDICATE | {"ALL", "ANY", "BETWEEN", "DIV", "ILIKE", "IS", "LIKE", "RLIKE", "SOME"}
"""Words that are no functions, so that a parenthesis behind them is one of its own."""


@dataclass(frozen=True)
class Subquery:
    """A subquery of a clause.

    Attributes
    ----------
    column
        The column of the input that has its value.
    sql
        What that column is, over the input's columns.
    compared
        Of IN, the place of what stands before it.
    query
        The place of the subquery's parentheses.
    is_constant
        Whether it is the same for all rows; it is not if it names columns of the input.
    span
        What the column takes the place of.
    """

    column: str
    sql: str
    compared: Span | None = None
    query: Span = field(default=NOWHERE, compare=False)
    is_constant: bool = False
    span: Span = field(default=NOWHERE, compare=False)


def find_subqueries(
    text: str, expressions: Sequence[Sequence[Token]], names: Mapping[str, str], functions: Collection[str]
) -> tuple[Subquery, ...]:
    """Find the subqueries of a clause.

    Parameters
    ----------
    text
        The clause.
    expressions
        The tokens of its expressions, in text order.
    names
        Variables and subsets, by their names in upper case.
    functions
        Those that look at a match, in upper case.

    Raises
    ------
    PredicateError
        A subquery looks at the match, or is an argument without parentheses of its own.
    UnsupportedOperatorError
        IN compares with a subquery what is no expression of one row's columns.
    """
    found: list[Subquery] = []
    for tokens in expressions:
        in_this: list[Subquery] = []
        at = 0
        while at < len(tokens):
            if not begins_subquery(tokens, at):
                at += 1
                continue
            close = find_closing(tokens, at)
            assert close is not None, tokens[at]  # the parser of the clause has balanced them
            one = _Reader(text, tokens, names, functions).read(at, close)
            if in_this and in_this[-1].span.end > one.span.start:
                inner = in_this[-1].query
                message = "what stands before IN (SELECT …) has no subquery of its own; compute it before the clause"
                raise UnsupportedOperatorError(message, text, inner.start, inner.end)
            in_this.append(one)
            at = close + 1
        found += in_this
    return tuple(
        Subquery(f"{COLUMN}{number}", one.sql, one.compared, one.query, span=one.span)
        for number, one in enumerate(found)
    )


def leave_out(tokens: Sequence[Token], subqueries: Sequence[Subquery]) -> list[Token]:
    """Tokens without those of subqueries."""
    places = [one.query for one in subqueries]
    return [token for token in tokens if not any(place.start <= token.start < place.end for place in places)]


def begins_subquery(tokens: Sequence[Token], at: int) -> bool:
    """Whether a subquery begins at a place: a column may be called so, too."""
    if at + 2 >= len(tokens) or tokens[at].sign != "(" or tokens[at + 1].word not in _QUERY:
        return False
    behind = tokens[at + 2]
    if tokens[at + 1].word == "WITH":
        return behind.is_name and at + 3 < len(tokens) and (tokens[at + 3].word == "AS" or tokens[at + 3].sign == "(")
    return behind.kind != "sign" or behind.sign in ("*", "(", "-", "+", ":", "?")


@dataclass
class _Reader:
    """One reading of an expression with a subquery."""

    text: str
    tokens: Sequence[Token]
    names: Mapping[str, str]
    functions: Collection[str]

    def read(self, at: int, close: int) -> Subquery:
        """The subquery between two parentheses."""
        self.check(at, close)
        query = Span(self.tokens[at].start, self.tokens[close].end)
        before = self.tokens[at - 1] if at else None
        if before is not None and before.word == "EXISTS":
            return self.made(at - 1, close, None, query)
        if before is None or before.word != "IN":
            if before is not None and before.is_name and before.word not in _BEFORE_OPERAND:
                message = f"a subquery stands in parentheses of its own: {before.text}((SELECT …))"
                raise PredicateError(message, self.text, before.start, self.tokens[at + 1].end)
            return self.made(at, close, None, query)
        end = at - 2 if at > 1 and self.tokens[at - 2].word == "NOT" else at - 1
        first = self.begin_before(end)
        if first == end:
            raise PredicateError("IN compares something, which is missing here", self.text, before.start, before.end)
        return self.made(first, close, range(first, end), query)

    def made(self, first: int, close: int, compared: range | None, query: Span) -> Subquery:
        """A subquery whose text goes from one token to another."""
        span = Span(self.tokens[first].start, self.tokens[close].end)
        if compared is None:
            return Subquery("", self.text[span.start : span.end], None, query, span=span)
        pieces, written = [], span.start
        for at in compared:
            token, behind = self.tokens[at], self.tokens[at + 1]
            if behind.sign == "(" and token.word in self.functions:
                message = (
                    f"{token.word} looks at the match, and IN (SELECT …) is computed before it; it compares one row's "
                    f"columns, as in LAST(v.x IN (SELECT …))"
                )
                raise UnsupportedOperatorError(message, self.text, token.start, token.end)
            if behind.sign == "." and token.is_name and self.is_variable(at):
                pieces.append(self.text[written : token.start])
                written = behind.end
        place = Span(span.start, self.tokens[compared[-1]].end)
        return Subquery("", "".join([*pieces, self.text[written : span.end]]), place, query, span=span)

    def begin_before(self, end: int) -> int:
        """Where the operand of a predicate begins that ends before a place."""
        at = end
        while at:
            before = self.tokens[at - 1]
            if before.sign in OPENING or before.sign == "," or before.word in _BEFORE_PREDICATE:
                break
            at -= 1
            depth = int(before.sign in CLOSING)
            while depth:
                at -= 1
                depth += (self.tokens[at].sign in CLOSING) - (self.tokens[at].sign in OPENING)
        return at

    def is_variable(self, at: int) -> bool:
        """Whether a name before a dot is that of a variable."""
        return self.tokens[at].name.upper() in self.names and not (at and self.tokens[at - 1].sign == ".")

    def check(self, at: int, close: int) -> None:
        """Fail where a subquery looks at the match."""
        inside = self.tokens[at + 1 : close]
        if any(token.word == "MATCH_RECOGNIZE" for token in inside):
            return  # which has variables of its own
        # What stands alone is the name of a table or its alias, and so are others like it.
        alone = {
            token.name.upper()
            for token, behind in zip(inside, [*inside[1:], self.tokens[close]], strict=True)
            if token.is_name and behind.sign != "."
        }
        for place in range(at + 1, close):
            token, behind = self.tokens[place], self.tokens[place + 1]
            looks = behind.sign == "(" and token.word in ("PREV", "NEXT", "CLASSIFIER", "MATCH_NUMBER")
            of_variable = behind.sign == "." and token.is_name and self.is_variable(place)
            if looks or (of_variable and token.name.upper() not in alone):
                what = token.word if looks else f"{shorten(token.name)}, a variable of the pattern,"
                message = (
                    f"{what} stands in a subquery, which is computed before the match; it may name columns of the "
                    "input. Compare its value with what was matched, as in v.x > (SELECT …)"
                )
                raise PredicateError(message, self.text, token.start, token.end)
