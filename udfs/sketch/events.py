"""Events as exact matching takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.event_columns import event_columns
from patternlake.udfs.partitions import order_of
from patternlake.udfs.sketch.kernels.search import BoolArray
from patternlake.udfs.sketch.query import IntArray
from patternlake.udfs.sketch.request import SketchRequest


@dataclass(frozen=True)
class Events:
    """Events of one stream, or of many partitions, in (partition, position) order.

    Attributes
    ----------
    positions
        int64[n].
    times
        int64[n]: microseconds since the epoch.
    present
        bool[n, t]: a token of the event equals name t of `SketchPattern.names`; see `presence`.
    columns
        What DEFINE and WHERE refer to, by column name; ``position`` and ``time`` need not be given.
    offsets
        int64[partitions + 1]: partition k has the events ``offsets[k]:offsets[k + 1]``, and all its events from the
        first to the last must be there if neighbours or counts of events matter (`candidates.needs_every_event`).
        None: the whole stream is one partition, and positions tell neighbours and counts.
    """

    positions: IntArray
    times: IntArray
    present: BoolArray
    columns: Mapping[str, Column] = field(default_factory=dict)
    offsets: IntArray | None = None

    def of_partitions(self, first: int, last: int) -> Events:
        """The events of partitions `first` to `last` (exclusive); all of them where the stream is one partition."""
        if self.offsets is None or (first, last) == (0, len(self.offsets) - 1):
            return self
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return Events(
            positions=self.positions[begin:end],
            times=self.times[begin:end],
            present=self.present[begin:end],
            columns={name: column.rows(begin, end) for name, column in self.columns.items()},
            offsets=self.offsets[first : last + 1] - begin,
        )


def presence(names: Sequence[str], tokens: Sequence[pa.Array]) -> BoolArray:
    """Which events have which names among their tokens.

    Parameters
    ----------
    names
        ``SketchPattern.names``.
    tokens
        Array of n texts, or NULL, for each token expression.

    Returns
    -------
    bool[n, t]
    """
    n = len(tokens[0]) if tokens else 0
    found = np.zeros((n, len(names)), np.bool_)
    for column in tokens:
        coded = column.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        number = {token: code for code, token in enumerate(coded.dictionary.to_pylist())}
        for place, name in enumerate(names):
            if name in number:
                found[:, place] |= codes == number[name]
    return found


def events_of(request: SketchRequest, columns: Mapping[str, pa.Array]) -> tuple[Events, list[str | None]]:
    """Read rows of `events` for a request.

    Parameters
    ----------
    request
        The request.
    columns
        ``position``, ``time`` and ``name`` of n `events` in any order; ``tokens`` where they are not the names alone;
        ``key``, ``step``, ``probability`` and ``attributes`` where the pattern or its conditions read them.

    Returns
    -------
    Events
        In (partition, position) order.
    list of str or None
        The key of each partition, NULL first; of a stream in one partition what was asked for.
    """
    keys: list[str | None] = [request.key]
    positions = columns["position"].to_numpy(zero_copy_only=False).astype(np.int64)
    if request.every_key:
        codes, keys = _ranked(columns["key"])
        order = order_of(codes, positions)
        offsets = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    else:
        order = np.argsort(positions)
        offsets = np.array([0, len(order)], np.int64)
    rows = {name: column.take(pa.array(order)) for name, column in columns.items()}
    events = Events(
        positions=positions[order],
        times=pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False),
        present=presence(request.pattern.names, _token_columns(request, rows)),
        columns=event_columns(rows, request.pattern.columns, request.types),
        offsets=offsets if request.every_key or request.one_key else None,
    )
    return events, keys


def _ranked(key: pa.Array) -> tuple[NDArray[np.int64], list[str | None]]:
    """int64[n] number of each event's key, and the keys in order, NULL first."""
    dictionary = key.dictionary_encode()
    codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = dictionary.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    rank = np.empty(len(known) + 1, np.int64)
    nameless = bool((codes < 0).any())
    rank[order] = np.arange(len(known)) + nameless
    rank[-1] = 0
    return rank[codes], [*([None] if nameless else []), *(known[place] for place in order)]


def _token_columns(request: SketchRequest, rows: Mapping[str, pa.Array]) -> list[pa.Array]:
    if "tokens" not in rows or rows["tokens"].null_count:  # of a stream whose only token is the name
        return [rows["name"]]
    flat, count = pc.list_flatten(rows["tokens"]), request.expressions
    numbers = np.arange(0, len(flat), count)
    return [flat.take(pa.array(numbers + column)) for column in range(count)]
