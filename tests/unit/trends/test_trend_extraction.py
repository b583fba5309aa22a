"""Trends listed: batches, shares, memory."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from naive.trend_cases import compiled

from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.trends.kernels.extraction import Batch
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import vertices_of


def rising(n: int) -> Trends:
    """All trends of n rising values start at the first."""
    question = compiled("E+ WHERE E[i].x > E[i-1].x")
    events = Events(
        positions=np.arange(1, n + 1, dtype=np.int64),
        times=np.arange(n, dtype=np.int64),
        keys=np.zeros(n, np.int64),
        names=np.zeros(n, np.int64),
        vocabulary=["E"],
        columns={"x": Column(np.arange(n, dtype=np.float64), np.ones(n, np.bool_), "double")},
    )
    return Trends(question, vertices_of(question, events))


def rows(batches: list[Batch]) -> list[tuple[int, ...]]:
    return [
        tuple((batch.row[begin:end] + 1).tolist())
        for batch in batches
        for begin, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
    ]


def test_trends_come_in_the_order_of_their_positions() -> None:
    found = rows(list(rising(12).extract(batch=7)))
    assert found == sorted(found)
    assert len(set(found)) == 2**10
    assert found[0] == tuple(range(1, 13))
    assert found[-1] == (1, 12)


def test_shares_of_trends_that_all_start_at_one_event_put_together_are_all_of_them() -> None:
    trends = rising(16)
    whole = rows(list(trends.extract()))
    parts = equal_shares(sum(trends.counts().trends), 7)
    sizes = [high - low for low, high in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [row for low, high in parts for row in rows(list(trends.extract(low, high)))] == whole


def test_any_trend_is_found_without_those_before_it() -> None:
    trends = rising(60)
    low = 2**57 + 12345
    found = rows(list(trends.extract(low, low + 3)))
    # Number i leaves out of 2 … 59 the events where i has a bit.
    for at, row in enumerate(found):
        left_out = {position for position in range(2, 60) if (low + at) >> (59 - position) & 1}
        assert set(row) == set(range(1, 61)) - left_out


def test_the_first_of_very_many_trends_come_at_once() -> None:
    trends = rising(400)
    assert sum(trends.counts().trends) == 2**398
    found = rows(list(islice(trends.extract(0, 1000, batch=100), 3)))
    assert len(found) == 300
    assert found[0] == tuple(range(1, 401))


def test_batches_hold_no_more_than_asked() -> None:
    batches = list(rising(14).extract(batch=100))
    assert all(len(batch) <= 100 for batch in batches)
    assert sum(map(len, batches)) == 2**12
    for batch in batches:
        assert batch.offsets[0] == 0
        assert batch.offsets[-1] == len(batch.row)
        assert batch.row.dtype == np.int32


@pytest.mark.parametrize("memory", [0, 1, 10, 100])
def test_little_memory_changes_nothing(memory: int) -> None:
    trends = rising(13)
    assert rows(list(trends.extract(memory=memory))) == rows(list(trends.extract()))


def test_beyond_the_last_trend_there_is_nothing() -> None:
    trends = rising(5)
    assert list(trends.extract(8)) == []
    assert list(trends.extract(3, 3)) == []
    assert len(rows(list(trends.extract(6, 100)))) == 2


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"trend number -1: numbers go from 0 to 2\^62 - 1"):
        rising(3).extract(-1)


def test_long_ways_that_lead_nowhere_are_not_walked() -> None:
    # The A rise for long after the last B, so trends are short and what cannot be completed is deep.
    names = "AB" + "A" * 300
    n = len(names)
    question = compiled("A+ a[] ; B WHERE a[i].x > a[i-1].x AND (a[i].x > a[i-1].x OR a[i].x = a[i-1].x)")
    events = Events(
        positions=np.arange(1, n + 1, dtype=np.int64),
        times=np.arange(n, dtype=np.int64),
        keys=np.zeros(n, np.int64),
        names=np.array(["AB".index(name) for name in names], np.int64),
        vocabulary=["A", "B"],
        columns={"x": Column(np.arange(n, dtype=np.float64), np.ones(n, np.bool_), "double")},
    )
    trends = Trends(question, vertices_of(question, events))
    assert rows(list(trends.extract())) == [(1, 2)]
