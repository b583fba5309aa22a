"""Jobs and questions of a cluster with one executor and with two, a core each: seconds, and whose CPU seconds.

``python -m benchmarks.executors [events]`` prints a line of JSON for each number of executors: `ingest`, the job
`predict` with the subscriptions of `benchmarks.machines`, and `match_pattern` by key (the second of two calls). The
master, the workers and the executors are processes of Spark's own ``local-cluster``; all files lie on one disk.

``executors`` is their part of the CPU seconds of all processes, theirs and the driver's, from the start of the session
to its end. On two cores the driver takes its part from two executors, but hardly from one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import psutil
from pyspark.sql import SparkSession

from benchmarks.events import frequent
from benchmarks.lakes import Lake, make_lake, new_folder
from benchmarks.machines import subscriptions
from benchmarks.measuring import seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session
from patternlake.jobs.predict.job import predict

EXECUTORS = (1, 2)
EVENTS = 10_000_000
_EXECUTOR = "CoarseGrainedExecutorBackend"
_PATTERN = " ; ".join(frequent(3))
_QUESTION = (
    f"SELECT count(*) FROM match_pattern('{STREAM}', '{_PATTERN} PARTITION BY key WITHIN 100 EVENTS', "
    "policy => 'skip_till_next', max_matches => 1000000000)"
)


def measure(events: int, executors: int) -> dict[str, Any]:
    """The figures of one number of executors."""
    with new_folder(f"executors_{executors}") as folder, spark_session(folder, executors=executors) as spark:
        lake = make_lake(spark, folder, events)
        found = {"ingest": lake.seconds["ingest"], **_seconds(spark, lake)}
        return {"executors": executors, "events": events, "seconds": found, "share": _share_of_executors()}


def _seconds(spark: SparkSession, lake: Lake) -> dict[str, float]:
    asked = subscriptions()
    found = {"predict": seconds(lambda: predict(lake.db, STREAM, asked))}
    ask(spark, _QUESTION)  # kernels are loaded, and workers started
    return {**found, "match_pattern": seconds(lambda: ask(spark, _QUESTION))}


def _share_of_executors() -> float:
    """The executors' part of the CPU seconds of this process and of all that it has started."""
    me = psutil.Process()
    processes = [process for process in me.children(recursive=True) if process.status() != psutil.STATUS_ZOMBIE]
    roots = [process for process in processes if any(_EXECUTOR in word for word in process.cmdline())]
    theirs = {process.pid: process for root in roots for process in (root, *root.children(recursive=True))}
    mine = {process.pid: process for process in (me, *processes) if process.pid not in theirs}
    executors, driver = (sum(map(_cpu_seconds, group.values())) for group in (theirs, mine))
    return round(executors / (executors + driver), 3)


def _cpu_seconds(process: psutil.Process) -> float:
    """Of a process, and of children of its that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


if __name__ == "__main__":
    for count in EXECUTORS:
        print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS, count)), flush=True)
