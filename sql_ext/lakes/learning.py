"""What runs observe of conditions, from one call to the next: kept in this process, beside what jobs have written.

Answers never depend on it. A question writes nothing: what it observed is known to all sessions of its process, and is
gone with it. What is known to all is written by the job `patterns`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.spark.told_by_tasks import FromTasks, Gathered, Observed
from patternlake.delta_tables.tables.observed_selectivities import TABLE, read_observations
from patternlake.udfs.kleene.plans.observations import JudgedCondition, Observation, Seen, merge_observations

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator

    from patternlake.delta_tables.reading.state_reader import StateReader

logger = logging.getLogger(__name__)

LOOKS, LOOKS_THROUGH_SPARK = 10.0, 60.0
"""Seconds after which a call looks whether a job has written."""
MOST_HELD = 4096
"""Conditions that are held; of more, those that were judged last."""

_AT: WeakValueDictionary[str, Learned] = WeakValueDictionary()
_TOLD: dict[str, Accumulator[list[Any]]] = {}
"""By Spark application: what takes what its tasks found."""


class Learned:
    """What is known of the conditions of one database.

    Parameters
    ----------
    location
        Of the database.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._stored: dict[tuple[int, JudgedCondition], Observation] = {}
        self._own: dict[tuple[int, JudgedCondition], Observation] = {}
        self._version: Hashable = None
        self._look_at = 0.0
        self._lock = threading.Lock()
        _AT[location] = self

    def look(self, reader: StateReader, *, at_once: bool = False) -> None:
        """Look whether a job has written, if that is some time ago or is to be known at once.

        Where it takes a job of Spark's, another thread does it, for whose end the process waits before its own: Python
        aborts where it ends while Arrow hands on what Spark sends.
        """
        now = time.monotonic()
        if now < self._look_at and not at_once:
            return
        self._look_at = now + LOOKS
        if getattr(reader, "place", None) is not None:
            self._read(reader)
        else:
            self._look_at = now + LOOKS_THROUGH_SPARK
            threading.Thread(target=self._read, args=(reader,), name="patternlake-learning", daemon=False).start()

    def seen(self, stream: int) -> Seen:
        """What is known of the conditions of a stream, by its number."""
        return partial(self._seen, stream)

    def _seen(self, stream: int, condition: JudgedCondition) -> Observation | None:
        key = stream, condition
        with self._lock:
            found = [held[key] for held in (self._stored, self._own) if key in held]
        return merge_observations(found) if found else None

    def tell(self, stream: int, found: Observed) -> None:
        """Take what a run found."""
        at = timestamps.to_micros(timestamps.now())
        with self._lock:
            for condition, (judged, held) in found.items():
                own = Observation(float(judged), float(held), at).limited()
                before = self._own.pop((stream, condition), None)
                self._own[stream, condition] = own if before is None else merge_observations([before, own])
            while len(self._own) > MOST_HELD:
                del self._own[next(iter(self._own))]

    def _read(self, reader: StateReader) -> None:
        try:
            version = reader.identity(TABLE.name)
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


def _take(told: Iterable[tuple[str, int, Observed]]) -> None:
    for location, stream, found in told:
        learned = _AT.get(location)
        if learned is None:
            continue
        try:
            learned.tell(stream, found)
        except Exception:
            # It would end the connection over which Spark hands on what tasks found, and with it the job.
            logger.exception("what tasks observed of conditions in %s is lost", location)
