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
    fits
        uint64[n]: bit s is set where the event fits the step of number s.
    spans
        int64[n]: what the window measures, times or ranks; without a window none.
    source
        int64[n]: the row that each was read from.
    rows
        What was read of the rows, as they lie: answers tell it of few.
    """

    offsets: IntArray
    shown: Sequence[str | None]
    fits: BitArray
    spans: IntArray
    source: IntArray
    rows: Events

    def __len__(self) -> int:
        return len(self.source)

    def positions(self, events: IntArray) -> IntArray:
        """int64[m]: the positions of m of the events."""
        return self.rows.positions[self.source[events]]

    def times(self, events: IntArray) -> IntArray:
        """int64[m]: the times of m of the events, in microseconds since the epoch."""
        return self.rows.times[self.source[events]]

    def names(self, events: IntArray) -> IntArray:
        """int64[m]: the names of m of the events, as codes of `vocabulary`; -1: NULL."""
        return self.rows.names[self.source[events]]

    @property
    def vocabulary(self) -> Sequence[str]:
        """The names that codes stand for."""
        return self.rows.vocabulary


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
    order, offsets = order_in_partitions(partitions, events.times, events.positions)
    spans = np.zeros(0, np.int64)
    if query.within is not None:
        spans = ranks(partitions[order]) if query.within.counted else events.times[order]
    return FunnelEvents(
        offsets=offsets, shown=shown, fits=steps_that_fit(query, events)[order], spans=spans, source=order, rows=events
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
