"""Partial matches of the search under conditions, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray

MOST_ROWS = 1 << 20
"""About so many candidates are judged at a time."""


@dataclass(frozen=True)
class Partial:
    """Partial matches: int64 arrays, one row each.

    `parent` is the start that it belongs to, `low` and `stop` bound where the current term is looked for, `run` is the
    first event of the current run.
    """

    parent: IntArray
    bound: IntArray
    choice: IntArray
    low: IntArray
    stop: IntArray
    run: IntArray

    def take(self, rows: IntArray | BoolArray) -> Partial:
        """Some of them, as copies."""
        return Partial(**{name: column[rows] for name, column in vars(self).items()})


def ragged(low: IntArray, high: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """All (row, place) with ``low[row] <= place < high[row]``, in order, in pieces of about `MOST_ROWS`."""
    counts = np.maximum(high - low, 0)
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        taken = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, taken + MOST_ROWS, side="right")))
        size = counts[begin:stop]
        row = np.repeat(np.arange(begin, stop, dtype=np.int64), size)
        if len(row):
            place = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(size) - size, size) + low[row]
            yield row, place
        begin = stop


def concatenated(parts: list[Partial], slots: int) -> Partial:
    """All of them, one after the other."""
    none = np.empty(0, np.int64)
    if not parts:
        return Partial(none, np.empty((0, slots), np.int64), np.empty((0, slots), np.int64), none, none, none)
    return Partial(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def once(bound: IntArray, choice: IntArray) -> tuple[IntArray, IntArray]:
    """Equal tuples of events once, with the first alternatives; the order stays."""
    order = np.lexsort((*choice.T[::-1], *bound.T[::-1]))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (bound[order[1:]] != bound[order[:-1]]).any(axis=1)
    kept = np.sort(order[fresh])
    return bound[kept], choice[kept]
