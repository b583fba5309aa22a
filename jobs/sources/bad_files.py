"""Files of a source that cannot be read as the others are: which ones, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patternlake.jobs.sources.errors import HEADER, HEADER_ADVICE, BadFileError
from patternlake.jobs.sources.parquet_footers import LACKS

FIELDS = "has no field"
MISREAD = "would be misread"
SEVERAL = "holds more than one JSON value on a line"
UNDECODED = "is not of the encoding"
_SHOWN = 80
_WHOLE = "put a whole file in its place"
_ADVICE = {
    LACKS: (
        "put its columns right, make it a stream of its own, write `mergeSchema: true` in the source's options where "
        "files of Parquet may lack columns"
    ),
    HEADER: HEADER_ADVICE,
    FIELDS: "put its fields right, read both names, as in coalesce(old, new), after a --rebuild",
    MISREAD: "write that option, put the file right",
    SEVERAL: "write `multiLine: true` in the source's options, put the line right",
    UNDECODED: "write the file in that encoding",
}
"""What can be done about a file, by how the reason begins."""


def broken(
    files: Sequence[str], read: Callable[[Sequence[str]], object], explain: Callable[[Exception], Exception | None]
) -> dict[str, str]:
    """Find the files that cannot be read, and why, by reading ever smaller parts of those that fail.

    Parameters
    ----------
    files
        Which may be bad.
    read
        Reads some files as a whole, or raises.
    explain
        Turns what `read` raised into a `BadFileError`, or into anything else where no file is to blame.
    """
    try:
        read(files)
    except Exception as error:
        known = explain(error)
        if not isinstance(known, BadFileError):
            raise
        if len(files) == 1:
            return {files[0]: known.reason}
        half = len(files) // 2
        return {**broken(files[:half], read, explain), **broken(files[half:], read, explain)}
    return {}


def refuse(stream: str, found: Mapping[str, str]) -> None:
    """Raise for the first of some bad files, if there is one.

    Raises
    ------
    BadFileError
        Naming it.
    """
    for file, reason in sorted(found.items()):
        advice = next((advice for begin, advice in _ADVICE.items() if reason.startswith(begin)), _WHOLE)
        raise BadFileError(stream, file, reason, advice)


def show_line(line: str) -> str:
    """Write a line for a message."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")
