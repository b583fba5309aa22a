"""What pays in a process that is PatternLake's own, and that nobody else's code goes on in: a command, a benchmark."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from patternlake.delta_tables.jvm_names import remember_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settle(spark: SparkSession) -> None:
    """Take what the process has loaded and looked up by now for something that stays.

    Measured: to look through what is imported for garbage takes 0.1 s, once in some ten runs of a job, and a twentieth
    of the time of tests.

    Parameters
    ----------
    spark
        The process's session, with a JVM (not Spark Connect).
    """
    remember_names(spark)
    gc.collect()
    gc.freeze()
