"""Rows of the table `events` as arrays: what engines read alike of them, before each makes of it what it needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.event_columns import event_columns

IntArray = NDArray[np.int64]

EVENT_COLUMNS = ("position", "time", "step", "key", "name", "probability", "attributes")
"""Columns of `events` that whoever reads all that predicates may ask for reads."""


@dataclass(frozen=True)
class EventArrays:
    """n events, in any order.

    Attributes
    ----------
    positions, times
        int64[n]; times in microseconds since the epoch.
    names, vocabulary
        int64[n] codes of event names (-1: NULL), and the names that they stand for.
    columns
        What predicates and joins read, by column name; ``position``, ``time`` and ``name`` may be left out.
    """

    positions: IntArray
    times: IntArray
    names: IntArray
    vocabulary: Sequence[str]
    columns: Mapping[str, Column]

    def column(self, name: str) -> Column:
        """A column by name.

        Raises
        ------
        ArgumentError
            It was not given.
        """
        if name in self.columns:
            return self.columns[name]
        known = np.ones(len(self.positions), np.bool_)
        if name == "position":
            return Column(self.positions, known, "bigint")
        if name == "time":
            return Column(self.times, known, "timestamp")
        if name == "name":
            return Column(np.array([*self.vocabulary, ""], object)[self.names], self.names >= 0, "string")
        raise ArgumentError(f"column {name!r} of the events is needed; given are {', '.join(self.columns) or 'none'}")


def event_arrays(rows: Mapping[str, pa.Array], wanted: Collection[str], types: Mapping[str, str]) -> EventArrays:
    """Read n events, in the order of their rows.

    Parameters
    ----------
    rows
        ``position``, ``time`` and ``name`` of `events`, and those of `EVENT_COLUMNS` that `wanted` asks for.
    wanted
        Names of the columns that are read; ``position`` and ``time`` always are, ``name`` never is among the columns.
    types
        Spark type of each of the stream's attributes.
    """
    names = rows["name"].dictionary_encode()
    events = EventArrays(
        positions=integers(rows["position"]),
        times=micros(rows["time"]),
        names=integers(names.indices.fill_null(-1)),
        vocabulary=names.dictionary.to_pylist(),
        columns={},
    )
    columns = event_columns(rows, {*wanted} - {"name"}, types)
    columns |= {name: events.column(name) for name in ("position", "time")}
    return EventArrays(events.positions, events.times, events.names, events.vocabulary, columns)


def micros(time: pa.Array) -> IntArray:
    """Moments as microseconds since the epoch."""
    return integers(pc.cast(time, pa.int64()))


def integers(values: pa.Array) -> IntArray:
    """Whole numbers without NULLs as int64, in memory of their own: kernels want arrays that may be written to."""
    found: IntArray = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return found
