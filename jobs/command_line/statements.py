"""Cuts text that comes line by line into SQL statements, at the semicolons that stand in no quotes and no comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What a semicolon may stand in, as Spark's grammar has it. A text in r'…' knows no backslash escapes. What is not
# closed yet reaches to the end, so that the line after it goes on inside.
_PIECE = re.compile(
    r"""
      (?P<quoted> (?<![\w$])[rR]'[^']*(?:'|(?P<raw>\Z)) | (?<![\w$])[rR]"[^"]*(?:"|(?P<raw2>\Z))
        | '(?:[^'\\]|\\.)*(?:'|(?P<single>\\?\Z)) | "(?:[^"\\]|\\.)*(?:"|(?P<double>\\?\Z)) | `[^`]*(?:`|(?P<back>\Z)) )
    | (?P<comment> --[^\n]* | /\*.*?(?:\*/|(?P<open>\Z)) )
    | (?P<end> ; )
    | (?P<plain> . )
    """,
    re.X | re.S,
)
_UNCLOSED = ("raw", "raw2", "single", "double", "back", "open")


class Statements:
    """Collects lines and gives each statement as soon as its semicolon is there."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, line: str) -> Iterator[str]:
        """Take a line in, with or without its line break; give the statements that it ends, without semicolons."""
        self._text += line if line.endswith("\n") else line + "\n"
        begin = 0
        said = False
        for piece in _PIECE.finditer(self._text):
            if any(piece[name] is not None for name in _UNCLOSED):
                break
            if piece["end"]:
                statement, begin = self._text[begin : piece.start()].strip(), piece.end()
                if said:
                    yield statement
                said = False
            else:
                said = said or bool(piece["quoted"] or (piece["plain"] or "").strip())
        self._text = self._text[begin:]

    def rest(self) -> str:
        """What no semicolon has ended yet, and forget it; empty where that is nothing but comments."""
        text, self._text = self._text.strip(), ""
        return "" if _is_comment(text) else text

    @property
    def empty(self) -> bool:
        """Whether nothing has been begun, but for comments that have ended."""
        return _is_comment(self._text) and not any(piece["open"] is not None for piece in _PIECE.finditer(self._text))


def _is_comment(text: str) -> bool:
    """Whether a text has nothing but comments."""
    return not any(piece["quoted"] or (piece["plain"] or "").strip() for piece in _PIECE.finditer(text))
