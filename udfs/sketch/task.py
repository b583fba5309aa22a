"""What one task of an exact answer does: the events of some keys, or of the whole stream, are matched one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.events import integers
from patternlake.udfs.limits import by_partition
from patternlake.udfs.measures.of_matches import measure_columns, with_columns
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.sketch.events import events_of
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.kernels.hits import Matches
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
    Rows of `result.ROWS`, with what measures need, those of a partition in one table.

    Raises
    ------
    PatternLakeError
        A partition, or the answer where there is none, has more rows than asked for; what matching itself raises.
    """
    events, keys = events_of(request, columns)
    measures, positions = request.pattern.measures, integers(columns["position"])
    order = np.argsort(positions) if measures is not None else positions

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
        rows = rows_of(request, matches, keys[first:last])
        return rows if measures is None else with_columns(rows, measured(measures, matches))

    def measured(measures: PatternMeasures, matches: Matches) -> dict[str, pa.Array]:
        """What measures need; each step of an exact match is one event."""
        count, steps = matches.operand.shape
        events = order[np.searchsorted(positions, matches.step_lo.ravel(), sorter=order)]
        numbers = np.array(request.pattern.operand_numbers, np.int64)[matches.operand.ravel()]
        return measure_columns(measures, columns, np.arange(count + 1) * steps, events, numbers)

    yield from by_partition(0, len(keys), run)
