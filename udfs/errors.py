"""The errors of PatternLake: one small tree with one root.

Every message names the offending value and says what would be right. An error that belongs to a place in a
pattern's text carries that place and shows the line with a caret.
"""

from __future__ import annotations

import re

SHOWN = 80
"""So many characters of a user's value a message shows."""
SHOWN_OF_PATH = 400
"""The same of a path, whose end matters."""

_LONG_WORD = re.compile(rf"\w{{{SHOWN + 1},}}")


def shorten(value: object, most: int = SHOWN) -> str:
    """A value as a message quotes it: its `repr`, cut where it is long.

    Examples
    --------
    >>> shorten("30 dayz")
    "'30 dayz'"
    >>> len(shorten("x" * 100_000))
    80
    """
    if isinstance(value, str):
        # One character more than can be shown: the rest would be escaped for nothing.
        value = value[: most + 1]
    return cut(repr(value), most)


def cut(text: str, most: int = SHOWN) -> str:
    """A text of a user as a message shows it where it needs no quotes: its beginning, where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


class PatternLakeError(Exception):
    """Root of every error that PatternLake raises on purpose.

    A word of the message that is longer than `SHOWN` is a user's, wherever it came from, and is cut.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_LONG_WORD.sub(lambda word: cut(word[0]), message))


class ConfigurationError(PatternLakeError):
    """The configuration file has a wrong key, type or value; the message starts with the key's path."""


class ArgumentError(PatternLakeError):
    """An argument of a SQL function or a command has a value that it cannot take."""


class SourceError(PatternLakeError):
    """A source (file or table) is missing, changed after it was read, or has other columns than configured."""


class StateError(PatternLakeError):
    """The persisted state does not allow what was asked (horizon, schema version, checkpoint, configuration)."""


class ConcurrentRunError(StateError):
    """Another run of the same job on the same object won; this one stopped without harm."""


class SizingError(PatternLakeError):
    """A sketch cannot be built within the memory and error rate that were asked for."""


class PatternError(PatternLakeError):
    """Something is wrong at a place of a pattern's text.

    Parameters
    ----------
    message
        One line: what was found and what was expected.
    text
        The whole text of the query.
    start, end
        Offsets into `text`, in characters; ``end`` is exclusive.
    """

    def __init__(self, message: str, text: str, start: int, end: int | None = None) -> None:
        written = text[start : start + 1 if end is None else end]
        if len(written) > SHOWN:
            message = message.replace(written, cut(written))
        self.message = _LONG_WORD.sub(lambda word: cut(word[0]), message)
        self.text = text
        self.start = start
        self.end = start + 1 if end is None else end
        # The line with the caret is cut already, and the caret stands below its place.
        Exception.__init__(self, self.render())

    @property
    def line(self) -> int:
        """1-based line of the place."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """1-based column of the place, in characters."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def render(self) -> str:
        """The message with line, column, and the line with a caret under the place."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        finish = self.text.find("\n", self.start)
        line = self.text[begin:] if finish < 0 else self.text[begin:finish]
        offset = self.start - begin
        shown, offset = _clip(line, offset)
        width = max(1, min(self.end - self.start, len(shown) - offset))
        return f"line {self.line}, column {self.column}: {self.message}\n  {shown}\n  {' ' * offset}{'^' * width}"


class PatternSyntaxError(PatternError):
    """The text is not of the pattern language."""


class UnsupportedOperatorError(PatternError):
    """The text is of the language, but this engine or option does not take one of its operators."""


class PredicateError(PatternError):
    """A predicate is not SQL that patterns allow, or refers to something out of scope."""


def _clip(line: str, offset: int, width: int = 100) -> tuple[str, int]:
    """Cut a long line to a window around the offset, so that a message stays readable."""
    line = line.replace("\t", " ")
    if len(line) <= width:
        return line, offset
    begin = max(0, min(offset - width // 2, len(line) - width))
    head = "…" if begin else ""
    tail = "…" if begin + width < len(line) else ""
    return head + line[begin : begin + width] + tail, offset - begin + len(head)
