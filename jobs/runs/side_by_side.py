"""Pieces of work done side by side: each begins as soon as those that it waits for have ended, so many at a time."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MOST = 4
"""So many jobs run at once at the most where nothing else is asked for.

Measured: on two cores the demo's jobs take as long two at a time as one by one: planning and tasks of one fill both.
"""

_PERIOD = 0.2

T = TypeVar("T")


class Crew(Protocol):
    """Who does the work."""

    most: int
    """So many pieces at a time."""

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have a piece of work done."""

    def interrupt(self) -> None:
        """Let what is at work end soon; called again until it has."""

    def close(self) -> None:
        """Nothing more comes."""


class Caller:
    """The thread that asks does the work itself, so one piece at a time."""

    most = 1

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do it now; what is no ordinary error, such as an interrupt, is raised here."""
        future: Future[T] = Future()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        return future

    def interrupt(self) -> None:
        """Nothing is at work while anybody can ask for this."""

    def close(self) -> None:
        """Nothing is held."""


class Threads:
    """Threads of one Spark session, whose Spark jobs can be cancelled apart from everybody else's.

    What the caller's thread has set for its Spark jobs (group, tags, scheduler pool, a platform's credentials) holds in
    each of them.

    Parameters
    ----------
    spark
        The session.
    most
        How many.
    """

    def __init__(self, spark: SparkSession, most: int) -> None:
        self.most = most
        self._spark = spark
        self._tag = f"patternlake-{uuid.uuid4().hex}"
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="patternlake-job")

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do it in the next thread that is free."""
        from pyspark import inheritable_thread_target

        def work_tagged() -> T:
            self._spark.sparkContext.addJobTag(self._tag)
            return work()

        # Taken for each piece anew: threads that share one set of properties would set each other's.
        inheriting: Callable[[], T] = inheritable_thread_target(self._spark)(work_tagged)
        return self._pool.submit(inheriting)

    def interrupt(self) -> None:
        """Cancel the Spark jobs that run now; a thread that is between two of them meets the next call."""
        with suppress(Exception):  # of a session that has been stopped
            self._spark.sparkContext.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def crew(spark: SparkSession, asked: int | None, pieces: int) -> Crew:
    """Who does so many pieces of work.

    Parameters
    ----------
    spark
        The session.
    asked
        So many at a time; None: half as many as there are cores, one at least and `MOST` at the most.
    pieces
        How many there are.

    Raises
    ------
    ArgumentError
        The number is not 1 or more.
    """
    most = min(check(asked) or max(1, min(MOST, spark.sparkContext.defaultParallelism // 2)), pieces)
    if most > 1 and not _is_pinned():
        logger.info("one job after another: PYSPARK_PIN_THREAD is off, so threads of Python are not those of the JVM")
        most = 1
    return Threads(spark, most) if most > 1 else Caller()


def check(asked: int | None) -> int | None:
    """Return how many jobs may run at once, as it was asked for; refuse what is no such number."""
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 1):
        raise ArgumentError(f"side_by_side = {asked!r} is not how many jobs may run at once; a whole number from 1")
    return asked


def _is_pinned() -> bool:
    """Whether each thread of Python has a thread of the JVM, which is where a session is the active one."""
    from py4j.clientserver import ClientServer  # type: ignore[import-untyped]
    from pyspark import SparkContext

    return isinstance(SparkContext._gateway, ClientServer)


@dataclass(frozen=True)
class Ended(Generic[T]):
    """A piece of work that has ended.

    Attributes
    ----------
    number
        Which one.
    result
        What came of it; None where it failed, or was left out.
    error
        What it failed of.
    """

    number: int
    result: T | None = None
    error: Exception | None = None


def run_each(
    after: Sequence[Collection[int]], begin: Callable[[int], Callable[[], T] | None], crew: Crew
) -> Generator[Ended[T], None, None]:
    """Do pieces of work, and tell of each when it has ended.

    After an error nothing more begins; what is at work is done to its end, and told. After anything else that is
    raised, be it by a piece of work or in the thread that asks, what is at work is interrupted, and waited for.

    Parameters
    ----------
    after
        Of each piece, the numbers of those that must have ended before it begins, all smaller than its own.
    begin
        Called with a piece's number in the thread that asks, before it begins: the work, or None to leave it out.
    crew
        Who does it.
    """
    waiting = list(range(len(after)))
    over: set[int] = set()
    at_work: dict[Future[T], int] = {}
    failed = False

    def next_one() -> int | None:
        if failed or len(at_work) >= crew.most:
            return None
        return next((number for number in waiting if over.issuperset(after[number])), None)

    try:
        while True:
            while (number := next_one()) is not None:
                waiting.remove(number)
                work = begin(number)
                if work is None:
                    over.add(number)
                    yield Ended(number)
                else:
                    at_work[crew.submit(work)] = number
            if not at_work:
                return
            done, _ = wait(at_work, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=at_work.__getitem__):
                number = at_work.pop(future)
                error = future.exception()
                if isinstance(error, Exception):
                    failed = True
                    yield Ended(number, error=error)
                elif error is not None:
                    raise error
                else:
                    over.add(number)
                    yield Ended(number, future.result())
    finally:
        left: Collection[Future[T]] = at_work
        while left:
            crew.interrupt()
            left = wait(left, timeout=_PERIOD).not_done
        crew.close()
