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
_REPLACED = re.compile(
    r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE|DELTA_SCHEMA_CHANGED|DELTA_STREAMING_(?:INCOMPATIBLE_)?SCHEMA"
)
_CLEANED_UP = re.compile(
    r"DELTA_(?:MISSING_FILES_UNEXPECTED_VERSION|LOG_FILE_NOT_FOUND_FOR_STREAM|STREAMING_TRAILING_COMMIT_MISSING)"
)
_VERSION = re.compile(r"version:? (\d+)")
_DEEPEST = 20
_VANISHED = re.compile(r"(?:FILE_NOT_EXIST|File) .*?(\S+) does not exist|FileNotFoundException: File (\S+)")


# Names in addresses are encoded, so that none has a blank.
_UNREADABLE = re.compile(r"while reading file (.+?)\.\s+(.*)", re.S)
_NOT_THERE = re.compile(r"PATH_NOT_FOUND\] .*?: (\S+?)\.? ")
_OTHER_TYPE = re.compile(r"(Data type mismatches .*?) SQLSTATE", re.S)
_JAVA_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ")
# How the reader of XES begins: file, then line or encoding.
_PLACE = re.compile(r"(\S+?)(?:, (?=(?:after )?line \d)|: (?=encoding: ))(.*)", re.S)
_LONGEST = 300
HEADER = "has the columns"
"""How the reason begins why a CSV file with another header is bad."""
HEADER_ADVICE = "put its header right, or make files with these columns a stream of their own"


class ChangedSourceError(SourceError):
    """What was read before has been changed; only reading it all again can follow."""


class ChangedRowsError(ChangedSourceError):
    """A table updates or deletes rows that may have been read; `version` is the first one that does."""

    def __init__(self, message: str, version: str) -> None:
        super().__init__(message)
        self.version = version


class BadFileError(SourceError):
    """One file cannot be read as what the others are.

    Parameters
    ----------
    stream
        Name of the stream.
    file
        The file.
    reason
        What is wrong with it, without its name.
    advice
        What can be done about it.
    """

    def __init__(self, stream: str, file: str, reason: str, advice: str = "put a whole file in its place") -> None:
        self.file = file
        self.reason = reason
        super().__init__(
            f"stream {stream!r}: file {file} {reason}; {advice}, or write `on_bad_file: quarantine` in the stream's "
            "source to go on without the file"
        )


def first_line(error: BaseException) -> str:
    """A message's first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].partition(" SQLSTATE")[0] if lines else type(error).__name__


def tell_header(there: Sequence[str], expected: Sequence[str]) -> str:
    """Say what is wrong with the header of a CSV file.

    Examples
    --------
    >>> tell_header(["at", "what", "who"], ["at", "what", "x"])
    'has the columns at, what, who, expected at, what, x (new: who; missing: x)'
    """
    has, wants = ({column.lower() for column in columns} for columns in (there, expected))
    new = [column for column in there if column.lower() not in wants]
    missing = [column for column in expected if column.lower() not in has]
    differences = [f"{how}: {', '.join(names)}" for how, names in (("new", new), ("missing", missing)) if names]
    told = "; ".join(differences) or "in another order"
    return f"{HEADER} {', '.join(there)}, expected {', '.join(expected)} ({told})"


def explain(
    error: BaseException,
    *,
    stream: str,
    source: str,
    columns: Sequence[str],
    header: Callable[[str], Sequence[str]],
    changed: Callable[[], int | None],
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
    changed
        Gives the version in which columns of a Delta table were renamed or dropped, which Delta does not say.
    """
    if isinstance(error, PatternLakeError):
        return error
    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    texts = list(texts_of(error))
    text = "\n".join(texts)
    what = f"stream {stream!r}"
    ours = _OURS.findall(text)
    if ours:
        told = ours[-1][1].strip()
        place = _PLACE.fullmatch(told)
        return (
            BadFileError(stream, place[1], f"cannot be read: {place[2]}") if place else SourceError(f"{what}: {told}")
        )
    if _HEADER.search(text):
        file = _group(_HEADER_FILE, text)
        return BadFileError(stream, file, tell_header(header(file), columns), HEADER_ADVICE)
    if _CHANGE.search(text):
        version = _group(_VERSION, text) or "?"
        message = (
            f"{what}: version {version} of {source} updates or deletes rows that may have been read; "
            "write `on_change: rebuild` in the stream, or run with --rebuild, to read the table anew"
        )
        return ChangedRowsError(message, version)
    if _CLEANED_UP.search(text):
        lost = _VERSION.search(text)
        versions = "" if lost is None else f" from version {lost[1]} on"
        return ChangedSourceError(
            f"{what}: the log of {source} has lost commits{versions} that were not read, as when it is cleaned up "
            "before the stream is run again; write `on_change: rebuild` in the stream, or run with --rebuild, to read "
            "the table anew, as it is now"
        )
    if _REPLACED.search(text):
        told = _VERSION.search(text)
        since = told[1] if told else changed()
        where = source if since is None else f"from version {since} on, {source}"
        return ChangedSourceError(
            f"{what}: {where} is another table than the one that was read: it was replaced, or columns were renamed or "
            "dropped; write `on_change: rebuild` in the stream, or run with --rebuild, to read the table anew"
        )
    vanished = _VANISHED.search(text) or _NOT_THERE.search(text)
    if vanished:
        file = next(group for group in vanished.groups() if group)
        reason = "was planned to be read and is gone"
        return BadFileError(stream, file.rstrip("."), reason, "put it back, run with --rebuild")
    unreadable = _UNREADABLE.search(text)
    if unreadable:
        other = _OTHER_TYPE.search(unreadable[2])
        why = other[1] if other else texts[-1].strip().splitlines()[0]
        why = _JAVA_CLASS.sub("", why).replace("\n", " ").rstrip(".")
        return BadFileError(stream, unreadable[1], f"cannot be read: {why[:_LONGEST]}")
    return None


def _group(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1].strip() if found else ""


def innermost(error: BaseException) -> str:
    """The message of what caused an error in the end, without the name of its Java class."""
    said = [text for text in texts_of(error) if text.strip()]
    return _JAVA_CLASS.sub("", said[-1].strip()) if said else type(error).__name__


def texts_of(error: BaseException | None) -> Iterator[str]:
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
