"""What runs observe of conditions, from one call to the next: kept in memory, and written to a table when it is news.

Answers never depend on it, and no call waits for a write, or fails by one. A run tells what it saw; some moments later
a thread writes what changes what is known, at most every minute, without Spark where that can be. What is not written
is used by the process all the same. Where only Spark's jobs can read or write the table, they do it in that thread.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary

from patternlake.delta_tables import timestamps
from patternlake.delta_tables.tables.observed_selectivities import TABLE, ObservedSelectivities, read_observations
from patternlake.sql_ext.told_by_tasks import Found, FromTasks, Gathered
from patternlake.udfs.kleene.plans.observations import (
    LEAST_JUDGED,
    JudgedCondition,
    Observation,
    Seen,
    merge_observations,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator

    from patternlake.delta_tables.state_reader import StateReader

logger = logging.getLogger(__name__)

PAUSE = 2.0
"""Seconds from the first thing that is told to its being written: what comes meanwhile is written with it."""
EVERY, EVERY_THROUGH_SPARK = 60.0, 600.0
"""Seconds from one write to the next, at least."""
LOOKS = 10.0
"""Seconds after which a call looks whether other sessions have written."""
MOST_HELD = 4096
"""Conditions that are held for the next write; beyond it those that are no news are let go."""
AT_EXIT = 2.0
"""Seconds that the end of a process may take for what is not written yet, about."""
DIFFERS = 1.25
"""A share is news where it is so many times what was known, or less than it by as much."""
LASTS = 86_400_000_000
"""Microseconds after which what is known is confirmed, so that it is not taken for forgotten."""

_EVERYWHERE: WeakSet[Learned] = WeakSet()
_AT: WeakValueDictionary[str, Learned] = WeakValueDictionary()
_TOLD: dict[str, Accumulator[list[Any]]] = {}
"""By Spark application: what takes what its tasks found."""


class Learned:
    """What is known of the conditions of one database.

    Parameters
    ----------
    location
        Of the database.
    table
        Writes what is news.
    """

    def __init__(self, location: str, table: ObservedSelectivities) -> None:
        self.location = location
        self._table = table
        self._stored: dict[tuple[int, JudgedCondition], Observation] = {}
        self._own: dict[tuple[int, JudgedCondition], Observation] = {}
        self._going: dict[tuple[int, JudgedCondition], Observation] = {}
        self._version = -1
        self._look_at = self._write_at = 0.0
        self._timer: threading.Timer | None = None
        self._lock, self._writing = threading.Lock(), threading.Lock()
        _EVERYWHERE.add(self)
        _AT[location] = self

    def look(self, reader: StateReader, *, at_once: bool = False) -> None:
        """Look whether other sessions have written, if that is some time ago or is to be known at once.

        Where it takes a job of Spark's, another thread does it.
        """
        now = time.monotonic()
        if now < self._look_at and not at_once:
            return
        self._look_at = now + LOOKS
        if getattr(reader, "place", None) is not None:
            self._read(reader)
        else:
            self._look_at = now + EVERY
            threading.Thread(target=self._read, args=(reader,), name="patternlake-learning", daemon=True).start()

    def seen(self, stream: int) -> Seen:
        """What is known of the conditions of a stream, by its number."""
        return partial(self._seen, stream)

    def _seen(self, stream: int, condition: JudgedCondition) -> Observation | None:
        key = stream, condition
        with self._lock:
            found = [held[key] for held in (self._stored, self._going, self._own) if key in held]
        return merge_observations(found) if found else None

    def tell(self, stream: int, found: Found) -> None:
        """Take what a run found, and have it written later if it is news."""
        at = timestamps.to_micros(timestamps.now())
        with self._lock:
            for condition, (judged, held) in found.items():
                own = Observation(float(judged), float(held), at).limited()
                before = self._own.get((stream, condition))
                self._own[stream, condition] = own if before is None else merge_observations([before, own])
            news = self._news()
            if len(self._own) > MOST_HELD:
                self._own = {key: self._own[key] for key in news[-MOST_HELD:]}
            if self._timer is None and news:
                self._timer = threading.Timer(max(PAUSE, self._write_at - time.monotonic()), self.write)
                self._timer.daemon = True
                # At its end a process starts no threads.
                with suppress(RuntimeError):
                    self._timer.start()

    def write(self) -> None:
        """Write what is news; what cannot be written is kept for the next time."""
        with self._writing:
            with self._lock:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = None
                self._going = going = {key: self._own.pop(key) for key in self._news()}
            if not going:
                return
            every = EVERY
            try:
                every = EVERY if self._table.without_spark else EVERY_THROUGH_SPARK
                written = self._table.append({key: one.limited() for key, one in going.items()})
            except Exception as error:
                # A lake that may only be read, or that is gone: nothing but time is lost.
                logger.info("what was observed of conditions in %s is not written: %s", self.location, error)
                written = False
            with self._lock:
                self._write_at, self._going = time.monotonic() + every, {}
                for key, one in going.items():
                    known = self._stored if written else self._own
                    known[key] = merge_observations([known[key], one]) if key in known else one

    def write_at_exit(self) -> None:
        """Write what is news if that takes no Spark, which may have ended."""
        with suppress(Exception):
            if self._timer is not None and self._table.without_spark:
                self.write()

    def _read(self, reader: StateReader) -> None:
        try:
            version = reader.version(TABLE.name)
            if version == self._version:
                return
            found = read_observations(reader)
        except Exception as error:
            logger.info("what was observed of conditions in %s cannot be read: %s", self.location, error)
            return
        with self._lock:
            for key in self._stored.keys() - found.keys():
                # Whoever deleted it wants it forgotten.
                self._own.pop(key, None)
            self._stored, self._version = found, version

    def _news(self) -> list[tuple[int, JudgedCondition]]:
        """What was told and changes what is known."""
        return [key for key, own in self._own.items() if _is_news(self._stored.get(key), own)]


def _is_news(stored: Observation | None, own: Observation) -> bool:
    if own.judged < LEAST_JUDGED:
        return False
    if stored is None or stored.judged < LEAST_JUDGED or own.at - stored.at > LASTS:
        return True
    # One that never held may hold in half of a further combination: no share is zero.
    few, many = sorted((one.held + 0.5) / (one.judged + 1) for one in (stored, merge_observations([stored, own])))
    return many > DIFFERS * few


def _write_all() -> None:
    until = time.monotonic() + AT_EXIT
    for learned in list(_EVERYWHERE):
        if time.monotonic() < until:
            learned.write_at_exit()


atexit.register(_write_all)


def from_tasks(context: SparkContext, location: str, stream: int) -> FromTasks:
    """What takes home what tasks find in a stream of a database."""
    application = str(context.applicationId)
    if application not in _TOLD:
        _TOLD[application] = context.accumulator([], _ToDriver())
    return FromTasks(_TOLD[application], location, stream)


class _ToDriver(Gathered):
    """In the driver's process: nothing is kept, each thing goes where it belongs; in a task it is `Gathered`."""

    def __reduce__(self) -> tuple[Callable[[], Gathered], tuple[()]]:
        return Gathered, ()

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        _take(value2)
        return value1


def _take(told: Iterable[tuple[str, int, Found]]) -> None:
    for location, stream, found in told:
        learned = _AT.get(location)
        if learned is None:
            continue
        try:
            learned.tell(stream, found)
        except Exception:
            # It would end the connection over which Spark hands on what tasks found, and with it the job.
            logger.exception("what tasks observed of conditions in %s is lost", location)
