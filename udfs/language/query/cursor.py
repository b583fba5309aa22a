"""Going through a query's text token by token, and failing at a place."""

from __future__ import annotations

from typing import NoReturn

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.query import mistakes
from patternlake.udfs.language.query.lexer import Kind, Token, token_at
from patternlake.udfs.language.query.tree import Span


class Cursor:
    """The state of one reading.

    Attributes
    ----------
    text
        The query's text.
    token
        The next token.
    last
        The token before it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.last = Token(Kind.END, "", 0, 0)
        self.token = token_at(text, 0)

    def advance(self) -> Token:
        """Take the next token."""
        taken, self.last, self.token = self.token, self.token, token_at(self.text, self.token.end)
        return taken

    def resume(self, offset: int) -> None:
        """Go on from `offset`, behind SQL text."""
        self.token = token_at(self.text, offset)

    def after(self, token: Token) -> Token:
        """The token that follows `token`."""
        return token_at(self.text, token.end)

    def fail(self, message: str, start: int, end: int) -> NoReturn:
        """Raise a syntax error at a place."""
        raise PatternSyntaxError(message, self.text, start, end)

    def unexpected(self, expected: str, *, named: bool = False) -> NoReturn:
        """Raise a syntax error at the next token: what was found and what was expected (`named`: a name)."""
        message = mistakes.say_unexpected(self.text, self.token, expected, named=named)
        self.fail(message, self.token.start, self.token.end)

    def take_sign(self, sign: str, expected: str) -> Token:
        """Take a sign, or fail with what was expected."""
        if not self.token.is_sign(sign):
            self.unexpected(expected)
        return self.advance()

    def take_name(self, expected: str) -> Token:
        """Take a name, or fail with what was expected."""
        if not self.token.is_name:
            self.unexpected(expected, named=True)
        return self.advance()

    def sql(self, start: int, end: int, before: str, what: str = "a predicate") -> tuple[str, Span]:
        """SQL text between two offsets, without the blanks around it; the next token is the one behind it."""
        text = self.text[start:end].strip()
        self.resume(end)
        if not text:
            self.unexpected(f"{what} after {before}")
        first = start + len(self.text[start:end]) - len(self.text[start:end].lstrip())
        return text, Span(first, first + len(text))
