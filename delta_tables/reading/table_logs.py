"""What the logs of tables say of their current versions, through delta-rs; looked into only where there is news."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray

from patternlake.delta_tables.reading import open_tables
from patternlake.delta_tables.reading.file_choice import possible
from patternlake.delta_tables.reading.log_copies import LogCopy
from patternlake.delta_tables.reading.log_gaps import check_commits
from patternlake.delta_tables.reading.open_tables import Mark, is_last, log_of, mark_of
from patternlake.delta_tables.reading.state_reader import Condition, Made
from patternlake.delta_tables.schema.names import log_name
from patternlake.udfs.errors import StateError

# Versions of the protocol that say no more than which columns partition a table and which statistics it has.
_READER_VERSION = 1
_PUBLICATIONS = "publications"
_FIRST = (_PUBLICATIONS, "intents")
"""Looked at before other tables, of which publications tell. They tell of no intents, so that both may be at once."""
_MOST_MADE = 16
"""So many things that were made of the rows of one version are kept."""
_LOOKS_AT_ONCE = 32
_MOST_CONDITIONS = 64
"""So many conditions are remembered with the files that they may be about, of one version of a table."""


class UnreadableError(StateError):
    """A Delta table that Spark may be able to read, and delta-rs is not."""


@dataclass(frozen=True)
class TableVersion:
    """What the log of a table says of one version.

    Attributes
    ----------
    version
        Its number.
    mark
        What tells its commit from another that was put into its place; None where it is on no local disk.
    files
        A row each, as delta-rs flattens them.
    schema
        All columns.
    properties
        Of the table.
    writer_version
        The version of Delta's protocol that writers must know.
    created
        When the table was created.
    """

    version: int
    mark: Mark | None
    files: pa.Table
    schema: pa.Schema
    properties: Mapping[str, str]
    writer_version: int
    created: datetime

    def chosen(self, where: Sequence[Condition]) -> pa.Table:
        """The files that may hold rows which satisfy all conditions, of which the same come again and again."""
        keep = np.ones(self.files.num_rows, np.bool_)
        for condition in where:
            keep &= self._possible(condition)
        return self.files.filter(pa.array(keep))

    @cached_property
    def _possible(self) -> Callable[[Condition], NDArray[np.bool_]]:
        return lru_cache(_MOST_CONDITIONS)(partial(possible, self.files))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is made of the version's rows: made when it is first asked for."""
        # Another thread may empty it at any moment.
        found: tuple[Made] | None = self._made.get(key)
        if found is not None:
            return found[0]
        made = make()
        if len(self._made) >= _MOST_MADE:
            self._made.clear()
        self._made[key] = (made,)
        return made

    @cached_property
    def _made(self) -> dict[Hashable, tuple[Any]]:
        return {}

    @cached_property
    def order(self) -> list[str]:
        """The paths of the files."""
        return self.files["path"].to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def paths(self) -> frozenset[str]:
        """The same, to be looked up."""
        return frozenset(self.order)


@dataclass
class CopiedLog:
    """A copy of a table's log in a store, to be committed to.

    Attributes
    ----------
    copy, folder, table
        The copy, its folder, and the table there in the version of the store.
    kept
        Whether the copy is like the log in the store again, so that it stays.
    """

    copy: LogCopy
    folder: str
    table: DeltaTable
    kept: bool = False


class Seen:
    """Versions of a database's tables, by plain name, as threads saw them that look but once."""

    def __init__(self) -> None:
        self._versions: dict[str, TableVersion] = {}
        self._lock = threading.Lock()
        self.changes = 0
        """How often something was forgotten."""

    def get(self, name: str) -> TableVersion | None:
        """What was seen of a table, if it was."""
        return self._versions.get(name)

    def add(self, versions: Mapping[str, TableVersion], changes: int) -> None:
        """Note what was seen, unless there were more `changes` since the look began: it may be older than they."""
        with self._lock:
            current = changes == self.changes
            if _PUBLICATIONS in versions:
                # What they tell of may have come since another table was looked at, in whatever thread.
                self._versions.clear()
                self.changes += 1
            if current:
                self._versions |= versions

    def forget(self, name: str | None = None) -> None:
        """Forget a table, or all of them."""
        with self._lock:
            self.changes += 1
            if name is None:
                self._versions.clear()
            else:
                self._versions.pop(name, None)


_SEEN: ContextVar[Seen | None] = ContextVar("versions that were seen", default=None)


@contextmanager
def one_look(seen: Seen | None) -> Iterator[None]:
    """Let a thread look but once at each table of one database for what has the same `seen`, if it is in a store.

    With None it looks each time, whatever holds around the block. A look at a log there takes two requests, and a
    question reads a table several times. Publications are looked at before all else, so that other tables have what
    they tell of.
    """
    token = _SEEN.set(seen)
    try:
        yield
    finally:
        _SEEN.reset(token)


@contextmanager
def same_look() -> Iterator[None]:
    """As `one_look`, with what was seen before the block, where it lies within one; else it is one of its own."""
    if _SEEN.get() is not None:
        yield
        return
    with one_look(Seen()):
        yield


def look_anew(name: str | None = None) -> None:
    """Let the thread look again at a table within `one_look`, as it has committed to it; at all, if it is not named."""
    seen = _SEEN.get()
    if seen is not None:
        seen.forget(name)


