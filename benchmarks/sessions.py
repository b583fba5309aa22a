"""The Spark sessions of a measuring process: so many cores, PatternLake's own settings, a quiet log."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import Row, SparkSession

from patternlake.delta_tables.spark.own_process import settle
from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.session import bare_session, session

CORES = 2
_EXECUTOR_MB = 4096


@contextmanager
def spark_session(
    folder: Path, *, functions: bool = True, cores: int = CORES, executors: int = 0
) -> Iterator[SparkSession]:
    """A session, stopped at the end; with the functions enabled over the database `patternlake` at ``folder/state``.

    With `executors`, so many processes of a cluster run the tasks, each one at a time; else the driver's.

    All processes run on so many cores: without that, a Python worker and the JVM's own threads would keep a second one
    busy beside the one task of ``local[1]``.
    """
    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    settings = {"spark.sql.warehouse.dir": str(folder.resolve() / "warehouse")}
    master = f"local-cluster[{executors},1,{_EXECUTOR_MB}]" if executors else f"local[{cores}]"
    if executors:
        settings["spark.executor.memory"] = f"{_EXECUTOR_MB}m"
        # As on a machine of one core: else its threads that collect garbage wait for each other.
        settings["spark.executor.extraJavaOptions"] = "-XX:ActiveProcessorCount=1"
    everywhere = os.sched_getaffinity(0)
    pin(set(sorted(everywhere)[:cores]))
    if functions:
        spark = session(str(folder / "state"), master, settings=settings)
    else:
        spark = bare_session(master, settings)
    spark.sparkContext.setLogLevel("OFF")
    settle(spark)
    try:
        yield spark
    finally:
        spark.stop()
        pin(everywhere)


def ask(spark: SparkSession, text: str) -> list[Row]:
    """Collect a query whose functions' answers are worked out, not remembered; files that were read stay."""
    forget(lake_of(spark).cache)
    return spark.sql(text).collect()


def ask_arrow(spark: SparkSession, text: str) -> pa.Table:
    """The same, all rows as Arrow: what many rows cost in Python objects is left out."""
    forget(lake_of(spark).cache)
    return spark.sql(text).toArrow()


def driver_bytes(spark: SparkSession, text: str) -> int:
    """Bytes of files that the functions of a query read in this process, with nothing kept from before."""
    lake = lake_of(spark)
    lake.cache.drop(lambda key: True)
    before = lake.reader.bytes_read
    spark.sql(text).collect()
    return lake.reader.bytes_read - before


def pin(cores: set[int], process: psutil.Process | None = None) -> None:
    """Let the threads of a process (None: this) and of its children run on these cores only, and all they start."""
    first = process or psutil.Process()
    for each in (first, *first.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            for thread in each.threads():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread.id, cores)
