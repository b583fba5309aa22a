"""Tokens of the pattern language, and the extent of the SQL text that a query embeds.

Predicates and time conditions are SQL, which has other tokens; so tokens are read one at a time, where the parser
asks for them, and SQL text is only measured here: up to the clause that follows it, or to its closing parenthesis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from patternlake.udfs.errors import PatternSyntaxError

CLAUSES = ("DEFINE", "WHERE", "MEASURES", "PARTITION", "WITHIN", "SLIDE")
KEYWORDS = frozenset({"PATTERN", "SEQ", "AND", "OR", "NOT", "AS", *CLAUSES})

_SIGNS = frozenset(";,|&!+*?[]{}()@∧∨")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_QUOTES = frozenset("'\"`")
_WITHIN_GROUP = re.compile(r"WITHIN\s+GROUP\s*\(", re.IGNORECASE)


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    SIGN = "sign"
    OTHER = "other character"
    END = "end of the text"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query's text.

    Attributes
    ----------
    kind
        What it is.
    value
        A word or sign as written; a quoted name without its quotes.
    start, end
        Offsets into the text; the end of the text stands right behind the last token.
    """

    kind: Kind
    value: str
    start: int
    end: int

    @property
    def keyword(self) -> str | None:
        """The keyword in upper case, or None where the token is not one."""
        return keyword(self.value) if self.kind is Kind.WORD else None

    @property
    def is_name(self) -> bool:
        """True for a quoted name and for a word that is no keyword."""
        return self.kind is Kind.QUOTED or (self.kind is Kind.WORD and self.keyword is None)

    def is_sign(self, *signs: str) -> bool:
        """True for one of these signs."""
        return self.kind is Kind.SIGN and self.value in signs


def keyword(word: str) -> str | None:
    """The keyword that `word` is, in upper case, or None."""
    return word.upper() if word.isascii() and word.upper() in KEYWORDS else None


def is_word_character(character: str) -> bool:
    """True for letters, digits, combining marks and the underscore, of any script."""
    return ("_" + character).isidentifier()


def is_word(text: str) -> bool:
    """True where `text` is one word, so that as a name it needs no quotes unless it is a keyword."""
    return bool(text) and all(map(is_word_character, text))


def token_at(text: str, offset: int) -> Token:
    """Read the first token at or after `offset`.

    Raises
    ------
    PatternSyntaxError
        A quoted name is empty or never closed.
    """
    start = offset
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text):
        end = len(text.rstrip())
        return Token(Kind.END, "", end, end)
    character = text[start]
    if character == "'":
        end = quoted_end(text, start)
        if end == start + 2:
            raise PatternSyntaxError("a quoted name cannot be empty", text, start, end)
        return Token(Kind.QUOTED, text[start + 1 : end - 1].replace("''", "'"), start, end)
    if is_word_character(character):
        end = word_end(text, start)
        return Token(Kind.WORD, text[start:end], start, end)
    return Token(Kind.SIGN if character in _SIGNS else Kind.OTHER, character, start, start + 1)


def word_end(text: str, start: int) -> int:
    """Where the word that begins at `start` ends."""
    end = start
    while end < len(text) and is_word_character(text[end]):
        end += 1
    return end


def quoted_end(text: str, start: int) -> int:
    """Where the quotation that begins at `start` ends; a doubled quote inside stands for one.

    Raises
    ------
    PatternSyntaxError
        The quotation never ends.
    """
    quote = text[start]
    end = text.find(quote, start + 1)
    while end >= 0 and text.startswith(quote, end + 1):
        end = text.find(quote, end + 2)
    if end < 0:
        raise PatternSyntaxError(f"this {quote} is never closed; a {quote} inside quotes is doubled", text, start)
    return end + 1


def sql_end(text: str, start: int, *, commas: bool = False) -> int:
    """Where SQL text that begins at `start` ends: at a clause keyword outside brackets and quotes, or with the text.

    Parameters
    ----------
    text, start
        The query and where in it the SQL text begins.
    commas
        End also at a comma outside brackets and quotes, as between two definitions of DEFINE.

    Raises
    ------
    PatternSyntaxError
        A quote or a bracket is not closed, or a bracket closes nothing.
    """
    return _scan(text, start, opener=None, commas=commas)


def bracket_end(text: str, opener: int) -> int:
    """Where the bracket that closes the one at `opener` stands; brackets and quotes between them are balanced.

    Raises
    ------
    PatternSyntaxError
        A quote or a bracket is not closed.
    """
    return _scan(text, opener + 1, opener=opener, commas=False)


def _scan(text: str, start: int, *, opener: int | None, commas: bool) -> int:
    """Go over SQL text to its end (see `sql_end`), or to the bracket that closes `opener` where one is given."""
    opened = [] if opener is None else [opener]
    at = start
    while at < len(text):
        character = text[at]
        if character in _QUOTES:
            at = _sql_quoted_end(text, at)
            continue
        if is_word_character(character):
            end = word_end(text, at)
            # `a.within` is a column, whatever it is called; WITHIN GROUP belongs to an aggregate.
            ends = keyword(text[at:end]) in CLAUSES and not _WITHIN_GROUP.match(text, at)
            if not opened and ends and text[at - 1 : at] != ".":
                return at
            at = end
            continue
        if character in _CLOSING:
            opened.append(at)
        elif character in _CLOSING.values():
            if not opened:
                raise PatternSyntaxError(f"this '{character}' closes nothing", text, at)
            wanted = _CLOSING[text[opened[-1]]]
            if character != wanted:
                raise PatternSyntaxError(f"found '{character}', expected '{wanted}' first", text, at)
            if opener is not None and len(opened) == 1:
                return at
            opened.pop()
        elif character == "," and commas and not opened:
            return at
        at += 1
    if opened:
        raise PatternSyntaxError(f"this '{text[opened[-1]]}' is never closed", text, opened[-1])
    return at


def _sql_quoted_end(text: str, start: int) -> int:
    """Where the SQL quotation that begins at `start` ends; in strings a backslash takes the next character with it."""
    quote = text[start]
    if quote == "`":
        return quoted_end(text, start)
    at = start + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise PatternSyntaxError(f"this {quote} is never closed; a {quote} inside quotes is doubled", text, start)
    return at + 1
