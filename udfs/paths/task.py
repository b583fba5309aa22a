"""What one task of an answer does: the paths of some partitions, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.partitions import columns_holding, number_values, partition_values
from patternlake.udfs.paths.events import read_items
from patternlake.udfs.paths.kernels.ways import (
    NO_WINDOW,
    count_partitions,
    equal_paths,
    paths_around,
    whole_paths,
)
from patternlake.udfs.paths.request import PathsRequest
from patternlake.udfs.paths.result import parts_of


def parts_of_partitions(request: PathsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """What a portion adds to the paths of all.

    Parameters
    ----------
    request
        The request.
    rows
        ``part`` and `PathsRequest.event_columns` of all `events` of some partitions, in any order.

    Returns
    -------
    Rows of `result.PARTS`.
    """
    items = read_items(request, rows)
    within = NO_WINDOW if request.within is None else request.within.amount
    if request.around is None:
        partitions, middles, begins, ends = whole_paths(items.spans, items.offsets, within)
    else:
        code = request.alphabet.index(request.around)
        partitions, middles, begins, ends = paths_around(
            items.codes,
            items.spans,
            items.last_spans,
            items.offsets,
            code,
            request.before,
            request.after,
            within,
        )
    shown: list[str | None] = [None]
    groups = np.zeros(len(middles), np.int64)
    if request.by is not None:
        chosen = pa.array(items.source[middles])
        read = {name: rows[name].take(chosen) for name in columns_holding((request.by,), request.types)}
        groups, shown = number_values(partition_values(pa.table(read), (request.by,)).flatten())
    numbers, firsts = equal_paths(items.codes, groups, begins, ends)
    return parts_of(
        items.codes,
        pa.array(shown, pa.string()).take(pa.array(groups[firsts])),
        begins[firsts],
        ends[firsts],
        count_partitions(numbers, partitions, len(firsts)),
        numbers,
        items.times[ends - 1] - items.times[begins],
    )
