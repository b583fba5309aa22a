"""Rows of the table `events` as the kernels of machines take them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.event_columns import event_columns
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.kernels.matching_primitives import Codes, matching_primitives
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import IntArray

EVENT_COLUMNS = ("position", "time", "step", "key", "name", "probability", "attributes")
"""Columns of `events` that are read."""
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Events:
    """n events.

    Attributes
    ----------
    times, positions
        int64[n].
    names, vocabulary
        int64[n] codes of event names (-1: NULL), and the names.
    columns
        What predicates and joins read.
    """

    times: IntArray
    positions: IntArray
    names: IntArray
    vocabulary: list[str]
    columns: Mapping[str, Column]

    @classmethod
    def of(cls, rows: Mapping[str, pa.Array], wanted: Collection[str], types: Mapping[str, str]) -> Events:
        """Read `EVENT_COLUMNS` of n events.

        Parameters
        ----------
        rows
            The columns.
        wanted
            Names of columns that subscriptions read.
        types
            Spark type of each of the stream's attributes.
        """
        words = rows["name"].dictionary_encode()
        times = pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64)
        positions = rows["position"].to_numpy(zero_copy_only=False).astype(np.int64)
        known = np.ones(len(times), np.bool_)
        columns = event_columns(rows, {*wanted} - {"name"}, types) | {
            "position": Column(positions, known, "bigint"),
            "time": Column(times, known, "timestamp"),
        }
        names = words.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(times, positions, names, words.dictionary.to_pylist(), columns)

    def column(self, name: str) -> Column:
        """A column by name."""
        if name in self.columns:
            return self.columns[name]
        return Column(np.array([*self.vocabulary, ""], object)[self.names], self.names >= 0, "string")


def stream_of(events: Events, group: Group, codes: Codes, now: int) -> Stream:
    """Events, by partition and in order, as the subscriptions of a group take them.

    Parameters
    ----------
    events
        The events.
    group
        The subscriptions.
    codes
        Of the values of join variables.
    now
        Microseconds: what the age of counts is measured against.
    """
    at, who = matching_primitives(group.compiled.primitives, events.names, events.vocabulary, events.columns)
    count = len(events.times)
    weight = np.ones(count)
    if group.decay:
        weight = (1.0 - group.decay) ** ((now - events.times) / _DAY)
    joined = [codes.of(events.column(name)) for name in group.compiled.columns]
    return Stream(
        events.times,
        events.positions,
        at,
        who,
        np.array(joined, np.int64).reshape(len(joined), count),
        np.concatenate([[0.0], np.cumsum(weight)]),
    )