class TableLogs:
    """The logs of the tables under a location.

    On a local disk tables stay open for all who read and write in this process, see `open_tables`; elsewhere copies of
    their logs do for this object, see `log_copies`.

    Parameters
    ----------
    location
        Folder, or URL of an object store as delta-rs spells it.
    storage_options
        Of the object store, as delta-rs takes them.
    """

    def __init__(self, location: str, storage_options: Mapping[str, str]) -> None:
        self._location, self._options = location, dict(storage_options)
        self._on_disk = "://" not in location
        self._known: dict[str, TableVersion] = {}
        self._copies: dict[str, tuple[LogCopy, DeltaTable]] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def folder(self, name: str) -> str:
        """Folder or URL of a table, given its plain name."""
        return f"{self._location}/{log_name(name)}"

    def current(self, name: str) -> TableVersion:
        """The current version of a table; within `one_look`, that of the first look.

        Raises
        ------
        UnreadableError
            There is no such table, or it has features that need Spark.
        """
        seen = None if self._on_disk else _SEEN.get()
        if seen is None:
            return self._look_at(name)
        changes, version = seen.changes, seen.get(name)
        if version is None:
            version = self._look_at(name)
            seen.add({name: version}, changes)
        return version

    def look_at(self, names: Sequence[str]) -> None:
        """Look at several tables at once, within `one_look`, where each look is a wait for a store."""
        seen = None if self._on_disk else _SEEN.get()
        if seen is None:
            return
        # Threads of their own: each look waits for some of those that read objects.
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            for some in ([name for name in names if name in _FIRST], [name for name in names if name not in _FIRST]):
                changes, missing = seen.changes, [name for name in some if seen.get(name) is None]
                seen.add(dict(zip(missing, pool.map(self._look_at, missing), strict=True)), changes)

    def _look_at(self, name: str) -> TableVersion:
        with self._telling(name), self._locks[name]:
            known = self._known.get(name)
            if known is not None and self._is_current(name, known):
                return known
            if self._on_disk:
                self._check_commits(name, known)
            with self._open(name) as table:
                mark = mark_of(log_of(self.folder(name)), table.version()) if self._on_disk else None
                known = self._known.get(name)
                if known is None or (known.version, known.mark) != (table.version(), mark):
                    known = self._known[name] = self._describe(name, table, mark)
            return known

    @contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        """Say of a log that only Spark can read that it is so."""
        try:
            yield
        except (DeltaError, FileNotFoundError) as error:
            raise UnreadableError(
                f"the table {name} at {self._location} could not be read directly: {error}"
            ) from error

    @contextmanager
    def opened(self, name: str) -> Iterator[DeltaTable]:
        """A table for this block alone: in its current version, or, in a store, as its log was looked at last."""
        with self._locks[name]:
            copied = self._copies.get(name)
            if copied is not None:
                yield copied[1]
                return
            with self._open(name) as table:
                yield table

    def _check_commits(self, name: str, known: TableVersion | None) -> None:
        """Refuse a log with gaps, which delta-rs and Spark may take for a shorter one."""
        folder = self.folder(name)
        # Where a database was deleted, another table may stand at its place.
        same = known is not None and known.mark == mark_of(log_of(folder), known.version)
        check_commits(folder, known.version if known is not None and same else None)

    def _is_current(self, name: str, known: TableVersion) -> bool:
        """Whether the disk tells that a version is still there, and still the last one."""
        if known.mark is None:
            return False
        log = log_of(self.folder(name))
        # Where a database was deleted, another table may stand at its place.
        return known.mark == mark_of(log, known.version) and is_last(log, known.version)

    @contextmanager
    def _open(self, name: str) -> Iterator[DeltaTable]:
        if self._on_disk:
            with open_tables.open_table(self.folder(name)) as table:
                yield table
            return
        copy, _, copied = self._copy(name)
        yield copied
        self._copies[name] = (copy, copied)

    def _copy(self, name: str) -> tuple[LogCopy, str, DeltaTable]:
        """A copy of a table's log in its current version, its folder, and the table there."""
        # What fails is made anew at the next look.
        copied = self._copies.pop(name, None)
        copy = LogCopy(self.folder(name), self._options) if copied is None else copied[0]
        folder, begun = copy.update()
        if copied is not None and not begun:
            copied[1].update_incremental()
            return copy, folder, copied[1]
        # It may be another table, of the same version.
        self._known.pop(name, None)
        return copy, folder, DeltaTable(folder)

    @contextmanager
    def copied_log(self, name: str) -> Iterator[CopiedLog]:
        """A copy of a table's log in a store, to be committed to, for this block alone.

        Raises
        ------
        UnreadableError
            Only Spark can read it.
        """
        with self._locks[name]:
            with self._telling(name):
                copied = CopiedLog(*self._copy(name))
            yield copied
            if copied.kept:
                self._copies[name] = (copied.copy, copied.table)

    def commits_behind(self, name: str) -> int:
        """How many commits of a table were read behind its checkpoint, at the last look; none on a local disk."""
        copied = self._copies.get(name)
        return 0 if copied is None else copied[0].behind

    def _describe(self, name: str, table: DeltaTable, mark: Mark | None) -> TableVersion:
        protocol, metadata = table.protocol(), table.metadata()
        if protocol.min_reader_version > _READER_VERSION:
            raise UnreadableError(f"the table {name} at {self._location} has features that need Spark")
        return TableVersion(
            table.version(),
            mark,
            pa.table(table.get_add_actions(flatten=True)),
            pa.schema(table.schema().to_arrow()),
            {key: value for key, value in metadata.configuration.items() if value is not None},
            int(protocol.min_writer_version),
            datetime.fromtimestamp((metadata.created_time or 0) / 1000, timezone.utc),
        )
