"""How locations are spelled."""

from __future__ import annotations

import re
from urllib.parse import unquote

from patternlake.udfs.errors import ArgumentError

_UNREADABLE = "[]^|\\"
"""Characters of a path that delta-rs cannot open a table below."""
# Schemes as Hadoop spells them, and as delta-rs does.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}
_SPARK_ONLY = ("dbfs", "hdfs", "viewfs", "maprfs", "alluxio")


def has_scheme(location: str) -> bool:
    """Whether a location says by itself which file system it lies in."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location) is not None


def plain(location: str) -> str:
    """A location without what spellings of one place differ in: ``/lake`` of ``file:///lake/`` and ``file:/lake``."""
    return re.sub(r"^file:/*", "/", location).rstrip("/")


def is_on_disk(location: str) -> bool:
    """Whether a location says nothing else than that it lies on this machine's disk."""
    return not has_scheme(location) or location.startswith("file:")


def path_on_disk(location: str) -> str:
    """The path of a location that `is_on_disk`.

    Examples
    --------
    >>> path_on_disk("file:///my%20lake/"), path_on_disk("/100%25/")
    ('/my lake', '/100%25')
    """
    return plain(unquote(location) if location.startswith("file:") else location) or "/"


def check_location(location: str) -> None:
    """Refuse a location that holds a character which not all readers of its tables can take.

    Raises
    ------
    ArgumentError
        It does, or is a URI with % signs; the message names what is wrong.
    """
    if location.startswith("file:") and "%" in location:
        raise ArgumentError(
            f"the location {location!r} has % signs, which readers take for different folders; give the path itself: "
            f"{path_on_disk(location)!r}"
        )
    wrong = sorted({letter for letter in location if letter in _UNREADABLE})
    if wrong:
        raise ArgumentError(
            f"the location {location!r} holds {' and '.join(map(repr, wrong))}, and tables below such a path cannot be "
            "read without Spark; give a folder without them"
        )


def as_delta_rs(location: str) -> str | None:
    """Spell a location as delta-rs does; None where it cannot open such a one."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", location)
    if found is None or found[1] == "file":
        return location
    scheme = found[1].lower()
    if scheme in _SPARK_ONLY:
        return None
    return _SCHEMES.get(scheme, scheme) + location[len(scheme) :]
