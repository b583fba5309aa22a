"""Events as a trend query takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from patternlake.udfs.event_arrays import EventArrays, IntArray, event_arrays
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.trends.query import TrendQuery

Partition = tuple[str | None, ...]
"""The values of the PARTITION BY columns, as text; without PARTITION BY an empty tuple."""


@dataclass(frozen=True)
class Events(EventArrays):
    """Events of a stream, in any order.

    Attributes
    ----------
    keys
        int64[n]: code of the partition that PARTITION BY puts each event in, 0 for all without; NULL has a code too.
    """

    keys: IntArray


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
    events = event_arrays(rows, query.columns, types)
    codes, partitions = _partitions(query, rows, events)
    return Events(**vars(events), keys=codes), partitions


def _partitions(
    query: TrendQuery, rows: Mapping[str, pa.Array], events: EventArrays
) -> tuple[IntArray, list[Partition]]:
    texts = [rows[name] if name in ("key", "name") else as_texts(events.column(name)) for name in query.partition]
    return coded(texts, len(events.positions))


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


def as_texts(column: Column) -> pa.Array:
    """Values as text that reads back to the same values; moments as Spark shows them, in UTC."""
    known = np.broadcast_to(column.known, column.values.shape)
    values = pa.array(column.values, mask=~known)
    if column.type in ("timestamp", "date"):
        values = values.cast(pa.timestamp("us"))
    return values.cast(pa.string())
