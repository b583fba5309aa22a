"""Events as arrays: read once from rows of the table `events`, and asked for their columns in one way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import Column, Rows
from patternlake.udfs.language.predicate.event_columns import event_columns
from patternlake.udfs.language.predicate.predicates import Predicate, evaluate

Given = TypeVar("Given", bound="Events")

EVENT_COLUMNS = ("position", "time", "step", "key", "name", "probability")
"""Columns of `events` that whoever reads all that predicates may ask for reads."""


@dataclass(frozen=True, kw_only=True)
class Events:
    """n events, in the order that whoever takes them asks for.

    Attributes
    ----------
    positions, times
        int64[n]; times in microseconds since the epoch.
    names, vocabulary
        int64[n] codes of event names (-1: NULL), and the names that they stand for.
    keys
        int64[n]: number of the partition of each; zeros where nobody partitions.
    columns
        What predicates and joins read besides, by column name.
    ordinals
        int64[n]: rank of each event among all events of its partition, the ones that are not given too. None: all that
        matter are given.
    """

    positions: IntArray
    times: IntArray
    names: IntArray
    vocabulary: Sequence[str]
    keys: IntArray
    columns: Mapping[str, Column] = field(default_factory=dict)
    ordinals: IntArray | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def column(self, name: str, rows: IntArray | None = None) -> Column:
        """A column by name, of all events or of some rows.

        Raises
        ------
        ArgumentError
            It was not given.
        """
        chosen = slice(None) if rows is None else rows
        if name in self.columns:
            column = self.columns[name]
            return column if rows is None else column.take(rows, arrow=False)
        if name == "name":
            codes = self.names[chosen]
            return Column(np.array([*self.vocabulary, ""], object)[codes], codes >= 0, "string")
        built_in = {"position": (self.positions, "bigint"), "time": (self.times, "timestamp")}
        if name not in built_in:
            given = ", ".join(dict.fromkeys([*self.columns, *built_in]))
            raise ArgumentError(f"column {name!r} of the events is needed; given are {given}")
        values, kind = built_in[name]
        return Column(values[chosen], np.ones(len(values[chosen]), np.bool_), kind)

    def named(self, name: str) -> BoolArray:
        """bool[n]: the events of a name."""
        code = self.vocabulary.index(name) if name in self.vocabulary else -2
        return np.asarray(self.names == code)

    def truth(self, predicate: Predicate, rows: IntArray | None = None) -> BoolArray:
        """Whether a predicate over one event holds for each event, or for each of some rows; NULL does not."""
        true = evaluate(predicate, lambda reference: self.column(reference.column, rows)).true
        return np.broadcast_to(true, (len(self) if rows is None else len(rows),))

    def take(self: Given, rows: Rows) -> Given:
        """Some of the events: rows by number, by a mask or by a range."""
        return replace(
            self,
            positions=self.positions[rows],
            times=self.times[rows],
            names=self.names[rows],
            keys=self.keys[rows],
            columns={name: column.take(rows) for name, column in self.columns.items()},
            ordinals=None if self.ordinals is None else self.ordinals[rows],
        )


def read_events(
    rows: Mapping[str, pa.Array], wanted: Collection[str], types: Mapping[str, str], keys: IntArray | None = None
) -> Events:
    """Read n events, in the order of their rows.

    Parameters
    ----------
    rows
        ``position``, ``time`` and ``name`` of `events`, and what holds those that `wanted` asks for; ``rank``
        of each inside its partition, where some were left out and it matters how many.
    wanted
        Names of the columns that are read; ``position``, ``time`` and ``name`` always are.
    types
        Spark type of each of the stream's attributes.
    keys
        int64[n]: number of the partition of each; None: they are of one.
    """
    names = rows["name"].dictionary_encode()
    return Events(
        positions=integers(rows["position"]),
        times=micros(rows["time"]),
        names=integers(names.indices.fill_null(-1)),
        vocabulary=names.dictionary.to_pylist(),
        keys=np.zeros(len(names), np.int64) if keys is None else keys,
        columns=event_columns(rows, {*wanted} - {"name"}, types),
        ordinals=integers(rows["rank"]) if "rank" in rows else None,
    )


def micros(time: pa.Array) -> IntArray:
    """Moments as microseconds since the epoch."""
    return integers(pc.cast(time, pa.int64()))


def integers(values: pa.Array) -> IntArray:
    """Whole numbers without NULLs as int64, in memory of their own: kernels want arrays that may be written to."""
    read: IntArray = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return read
