"""Events as items of paths, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.events import read_events
from patternlake.udfs.ordering import order_in_partitions
from patternlake.udfs.partitions import PART, number_partitions, ranks
from patternlake.udfs.paths.request import PathsRequest


@dataclass(frozen=True)
class Items:
    """n items of p partitions, in the order of (partition, time, position).

    Attributes
    ----------
    offsets
        int64[p + 1]: partition i has the items ``offsets[i]:offsets[i + 1]``.
    codes
        int64[n]: place of each item's name in the alphabet; its length for any other name.
    times
        int64[n]: microseconds since the epoch.
    spans, last_spans
        int64[n]: what the window measures, times or ranks of events: of the first event of each item, and of its last.
    source
        int64[n]: the row that each was read from.
    """

    offsets: IntArray
    codes: IntArray
    times: IntArray
    spans: IntArray
    last_spans: IntArray
    source: IntArray


def read_items(request: PathsRequest, rows: Mapping[str, pa.Array]) -> Items:
    """Read the events of some partitions.

    Parameters
    ----------
    request
        The request.
    rows
        ``part`` (list of the values that the stream is partitioned by) and `PathsRequest.event_columns`, in any order.
    """
    partitions, _ = number_partitions(rows[PART])
    events = read_events(rows, (), {})
    place = {name: number for number, name in enumerate(request.alphabet)}
    other = len(place)
    of_name = np.array([*(place.get(name, other) for name in events.vocabulary), other], np.int64)  # the last: NULL
    order, offsets = order_in_partitions(partitions, events.times, events.positions)
    codes, times = of_name[events.names[order]], events.times[order]
    counted = request.within is not None and request.within.counted
    spans = last_spans = ranks(partitions[order]) if counted else times
    if request.fold:
        first = np.ones(len(codes), np.bool_)
        first[1:] = codes[1:] != codes[:-1]
        first[offsets[:-1]] = True
        last_spans = spans[np.append(first[1:], True)[: len(first)]]
        codes, times, spans, order = (each[first] for each in (codes, times, spans, order))
        offsets = np.append(0, np.cumsum(first))[offsets]
    return Items(offsets, codes, times, spans, last_spans, order)
