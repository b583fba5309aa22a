"""How far the Spark jobs of one phase are: their stages, as Spark's own bookkeeping has them.

Spark counts the records of a task when the task ends. To these it adds what executors tell of running tasks with their
heartbeats, but in a local session that is nothing (measured). Asking is a matter of a few small calls, and disturbs no
task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A pass that gets less than this share of what an earlier one of its phase has read only sums that up.
_SUMMING = 0.01
_ENDED = ("COMPLETE", "FAILED", "SKIPPED")
# How Delta describes its jobs over the actions of a log.
_LOG = re.compile(r"^Delta:.*\b(?:Compute snapshot|Filtering files)\b", re.S)


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes
    ----------
    number
        Spark's; later ones are greater.
    status
        ``ACTIVE``, ``COMPLETE``, ``FAILED``, ``PENDING`` or ``SKIPPED``.
    tasks, done
        How many it has, and how many of them have ended.
    read
        Records of its input: files, or rows that are kept.
    received
        Records that came from other stages.
    sent, written
        Records for other stages, and for tables; 0 until it has ended.
    begun
        When its first task began, in seconds since 1970; None: none has.
    """

    number: int
    status: str
    tasks: int
    done: int
    read: int = 0
    received: int = 0
    sent: int = 0
    written: int = 0
    begun: float | None = None

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.status == "ACTIVE"

    @property
    def rows(self) -> int:
        """Records that its tasks have taken in."""
        return self.read + self.received


@dataclass(frozen=True)
class Pass:
    """What one stage has taken in, and has to.

    Attributes
    ----------
    stage
        The stage.
    wanted
        Records that it is going to take in; None where that is not known, or it has ended.
    """

    stage: Stage
    wanted: int | None


def current_pass(stages: Sequence[Stage], reads: int | None) -> Pass | None:
    """The pass that a phase is at, of its stages: one that runs; else what was written, or the one that took in most.

    Parameters
    ----------
    stages
        All stages of the phase.
    reads
        Records of the phase's input; None where that is not known.

    Returns
    -------
    Pass or None
        None before the first task. What a stage gets from others is known: what those have sent, less what has been
        received.
    """
    ended = [stage for stage in stages if stage.status == "COMPLETE"]
    running = [stage for stage in stages if stage.active]
    longest = max(ended, key=lambda stage: (stage.written > 0, stage.rows, stage.number), default=None)
    if not running:
        return None if longest is None else Pass(longest, None)
    chosen = max(running, key=lambda stage: (stage.tasks, stage.number))
    waiting = sum(stage.sent for stage in ended) - sum(stage.received for stage in ended)
    if longest is not None and not chosen.read and 0 < waiting < _SUMMING * longest.rows:
        return Pass(longest, None)
    wanted: int | None = None
    if chosen.read and not chosen.received:
        wanted = reads
    elif chosen.received and not chosen.read and len(running) == 1:
        wanted = waiting
    return Pass(chosen, None if wanted is None or wanted < chosen.rows else wanted)


class TaggedStages:
    """The stages of all Spark jobs that bear a tag, but for those that read no more than a Delta log."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        context: Any = spark.sparkContext._jsc.sc()
        self._tracker = context.statusTracker()
        self._store = context.statusStore()
        self._text = spark.sparkContext._jvm.java.util.Arrays.toString  # type: ignore[union-attr]
        self._tag = tag
        self._of_job: dict[str, tuple[int, ...]] = {}
        self._stages: dict[int, Stage] = {}

    def now(self) -> list[Stage]:
        """Ask Spark; from any thread.

        Raises
        ------
        Exception
            The session has ended, or its platform does not let this be asked.
        """
        # One call for all numbers: each element of an array costs one of its own.
        for job in _elements(self._text(self._tracker.getJobIdsForTag(self._tag))):
            if job not in self._of_job:
                self._of_job[job] = self._stages_of(int(job))
        for number in {stage for stages in self._of_job.values() for stage in stages}:
            known = self._stages.get(number)
            if known is None or known.status not in _ENDED:
                # Spark forgets stages, and does not know those yet that it has just planned.
                with suppress(Exception):
                    self._stages[number] = _stage(number, self._store.lastStageAttempt(number), known)
        return list(self._stages.values())

    def _stages_of(self, job: int) -> tuple[int, ...]:
        data = self._store.job(job)
        described = data.description()
        if described.isDefined() and _LOG.search(described.get()):
            return ()
        return tuple(map(int, _elements(data.stageIds().mkString(","))))


def _elements(listed: str) -> list[str]:
    """The elements of an array or a list of numbers that the JVM has written as text."""
    return [element.strip() for element in listed.strip("[]").split(",") if element.strip()]


def _stage(number: int, data: Any, known: Stage | None) -> Stage:
    """Ask no more than has changed: each question is a call into the JVM."""
    status = data.status().toString()
    if status in ("PENDING", "SKIPPED"):
        return Stage(number, status, 0, 0)
    begun = None if known is None else known.begun
    if begun is None:
        first = data.firstTaskLaunchedTime()
        begun = first.get().getTime() / 1000 if first.isDefined() else None
    ended = status in _ENDED
    return Stage(
        number,
        status,
        known.tasks if known is not None and known.tasks else data.numTasks(),
        data.numCompleteTasks(),
        data.inputRecords(),
        data.shuffleReadRecords(),
        data.shuffleWriteRecords() if ended else 0,
        data.outputRecords() if ended else 0,
        begun,
    )
