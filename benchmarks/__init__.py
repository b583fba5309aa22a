"""Measurements, each beside its baseline from the same run: `python -m benchmarks`."""

from patternlake.delta_tables.own_process import choose_memory

choose_memory()
