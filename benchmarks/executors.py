"""Jobs and questions of a cluster with one executor and with two, a core each: seconds, and whose CPU seconds.

``python -m benchmarks.executors [events] [part]`` prints a line of JSON for each number of executors: `source`, which
is Spark alone as it makes the events and writes them, and so the measure of what a second executor is worth here;
`ingest`; the job `predict` with the subscriptions of `benchmarks.machines`; and `match_pattern` by key (the second of
two calls). Events come in two batches of so many, of which the second counts: each executor is a new process, and
compiles Spark as it does the first. `predict` and `match_pattern` read both. The master, the workers and the executors
are processes of Spark's own ``local-cluster``; all files lie on one disk.

Each executor, with its Python worker, runs on one core of its own; the driver on all. On two cores the driver then
takes its part from two executors, but hardly from one; and two cores of one machine wait for the same memory. So with a
`part`, as 0.5, the executors share the last core, each has so much of it, and the driver has the first one, as if each
were a machine of its own, and the executors slow ones: `part_of_core` says who may do it. ``share`` is the executors'
part of the CPU seconds of all processes, theirs and the driver's: of a step, and of all that is done, with the events
that are made and the files that are merged.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil
from pyspark.sql import SparkSession

from benchmarks.events import frequent
from benchmarks.lakes import Lake, make_lake, new_folder
from benchmarks.machines import subscriptions
from benchmarks.measuring import seconds
from benchmarks.part_of_core import part_of_core
from benchmarks.questions import STREAM
from benchmarks.sessions import CORES, ask, pin, spark_session
from patternlake.jobs.predict.job import predict

EXECUTORS = (1, 2)
EVENTS = 10_000_000
_EXECUTOR = "CoarseGrainedExecutorBackend"
_PATTERN = " ; ".join(frequent(3))
_QUESTION = (
    f"SELECT count(*) FROM match_pattern('{STREAM}', '{_PATTERN} PARTITION BY key WITHIN 100 EVENTS', "
    "policy => 'skip_till_next', max_matches => 1000000000)"
)


def measure(events: int, executors: int, part: float | None = None) -> dict[str, Any]:
    """The figures of one number of executors, each with a core, or with part of one."""
    with (
        new_folder(f"executors_{executors}") as folder,
        spark_session(folder, executors=executors) as spark,
        _machines(part),
    ):
        shares: dict[str, float] = {}
        with _share("all", shares):
            lake = make_lake(spark, folder, 2 * events, warm=events)
            taken = {step: lake.seconds[step] for step in ("source", "ingest")}
            found = {**taken, **_seconds(spark, lake, shares)}
        return {"executors": executors, "part": part, "events": events, "seconds": found, "share": shares}


@contextmanager
def _machines(part: float | None) -> Iterator[None]:
    """Give each executor a core; or part of the last core, and the driver the first one."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    executors = _executors()
    if part is None:
        for core, executor in zip(cores, executors, strict=False):
            pin({core}, executor)
        yield
        return
    # The driver first: the executors are its children.
    pin({cores[0]})
    with ExitStack() as stack:
        for executor in executors:
            pin({cores[-1]}, executor)
            stack.enter_context(part_of_core(part, executor))
        yield


def _seconds(spark: SparkSession, lake: Lake, shares: dict[str, float]) -> dict[str, float]:
    asked = subscriptions()
    with _share("predict", shares):
        found = {"predict": seconds(lambda: predict(lake.db, STREAM, asked))}
    ask(spark, _QUESTION)  # kernels are loaded, and workers started
    with _share("match_pattern", shares):
        found["match_pattern"] = seconds(lambda: ask(spark, _QUESTION))
    return found


@contextmanager
def _share(step: str, shares: dict[str, float]) -> Iterator[None]:
    """Put down the executors' part of the CPU seconds that a step takes."""
    before = _cpu_of_both()
    yield
    executors, driver = (end - begin for begin, end in zip(before, _cpu_of_both(), strict=True))
    shares[step] = round(executors / (executors + driver), 3)


def _cpu_of_both() -> tuple[float, float]:
    """CPU seconds so far: of executors with their workers, and of this process with all else that it has started."""
    me = psutil.Process()
    theirs = {process.pid: process for root in _executors() for process in (root, *root.children(recursive=True))}
    mine = [process for process in (me, *me.children(recursive=True)) if process.pid not in theirs]
    return sum(map(_cpu_seconds, theirs.values())), sum(map(_cpu_seconds, mine))


def _executors() -> list[psutil.Process]:
    processes = [each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
    return [process for process in processes if any(_EXECUTOR in word for word in process.cmdline())]


def _cpu_seconds(process: psutil.Process) -> float:
    """Of a process, and of children of its that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


if __name__ == "__main__":
    given_events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    given_part = float(sys.argv[2]) if len(sys.argv) > 2 else None
    for number in EXECUTORS:
        print(json.dumps(measure(given_events, number, given_part)), flush=True)
