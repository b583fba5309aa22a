"""Measurements, each beside its baseline from the same run: `python -m benchmarks`."""

from patternlake.delta_tables.spark.own_process import choose_memory

choose_memory()
