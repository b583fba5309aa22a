"""What pays in a process that is PatternLake's own, and that nobody else's code goes on in: a command, a benchmark."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What `mallopt` of glibc calls them."""
_KEPT = {_TRIM_THRESHOLD: 256 << 20, _MMAP_THRESHOLD: 32 << 20}
"""Bytes that are free at the end of the heap before any go back; and of a piece that goes back at once. The second is
the most that glibc takes."""


def choose_memory() -> None:
    """Let Arrow take memory from the C library, and that keep some of what is freed.

    The allocator that Arrow brings gives large pieces back to the system at once, and touches new ones anew. Measured:
    batches of a kept pattern that keeps 90,000 events take three quarters of the time without it. So does glibc as
    it is set by default: a task of a funnel or of `cet_count` over 10 million events takes four fifths of the CPU time
    where it keeps them, and a process holds up to 256 MiB more than it uses.

    Of no effect on Arrow once it is loaded, on what the environment chooses, and on other C libraries than glibc.
    """
    if "pyarrow" not in sys.modules:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux" and not any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            for option, value in _KEPT.items():
                library.mallopt(option, value)


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
