"""Events without partitions go to blocks that overlap by a window, of whole microseconds or of ranks."""

from __future__ import annotations

import random
from typing import Any, cast

import numpy as np
import pyarrow as pa

from patternlake.udfs.kleene.dealing import RANK, Dealing, count_buckets, ranks_of
from patternlake.udfs.kleene.request import KleeneRequest, Portions

LAST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


class _Request:
    """Of a request, what dealing out asks for."""

    def __init__(self, portions: Portions) -> None:
        self.portions = portions
        self.pattern: Any = type("Pattern", (), {"partition": ()})


def _dealing(portions: Portions, times: pa.ChunkedArray | None = None) -> Dealing:
    ranks = None if times is None else ranks_of(*count_buckets(portions, times))
    return Dealing(cast(KleeneRequest, _Request(portions)), ranks)


def _events(times: list[int]) -> pa.Table:
    moments = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "time": pa.chunked_array([moments]),
            "position": pa.array(range(1, len(times) + 1), pa.int64()),
            "name": pa.array(["n"] * len(times)),
        }
    )


def test_an_event_is_in_each_block_that_a_window_around_it_reaches() -> None:
    rng = random.Random(7)
    width, within = 3_600_000_001, 61_000_003
    edges = [rng.randint(-62_000_000_000_000_000, LAST) // width * width for _ in range(200)]
    edges += [rng.randint(0, 10**9) * width for _ in range(200)]
    times = sorted({min(LAST, edge + sign * off) for edge in edges for sign in (-within, 0, within) for off in (0, 1)})
    low, high = min(times) // width, max(times) // width
    rows, portions = _dealing(Portions(low=low, high=high, width=width, within=within)).deal(_events(times))
    micros = rows["time"].cast(pa.int64()).to_pylist()
    assert sorted(zip(micros, (portions + low).tolist(), strict=True)) == sorted(
        (at, block)
        for at in times
        for block in range((at - within) // width, (at + within) // width + 1)
        if low <= block <= high
    )


def test_the_first_and_the_last_block_have_no_outer_end() -> None:
    rows, portions = _dealing(Portions(low=2, high=3, width=10, within=1)).deal(_events([-5, 29, 31, 99]))
    placed = zip(rows["time"].cast(pa.int64()).to_pylist(), portions.tolist(), strict=True)
    assert sorted(placed) == [(-5, 0), (29, 0), (29, 1), (31, 1), (99, 1)]


def test_ranks_are_those_among_all_events_in_every_block_that_a_window_of_events_reaches() -> None:
    rng = random.Random(11)
    for _ in range(200):
        times = [rng.randint(-20, 60) for _ in range(rng.randint(1, 40))]
        order = sorted(range(len(times)), key=lambda place: (times[place], place))
        rank = {place + 1: at for at, place in enumerate(order)}
        within, width = rng.randint(1, 5), rng.randint(5, 12)
        high = (len(times) - 1) // width
        asked = Portions(high=high, width=width, within=within, counted=True, ranked=True, bucket=rng.randint(1, 30))
        events = _events(times)
        # What two tasks counted is added up.
        half = len(times) // 2
        counted = [count_buckets(asked, part["time"]) for part in (events[:half], events[half:])]
        buckets, counts = (np.concatenate(each) for each in zip(*counted, strict=True))
        dealing = Dealing(cast(KleeneRequest, _Request(asked)), ranks_of(buckets, counts))
        rows, portions = dealing.deal(events)
        for block in range(high + 1):
            mine = dealing.ranked(rows.filter(pa.array(portions == block)))
            found = dict(zip(mine["position"].to_pylist(), mine[RANK].to_pylist(), strict=True))
            assert found == {position: rank[position] for position in found}
            needed = {p for p, at in rank.items() if (at - within) // width <= block <= (at + within) // width}
            assert needed <= found.keys()


def test_a_row_that_says_where_a_match_ends_takes_no_rank() -> None:
    asked = Portions(high=1, width=2, within=1, counted=True, ranked=True, bucket=100)
    events = _events([1, 2, 2, 3])
    dealing = _dealing(asked, events["time"])
    ended = events.set_column(2, "name", pa.array(["n", None, "n", "n"]))
    assert [
        rank
        for rank, name in zip(dealing.ranked(ended)[RANK].to_pylist(), ended["name"].to_pylist(), strict=True)
        if name is not None
    ] == [0, 1, 2]
