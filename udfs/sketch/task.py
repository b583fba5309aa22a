"""What one task of an exact answer does: the events of some keys, or of the whole stream, are matched one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from patternlake.udfs.limits import by_partition
from patternlake.udfs.sketch.events import events_of
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.result import rows_of


def match_exactly(request: SketchRequest, columns: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
    """Match the events of one task.

    Parameters
    ----------
    request
        The request.
    columns
        Of `events`, as `events_of` takes them.

    Returns
    -------
    Rows of `result.ROWS`, those of a partition in one table.

    Raises
    ------
    PatternLakeError
        A partition, or the answer where there is none, has more rows than asked for; what matching itself raises.
    """
    events, keys = events_of(request, columns)

    def run(first: int, last: int) -> pa.Table:
        matches = match_events(
            request.pattern,
            events.of_partitions(first, last),
            policy=request.policy,
            after_match=request.after_match,
            max_matches=request.max_matches,
            truncate=request.truncate and last - first <= 1,
            window=request.window,
        )
        return rows_of(request, matches, keys[first:last])

    yield from by_partition(0, len(keys), run)
