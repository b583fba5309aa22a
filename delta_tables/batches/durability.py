"""What a publication rests on lies on the disk before it, and readers notice where a disk has lost some of it.

A machine that loses its power loses what the system had not written to the disk yet: whole files, or what was in them.
So a batch's files are written out before its publication, and the publication before a run says that it is done. A disk
that lies, or a backup that is not whole, is noticed by two things: a log has a commit that is missing or empty (see
`log_gaps`), or it ends before the version that a publication has recorded.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import pyarrow.compute as pc

from patternlake.delta_tables.reading.state_reader import StateReader
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.schema.names import log_name
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.udfs.errors import StateError

Versions = dict[str, dict[tuple[str, str], int]]
"""By table: the version that the newest publication of each (job, object) has recorded of it."""


def write_out(folder: str) -> None:
    """Wait until all files of the file system that a folder lies in are on the disk.

    Measured: 0.5 ms behind four files of 50 kB; to sync each file and its folder takes twice as long, and would have to
    know the files that Spark writes.
    """
    sync = _sync_of_system()
    if sync is None:
        os.sync()
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        if sync(opened) != 0:
            raise OSError(ctypes.get_errno(), "what was written could not be brought to the disk", folder)
    finally:
        os.close(opened)


@lru_cache(maxsize=1)
def _sync_of_system() -> Any | None:
    """The call that writes out one file system, which Linux has and Python gives no name."""
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError, TypeError):
        return None


def recorded_versions(reader: StateReader) -> Versions:
    """The versions of tables that publications have recorded; of lakes on a local disk."""
    return reader.once("publications", "recorded versions", lambda: _read_recorded(reader))


def _read_recorded(reader: StateReader) -> Versions:
    rows = reader.rows("publications", ("job", "object", "published_at", "versions"))
    rows = rows.filter(pc.is_valid(rows["versions"])).sort_by("published_at")
    newest = {
        (job, name): versions
        for job, name, versions in zip(
            *(rows[column].to_pylist() for column in ("job", "object", "versions")), strict=True
        )
    }
    found: Versions = {}
    for key, text in newest.items():
        for table, version in documents.from_text(text).items():
            found.setdefault(table, {})[key] = version
    return found


def current_versions(reader: StateReader, job: str) -> dict[str, int]:
    """The versions of the tables that a job writes, as a publication records them."""
    return {name: reader.version(name) for name, table in TABLES.items() if table.job == job}


def check_versions(reader: StateReader, jobs: Collection[str]) -> None:
    """Refuse tables of some jobs that have lost commits which publications rest on.

    Raises
    ------
    StateError
        The table, its version, and which objects have to be rebuilt.

    Notes
    -----
    An object store loses no object that it has acknowledged, and to ask it for versions takes requests.
    """
    if not reader.on_disk:
        return
    recorded = recorded_versions(reader)
    for table, versions in recorded.items():
        if table in TABLES and TABLES[table].job in jobs:
            _check_version(table, reader.version(table), versions)


def _check_version(table: str, current: int, recorded: Mapping[tuple[str, str], int]) -> None:
    lost = sorted(key for key, version in recorded.items() if version > current)
    if lost:
        named = ", ".join(f"{job} of {name!r}" for job, name in lost)
        raise StateError(
            f"the table {log_name(table)} is at version {current}, and publications rest on version "
            f"{max(recorded.values())}: its last commits are gone. Restore its folder from a backup, or run with "
            f"--rebuild, each of them: {named}"
        )
