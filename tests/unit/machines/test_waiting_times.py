"""How many events of a partition a time brings, as by its definition."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import machine_waits as naive

from patternlake.udfs.machines.forecasts.waiting_times import Steps, as_document, counted, from_document, together

SECOND = 1_000_000


def waits_of(partitions: list[list[int]]) -> dict[int, tuple[int, int]]:
    times = np.array([time for some in partitions for time in some], np.int64)
    event_at = np.concatenate([[0], np.cumsum([len(some) for some in partitions])]).astype(np.int64)
    new = np.zeros(len(partitions), np.int64)
    return counted(times, event_at, new, new)


def test_an_event_a_second_brings_ten_in_ten_seconds_and_no_more() -> None:
    steps = Steps.of(waits_of([list(range(0, 100 * SECOND, SECOND))]), 10 * SECOND, 1000)
    assert steps.steps == 11
    assert steps.reached(np.array([0]))[0] == pytest.approx([1.0] * 10 + [0.0], abs=1e-9)
    # Half a second has passed since the last event: the tenth is due 9.5 seconds from now, the eleventh too late.
    assert steps.reached(np.array([SECOND // 2]))[0] == pytest.approx([1.0] * 10 + [0.0], abs=1e-9)
    # Nothing was ever quiet for a second and more.
    assert steps.reached(np.array([SECOND + 1]))[0].tolist() == [0.0] * 11


def test_waiting_times_are_those_between_events_of_one_partition() -> None:
    # 1, 2 | 5: one second in the first partition, none in the second.
    assert waits_of([[1 * SECOND, 2 * SECOND], [5 * SECOND]]) == waits_of([[0, SECOND]])
    assert list(waits_of([[0, SECOND]]).values()) == [(1, SECOND)]
    assert waits_of([[5], [7], []]) == {}
    # Events of one time wait for nothing, and are counted as well.
    assert waits_of([[5, 5, 5]]) == {0: (2, 0)}


@given(st.integers(0, 2**32))
def test_counts_are_the_same_however_events_are_cut(seed: int) -> None:
    rng = random.Random(seed)
    partitions = [sorted(rng.choices(range(10 ** rng.randint(1, 12)), k=rng.randint(0, 9))) for _ in range(3)]
    cuts = [rng.randint(0, len(some)) for some in partitions]
    early = [some[:cut] for some, cut in zip(partitions, cuts, strict=True)]
    late = [some[cut:] for some, cut in zip(partitions, cuts, strict=True)]
    last = np.array([some[-1] if some else 0 for some in early], np.int64)
    times = np.array([time for some in late for time in some], np.int64)
    event_at = np.concatenate([[0], np.cumsum([len(some) for some in late])]).astype(np.int64)
    rest = counted(times, event_at, last, np.array(cuts, np.int64))
    found = together([waits_of(early), rest])
    assert found == waits_of(partitions) == from_document(as_document(found))
    gaps = naive.gaps(partitions)
    assert (sum(count for count, _ in found.values()), sum(sum_ for _, sum_ in found.values())) == (
        len(gaps),
        sum(gaps),
    )


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_whole_multiples_of_the_commonest_wait_are_reached_as_by_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    gaps = [1] * 6 + rng.choices([1, 2, 3, 7, 15], k=rng.randint(0, 5))
    rng.shuffle(gaps)
    times = np.cumsum([0, *gaps]).tolist()
    lookahead, quiet = rng.randint(1, 12), rng.choice([0, 0, 1, 2, 6])
    steps = Steps.of(waits_of([[time * SECOND for time in times]]), lookahead * SECOND, 1000)
    exact = naive.waiting(gaps)
    wanted = [float(naive.reached(exact, quiet, lookahead, k)) for k in range(1, steps.steps + 1)]
    assert steps.reached(np.array([quiet * SECOND]))[0] == pytest.approx(wanted, abs=1e-6)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_any_waits_are_reached_nearly_as_by_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    # So far apart that each is a bin of its own, and none lies at the lookahead.
    kinds = [round(10 ** rng.uniform(3, 7)) for _ in range(3)]
    gaps = rng.choices(kinds, k=12)
    lookahead = round(10 ** rng.uniform(5, 7.5))
    alpha = [naive.Fraction(rng.randint(0, 3), 20) for _ in range(5)]
    exact = naive.waiting(gaps)
    steps = Steps.of(waits_of([np.cumsum([0, *gaps]).tolist()]), lookahead, 1000)
    quiet = rng.choice([0, round(0.3 * min(gaps)), round(0.7 * max(gaps))])
    row = np.zeros(5)
    row[: min(5, steps.steps)] = steps.reached(np.array([quiet]))[0][:5]
    found = float(row @ np.array([float(one) for one in alpha]))
    # Between what the definition says of a time that is a little shorter, and of one that is a little longer.
    low, high = (float(naive.completed(alpha, exact, quiet, round(lookahead * f))) for f in (0.98, 1.02))
    assert low - 0.02 <= found <= high + 0.02


def test_more_events_than_may_be_looked_ahead_are_told() -> None:
    steps = Steps.of(waits_of([list(range(0, 100 * SECOND, SECOND))]), 50 * SECOND, 20)
    assert (steps.steps, steps.truncated) == (20, pytest.approx(1.0))
