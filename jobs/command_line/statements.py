"""Cuts text that comes line by line into SQL statements, at the semicolons that stand in no quotes and no comment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# What a semicolon may stand in, as Spark's grammar has it. A text in r'…' knows no backslash escapes. What is not
# closed yet reaches to the end, so that the line after it goes on inside.
_PIECE = re.compile(
    r"""
      (?P<quoted> (?<![\w$])[rR]'[^']*(?:'|(?P<raw>\Z)) | (?<![\w$])[rR]"[^"]*(?:"|(?P<raw2>\Z))
        | '(?:[^'\\]|\\.)*(?:'|(?P<single>\\?\Z)) | "(?:[^"\\]|\\.)*(?:"|(?P<double>\\?\Z)) | `[^`]*(?:`|(?P<back>\Z)) )
    | (?P<comment> --[^\n]* ) | (?P<begin> /\* )
    | (?P<end> ; )
    | (?P<plain> . )
    """,
    re.X | re.S,
)
_UNCLOSED = ("raw", "raw2", "single", "double", "back")
# Comments stand in comments, but for hints.
_IN_COMMENT = re.compile(r"/\*(?!\+)|\*/")


class _Piece(NamedTuple):
    """A piece of a text: what it is, where it is, and whether it is closed."""

    kind: str
    begin: int
    end: int
    closed: bool = True


class Statements:
    """Collects lines and gives each statement as soon as its semicolon is there."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, line: str) -> Iterator[str]:
        """Take a line in, with or without its line break; give the statements that it ends, without semicolons."""
        self._text += line if line.endswith("\n") else line + "\n"
        begin = 0
        said = False
        for piece in _pieces(self._text):
            if not piece.closed:
                break
            if piece.kind == "end":
                statement, begin = self._text[begin : piece.begin].strip(), piece.end
                if said:
                    yield statement
                said = False
            else:
                said = said or _says(self._text, piece)
        self._text = self._text[begin:]

    def rest(self) -> str:
        """What no semicolon has ended yet, and forget it; empty where that is nothing but comments."""
        text, self._text = self._text.strip(), ""
        return "" if _is_comment(text) else text

    @property
    def empty(self) -> bool:
        """Whether nothing has been begun, but for comments that have ended."""
        return _is_comment(self._text) and all(piece.closed for piece in _pieces(self._text))


def _pieces(text: str) -> Iterator[_Piece]:
    at = 0
    while found := _PIECE.match(text, at):
        kind, end, closed = str(found.lastgroup), found.end(), True
        if kind == "begin":
            kind, (end, closed) = "comment", _end_of_comment(text, end)
        elif found["quoted"] is not None:
            kind, closed = "quoted", all(found[name] is None for name in _UNCLOSED)
        yield _Piece(kind, at, end, closed)
        at = end


def _end_of_comment(text: str, at: int) -> tuple[int, bool]:
    """Where a comment ends that begins before a place, and whether it does."""
    depth = 1
    for found in _IN_COMMENT.finditer(text, at):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end(), True
    return len(text), False


def _says(text: str, piece: _Piece) -> bool:
    return piece.kind == "quoted" or (piece.kind == "plain" and not text[piece.begin].isspace())


def _is_comment(text: str) -> bool:
    """Whether a text has nothing but comments."""
    return not any(_says(text, piece) for piece in _pieces(text))
