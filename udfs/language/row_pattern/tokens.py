"""Tokens of a MATCH_RECOGNIZE clause: those of Spark SQL, and single signs for its pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patternlake.udfs.errors import PatternSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.|'')*')
  | (?P<double>"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text.

    Attributes
    ----------
    kind
        ``word``, ``quoted`` (in backticks), ``double`` (in double quotes: a name, or in an expression Spark's string),
        ``string``, ``number``, ``sign`` (one character), or ``end``.
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
    for match in _TOKEN.finditer(text):
        kind, start = str(match.lastgroup), match.start()
        if kind == "blank":
            continue
        if kind == "sign" and match[0] in "'\"`":
            raise PatternSyntaxError(f"this {match[0]} is never closed", text, start)
        if kind == "sign" and text.startswith("/*", start):
            raise PatternSyntaxError("this comment is never closed", text, start, start + 2)
        tokens.append(Token(kind, match[0], start, match.end()))
    end = len(text.rstrip())
    tokens.append(Token("end", "", end, end))
    return tokens
