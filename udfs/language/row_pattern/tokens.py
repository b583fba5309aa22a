"""Tokens of a MATCH_RECOGNIZE clause: those of Spark SQL, and single signs for its pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patternlake.udfs.errors import PatternSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*)
  | (?P<comment>/\*)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|[rR](?:'[^']*'|"[^"]*"))
  | (?P<double>"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_BRACKET = re.compile(r"/\*|\*/")
OPENING, CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text.

    Attributes
    ----------
    kind
        ``word``, ``quoted`` (in backticks), ``double`` (in double quotes: a name, or in an expression Spark's string),
        ``string`` (also one that begins with r, in which a backslash is nothing else), ``number``, ``sign`` (one
        character), or ``end``.
    text
        As written.
    start, end
        Offsets into the clause.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A word in upper case, else nothing."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def sign(self) -> str:
        """A sign, else nothing."""
        return self.text if self.kind == "sign" else ""

    @property
    def is_name(self) -> bool:
        """True for a word and for a name in quotes."""
        return self.kind in ("word", "quoted", "double")

    @property
    def name(self) -> str:
        """A name without its quotes."""
        quote = self.text[0]
        return self.text if self.kind == "word" else self.text[1:-1].replace(quote * 2, quote)


def find_closing(tokens: Sequence[Token], at: int) -> int | None:
    """The bracket that closes the one at a place; None where none does."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].sign in OPENING) - (tokens[place].sign in CLOSING)
        if not depth:
            return place
    return None


def tokens_of(text: str) -> list[Token]:
    """All tokens without blanks and comments; the last one is the end of the text.

    Raises
    ------
    PatternSyntaxError
        A quotation or a comment is never closed.
    """
    tokens = []
    start = 0
    while (match := _TOKEN.match(text, start)) is not None:
        kind, behind = str(match.lastgroup), match.end()
        if kind == "sign" and match[0] in "'\"`":
            raise PatternSyntaxError(f"this {match[0]} is never closed", text, start)
        if kind == "comment":
            behind = _find_comment_end(text, start)
        elif kind != "blank":
            tokens.append(Token(kind, match[0], start, behind))
        start = behind
    end = len(text.rstrip())
    tokens.append(Token("end", "", end, end))
    return tokens


def read_string(text: str) -> str:
    """The value of a string as it is written: of an escaped character, itself."""
    quote = text[-1]
    if text[0] != quote:
        return text[2:-1]
    return re.sub(rf"\\(.)|{quote * 2}", lambda found: found[1] or quote, text[1:-1], flags=re.DOTALL)


def _find_comment_end(text: str, start: int) -> int:
    """Behind a comment in brackets, which may hold others."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "/*" else -1
        if not depth:
            return bracket.end()
    raise PatternSyntaxError("this comment is never closed", text, start, start + 2)
