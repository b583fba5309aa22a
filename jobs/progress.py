"""What is under way, for who waits: one line per object, on a console that the caller chooses."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from patternlake.jobs.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console
    from rich.status import Status

logger = logging.getLogger(__name__)

_PERIOD = 1.0


class Progress(Protocol):
    """Hears of every object before and after a job works on it."""

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Work on an object begins; it is the `number`-th of `total`, from 1."""

    def end(self, summary: Summary) -> None:
        """Work on the object has ended and is published."""


class LoggedProgress:
    """Tells the log, at level INFO."""

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Log the beginning."""
        logger.info("%s of %r begins (%d of %d)", job, object, number, total)

    def end(self, summary: Summary) -> None:
        """Log the end."""
        logger.info("%s", told(summary))


class ShownProgress:
    """Shows the object at work and Spark's tasks on a terminal; elsewhere, nothing.

    Under a scheduler, standard error thus stays empty unless something is wrong, and cron sends no letters. Use it as
    a context manager, so that the line is gone whatever ends the work.

    Parameters
    ----------
    console
        Where to write; that of standard error for a command.
    spark
        The session whose tasks are counted.
    """

    def __init__(self, console: Console, spark: SparkSession) -> None:
        self._console = console
        self._spark = spark
        self._label = ""
        self._status: Status | None = None
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> ShownProgress:
        if self._console.is_terminal:
            self._status = self._console.status("")
            self._watcher = threading.Thread(target=self._watch, name="patternlake-progress", daemon=True)
            self._status.start()
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join(timeout=2 * _PERIOD)
        if self._status is not None:
            self._status.stop()

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Show the object."""
        self._label = f"{job} {object} ({number} of {total})"
        if self._status is not None:
            self._show(self._label)

    def end(self, summary: Summary) -> None:
        """Write what became of it."""
        if self._status is not None:
            self._console.print(told(summary), markup=False, highlight=False, soft_wrap=True)

    def _watch(self) -> None:
        while not self._ended.wait(_PERIOD):
            # Asking fails while a session stops and on a Connect client; the label alone will do.
            with suppress(Exception):
                done, total = _tasks(self._spark)
                self._show(f"{self._label}: {done} of {total} tasks" if total else self._label)

    def _show(self, text: str) -> None:
        from rich.text import Text

        assert self._status is not None
        self._status.update(Text(text))


def told(summary: Summary) -> str:
    """Write a summary as one line for people."""
    head = f"{summary.job} {summary.object}"
    if not summary.batches and not summary.rows_out:
        return f"{head}: nothing new ({summary.seconds:.1f} s)"
    return (
        f"{head}: {summary.rows_in:,} rows in, {summary.rows_out:,} out, {summary.rows_quarantined:,} quarantined "
        f"({summary.seconds:.1f} s)"
    )


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """Count the finished tasks and all tasks of the stages that run now."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
