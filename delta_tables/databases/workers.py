"""Whether the Python of Spark's workers can run PatternLake: an environment that is not activated is not theirs."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED = ("numpy", "pyarrow", "numba", "patternlake.udfs.errors")
_checked: set[str] = set()


def refuse_connect(spark: SparkSession) -> None:
    """Refuse a session of Spark Connect, whose driver is another process, by a StateError."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise StateError(
            "this is a session of Spark Connect, and PatternLake needs a classic one: its jobs and functions work "
            "in the driver's own process. Start one there with patternlake.session(), or with "
            "SparkSession.builder without remote() and without SPARK_REMOTE"
        )


def check(spark: SparkSession) -> None:
    """Refuse a session whose workers run a Python without what PatternLake needs.

    Nothing is run where workers run the interpreter of this process, on this machine; else a task for each core is,
    once per application and interpreter.

    Raises
    ------
    StateError
        The session is one of Spark Connect; or names the interpreter of the workers, that of the driver, and what the
        workers' lacks.
    """
    refuse_connect(spark)
    context = spark.sparkContext
    python = str(context.pythonExec)
    mark = f"{context.applicationId} {python}"
    here = str(context.master).startswith("local") and _is_this(python)
    if here or mark in _checked:
        return
    try:
        cores = context.defaultParallelism
        missing = context.parallelize(range(cores), cores).mapPartitions(_missing).distinct().collect()
    except Exception as error:
        told = [line.strip() for line in str(error).splitlines() if "Error" in line or "MISMATCH" in line]
        _refuse(python, f"it failed: {told[-1] if told else type(error).__name__}", error)
    if missing:
        _refuse(python, f"it has no {', no '.join(sorted(missing))}")
    _checked.add(mark)


def _refuse(python: str, why: str, cause: Exception | None = None) -> None:
    raise StateError(
        f"Spark's workers run the Python {python!r}, the driver runs {sys.executable!r}, and PatternLake cannot run in "
        f"the former: {why}. Activate the environment before Python starts, or set PYSPARK_PYTHON="
        f"{sys.executable} before the session does; on a cluster, install patternlake for the workers' Python"
    ) from cause


def _is_this(python: str) -> bool:
    """Whether a command starts this very interpreter: links of one environment to one file are alike."""
    found = shutil.which(python)
    if found is None:
        return False
    here, there = os.path.abspath(sys.executable), os.path.abspath(found)
    return os.path.dirname(here) == os.path.dirname(there) and os.path.realpath(here) == os.path.realpath(there)


def _missing(_: Iterable[int]) -> Iterable[str]:
    for name in _NEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            yield name
