"""What holds for the length of a block or a job: its own session, rows that are kept, work that is done beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from pyspark import StorageLevel, inheritable_thread_target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from patternlake.delta_tables.committing.database import Database

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def in_own_session(
    job: Callable[Concatenate[Database, _Given], _Result],
) -> Callable[Concatenate[Database, _Given], _Result]:
    """Let a job, whose first argument is the database, run in a session of its own; see `Database.apart`."""
    return _apart(job, when_needed=False)


def in_own_session_when_needed(
    job: Callable[Concatenate[Database, _Given], _Result],
) -> Callable[Concatenate[Database, _Given], _Result]:
    """As `in_own_session`, for a job that may need no session, and asks for it in its own thread alone."""
    return _apart(job, when_needed=True)


def _apart(
    job: Callable[Concatenate[Database, _Given], _Result], *, when_needed: bool
) -> Callable[Concatenate[Database, _Given], _Result]:
    @wraps(job)
    def work(db: Database, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        with db.apart(when_needed=when_needed) as own:
            return job(own, *given, **named)

    return work


@contextmanager
def in_background(spark: SparkSession, work: Callable[[], None]) -> Iterator[None]:
    """Do some work, which is mostly waiting, beside the block; its error is raised when the block has ended.

    What this thread has set for its Spark jobs, such as the tag by which they are cancelled, holds for the work's.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(inheritable_thread_target(spark)(work))
        yield
        done.result()


@contextmanager
def keep_evaluated(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame's rows, evaluated once and kept on the executors' disks.

    Measured: rows as they are cost half of what a columnar cache costs to build, and no heap.
    """
    evaluated = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
    try:
        yield evaluated
    finally:
        evaluated._jdf.queryExecution().logical().rdd().unpersist(False)
