"""Who may commit to a table on a local disk: any number through Spark, or one without it.

Spark's store for local folders looks whether a commit is there and then renames its own into the place, so that it
would replace one that another program made in between. Commits without Spark are therefore made only while none
through Spark is under way: these hold the lock together, that one holds it alone. The system lets go of the lock of a
process that dies.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

POSSIBLE = fcntl is not None
"""Whether this system locks files in the way that is used here; where it does not, Spark makes all commits."""
_PATIENCE = 0.5
"""Seconds: a commit without Spark takes a tenth of that, one through Spark may write for hours before."""
_PAUSE = 0.01


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

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold the lock beside others who commit through Spark; waits for the end of a commit without it."""
        if fcntl is None:
            yield
            return
        with self._open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

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
            while not (held := _taken(file)) and time.monotonic() < until:
                time.sleep(_PAUSE)
            yield held

    @contextmanager
    def _open(self) -> Iterator[int]:
        """A handle of its own, as threads of one process that share one would hold the lock together."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            yield file
        finally:
            os.close(file)


def lock_of(location: str, log: str) -> CommitLock:
    """The lock of a Delta table, given the folder of the database and the table's in it."""
    return CommitLock(f"{location}/{log}", f"{location}/_locks/{log}")


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
