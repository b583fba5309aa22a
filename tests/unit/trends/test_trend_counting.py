"""Counts of any size, and the numbers that they rest on."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from naive.trend_cases import compiled

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.trends.kernels import roles
from patternlake.udfs.trends.kernels.counting import primes
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import vertices_of


def events(x: np.ndarray, times: np.ndarray | None = None, keys: np.ndarray | None = None) -> Events:
    n = len(x)
    return Events(
        positions=np.arange(1, n + 1, dtype=np.int64),
        times=np.arange(n, dtype=np.int64) * 1000 if times is None else times,
        keys=np.zeros(n, np.int64) if keys is None else keys,
        names=np.zeros(n, np.int64),
        vocabulary=["E"],
        columns={
            "x": Column(x.astype(np.float64), np.ones(n, np.bool_), "double"),
            "s": Column(np.full(n, "a", object), np.ones(n, np.bool_), "string"),
        },
    )


def trends(text: str, given: Events) -> Trends:
    question = compiled(text)
    return Trends(question, vertices_of(question, given))


def exact(x: np.ndarray, times: np.ndarray, longest_gap: int) -> tuple[int, int, int]:
    """Number, total and greatest length by Python's integers and every pair."""
    n = len(x)
    after = [[j for j in range(n) if 0 < times[j] - times[i] <= longest_gap and x[j] > x[i]] for i in range(n)]
    number, total, most = [0] * n, [0] * n, [0] * n
    for i in sorted(range(n), key=lambda i: -times[i]):
        number[i] = sum(number[j] for j in after[i]) or 1
        total[i] = sum(total[j] for j in after[i]) + number[i]
        most[i] = 1 + max((most[j] for j in after[i]), default=0)
    starts = set(range(n)) - {j for follow in after for j in follow}
    return sum(number[i] for i in starts), sum(total[i] for i in starts), max(most[i] for i in starts)


def test_counts_pass_what_doubles_hold() -> None:
    counted = trends("E+ WHERE E[i].x > E[i-1].x", events(np.arange(2000))).counts()
    assert counted.trends == [2**1998]
    assert counted.total_length == [2 * 2**1998 + 1998 * 2**1997]
    assert counted.approximate.tolist() == [math.inf]


def test_counts_near_the_limit_of_64_bits_are_exact() -> None:
    for n in range(58, 72):
        counted = trends("E+ WHERE E[i].x > E[i-1].x", events(np.arange(n))).counts()
        assert counted.trends == [2 ** (n - 2)]
        assert counted.total_length == [2 * 2 ** (n - 2) + (n - 2) * 2 ** (n - 3)]


def test_great_and_small_cells_stand_side_by_side() -> None:
    x = np.concatenate([np.arange(300), np.arange(5), -np.arange(4)])
    keys = np.repeat([0, 1, 2], [300, 5, 4])
    counted = trends("E+ WHERE E[i].x > E[i-1].x PARTITION BY key", events(x, keys=keys)).counts()
    assert counted.trends == [2**298, 2**3, 4]
    assert counted.longest.tolist() == [300, 5, 1]


def test_great_counts_with_gaps_and_ties_are_those_of_whole_numbers() -> None:
    rng = random.Random(7)
    n = 400
    x = np.array([at + rng.randint(-9, 9) for at in range(n)])
    times = np.cumsum([rng.randint(0, 3) for _ in range(n)]) * 1000
    for gap in (20, 60, 10**6):
        text = f"E+ WHERE E[i].x > E[i-1].x AND t(E[i]) - t(E[i-1]) <= {gap} MILLISECOND"
        counted = trends(text, events(x, times)).counts()
        number, total, most = exact(x, times, gap * 1000)
        assert (counted.trends, counted.total_length, counted.longest.tolist()) == ([number], [total], [most])
        assert number > 2**64


def test_listed_edges_count_as_sums_do() -> None:
    # The remainder says nothing new, but has every pair judged.
    given = events(np.arange(150))
    listed = trends("E+ WHERE E[i].x > E[i-1].x AND (E[i].x > E[i-1].x OR E[i].x = E[i-1].x)", given).counts()
    assert listed.trends == [2**148]


@pytest.mark.parametrize("text", ["E+ a[] ; E+ b[] WHERE [s]", "E+ AS a ; E AS b", "E AS a ; E+ AS b"])
def test_sequences_of_events_that_fit_two_terms_are_counted_at_any_size(text: str) -> None:
    # Of 150 events any 2 or more that hold the first and the last.
    assert trends(text, events(np.arange(150))).counts().trends == [2**148]
    # In three partitions, one of them small; longest and total length as of rising values.
    keys = np.repeat([0, 1, 2], [300, 9, 1])
    counted = trends(f"{text} PARTITION BY key", events(np.arange(310), keys=keys)).counts()
    assert counted.trends == [2**298, 2**7, 0]
    assert counted.longest.tolist() == [300, 9, 0]
    assert counted.total_length == [2 * 2**298 + 298 * 2**297, 2 * 2**7 + 7 * 2**6, 0]


def test_an_event_that_fits_many_terms_is_refused_past_what_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = " ; ".join(f"E+ AS e{term}" for term in range(63))
    with pytest.raises(ArgumentError, match="of several terms takes at most 62 terms, not 63"):
        trends(wide, events(np.arange(3)))
    assert trends(wide[: wide.rindex(" ; ")], events(np.arange(63))).counts().trends == [62]
    monkeypatch.setattr(roles, "MOST_SETS", 1)
    said = "the event at position 3, which fits 3 terms, has more than 1 sets of terms that sequences"
    with pytest.raises(ArgumentError, match=said):
        trends("E+ AS a ; E+ AS b ; E+ AS c", events(np.arange(5)))
    monkeypatch.setattr(roles, "MOST_STATES", 3)
    with pytest.raises(ArgumentError, match="the events of one part of the answer have more than 3 sets of terms"):
        trends("E+ AS a ; E AS b", events(np.arange(5)))


def test_moduli_are_the_greatest_primes_below_two_to_the_63() -> None:
    # The known distances of the greatest primes below 2^63.
    assert [2**63 - prime for prime in primes(5)] == [25, 165, 259, 301, 375]
