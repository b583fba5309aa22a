"""Times, ratios and peak memory."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

import psutil
from pyspark.sql import SparkSession


def seconds(action: Callable[[], Any], name: str = "") -> float:
    """Wall-clock time of one call; with a name, the log of the run tells it at once."""
    start = time.perf_counter()
    action()
    taken = time.perf_counter() - start
    if name:
        print(f"{name}: {taken:.2f} s", file=sys.stderr, flush=True)
    return taken


def side_by_side(
    actions: Mapping[str, Callable[[], Any]], repeats: int, *, measure: Callable[[Callable[[], Any]], Any] = seconds
) -> dict[str, list[Any]]:
    """Times of several actions that take turns, each turn begun by another one, so that none has the warmer caches."""
    taken: dict[str, list[Any]] = {name: [] for name in actions}
    names = list(actions)
    for turn in range(repeats):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            taken[name].append(measure(actions[name]))
    return taken


def cpu_seconds() -> float:
    """CPU time of this process, of its JVM and of all Python workers so far."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # those of children that have ended, too
    return total


def _seconds_and_cpu(action: Callable[[], Any]) -> tuple[float, float]:
    before = cpu_seconds()
    taken = seconds(action)
    return taken, cpu_seconds() - before


def measure_beside(
    question: str, actions: Mapping[str, Callable[[], Any]], repeats: int, *, warm: bool = True, **more: Any
) -> dict[str, Any]:
    """Medians of seconds, and of CPU seconds, of ways to answer one question, printed as a line of JSON.

    Parameters
    ----------
    question
        What is asked.
    actions
        Ours first, then what it is measured beside, if anything.
    repeats
        How often each is measured, in turns.
    warm
        Whether each runs once before.
    more
        Further figures of the question.
    """
    for action in actions.values() if warm else ():
        action()
    taken = side_by_side(actions, repeats, measure=_seconds_and_cpu)
    wall, cpu = ({way: median([each[kind] for each in pairs]) for way, pairs in taken.items()} for kind in (0, 1))
    return report_beside(question, wall, cpu={way: round(each, 2) for way, each in cpu.items()}, **more)


def report_beside(question: str, seconds: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """The figures of a question, printed as a line of JSON; parameters as of `measure_beside`, ours first."""
    ours, *theirs = seconds.values()
    figures: dict[str, Any] = {"question": question, "seconds": {way: round(each, 3) for way, each in seconds.items()}}
    if theirs:
        figures["times faster"] = round(theirs[0] / ours, 2)
    figures |= more
    print(json.dumps(figures), flush=True)
    return figures


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


class PeakMemory:
    """Greatest memory of the driver's Python, its JVM and all Python workers while a block runs.

    Resident memory is sampled by process; pages that forked workers share count in each of them. Of the driver's Python
    there is also what it holds without pages of files, which the system takes back as it needs. What the JVM holds is
    mostly garbage that it had no need to collect yet, so beside it stands the greatest heap that survived a collection.
    """

    def __init__(self, spark: SparkSession, interval: float = 0.1) -> None:
        self.interval = interval
        names = ("driver_python", "driver_python_without_files", "jvm", "workers", "total", "jvm_heap_after_gc")
        self.peaks = dict.fromkeys(names, 0)
        jvm = spark._jvm
        assert jvm is not None
        self._jvm = jvm
        self._pools = list(jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        # What earlier blocks left behind would otherwise count as this one's.
        self._jvm.java.lang.System.gc()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while True:
            self._sample(me)
            if self._ended.wait(self.interval):
                return

    def _sample(self, me: psutil.Process) -> None:
        own = me.memory_info()
        found = {"driver_python": own.rss, "jvm": 0, "workers": 0}
        for child in me.children(recursive=True):
            try:
                found["jvm" if child.name().startswith("java") else "workers"] += child.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        found["total"] = sum(found.values())
        found["driver_python_without_files"] = own.rss - getattr(own, "shared", 0)
        usages = [pool.getCollectionUsage() for pool in self._pools]
        found["jvm_heap_after_gc"] = sum(usage.getUsed() for usage in usages if usage is not None)
        self.peaks = {name: max(peak, found[name]) for name, peak in self.peaks.items()}
