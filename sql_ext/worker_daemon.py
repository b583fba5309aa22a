"""Spark's daemon of Python workers with the kernels loaded: each worker is forked from it and has them at once.

Loading them takes seconds, and Spark starts a worker for each task that runs at the same time. Sessions that
`patternlake.session` makes name this module in ``spark.python.daemon.module``.

After each task PySpark's daemon collects garbage. Measured: to look through all that kernels have loaded takes 75 ms of
a core, so that is put aside before workers are forked.
"""

from __future__ import annotations

import gc

from patternlake.delta_tables.spark.own_process import choose_memory

choose_memory()

from pyspark.daemon import manager  # noqa: E402  # what follows may load Arrow

import patternlake.udfs.warming  # noqa: E402, F401  # loads the kernels of all engines

if __name__ == "__main__":
    gc.freeze()
    manager()
