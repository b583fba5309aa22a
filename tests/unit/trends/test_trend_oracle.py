"""Random queries over random streams: the kernels answer as the oracle does, in every way of asking."""

from __future__ import annotations

import random

import numpy as np
import pytest
from drawn import RANDOMS, SEEDED
from hypothesis import given, settings
from naive import trends as naive
from naive.trend_cases import cells_of, events_of, random_events, random_query, rows_of, vertices

from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.trends.kernels.cells import Blocks
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import Vertices, joined, vertices_of
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.query import TrendQuery

Case = tuple[naive.Query, list[naive.Event], TrendQuery, Vertices]


def case(rng: random.Random, most: int = 11, *, window: bool | None = None) -> Case:
    """A random query over random events, most of them such as it names."""
    query = random_query(rng, names=rng.choice(["A", "AB", "ABC"]), window=window)
    names = "".join(term.name for term in query.terms) + rng.choice(["", "", "B"])
    events = random_events(rng, rng.randint(0, most), names=names)
    return query, events, *vertices(query, events)


def check(rng: random.Random, most: int) -> None:
    query, events, question, given_vertices = case(rng, most)
    wanted = naive.trends(query, events)
    trends = Trends(question, given_vertices)
    cells = cells_of(query, events, trends)
    found: dict[naive.Cell, list[tuple[int, ...]]] = {}
    rows = rows_of(trends, list(trends.extract(batch=rng.randint(1, 9), memory=rng.choice([0, 4, 1000]))))
    for cell, row in rows:
        found.setdefault(cells[cell], []).append(row)
    assert found == wanted, query.text()
    counted = trends.counts()
    answer = zip(counted.trends, counted.longest.tolist(), counted.total_length, strict=True)
    assert {cell: numbers for cell, numbers in zip(cells, answer, strict=True) if numbers[0]} == {
        cell: (len(part), max(map(len, part)), sum(map(len, part))) for cell, part in wanted.items()
    }
    parts = [
        row
        for low, high in equal_shares(len(rows), rng.randint(1, 5))
        for row in rows_of(trends, list(trends.extract(low, high, batch=rng.randint(1, 4))))
    ]
    assert parts == rows, query.text()


@settings(max_examples=400)
@given(RANDOMS)
def test_counts_trends_and_shares_are_those_of_the_oracle(rng: random.Random) -> None:
    check(rng, 11)


@pytest.mark.slow
@settings(max_examples=6000)
@given(SEEDED)
def test_counts_trends_and_shares_are_those_of_the_oracle_in_thousands_of_cases(rng: random.Random) -> None:
    check(rng, 14)


def of_pane(vertices: Vertices, pane: int) -> Vertices:
    mine = vertices.pane == pane
    columns = {
        name: tuple(column.take(mine) for column in values) if isinstance(values, tuple) else values[mine]
        for name, values in vars(vertices).items()
    }
    return Vertices(**columns)


@settings(max_examples=150)
@given(RANDOMS)
def test_panes_put_together_answer_as_the_stream_at_once(rng: random.Random) -> None:
    query, _, question, whole = case(rng, 20, window=True)
    if len(whole) == 0:
        return
    panes = [of_pane(whole, pane) for pane in np.unique(whole.pane)]
    rng.shuffle(panes)
    at_once, merged = Trends(question, whole), Trends(question, joined(panes))
    assert rows_of(merged, list(merged.extract())) == rows_of(at_once, list(at_once.extract())), query.text()
    windows = Windows.of(question)
    for cell in range(len(at_once.cells.key)):
        window = int(at_once.cells.window[cell])
        some = [pane for pane in panes if int(pane.pane[0]) in windows.panes_of(window)]
        alone = Trends(question, joined(some), Blocks(1, np.full(int(whole.key.max()) + 1, window)))
        keys = alone.cells.key.tolist()
        wanted = [row for at, row in rows_of(at_once, list(at_once.extract())) if at == cell]
        found = rows_of(alone, list(alone.extract()))
        assert [row for at, row in found if keys[at] == at_once.cells.key[cell]] == wanted, query.text()


@settings(max_examples=100)
@given(RANDOMS)
def test_vertices_do_not_depend_on_how_events_are_dealt_out(rng: random.Random) -> None:
    query, events, question, whole = case(rng, 15)
    given_events = events_of(events, partitioned=query.partitioned)
    dealt = [rng.randrange(3) for _ in events]
    parts = []
    for part in range(3):
        rows = np.array([at for at, number in enumerate(dealt) if number == part], np.int64)
        rng.shuffle(rows)
        parts.append(vertices_of(question, given_events.take(rows)))
    merged = joined(parts)
    for name in ("pane", "key", "position", "time", "term"):
        assert getattr(merged, name).tolist() == getattr(whole, name).tolist(), query.text()
    for ours, theirs in zip([*merged.left, *merged.right], [*whole.left, *whole.right], strict=True):
        assert ours.known.tolist() == theirs.known.tolist()
        assert ours.values[ours.known].tolist() == theirs.values[theirs.known].tolist()
