"""Jobs and questions of a cluster with one executor and with two, in turns: seconds, and whose CPU seconds they are.

``python -m benchmarks.executors [events] [part] [batches] [steps]`` prints a line of JSON for each step: the job
`predict` with the subscriptions of `benchmarks.machines`, from the first event each time; `match_pattern` by key;
`source`, which is Spark alone as it makes the events of a batch and writes them, and so the measure of what a second
executor is worth here; and `ingest`, which takes the batch in. The master, the workers and the executors are processes
of Spark's own ``local-cluster``; all files lie on one disk.

The two clusters stand beside each other, each with a driver and a lake of its own, and one works while the other waits:
so both have the machine's slow minutes and its fast ones. Each step runs once before, as each executor is a new process
that compiles Spark, and then as often as `batches` says, so many events each time; medians are told. `predict` and
`match_pattern` read the first batch alone. `steps` are all, or those that are named with commas between them.

Each executor, with its Python worker, runs on one core of its own; the driver on all. On two cores the driver then
takes its part from two executors, but hardly from one; and two cores of one machine wait for the same memory. So with a
`part`, as 0.5, the executors share the last core, each has so much of it, and the driver has the first one, as if each
were a machine of its own, and the executors slow ones: `part_of_core` says who may do it. ``share`` is the executors'
part of the CPU seconds of all processes, theirs and the driver's.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from pyspark.sql import SparkSession

from benchmarks.events import frequent, source
from benchmarks.lakes import new_folder, stream_configuration
from benchmarks.machines import subscriptions
from benchmarks.measuring import median, seconds, side_by_side
from benchmarks.part_of_core import part_of_core
from benchmarks.questions import STREAM
from benchmarks.sessions import CORES, ask, pin, spark_session
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.predict.job import predict

EXECUTORS = (1, 2)
EVENTS = 10_000_000
BATCHES = 3
_BATCH = ("source", "ingest")
STEPS = ("predict", "match_pattern", *_BATCH)
_EXECUTOR = "CoarseGrainedExecutorBackend"
_PATTERN = " ; ".join(frequent(3))
_QUESTION = (
    f"SELECT count(*) FROM match_pattern('{STREAM}', '{_PATTERN} PARTITION BY key WITHIN 100 EVENTS', "
    "policy => 'skip_till_next', max_matches => 1000000000)"
)


class Taken(NamedTuple):
    """What a step took: seconds, and CPU seconds of the executors and of the driver."""

    seconds: float
    executors: float
    driver: float


class Cluster:
    """A process with a driver that does what it is asked to."""

    def __init__(self, executors: int, events: int, batches: int, part: float | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._mine, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(executors, events, batches, part, theirs))
        self._process.start()
        theirs.close()  # so that the end of the process ends a wait for its answer

    def take(self, steps: tuple[str, ...]) -> list[Taken]:
        """Run steps, one after the other."""
        self._mine.send(steps)
        taken: list[Taken] = self._mine.recv()
        return taken

    def end(self) -> None:
        """Let its session stop."""
        self._mine.send(None)
        self._process.join()


def measure(
    events: int, part: float | None = None, batches: int = BATCHES, wanted: Sequence[str] = STEPS
) -> Iterator[dict[str, Any]]:
    """The figures of each step, with executors that have a core each, or part of one."""
    with ExitStack() as stack:
        clusters = {}
        for executors in EXECUTORS:
            clusters[executors] = Cluster(executors, events, 1 + batches, part)
            stack.callback(clusters[executors].end)
        for cluster in clusters.values():
            cluster.take(_BATCH)
        for steps in (("predict",), ("match_pattern",), _BATCH):
            if not {*steps} & {*wanted}:
                continue
            if steps != _BATCH:
                for cluster in clusters.values():
                    cluster.take(steps)
            actions = {str(each): partial(cluster.take, steps) for each, cluster in clusters.items()}
            taken = side_by_side(actions, batches, measure=lambda action: action())
            for place, step in enumerate(steps):
                yield _figures(step, {name: [each[place] for each in times] for name, times in taken.items()})


def _figures(step: str, taken: dict[str, list[Taken]]) -> dict[str, Any]:
    one, two = (median([each.seconds for each in times]) for times in taken.values())
    shares = {
        name: round(sum(each.executors for each in times) / sum(each.executors + each.driver for each in times), 3)
        for name, times in taken.items()
    }
    return {
        "step": step,
        "one": round(one, 2),
        "two": round(two, 2),
        "times": round(one / two, 2),
        "share": shares,
        "each": {name: [round(each.seconds, 2) for each in times] for name, times in taken.items()},
    }


def _serve(executors: int, events: int, batches: int, part: float | None, connection: Connection) -> None:
    with (
        new_folder(f"executors_{executors}") as folder,
        spark_session(folder, executors=executors) as spark,
        _machines(part),
    ):
        steps = _steps(spark, folder, events, batches)
        while asked := connection.recv():
            connection.send([_take(steps[step]) for step in asked])


def _steps(spark: SparkSession, folder: Path, events: int, batches: int) -> dict[str, Callable[[], Any]]:
    db = open_database(spark, "patternlake", str(folder / "state"))
    configuration = stream_configuration(folder / "source")
    begins, asked = count(0, events), subscriptions()

    def make() -> None:
        first = next(begins)
        rows = source(spark, events * batches, first, first + events)
        rows.write.mode("append").parquet(str(folder / "source"))

    return {
        "source": make,
        "ingest": lambda: ingest(db, STREAM, configuration),
        "predict": lambda: predict(db, STREAM, asked, rebuild=True),
        "match_pattern": lambda: ask(spark, _QUESTION),
    }


def _take(step: Callable[[], Any]) -> Taken:
    before = _cpu_of_both()
    taken = seconds(step)
    executors, driver = (end - begin for begin, end in zip(before, _cpu_of_both(), strict=True))
    return Taken(taken, executors, driver)


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
    given = sys.argv[1:]
    given_events = int(given[0]) if given else EVENTS
    given_part = float(given[1]) if len(given) > 1 else None
    given_batches = int(given[2]) if len(given) > 2 else BATCHES
    given_steps = given[3].split(",") if len(given) > 3 else STEPS
    for figures in measure(given_events, given_part, given_batches, given_steps):
        print(json.dumps(figures), flush=True)
