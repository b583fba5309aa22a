"""What is under way, for who waits: one line per object at work, on a console that the caller chooses."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from patternlake.delta_tables.batches.phases import ROWS, followed_by
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.progress.lines import Phase, line, write_summary
from patternlake.jobs.progress.stages import TaggedStages, current_pass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from patternlake.jobs.progress.screens import Screen

logger = logging.getLogger(__name__)

_PERIOD = 1.0
"""Seconds between two looks at Spark."""

# The tag of this thread's Spark jobs. Like the thread's local properties in the JVM, it goes with a copied context.
_tag: ContextVar[str | None] = ContextVar("patternlake_progress_tag", default=None)


class Progress(Protocol):
    """Hears of every object before and after a job works on it; of several at once where several are worked on."""

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Work on an object begins; it is the `number`-th of `total`, from 1."""

    def working(self, job: str, object: str) -> AbstractContextManager[None]:
        """Surrounds the work on the object, in the thread that does it, however the work ends."""

    def end(self, summary: Summary) -> None:
        """Work on the object has ended and is published."""


class LoggedProgress:
    """Tells the log, at level INFO."""

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Log the beginning."""
        logger.info("%s of %r begins (%d of %d)", job, object, number, total)

    def working(self, job: str, object: str) -> AbstractContextManager[None]:
        """Nothing more."""
        return nullcontext()

    def end(self, summary: Summary) -> None:
        """Log the end."""
        logger.info("%s", write_summary(summary))


class ShownProgress:
    """Shows on a terminal or in a notebook, for each object at work, what it is at, rows, rate and time left.

    Elsewhere it shows nothing: under a scheduler, standard error thus stays empty unless something is wrong, and cron
    sends no letters. Use it as a context manager, so that the lines are gone whatever ends the work.

    Parameters
    ----------
    console
        Where to write; that of standard error for a command.
    spark
        The session whose tasks are looked at.
    quiet
        Show nothing at all.
    """

    def __init__(self, console: Console, spark: SparkSession, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._spark = spark
        self._screen: Screen | None = None
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._lock = threading.Lock()
        self._at_work: dict[tuple[str, str], _Work] = {}

    def __enter__(self) -> ShownProgress:
        if not self._quiet:
            from patternlake.jobs.progress.screens import screen_of

            self._screen = screen_of(self._console)
        if self._screen is not None:
            # A notebook knows by the context which cell an output belongs to.
            context = contextvars.copy_context()
            self._watcher = threading.Thread(
                target=context.run, args=(self._watch,), name="patternlake-progress", daemon=True
            )
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join(timeout=2 * _PERIOD)
        if self._screen is not None:
            with self._lock:
                self._at_work.clear()
                self._screen.close()

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Show the object."""
        if self._screen is not None:
            self._add(job, object, f"{job} {object} ({number} of {total})")
            self._show()

    @contextmanager
    def working(self, job: str, object: str) -> Iterator[None]:
        """Follow what this thread does."""
        if self._screen is None:
            yield
            return
        work = self._add(job, object, f"{job} {object}")
        try:
            with followed_by(work):
                yield
        finally:
            work.leave()
            self._remove(job, object)

    def end(self, summary: Summary) -> None:
        """Write what became of it."""
        if self._screen is not None:
            with self._lock:
                self._at_work.pop((summary.job, summary.object), None)
                self._screen.tell(write_summary(summary))
            self._show()

    def _add(self, job: str, object: str, label: str) -> _Work:
        with self._lock:
            return self._at_work.setdefault((job, object), _Work(self._spark, label))

    def _remove(self, job: str, object: str) -> None:
        with self._lock:
            self._at_work.pop((job, object), None)
        self._show()

    def _watch(self) -> None:
        while not self._ended.wait(_PERIOD):
            with self._lock:
                works = list(self._at_work.values())
            for work in works:
                work.look()
            self._show()

    def _show(self) -> None:
        assert self._screen is not None
        with self._lock:
            self._screen.show([work.line() for work in self._at_work.values()])


@contextmanager
def default_progress(spark: SparkSession) -> Iterator[Progress]:
    """What hears of a run that nobody gave a progress: in a notebook the cell's output, elsewhere the log."""
    from rich.console import Console

    console = Console()
    if console.is_jupyter:
        with ShownProgress(console, spark) as shown:
            yield shown
    else:
        yield LoggedProgress()


class _Work:
    """What is known of the work on one object: told by its thread, looked at by the watcher."""

    def __init__(self, spark: SparkSession, label: str) -> None:
        self._spark = spark
        self._label = label
        self._started = time.monotonic()
        self._reads: int | None = None
        self._at: tuple[Phase, TaggedStages | None] = (Phase(), None)

    def at(self, phase: str, unit: str | None) -> None:
        """Begin a phase: from here on, Spark jobs of this thread bear a tag of its own."""
        self.leave()
        stages: TaggedStages | None = None
        if unit is not None:
            tag = f"patternlake-{uuid.uuid4().hex}"
            # Some platforms don't let jobs be tagged or looked at; the phase alone will do.
            with suppress(Exception):
                self._spark.sparkContext.addJobTag(tag)
                _tag.set(tag)
                stages = TaggedStages(self._spark, tag)
        self._at = Phase(phase, unit or ROWS), stages

    def reads(self, rows: int | None) -> None:
        """Take in how many rows a pass over the input reads."""
        self._reads = rows

    def leave(self) -> None:
        """Take the tag off this thread."""
        tag = _tag.get()
        if tag is not None:
            with suppress(Exception):
                self._spark.sparkContext.removeJobTag(tag)
            _tag.set(None)

    def look(self) -> None:
        """Ask Spark how far it is."""
        phase, stages = self._at
        if stages is not None:
            # Asking fails while a session stops.
            with suppress(Exception):
                phase.see(current_pass(stages.now(), self._reads), time.time())

    def line(self) -> str:
        """What to show."""
        return line(self._label, time.monotonic() - self._started, self._at[0])
