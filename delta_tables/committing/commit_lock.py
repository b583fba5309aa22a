"""Who may commit to a table on a local disk: any number through Spark, or one without it.

Spark's store for local folders looks whether a commit is there and then renames its own into the place, so that it
would replace one that another program made in between. Commits without Spark are therefore made only while none
through Spark is under way: these hold the lock together, that one holds it alone. The system lets go of the lock of a
process that dies. Whoever can open the file can lock it, for reading too, so that only those who may write to the table
may open it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from patternlake.delta_tables.committing.direct_commits import Result, TableFolder
from patternlake.udfs.errors import StateError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

POSSIBLE = fcntl is not None
"""Whether this system locks files in the way that is used here; where it does not, Spark makes all commits."""
_PATIENCE = 0.5
"""Seconds: a commit without Spark takes a tenth of that, one through Spark may write for hours before."""
_LONG_PATIENCE = 600.0
"""Seconds that a commit through Spark waits for one without it, which may merge the files of a table."""
_WARNING = 5.0
"""Seconds after which a wait is logged."""
_PAUSE = 0.01
_WRITERS, _ALL_BITS = 0o222, 0o777


@dataclass(frozen=True)
class CommitLock:
    """The lock of one table.

    Parameters
    ----------
    folder
        Of the table.
    path
        The file that is locked; it is made where it is not there, and stays.
    """

    folder: str
    path: str

    def commit(self, write: Callable[[TableFolder], Result], patience: float | None = None) -> Result | None:
        """As `DirectCommits` has it."""
        with self.alone(_PATIENCE if patience is None else patience) as held:
            return write(TableFolder(self.folder)) if held else None

    def through_spark(self) -> AbstractContextManager[None]:
        """As `DirectCommits` has it."""
        return self.together()

    def look(self, read: Callable[[TableFolder], Result]) -> Result:
        """As `DirectCommits` has it."""
        return read(TableFolder(self.folder))

    @contextmanager
    def together(self, patience: float = _LONG_PATIENCE) -> Iterator[None]:
        """Hold the lock beside others who commit through Spark; waits for the end of a commit without it.

        Parameters
        ----------
        patience
            Seconds that another may hold it alone.

        Raises
        ------
        StateError
            Another holds it longer, as a process does that was stopped.
        """
        if fcntl is None:
            yield
            return
        with self._open() as file:
            self._wait(file, patience)
            yield

    def _wait(self, file: int, patience: float) -> None:
        began = time.monotonic()
        warned = False
        while not _take(file, fcntl.LOCK_SH):
            waited = time.monotonic() - began
            if waited >= patience:
                raise StateError(
                    f"a commit to {self.folder} waited {waited:.0f} s for the lock {self.path}, which "
                    f"{_describe_holders(file)} holds; end that process, or let it go on, and run this again"
                )
            if waited >= _WARNING and not warned:
                logger.warning("waiting for the lock %s, which %s holds", self.path, _describe_holders(file))
                warned = True
            time.sleep(_PAUSE)

    @contextmanager
    def alone(self, patience: float = _PATIENCE) -> Iterator[bool]:
        """Hold the lock alone, if nobody else holds it or lets go of it soon; tells whether it is held.

        Parameters
        ----------
        patience
            Seconds that others may hold it on.
        """
        if fcntl is None:
            yield False
            return
        with self._open() as file:
            until = time.monotonic() + patience
            while not (held := _take(file, fcntl.LOCK_EX)) and time.monotonic() < until:
                time.sleep(_PAUSE)
            yield held

    @contextmanager
    def _open(self) -> Iterator[int]:
        """A handle of its own, as threads of one process that share one would hold the lock together."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._admit_writers(file)
            yield file
        finally:
            os.close(file)

    def _admit_writers(self, file: int) -> None:
        """Let those open the lock who may write to the table's folder, and nobody else."""
        with suppress(FileNotFoundError, PermissionError):  # no table yet; or another user's file, who has done it
            writers = os.stat(self.folder).st_mode & _WRITERS
            wanted = 0o600 | writers | writers << 1
            if os.fstat(file).st_mode & _ALL_BITS != wanted:
                os.fchmod(file, wanted)


def lock_of(location: str, log: str) -> CommitLock:
    """The lock of a Delta table, given the folder of the database and the table's in it."""
    return CommitLock(f"{location}/{log}", f"{location}/_locks/{log}")


def _take(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _describe_holders(file: int) -> str:
    """Name the processes that hold a lock, where the system lists them as Linux does."""
    try:
        listed = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "another process"
    inode = str(os.fstat(file).st_ino)
    # A line that waits has an arrow in the second place.
    holders = [row[4] for row in listed if row[1] == "FLOCK" and row[5].rpartition(":")[2] == inode]
    return " and ".join(map(_describe_process, holders)) or "another process"


def _describe_process(number: str) -> str:
    try:
        folder = Path("/proc", number)
        command = " ".join(folder.joinpath("cmdline").read_text(errors="replace").split("\0")).strip()
        state = folder.joinpath("stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return f"process {number}"
    stopped = ", which is stopped" if state in "Tt" else ""
    return f"process {number} ({command[:100]}{stopped})"
