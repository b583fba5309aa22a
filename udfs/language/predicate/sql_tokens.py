"""Tokens of predicates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.query.tree import Span

_PARAMETER = re.compile(r"(?<!:)[:$@]\{?[A-Za-z_]|\?")
"""How other languages write a parameter."""
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--|/\*)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<variable>\$[^\W\d]\w*)
  | (?P<word>[^\W\d]\w*)
  | (?P<operator><=>|<=|>=|<>|!=|==|\|\||[=<>≠≤≥∧∨!+\-−*/%,])
  | (?P<bracket>[()\[\].])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"""\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)|''|\"\"""", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (the name of its group in the expression above), text and place."""

    kind: str
    text: str
    span: Span


def unescape(body: str, quote: str) -> str:
    r"""The value of a string constant's inside, as Spark reads it: doubled quotes, ``\n``, ``\u0041``, ``\101``."""

    def one(found: re.Match[str]) -> str:
        what = found[1]
        if what is None:
            return quote if found[0] == quote * 2 else found[0]
        if what.isdigit() and len(what) == 3:
            return chr(int(what, 8))
        return chr(int(what[1:], 16)) if len(what) > 1 else _ESCAPED.get(what, what)

    # Two escapes may be the halves of one character; a half alone is none.
    text = _ESCAPE.sub(one, body).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _HALF.sub("?", text)


def tokens(text: str, query_text: str, offset: int) -> list[Token]:
    """Tokens of a predicate that begins at `offset` of the query, without white space."""
    found_tokens = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = text[at]
            message = "this string has no closing quote" if what in "'\"`" else f"unexpected {what!r} in a predicate"
            if _PARAMETER.match(text, at):
                message += "; a parameter is its bare name here, with its value in params => map('name', 'value')"
            raise PredicateError(message, query_text, offset + at)
        kind = str(found.lastgroup)
        span = Span(offset + at, offset + found.end())
        if kind == "comment":
            raise PredicateError(
                "comments are not allowed in a predicate; a doubled minus is written - (-x)",
                query_text,
                span.start,
                span.end,
            )
        if kind != "space":
            found_tokens.append(Token(kind, found[0], span))
        at = found.end()
    return found_tokens
