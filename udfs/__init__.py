"""The engines: plain Python over Arrow and numpy, with kernels that numba compiles; they know no Spark session."""

from patternlake.udfs import kernel_cache

kernel_cache.settle()
