"""What the work of a thread is at, told to whoever follows it; where nobody does, telling costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

ROWS = "rows"


class Follower(Protocol):
    """Hears of phases, in the thread that works."""

    def at(self, phase: str, unit: str | None) -> None:
        """A phase begins; `unit` is what Spark counts as one record in it, None: nothing worth telling."""

    def reads(self, rows: int | None) -> None:
        """What a pass over the input of this phase and of later ones reads."""


_follower: ContextVar[Follower | None] = ContextVar("patternlake_follower", default=None)


@contextmanager
def followed_by(follower: Follower) -> Iterator[None]:
    """Let somebody follow what this thread does in the block.

    What is done in other threads is not followed, unless they run in a copy of this thread's context.
    """
    token = _follower.set(follower)
    try:
        yield
    finally:
        _follower.reset(token)


def at(phase: str, *, unit: str | None = ROWS) -> None:
    """Tell that a phase begins.

    Parameters
    ----------
    phase
        For people, such as ``writing events``.
    unit
        What Spark counts as one record in this phase: rows, or the files of a source whose rows Spark does not know.
        None: it takes no data in.
    """
    follower = _follower.get()
    if follower is not None:
        follower.at(phase, unit)


def reads(rows: int | None) -> None:
    """Tell how many rows a pass over the input reads, from here on; None: that is not known."""
    follower = _follower.get()
    if follower is not None:
        follower.reads(rows)
