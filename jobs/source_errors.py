"""What Spark, Delta and the XES reader say about a source, as one line that names file or version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from patternlake.udfs.errors import PatternLakeError, SourceError

_OURS = re.compile(r"patternlake\.udfs\.errors\.(\w+): (.*)")
_HEADER = re.compile(r"CSV header does not conform|number of columns? in (?:the )?CSV header|header length", re.I)
_HEADER_FILE = re.compile(r"CSV file: (\S.*)")
_CHANGE = re.compile(r"DELTA_SOURCE_(?:TABLE_IGNORE_CHANGES|IGNORE_DELETE)|Detected (?:a data update|deleted data)")
_VERSION = re.compile(r"version:? (\d+)")
_DEEPEST = 20
_VANISHED = re.compile(r"(?:FILE_NOT_EXIST|File) .*?(\S+) does not exist|FileNotFoundException: File (\S+)")


class ChangedSourceError(SourceError):
    """What was read before has been changed; only reading it all again can follow."""


def first_line(error: BaseException) -> str:
    """A message's first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].partition(" SQLSTATE")[0] if lines else type(error).__name__


def explained(
    error: BaseException, *, stream: str, source: str, columns: Sequence[str], header: Callable[[str], Sequence[str]]
) -> PatternLakeError | None:
    """An error of Spark as one of ours; None where nothing is known about it.

    Parameters
    ----------
    error
        What Spark raised.
    stream, source
        Name of the stream, and where its rows come from.
    columns
        The source's columns as they should be.
    header
        Gives the columns of one CSV file.
    """
    if isinstance(error, PatternLakeError):
        return error
    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    text = "\n".join(_texts(error))
    what = f"stream {stream!r}"
    ours = _OURS.findall(text)
    if ours:
        return SourceError(f"{what}: {ours[-1][1].strip()}")
    if _HEADER.search(text):
        file = _group(_HEADER_FILE, text)
        return SourceError(
            f"{what}: file {file} has the columns {', '.join(header(file))}, expected {', '.join(columns)}; "
            "put its header right, or make it a stream of its own"
        )
    if _CHANGE.search(text):
        version = _group(_VERSION, text)
        return ChangedSourceError(
            f"{what}: version {version or '?'} of {source} updates or deletes rows that may have been read; "
            "write `on_change: rebuild` in the stream, or run with --rebuild, to read the table anew"
        )
    vanished = _VANISHED.search(text)
    if vanished:
        file = next(group for group in vanished.groups() if group)
        return SourceError(
            f"{what}: file {file.rstrip('.')} was planned to be read and is gone; put it back, or run with --rebuild"
        )
    return None


def _group(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1].strip() if found else ""


def _texts(error: BaseException | None) -> Iterator[str]:
    """The messages of an error and of what caused it, in Python and in Java."""
    while error is not None:
        java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
        yield "" if isinstance(error, Py4JJavaError) else str(error)
        for _ in range(_DEEPEST):
            if java is None:
                break
            yield str(java.toString())
            java = java.getCause()
        error = error.__cause__
