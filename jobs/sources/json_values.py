"""JSON that goes on over lines, cut into its values; of a file with several, Spark would read the first one alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pyarrow as pa

from patternlake.udfs.errors import SourceError

# Where a string or a comment does not end, it takes in all that follows.
TOKEN = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)
    | '[^'\\]*(?:\\.[^'\\]*)*(?:'|\Z)
    | /\*.*?(?:\*/|\Z)
    | //[^\r\n]*
    | [\[\]{}]
    """,
    re.X | re.S,
)
"""What decides where a JSON value ends; all else stands between."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\r\n]*", re.S)
# With what begins a text of Unicode, and what begins a record of a JSON text sequence.
_BETWEEN = " \t\r\n\ufeff\x1e"
_ROWS = 2000


def end_of_value(text: str) -> int | None:
    """Where the first value in brackets ends; None where there is none, or it does not end."""
    depth = 0
    for token in TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if depth <= 0:
                return token.end()
    return None


def is_blank(text: str, *, comments: bool, more: str = "") -> bool:
    """Whether nothing stands between two values; where they are told to be allowed, comments are nothing."""
    return not (_COMMENT.sub("", text) if comments else text).strip(_BETWEEN + more)


def json_values(text: str, *, comments: bool = False) -> Iterator[str]:
    r"""The values that stand one behind the other, and those of arrays; all else as it is, since nothing is lost.

    Examples
    --------
    >>> list(json_values('{"a": 1}\\n{"a": [2]} [{"a": 3}, 4] x'))
    ['{"a": 1}', '{"a": [2]}', '{"a": 3}', '4', 'x']
    """
    begin = depth = 0
    outside = 0  # The depth of values: 1 inside an array of them.

    def between(end: int) -> Iterator[str]:
        if not is_blank(text[begin:end], comments=comments, more="," * outside):
            yield text[begin:end].strip(_BETWEEN + "," * outside)

    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            if depth == outside:
                yield from between(token.start())
                begin = token.start()
            depth += 1
            if mark == "[" and depth == 1:
                begin, outside = token.end(), 1
        elif mark in "]}" and depth:
            depth -= 1
            if depth < outside:
                yield from between(token.start())
                begin, outside = token.end(), 0
            elif depth == outside:
                yield text[begin : token.end()]
                begin = token.end()
    yield from between(len(text))


def cut_files(encoding: str, *, comments: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task of Spark's does with whole files, ``value`` and their addresses: give their values instead."""

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for files in batches:
            for content, file in zip(files.column(0).cast(pa.binary()), files.column(1).to_pylist(), strict=True):
                try:
                    text = content.as_py().decode(encoding or "utf-8")
                except UnicodeDecodeError as error:
                    raise SourceError(f"{file}: encoding: {error}") from None
                values = json_values(text, comments=comments)
                while some := list(islice(values, _ROWS)):
                    columns = [pa.array(some, pa.string()), pa.array([file] * len(some), pa.string())]
                    yield pa.RecordBatch.from_arrays(columns, files.schema.names)

    return cut
