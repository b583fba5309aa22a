"""Events as a trend query takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.event_columns import event_columns
from patternlake.udfs.trends.query import TrendQuery

IntArray = NDArray[np.int64]
Partition = tuple[str | None, ...]
"""The values of the PARTITION BY columns, as text; without PARTITION BY an empty tuple."""


@dataclass(frozen=True)
class Events:
    """Events of a stream, in any order.

    Attributes
    ----------
    positions, times
        int64[n]; times in microseconds since the epoch.
    keys
        int64[n]: code of the partition that PARTITION BY puts each event in, 0 for all without; NULL has a code too.
    names, vocabulary
        int64[n] codes of event names (-1: NULL), and the names that they stand for.
    columns
        What predicates read, by column name (`TrendQuery.columns`); ``position``, ``time`` and ``name`` may be left
        out.
    """

    positions: IntArray
    times: IntArray
    keys: IntArray
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
            words = np.array([*self.vocabulary, ""], object)
            return Column(words[self.names], self.names >= 0, "string")
        raise ArgumentError(f"column {name!r} of the events is needed; given are {', '.join(self.columns) or 'none'}")


def event_columns_read(query: TrendQuery) -> list[str]:
    """The columns of `events` that `events_of` reads, ``key`` aside, which rows of vertices hold."""
    built_in = [name for name in ("step", "key", "probability") if name in query.columns]
    attributes = query.columns - {*built_in, "name"}
    return ["position", "time", "name", *built_in, *(["attributes"] if attributes else [])]


def events_of(
    query: TrendQuery, types: Mapping[str, str], rows: Mapping[str, pa.Array]
) -> tuple[Events, list[Partition]]:
    """Read events.

    Parameters
    ----------
    query
        The compiled query.
    types
        Attribute to Spark type.
    rows
        The columns `event_columns_read` of `events`, n values each, in any order.

    Returns
    -------
    Events
        In the order of the rows; their keys are places in the list that follows.
    list of Partition
        The partitions, ascending, NULL first.
    """
    names = rows["name"].dictionary_encode()
    columns = event_columns(rows, query.columns - {"name"}, types)
    codes, partitions = _partitions(query, rows, columns)
    events = Events(
        positions=rows["position"].to_numpy(zero_copy_only=False).astype(np.int64),
        times=micros(rows["time"]),
        keys=codes,
        names=names.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64),
        vocabulary=names.dictionary.to_pylist(),
        columns=columns,
    )
    return events, partitions


def _partitions(
    query: TrendQuery, rows: Mapping[str, pa.Array], columns: Mapping[str, Column]
) -> tuple[IntArray, list[Partition]]:
    texts = []
    for name in query.partition:
        if name in ("key", "name"):
            texts.append(rows[name])
        elif name == "position":
            texts.append(rows[name].cast(pa.string()))
        elif name == "time":
            texts.append(as_texts(Column(micros(rows["time"]), np.ones(len(rows["time"]), np.bool_), "timestamp")))
        else:
            texts.append(as_texts(columns[name]))
    return coded(texts, len(rows["position"]))


def coded(columns: Sequence[pa.Array], size: int) -> tuple[IntArray, list[Partition]]:
    """Number of each row's partition, and the partitions in ascending order."""
    if not columns:
        return np.zeros(size, np.int64), [()]
    code = np.zeros(size, np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        rank = np.empty(len(words) + 1, np.int64)
        rank[np.argsort(np.array(words, object), kind="stable")] = np.arange(1, len(words) + 1)
        rank[-1] = 0
        place = rank[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)]
        code, _ = pd.factorize(code * (len(words) + 1) + place, sort=True)
        code = code.astype(np.int64)
    _, first = np.unique(code, return_index=True)
    taken = [column.take(pa.array(first)).to_pylist() for column in columns]
    return code, list(zip(*taken, strict=True))


def micros(time: pa.Array) -> IntArray:
    """Moments as microseconds since the epoch."""
    return np.asarray(pc.cast(time, pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def as_texts(column: Column) -> pa.Array:
    """Values as text that reads back to the same values; moments as Spark shows them, in UTC."""
    known = np.broadcast_to(column.known, column.values.shape)
    values = pa.array(column.values, mask=~known)
    if column.type in ("timestamp", "date"):
        values = values.cast(pa.timestamp("us"))
    return values.cast(pa.string())
