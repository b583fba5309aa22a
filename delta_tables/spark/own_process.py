"""What pays in a process that is PatternLake's own, and that nobody else's code goes on in: a command, a benchmark."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def choose_memory() -> None:
    """Let Arrow take memory from the C library; of no effect once Arrow is loaded, or where the environment chooses.

    The allocator that Arrow brings gives large pieces back to the system at once, and touches new ones anew. Measured:
    batches of a kept pattern that keeps 90,000 events take three quarters of the time without it.
    """
    if "pyarrow" not in sys.modules:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def settle(spark: SparkSession) -> None:
    """Take what the process has loaded and looked up by now for something that stays.

    Measured: to look through what is imported for garbage takes 0.1 s, once in some ten runs of a job, and a twentieth
    of the time of tests.

    Parameters
    ----------
    spark
        The process's session, with a JVM (not Spark Connect).
    """
    from patternlake.delta_tables.spark.jvm_names import remember_names

    remember_names(spark)
    gc.collect()
    gc.freeze()
