"""Patterns of files as Hadoop takes them: which mean one file alone, and which come upon the files of a lake."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from urllib.parse import unquote

_FILES = (
    *("events_log/part-00000.snappy.parquet", "events_log/stream_id=1/0123456789abcdef.parquet"),
    *("checkpoints/1/1/source_schema.json", "checkpoints/1/1/metadata", "checkpoints/1/1/offsets/0"),
)
"""What stands in every lake, one of each kind; hidden files apart."""
_PATTERN = re.compile(r"[{}\[\]*?\\]")
_TOKEN = re.compile(r"\\(?P<plain>.)|\[(?P<none>[\^!]?)(?P<any>[^\]]+)\]|(?P<special>[*?{},])|(?P<other>.)", re.DOTALL)
_SPECIAL = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


def reaches(path: str, lake: str, *, recursive: bool, names: str) -> bool:
    """Whether Spark would come upon files of a lake below a path, or below what a pattern means.

    It looks into all folders but those whose names begin with ``_`` or ``.``.

    Parameters
    ----------
    path
        A folder, or a pattern as Hadoop takes it.
    lake
        The folder of the lake.
    recursive
        Whether folders are looked through without a look at what their names say; otherwise folders alone are in the
        way, as columns are looked for in their names.
    names
        The pattern of the names of files that are read; empty: all.
    """
    meant = _expression(_plain(path))
    for file in _FILES:
        place = f"{_plain(lake).rstrip('/')}/{file}"
        for folder, below in _ways(place):
            if not meant.fullmatch(folder) or any(map(_hidden, below)):
                continue
            if (below and not recursive) or not names or fnmatchcase(posixpath.basename(place), names):
                return True
    return False


def is_pattern(path: str) -> bool:
    """Whether Hadoop takes a path for a pattern."""
    return _PATTERN.search(path) is not None


def escape(path: str) -> str:
    """A path as a pattern that means nothing else."""
    return _PATTERN.sub(r"\\\g<0>", path)


def alone(file: str) -> str:
    """One file as a pattern that means no other: Spark's reader of streams takes no path that is a file."""
    if is_pattern(file):
        return escape(file)
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{name.replace(',', '[,]')}" if "," in name else f"{folder}{slash}{{{name}}}"


def folder_of(path: str) -> str:
    """The folder that all files of a path lie below: itself, or what stands before the first pattern in it."""
    parts = path.rstrip("/").split("/")
    fixed = next((at for at, part in enumerate(parts) if is_pattern(part)), len(parts))
    return "/".join(parts[:fixed]) or "/"


def name_below(path: str, file: str) -> str | None:
    """The part of a file's address that follows the folder of a path; None where the file does not lie below it."""
    root = _plain(folder_of(path)).rstrip("/") + "/"
    address = _plain(unquote(file))
    return address[len(root) :] if address.startswith(root) else None


def _plain(address: str) -> str:
    """An address that compares."""
    known = re.sub("^s3[an]:", "s3:", re.sub("^file:/*", "/", address))
    return re.sub("^/+", "/", posixpath.normpath(known))


def _ways(place: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder that a file lies in, and the file itself, with the names that follow."""
    parts = place.split("/")
    for count in range(1, len(parts) + 1):
        yield "/".join(parts[:count]) or "/", parts[count:]


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern of Hadoop's as a regular expression; one that is none stands for itself."""
    made, depth = [], 0
    for token in _TOKEN.finditer(pattern):
        special = token["special"]
        depth += {"{": 1, "}": -1}.get(special or "", 0)
        if token["any"] is not None:
            made.append(f"[{'^' if token['none'] else ''}{re.escape(token['any']).replace(chr(92) + '-', '-')}]")
        elif special is not None and (special in "*?{}" or depth):
            made.append(_SPECIAL[special])
        else:
            made.append(re.escape(token["plain"] or special or token["other"]))
    try:
        return re.compile("".join(made))
    except re.error:
        return re.compile(re.escape(pattern))
