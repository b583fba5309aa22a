"""Events as exact matching takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events, integers, micros, read_events
from patternlake.udfs.language.predicate.columns import Rows
from patternlake.udfs.ordering import order_in_partitions
from patternlake.udfs.partitions import number_values
from patternlake.udfs.sketch.request import SketchRequest


@dataclass(frozen=True, kw_only=True)
class TokenEvents(Events):
    """Events of one stream, or of many partitions, in (partition, position) order; those of a pattern
    that another engine matches, in (partition, time, position) order.

    Attributes
    ----------
    asked
        `SketchPattern.names`, t of them.
    present
        bool[n, t]: a token of the event equals a name; see `presence`.
    offsets
        int64[partitions + 1]: partition k has the events ``offsets[k]:offsets[k + 1]``, and all its events from the
        first to the last must be there if neighbours or counts of events matter (`candidates.needs_every_event`).
        None: the whole stream is one partition, and positions tell neighbours and counts.
    """

    asked: Sequence[str]
    present: BoolArray
    offsets: IntArray | None = None

    def named(self, name: str) -> BoolArray:
        """bool[n]: the events that have a name among their tokens."""
        return self.present[:, self.asked.index(name)]

    def of_partitions(self, first: int, last: int) -> TokenEvents:
        """The events of partitions `first` to `last` (exclusive); all of them where the stream is one partition."""
        if self.offsets is None or (first, last) == (0, len(self.offsets) - 1):
            return self
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return replace(self.take(slice(begin, end)), offsets=self.offsets[first : last + 1] - begin)

    def take(self, rows: Rows) -> TokenEvents:
        """Some of the events, with the offsets of all."""
        return replace(super().take(rows), present=self.present[rows])


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


def events_of(request: SketchRequest, columns: Mapping[str, pa.Array]) -> tuple[TokenEvents, list[str | None]]:
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
    TokenEvents
        In their order.
    list of str or None
        The key of each partition, NULL first; of a stream in one partition what was asked for.
    """
    keys: list[str | None] = [request.key]
    positions = integers(columns["position"])
    codes = np.zeros(len(positions), np.int64)
    if request.every_key:
        codes, keys = number_values(columns["key"])
    times = positions if request.pattern.lent is None else micros(columns["time"])
    order, _ = order_in_partitions(codes, times, positions)
    coded = {**columns, "name": columns["name"].dictionary_encode()}
    rows = {name: column.take(pa.array(order)) for name, column in coded.items()}
    events = read_events(rows, request.pattern.columns, request.types, codes[order])
    several = request.every_key or request.one_key
    return TokenEvents(
        **vars(events),
        asked=request.pattern.names,
        present=presence(request.pattern.names, _token_columns(request, rows)),
        offsets=np.searchsorted(events.keys, np.arange(len(keys) + 1)) if several else None,
    ), keys


def _token_columns(request: SketchRequest, rows: Mapping[str, pa.Array]) -> list[pa.Array]:
    if "tokens" not in rows or rows["tokens"].null_count:  # of a stream whose only token is the name
        return [rows["name"]]
    flat, count = pc.list_flatten(rows["tokens"]), request.expressions
    numbers = np.arange(0, len(flat), count)
    return [flat.take(pa.array(numbers + column)) for column in range(count)]
