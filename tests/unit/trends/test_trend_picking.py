"""Trends picked by their numbers, of any size."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive.trend_cases import rows_of
from unit.trends.test_trend_counting import events, trends

from patternlake.udfs.trends.kernels.counting import primes
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.remainders import from_remainders, limbs_of

PRIMES = primes(9)


def whole(limbs: Any) -> list[int]:
    return [sum(limb << 64 * at for at, limb in enumerate(row)) for row in limbs.tolist()]


@given(st.lists(st.integers(0, 2**512 - 1), min_size=1, max_size=5))
def test_numbers_come_back_from_their_remainders(numbers: list[int]) -> None:
    remainders = np.array([[number % prime for prime in PRIMES] for number in numbers], np.uint64)
    assert whole(from_remainders(remainders, PRIMES, 8)) == numbers
    assert whole(limbs_of(numbers, 9)) == numbers


def picked(found: Trends, numbers: list[int]) -> list[tuple[int, ...]]:
    return [row for _, row in rows_of(found, list(found.pick(numbers, batch=7)))]


def number_of(positions: tuple[int, ...], last: int) -> int:
    """The number of a rising trend from 1 to `last`: how many trends come before it.

    Behind an event at p < last, each of the events between p and the last one is taken or not: 2^(last - 1 - p) ways.
    """
    return sum(
        2 ** (last - 1 - between) for before, after in pairwise(positions) for between in range(before + 1, after)
    )


def test_trends_among_2_to_the_198_have_the_numbers_that_they_are_picked_by() -> None:
    found = trends("E+ WHERE E[i].x > E[i-1].x", events(np.arange(200)))
    rng = random.Random(1)
    numbers = [0, 1, 2**64 - 1, 2**64, 2**128, 2**198 - 1, *(rng.randrange(2**198) for _ in range(30))]
    assert [number_of(row, 200) for row in picked(found, numbers)] == numbers


def test_trends_of_states_and_of_listed_edges_are_picked_as_well() -> None:
    x = np.arange(90)
    # An event of both terms: the automaton's states are walked, and the sequences are those of one term.
    states = trends("E+ AS a ; E AS b", events(x))
    rng = random.Random(2)
    numbers = [0, *(rng.randrange(2**88) for _ in range(10))]
    assert [number_of(row, 90) for row in picked(states, numbers)] == numbers
    listed = trends("E+ WHERE E[i].x > E[i-1].x AND ABS(E[i].x - E[i-1].x) > 0", events(x))
    assert [number_of(row, 90) for row in picked(listed, numbers)] == numbers


def test_trends_of_small_and_great_cells_are_picked_together() -> None:
    keys = np.array([0] * 3 + [1] * 80 + [2] * 2)
    found = trends("E+ WHERE E[i].x > E[i-1].x PARTITION BY key", events(np.arange(85), keys=keys))
    assert found.counts().trends == [2, 2**78, 1]
    assert [len(row) for row in picked(found, [0, 1, 2, 2**78 + 1, 2**78 + 2])] == [3, 2, 80, 2, 2]
