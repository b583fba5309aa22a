"""How events are dealt out to the portions of an answer: by partition, or by blocks that overlap by a window.

Without partitions, blocks are ranges of times (or of ranks, where windows count events) that overlap by the window, so
that each match lies whole in the block that it begins in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray, expanded
from patternlake.udfs.events import integers, micros
from patternlake.udfs.kleene.request import KleeneRequest, Portions
from patternlake.udfs.partitions import ByPartition, order_of

RANK = "rank"
"""The place of an event among all of the stream, by time and position."""


@dataclass(frozen=True)
class Ranks:
    """How many events come before those of each bucket of time.

    Attributes
    ----------
    buckets
        int64[b], ascending: numbers of the buckets that have events.
    before
        int64[b + 1]: how many events lie in the buckets before each, and in all.
    """

    buckets: IntArray
    before: IntArray


def count_buckets(portions: Portions, time: pa.ChunkedArray) -> tuple[IntArray, IntArray]:
    """The buckets of time of some events, ascending, and how many of the events lie in each."""
    return np.unique(micros(time) // portions.bucket, return_counts=True)


def ranks_of(buckets: IntArray, counts: IntArray) -> Ranks:
    """Add up what `count_buckets` gave of all events, in any order."""
    found, place = np.unique(buckets, return_inverse=True)
    summed = np.zeros(len(found) + 1, np.int64)
    np.add.at(summed, place + 1, counts)
    return Ranks(found, np.cumsum(summed))


@dataclass(frozen=True)
class Dealing:
    """Deals events out to the portions of a request.

    Attributes
    ----------
    request
        The request.
    ranks
        Of all events, where a block is a range of ranks; else None.
    """

    request: KleeneRequest
    ranks: Ranks | None = None

    @property
    def deal(self) -> Callable[[pa.Table], tuple[pa.Table, IntArray]]:
        """Makes of rows those that portions need, and the portion of each."""
        portions = self.request.portions
        return self._to_blocks if portions.width is not None else ByPartition(portions.count)

    def _to_blocks(self, rows: pa.Table) -> tuple[pa.Table, IntArray]:
        """Rows, those that several blocks need more than once, and the block of each."""
        first, last = self._reach(rows["time"])
        row, block = expanded(first, last + 1)
        return rows.take(pa.array(row)), block

    def _reach(self, time: pa.ChunkedArray) -> tuple[IntArray, IntArray]:
        """int64[n] each: the first and the last block that a window around each event reaches."""
        portions = self.request.portions
        least = most = micros(time)
        if self.ranks is not None:
            # All events of a bucket go to every block that one of them is needed in: there they are ranked.
            place = np.searchsorted(self.ranks.buckets, least // portions.bucket)
            least, most = self.ranks.before[place], self.ranks.before[place + 1] - 1
        assert portions.width is not None
        assert portions.within is not None
        bounds = (least - portions.within) // portions.width, (most + portions.within) // portions.width
        first, last = (np.clip(block - portions.low, 0, portions.high - portions.low) for block in bounds)
        return first, last

    def ranked(self, rows: pa.Table) -> pa.Table:
        """The rows of one portion, with their `RANK` where a block is a range of ranks."""
        if self.ranks is None or not rows.num_rows:
            return rows
        at, position = micros(rows["time"].combine_chunks()), integers(rows["position"].combine_chunks())
        # What says where a match ends is no event.
        events = np.flatnonzero(pc.is_valid(rows["name"]).to_numpy())
        order = events[order_of(np.zeros(len(events), np.int64), at[events], position[events])]
        # The buckets of a block are neighbours, and all of their events are here.
        first = np.searchsorted(self.ranks.buckets, int(at.min()) // self.request.portions.bucket)
        rank = np.zeros(len(at), np.int64)
        rank[order] = self.ranks.before[first] + np.arange(len(order))
        return rows.append_column(RANK, pa.array(rank))
