"""Going through a clause token by token, and failing at a place."""

from __future__ import annotations

from typing import NoReturn

from patternlake.udfs.errors import PatternSyntaxError, cut
from patternlake.udfs.language.row_pattern.tokens import Token, tokens_of


class Cursor:
    """The state of one reading.

    Attributes
    ----------
    text
        The clause.
    tokens, at
        Its tokens, and the number of the next one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    @property
    def last(self) -> Token:
        """The token before it."""
        return self.tokens[self.at - 1]

    def after(self, count: int = 1) -> Token:
        """A token behind the next one, or the end of the text."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Take the next token."""
        taken = self.token
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return taken

    def take_sign(self, sign: str, expected: str) -> Token:
        """Take a sign, or fail with what was expected."""
        if self.token.sign != sign:
            self.unexpected(expected)
        return self.advance()

    def take_words(self, *words: str) -> None:
        """Take words that belong together, or fail at the first that is missing."""
        for at, word in enumerate(words):
            if self.token.word != word:
                before = f" after {words[at - 1]}" if at else ""
                self.unexpected(f"{' '.join(words[at:])}{before}")
            self.advance()

    def take_name(self, expected: str) -> Token:
        """Take a name, or fail with what was expected."""
        if not self.token.is_name:
            self.unexpected(expected)
        if not self.token.name:
            self.fail("a name in quotes cannot be empty", self.token)
        return self.advance()

    def fail(self, message: str, first: Token, last: Token | None = None) -> NoReturn:
        """Raise a syntax error at a token, or from one to another."""
        raise PatternSyntaxError(message, self.text, first.start, max((last or first).end, first.start + 1))

    def unexpected(self, expected: str) -> NoReturn:
        """Raise a syntax error at the next token: what was found and what was expected."""
        self.fail(f"expected {expected}, found {show_token(self.token)}", self.token)


def show_token(token: Token) -> str:
    """A token as a message shows it."""
    if token.kind == "end":
        return "the end of the text"
    return cut(token.text) if token.kind in ("string", "double", "quoted") else f"'{cut(token.text)}'"
