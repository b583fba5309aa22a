"""Copies on the local disk of the logs of tables in an object store, so that each object of a log is read once.

To open a log of n commits behind a checkpoint takes delta-rs 13 + 2n requests of a store, and to see that nothing is
new two, one after the other. A copy takes 3 + n, and two at once. Commits are numbered without gaps, so that whoever
knows one asks for the next by its name, and nothing has to be listed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

LAST_CHECKPOINT = "_last_checkpoint"
"""The object of a log that tells its last checkpoint."""
_MOST_AT_ONCE = 32
_MOST_COMMITS = 64
"""A copy that has followed so many commits is made anew, as what delta-rs holds is in as many pieces."""
_ANY_SIZE = 1 << 40
"""An object said to have so many bytes is read up to its end by one request, and nobody asks for its size before."""


@lru_cache(maxsize=1)
def store_threads() -> ThreadPoolExecutor:
    """Threads that mostly wait for a store."""
    return ThreadPoolExecutor(_MOST_AT_ONCE, "patternlake-store")


class LogCopy:
    """The log of one table, from its last checkpoint on.

    Parameters
    ----------
    table
        URL of the table as delta-rs spells it.
    storage_options
        Of the object store, as delta-rs takes them.
    """

    def __init__(self, table: str, storage_options: Mapping[str, str]) -> None:
        self._table, self._options = table, dict(storage_options)
        self._place: tempfile.TemporaryDirectory[str] | None = None
        self._first = self._next = 0
        self._known: tuple[str, bytes | None] = (LAST_CHECKPOINT, None)
        """An object of the log, and what was in it: it is another where a new log stands in the place of the old."""

    @property
    def behind(self) -> int:
        """How many commits are there behind the checkpoint that it begins with."""
        return self._next - self._first

    @property
    def next_commit(self) -> str:
        """The name of the commit that comes next, which somebody may have made in the copy."""
        return _commit(self._next)

    def follow(self, commit: bytes) -> None:
        """Take note that the store has the commit, too, that was made in the copy."""
        self._known = (self.next_commit, commit)
        self._next += 1

    def update(self) -> tuple[str, bool]:
        """Copy what is new.

        Returns
        -------
        (folder, begun)
            The folder of the copy, which is that of a Delta table without data, and whether the copy was made anew.

        Raises
        ------
        FileNotFoundError
            A checkpoint is not there in the way in which most are written.
        OSError
            The store does not answer, or refuses.
        """
        if self._place is not None and self._next - self._first < _MOST_COMMITS:
            name, before = self._known
            now, commit = self._read([name, _commit(self._next)])
            if now == before:
                self._follow(commit)
                return self._place.name, False
        self._begin()
        assert self._place is not None
        return self._place.name, True

    def _begin(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="patternlake-log-")
        os.mkdir(f"{self._place.name}/_delta_log")
        (told,) = self._read([LAST_CHECKPOINT])
        self._known = (LAST_CHECKPOINT, told)
        checkpoint = [] if told is None else _parts(json.loads(told))
        self._first = self._next = 0 if told is None else int(json.loads(told)["version"]) + 1
        *parts, commit = self._read([*checkpoint, _commit(self._next)])
        for name, part in zip(checkpoint, parts, strict=True):
            if part is None:
                raise FileNotFoundError(f"{self._table}/_delta_log/{name}")
            self._write(name, part)
        if told is not None:
            self._write(LAST_CHECKPOINT, told)
            # Who commits with delta-rs needs the last commit by its name; what it says is in the checkpoint.
            self._write(_commit(self._first - 1), b"")
        self._follow(commit)

    def _follow(self, commit: bytes | None) -> None:
        """Copy the next commit, if there is one, and those behind it."""
        commits, several = [commit], 1
        while None not in commits:
            self._take(commits)
            several = min(2 * several, _MOST_AT_ONCE)
            commits = self._read([_commit(self._next + number) for number in range(several)])
        self._take(commits[: commits.index(None)])

    def _take(self, commits: Sequence[bytes | None]) -> None:
        for commit in commits:
            assert commit is not None
            name = _commit(self._next)
            self._write(name, commit)
            self._next += 1
            self._known = (name, commit)

    def _write(self, name: str, content: bytes) -> None:
        assert self._place is not None
        with open(f"{self._place.name}/_delta_log/{name}", "wb") as file:
            file.write(content)

    def _read(self, names: Sequence[str]) -> list[bytes | None]:
        """What is in some objects of the log; None of one that is not there."""
        from deltalake.fs import DeltaStorageHandler

        paths = [f"_delta_log/{name}" for name in names]
        store = DeltaStorageHandler(self._table, self._options or None, dict.fromkeys(paths, _ANY_SIZE))

        def read(path: str) -> bytes | None:
            try:
                with store.open_input_file(path) as file:
                    return bytes(file.read_buffer(_ANY_SIZE))
            except FileNotFoundError:
                return None

        return list(store_threads().map(read, paths))


def _commit(version: int) -> str:
    return f"{version:020}.json"


def _parts(told: Mapping[str, Any]) -> list[str]:
    """Names of the objects of a checkpoint, by what the log says of it."""
    version, parts = int(told["version"]), told.get("parts")
    if parts is None:
        return [f"{version:020}.checkpoint.parquet"]
    return [f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)]
