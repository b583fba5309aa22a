"""Whether the log of a Delta table on a local disk is whole.

Delta and delta-rs read a log up to the first commit that is missing, and take an empty one for a commit that changes
nothing: a table that has lost rows so answers as if it never had them.
"""

from __future__ import annotations

import os
import re

from patternlake.delta_tables.reading.open_tables import commit_of, log_of
from patternlake.udfs.errors import StateError

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\..+)?\.parquet")


def check_commits(folder: str, after: int | None) -> None:
    """Refuse a log that lacks a commit, or has an empty one.

    Parameters
    ----------
    folder
        Of a table on a local disk; there may be none.
    after
        The last version that was checked before; None: all since the last checkpoint are.

    Raises
    ------
    StateError
        The commit, by the name of its file.
    """
    log = log_of(folder)
    if after is not None:
        version = after + 1
        while (size := _size(commit_of(log, version))) is not None:
            _check_size(commit_of(log, version), size)
            version += 1
        return
    try:
        with os.scandir(log) as entries:
            sizes = {entry.name: entry.stat().st_size for entry in entries}
    except FileNotFoundError:
        return
    commits = {int(found[1]): size for name, size in sizes.items() if (found := _COMMIT.fullmatch(name))}
    checkpoints = [int(found[1]) for name in sizes if (found := _CHECKPOINT.fullmatch(name))]
    for version in range(max(checkpoints, default=-1) + 1, max(commits, default=-1) + 1):
        if version not in commits:
            raise StateError(
                f"the commit {commit_of(log, version)} is missing, and later ones are there; restore it from a "
                "backup, as without it the table would be read as it was before"
            )
        _check_size(commit_of(log, version), commits[version])


def _size(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return None


def _check_size(commit: str, size: int) -> None:
    if not size:
        raise StateError(
            f"the commit {commit} is empty, as after a machine that lost its power; restore it from a backup. Where "
            "there is none and it is the last one, remove it: what was published with it is told then, and what to "
            "rebuild"
        )
