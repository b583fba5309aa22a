"""What one task of an exact answer does: the events of some keys, or of the whole stream, are matched one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from patternlake.udfs.events import integers
from patternlake.udfs.limits import by_partition
from patternlake.udfs.measures.of_matches import measure_columns, with_columns
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.partitions import ranks
from patternlake.udfs.sketch.events import TokenEvents, events_of
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.kernels.hits import Bound
from patternlake.udfs.sketch.lent import LentPattern
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.result import rows_of, rows_of_operands


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
    lent = request.pattern.lent

    def run(first: int, last: int) -> pa.Table:
        if lent is None:
            rows, bound = _match_partitions(request, events, keys, first, last)
        else:
            rows, bound = _match_lent(request, lent, events.of_partitions(first, last), keys, whole=last - first <= 1)
        return rows if measures is None else with_columns(rows, measured(measures, bound))

    def measured(measures: PatternMeasures, bound: Bound) -> dict[str, pa.Array]:
        """What measures need."""
        rows = order[np.searchsorted(positions, bound.positions, sorter=order)]
        return measure_columns(measures, columns, bound.offsets, rows, bound.operands)

    yield from by_partition(0, len(keys), run)


def _match_partitions(
    request: SketchRequest, events: TokenEvents, keys: Sequence[str | None], first: int, last: int
) -> tuple[pa.Table, Bound]:
    """Rows of the matches of partitions `first` to `last` (exclusive), and what these bind."""
    pattern = request.pattern
    matches = match_events(
        pattern,
        events.of_partitions(first, last),
        policy=request.policy,
        after_match=request.after_match,
        max_matches=request.max_matches,
        truncate=request.truncate and last - first <= 1,
        window=request.window,
    )
    # Each step of an exact match is one event.
    count, steps = matches.operand.shape
    numbers = np.array(pattern.operand_numbers if pattern.measures is not None else (), np.int64)
    operands = numbers[matches.operand.ravel()] if len(numbers) else numbers
    bound = Bound(np.arange(count + 1) * steps, matches.step_lo.ravel(), operands)
    return rows_of(request, matches, keys[first:last]), bound


def _match_lent(
    request: SketchRequest, lent: LentPattern, events: TokenEvents, keys: Sequence[str | None], *, whole: bool
) -> tuple[pa.Table, Bound]:
    """The same of a pattern that another engine matches; `whole`: the events are of one partition, which may be cut."""
    # What a window hides still stands between two events, and WITHIN counts it.
    events = replace(events, ordinals=ranks(events.keys))
    inside = request.window.of_events(events.positions, events.times)
    matches = lent.match(
        events if inside.all() else events.take(inside),
        policy=request.policy,
        after_match=request.after_match,
        max_matches=request.max_matches,
        truncate=request.truncate and whole,
    )
    bound = Bound(matches.event_offsets, matches.bound_positions, matches.bound_operands)
    return rows_of_operands(request, matches, keys), bound
