"""How long partitions wait for events, and what comes in a time, as by its definition."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import machine_waits as naive
from unit.machines.forecasters import probability, spot, trained

from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts import waiting_times
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.forecasts.waiting_times import (
    LEAST_WAITS,
    Waiting,
    Waits,
    as_document,
    chance_of_more,
    counted,
    from_document,
    pace_of,
    paces,
    together,
)
from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.query import compile_subscription

SECOND = 1_000_000
N1, N2 = CompositeState(1), CompositeState(2)


def waits_of(partitions: list[list[int]], now: int | None = None) -> Waits:
    times = np.array([time for some in partitions for time in some], np.int64)
    event_at = np.concatenate([[0], np.cumsum([len(some) for some in partitions])]).astype(np.int64)
    new = np.zeros(len(partitions), np.int64)
    return counted(times, event_at, new, new, new, int(times.max(initial=0)) if now is None else now)


def ended(waits: Waits) -> dict[int, tuple[int, int]]:
    """How many waits ended, and their sum, by bin."""
    found: dict[int, tuple[int, int]] = {}
    for key, one in waits.items():
        if key.bin >= 0:
            often, total = found.get(key.bin, (0, 0))
            found[key.bin] = often + one.often, total + one.sum
    return found


def within(query: str, share: float, partitions: list[list[int]], now: int, ahead: int | None, *, quiet: int = 0,
           left: int = -1, steps: int = 1) -> float:  # fmt: skip
    """What an instance forecasts that each event completes with a probability."""
    counts = {(N1, 0): {(N2, 0): share, (N1, 0): 1 - share}}
    waited = Waited(waits_of(partitions, now), now)
    forecaster = trained(compile_subscription(parse(query)), counts, steps, waited=waited, time=ahead)
    known = None if left < 0 else left
    return float(probability(forecaster, N1, spot(forecaster, N1, left), quiet, left=known, last=1)[-1])


def test_waiting_times_are_those_between_events_of_one_partition() -> None:
    # 1, 2 | 5: one second in the first partition, none in the second.
    assert ended(waits_of([[1 * SECOND, 2 * SECOND], [5 * SECOND]])) == ended(waits_of([[0, SECOND]]))
    assert list(ended(waits_of([[0, SECOND]])).values()) == [(1, SECOND)]
    assert ended(waits_of([[5], [7], []])) == {}
    # Events of one time wait for nothing, and are counted as well.
    assert ended(waits_of([[5, 5, 5]])) == {0: (2, 0)}


def test_each_partition_with_events_has_one_open_wait() -> None:
    waits = waits_of([[0, 3], [5, 6, 7], [], [8]], 10)
    assert sum(one.often for key, one in waits.items() if key.bin < 0) == 3


@given(st.integers(0, 2**32))
def test_counts_are_the_same_however_events_are_cut(seed: int) -> None:
    rng = random.Random(seed)
    partitions = [sorted(rng.choices(range(10 ** rng.randint(1, 12)), k=rng.randint(0, 9))) for _ in range(3)]
    cuts = [rng.randint(0, len(some)) for some in partitions]
    early = [some[:cut] for some, cut in zip(partitions, cuts, strict=True)]
    late = [some[cut:] for some, cut in zip(partitions, cuts, strict=True)]
    last, began = (np.array([some[at] if some else 0 for some in early], np.int64) for at in (-1, 0))
    times = np.array([time for some in late for time in some], np.int64)
    event_at = np.concatenate([[0], np.cumsum([len(some) for some in late])]).astype(np.int64)
    now = max((time for some in partitions for time in some), default=0) + rng.choice([0, 1, 10**6])
    before = max((time for some in early for time in some), default=0)
    rest = counted(times, event_at, last, np.array(cuts, np.int64), began, now)
    found = together([from_document(as_document(waits_of(early, before))), rest], now)
    assert found == waits_of(partitions, now) == from_document(as_document(found))
    gaps = naive.gaps(partitions)
    assert sum(one.often for key, one in found.items() if key.bin >= 0) == len(gaps)
    assert sum(one.sum for one in found.values()) == sum(gaps)


def test_bins_of_open_waits_stay_few_and_narrow_beside_their_age() -> None:
    now = 10**12
    waits = waits_of([[round(now - 10 ** (at / 500))] for at in range(6_000)], now)
    assert len(waits) < 32 * 40
    for key in waits:
        wide = 1 << (-1 - key.bin)
        assert wide == 1 or now - key.begin - wide >= 8 * wide


def test_open_waits_count_as_longer_than_they_are_yet() -> None:
    # Four waits of 1 s, one of 3 s, and two that are open for 2 s: of seven, four end at 1 s; of one, that at 3 s.
    partitions = [[0, 1, 2, 3, 4], [1, 4], [2], [2]]
    waits = waits_of([[time * SECOND for time in some] for some in partitions], 4 * SECOND)
    waiting = Waiting.of(waits, 4 * SECOND)
    exact = naive.waiting(naive.gaps(partitions), naive.open_waits(partitions, 4))
    assert exact == {1: Fraction(4, 7), 3: Fraction(3, 7)}
    assert waiting.weight[waiting.high <= 1.5 * SECOND].sum() == pytest.approx(4 / 7)
    # After 1.5 s all that is left is the wait of 3 s: its event comes within 2 s, and not within 1 s.
    clock = [[time * SECOND for time in some] for some in partitions]
    for ahead, chance in ((SECOND, 0.0), (2 * SECOND, 0.5)):
        told = within("a ; b", 0.5, clock, 4 * SECOND, ahead, quiet=3 * SECOND // 2)
        assert told == pytest.approx(chance, abs=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_waits_are_as_likely_as_by_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    partitions = [np.cumsum(rng.choices([2, 4, 6, 14], k=rng.randint(1, 6))).tolist() for _ in range(rng.randint(1, 9))]
    # An open wait is about as long as its bin says, and none is as long as one that ended.
    now = max(some[-1] for some in partitions) + 1
    waits = waits_of([[time * SECOND for time in some] for some in partitions], now * SECOND)
    exact = naive.waiting(naive.gaps(partitions), naive.open_waits(partitions, now))
    found = Waiting.of(waits, now * SECOND)
    for gap, chance in exact.items():
        near = (found.low < gap * SECOND * 1.05) & (found.high > gap * SECOND * 0.95)
        assert found.weight[near].sum() == pytest.approx(float(chance), abs=0.02)


def test_an_event_a_second_brings_ten_in_ten_seconds_and_no_more() -> None:
    clock = [list(range(0, 100 * SECOND, SECOND))]
    for quiet in (0, SECOND // 2):
        # Half a second after the last event: the tenth is due 9.5 seconds from now, the eleventh too late.
        assert within("a ; b", 0.1, clock, 99 * SECOND, 10 * SECOND, quiet=quiet) == pytest.approx(1 - 0.9**10)
    # Nothing was ever quiet for a second and more.
    assert within("a ; b", 0.1, clock, 99 * SECOND, 10 * SECOND, quiet=SECOND + 1) == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_deadlines_and_lookaheads_are_joint_as_by_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    # Each wait twice at least: a single one may be one of many that are about as long.
    gaps = [1] * 6 + 2 * rng.choices([1, 2, 3, 7], k=rng.randint(0, 3))
    rng.shuffle(gaps)
    times = np.cumsum([0, *gaps]).tolist()
    now, quiet, left = times[-1], rng.choice([0, 0, 1, 2, 6]), rng.randint(0, 9)
    exact = naive.waiting(gaps)
    clock = [[time * SECOND for time in times]]
    query = "a ; b @(t(b) - t(a) <= 9 SEC)"
    ahead = rng.randint(1, 9)
    found = within(query, 0.25, clock, now * SECOND, ahead * SECOND, quiet=quiet * SECOND, left=left * SECOND)
    wanted = naive.in_time(Fraction(1, 4), exact, quiet, left - quiet, ahead, 10)
    assert found == pytest.approx(float(wanted), abs=1e-6)
    steps = rng.randint(1, 6)
    found = within(query, 0.25, clock, now * SECOND, None, quiet=quiet * SECOND, left=left * SECOND, steps=steps)
    wanted = naive.in_time(Fraction(1, 4), exact, quiet, left - quiet, left, steps)
    assert found == pytest.approx(float(wanted), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_any_waits_come_nearly_as_by_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    # So far apart that each is a bin of its own, and none lies at the lookahead.
    kinds = [round(10 ** rng.uniform(3, 7)) for _ in range(3)]
    gaps = 2 * rng.choices(kinds, k=6)
    lookahead = round(10 ** rng.uniform(5, 7.5))
    exact = naive.waiting(gaps)
    if naive.reached(exact, 0, lookahead, 12):
        return
    times, quiet = np.cumsum([0, *gaps]).tolist(), rng.choice([0, round(0.3 * min(gaps)), round(0.7 * max(gaps))])
    found = within("a ; b", 0.25, [times], times[-1], lookahead, quiet=quiet)
    # Between what the definition says of a time that is a little shorter, and of one that is a little longer.
    low, high = (float(naive.in_time(Fraction(1, 4), exact, quiet, round(lookahead * f), round(lookahead * f), 12))
                 for f in (0.98, 1.02))  # fmt: skip
    assert low - 0.02 <= found <= high + 0.02


@pytest.mark.parametrize("ahead", [1, 1_000, 100_000])
def test_a_lookahead_narrower_than_a_bin_finds_what_may_come_in_it(ahead: int) -> None:
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.exponential(SECOND, 5_000)).astype(np.int64).tolist()
    for quiet in (SECOND // 3, SECOND, 3 * SECOND):
        # Of exponential waits the quiet time does not matter: so much is due as the lookahead is long.
        found = within("a ; b", 0.5, [times], times[-1], ahead, quiet=quiet)
        assert found == pytest.approx(0.5 * ahead / SECOND, rel=0.35)


def test_fast_and_slow_partitions_wait_each_at_its_pace() -> None:
    # 300 waits of 1 s, and 300 of 10 s: the pace is the octave of the mean so far.
    fast = [at * SECOND for at in range(301)]
    slow = [10 * at * SECOND for at in range(301)]
    waits = waits_of([fast, slow])
    assert paces(waits) == [0, *pace_of(np.array([SECOND, 10 * SECOND]), np.array([2, 2])).tolist()]
    for pace, wait in zip(paces(waits)[1:], (SECOND, 10 * SECOND), strict=True):
        waiting = Waiting.of(waits, slow[-1], pace)
        assert (waiting.low.min(), waiting.high.max()) == (wait, wait)
    # So few say nothing by themselves.
    assert paces(waits_of([fast[:LEAST_WAITS], slow[:LEAST_WAITS]])) == [0]


def test_more_events_than_may_be_looked_ahead_are_told() -> None:
    waits = waits_of([list(range(0, 100 * SECOND, SECOND))])
    waiting = Waiting.of(waits, 99 * SECOND)
    assert chance_of_more(waiting, 50 * SECOND, 20) == pytest.approx(1.0)
    assert chance_of_more(waiting, 50 * SECOND, 60) == pytest.approx(0.0, abs=1e-9)


def test_times_are_rounded_where_there_are_many() -> None:
    few = np.array([0, 1, 999_999])
    assert waiting_times.round_times(few).tolist() == few.tolist()
    many = np.arange(10**6, 10**6 + 5_000)
    rounded = waiting_times.round_times(many)
    assert len(np.unique(rounded)) < 1_024
    assert np.abs(rounded / many - 1).max() < 1 / 128
