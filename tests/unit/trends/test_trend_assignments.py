"""Which term each event of a trend has, where events fit several: MEASURES read them by it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from naive import trends as naive
from naive.trend_cases import random_events, random_query, vertices
from unit.trends.test_trend_answers import stream

from patternlake.udfs.trends.kernels.trends import Trends


def assigned(query: naive.Query, events: Sequence[naive.Event]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """By the positions of each trend the terms of its events."""
    trends, found = Trends(*vertices(query, events)), {}
    for batch in trends.extract():
        rows = trends.assign(batch)
        for begin, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
            positions = tuple(trends.cells.position[batch.row[begin:end]].tolist())
            assert tuple(trends.cells.position[rows[begin:end]].tolist()) == positions
            found[positions] = tuple(trends.cells.term[rows[begin:end]].tolist())
    return found


def assignments(
    query: naive.Query, events: Sequence[naive.Event], sequence: Sequence[int], terms: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """All assignments of a sequence of events, by number, to the terms."""
    if len(terms) == len(sequence):
        if terms[-1] == len(query.terms) - 1:
            yield terms
        return
    event = sequence[len(terms)]
    for term in range(len(query.terms)) if terms else (0,):
        if naive.is_vertex(query, events[event], term) and (
            not terms or naive.is_edge(query, events, (sequence[len(terms) - 1], terms[-1]), (event, term))
        ):
            yield from assignments(query, events, sequence, (*terms, term))


def test_a_fall_behind_a_rise_is_of_the_second_name() -> None:
    up, down = naive.Term("A", "up", True), naive.Term("A", "down", False)
    rises = naive.Step(0, 0, lambda p, e: e.values["x"] > p.values["x"], "up[i].x > up[i-1].x")  # type: ignore[operator]
    falls = naive.Step(0, 1, lambda p, e: e.values["x"] < p.values["x"], "down.x < up[i-1].x")  # type: ignore[operator]
    events = stream("AAAA", x=[1.0, 2.0, 3.0, 1.0])
    found = assigned(naive.Query((up, down), steps=(rises, falls)), events)
    assert found == {(1, 2, 3, 4): (0, 0, 0, 1), (1, 2, 4): (0, 0, 1), (1, 3, 4): (0, 0, 1)}


def test_of_several_assignments_an_earlier_name_takes_as_many_as_it_can() -> None:
    query = naive.Query((naive.Term("A", "a", True), naive.Term("A", "b", True)))
    assert assigned(query, stream("AAA")) == {(1, 2, 3): (0, 0, 1), (1, 3): (0, 1)}


@pytest.mark.parametrize("seed", range(3))
def test_random_assignments_are_those_that_give_the_most_to_earlier_names(seed: int) -> None:
    rng, several = random.Random(seed), 0
    for _ in range(150):
        query = random_query(rng, names="A", partitioned=False, window=False)
        events = random_events(rng, rng.randint(1, 8), names="A")
        in_order = sorted(events, key=lambda event: event.position)
        numbers = {event.position: number for number, event in enumerate(in_order)}
        for positions, terms in assigned(query, events).items():
            ways = list(assignments(query, in_order, [numbers[position] for position in positions]))
            several += len(ways) > 1
            assert terms == min(ways, key=lambda way: way[::-1]), (query.text(), in_order, positions)
    assert several > 20
