"""Compiles the kernels of all jobs and functions into numba's cache, so that first calls do not wait for the compiler.

Numba compiles a kernel when it is first called with arrays of some types, and keeps the machine code beside the source,
or in the user's cache directory where that folder can't be written. So each engine is run once on a few events, the
way Spark's tasks run it: from Arrow's arrays, from nothing, and from what an earlier batch remembers.
``python -m patternlake.udfs.warming`` does that without Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from patternlake.udfs.warming import functions, jobs

WARMED: dict[str, Callable[[], None]] = {
    "sketch": jobs.warm_sketch,
    "groups": jobs.warm_groups,
    "predict and evaluate": jobs.warm_machines,
    "match_seq and match_exists": functions.warm_sketch_questions,
    "patterns and match_pattern": functions.warm_patterns,
    "cet_count, cet_trends and cet_aggregate": functions.warm_trend_questions,
    "match_groups and group_members": functions.warm_group_questions,
    "predict_match": functions.warm_live_questions,
    "match_funnel and match_funnel_rows": functions.warm_funnels,
    "match_paths": functions.warm_paths,
    "match_recognize": functions.warm_row_patterns,
}
"""What compiles the kernels of which jobs and functions; the others call none of their own."""


def warm() -> Iterator[tuple[str, float]]:
    """Run every engine once; give its jobs or functions and the seconds that it took."""
    for name, run in WARMED.items():
        begun = time.monotonic()
        run()
        yield name, time.monotonic() - begun
