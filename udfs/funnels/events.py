"""Events as the kernel of funnels takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.events import Events, read_events
from patternlake.udfs.funnels.kernels.chains import BitArray
from patternlake.udfs.funnels.query import FunnelQuery
from patternlake.udfs.ordering import order_in_partitions
from patternlake.udfs.partitions import PART, number_partitions, ranks


@dataclass(frozen=True)
class FunnelEvents:
    """n events of p partitions, in the order of (partition, time, position).

    Attributes
    ----------
    offsets
        int64[p + 1]: partition i has the events ``offsets[i]:offsets[i + 1]``.
    shown
        What is shown of each partition.
    positions, times
        int64[n]; times in microseconds since the epoch.
    names, vocabulary
        int64[n] codes of event names (-1: NULL), and the names that they stand for.
    fits
        uint64[n]: bit s is set where the event fits the step of number s.
    spans
        int64[n]: what the window measures, times or ranks.
    source
        int64[n]: the row that each was read from.
    """

    offsets: IntArray
    shown: Sequence[str | None]
    positions: IntArray
    times: IntArray
    names: IntArray
    vocabulary: Sequence[str]
    fits: BitArray
    spans: IntArray
    source: IntArray

    def __len__(self) -> int:
        return len(self.positions)


def read_funnel_events(query: FunnelQuery, types: Mapping[str, str], rows: Mapping[str, pa.Array]) -> FunnelEvents:
    """Read the events of some partitions.

    Parameters
    ----------
    query
        The compiled query.
    types
        Spark type of each of the stream's attributes.
    rows
        ``part`` (list of the values that the stream is partitioned by) and `FunnelQuery.event_columns`, in any order.
    """
    partitions, shown = number_partitions(rows[PART])
    events = read_events(rows, query.columns, types)
    order = order_in_partitions(partitions, events.times, events.positions)
    partitions = partitions[order]
    times = events.times[order]
    counted = query.within is not None and query.within.counted
    return FunnelEvents(
        offsets=np.searchsorted(partitions, np.arange(len(shown) + 1)).astype(np.int64),
        shown=shown,
        positions=events.positions[order],
        times=times,
        names=events.names[order],
        vocabulary=events.vocabulary,
        fits=steps_that_fit(query, events)[order],
        spans=ranks(partitions) if counted else times,
        source=order,
    )


def steps_that_fit(query: FunnelQuery, events: Events) -> BitArray:
    """uint64[n]: bit s is set where the event fits the step of number s."""
    code = {name: number for number, name in enumerate(events.vocabulary)}
    of_name = np.zeros(len(code) + 1, np.uint64)  # the last one is that of NULL
    of_condition: dict[str, np.uint64] = {}
    defined = {}
    for number, step in enumerate(query.steps):
        bit = np.uint64(1 << number)
        for choice in step.choices:
            if choice.define is not None:
                defined[choice.name] = choice.define
                of_condition[choice.name] = of_condition.get(choice.name, np.uint64(0)) | bit
            elif choice.name in code:
                of_name[code[choice.name]] |= bit
    fits: BitArray = of_name[events.names]
    for name, bits in of_condition.items():
        fits[events.truth(defined[name])] |= bits
    return fits
