"""Forecasts on sources whose answers are known: what is forecast is what comes true."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from unit.machines.forecasters import probability, spot

from benchmarks.known_sources import LETTERS, SECOND, SHARES, Source, calibration, forecaster_of, independent, markov
from patternlake.udfs.machines.graph.composite_states import CompositeState

LOOKAHEADS = [1, 2, 5, 10, 20]
SHARE = dict(zip(LETTERS, SHARES, strict=True))
DONE = "done"
State = Any
"""What a follower knows of a row: numbers, or `DONE`; None: nothing can complete it."""
Follow = Callable[[State, str], State]


def within(follow: Follow, start: State, n: int) -> float:
    """The probability that independent letters, one a second, complete a row within n events."""

    @cache
    def chance(state: State, steps: int) -> float:
        if state == DONE or state is None or steps == 0:
            return float(state == DONE)
        return sum(share * chance(follow(state, letter), steps - 1) for letter, share in SHARE.items())

    return chance(start, n)


Rest = Callable[[State], dict[str, int]]
"""What a row's state has left: as `forecasters.spot` takes it."""


def in_time(limit: int) -> Rest:
    """Less than so many seconds, of which some have passed; the last figure of a state, or the state, is those."""
    return lambda state: {"left": (limit - (state[-1] if isinstance(state, tuple) else state)) * SECOND - 1}


def nothing(_: State) -> dict[str, int]:
    """Nothing is pending."""
    return {}


def before(limit: int) -> Follow:
    """``a ; b`` with b less than so many seconds after a: the state is the time since a."""

    def follow(since: int, letter: str) -> State:
        since += 1
        return None if since >= limit else DONE if letter == "b" else since

    return follow


def after(limit: int) -> Follow:
    """``a ; b`` with b more than so many seconds after a."""

    def follow(since: int, letter: str) -> State:
        return DONE if letter == "b" and since + 1 > limit else min(since + 1, limit)

    return follow


def third_before(state: tuple[int, int], letter: str) -> State:
    """``a ; b ; c`` with c less than 6 seconds after a: what came, and the time since a."""
    came, since = state
    since += 1
    if since >= 6:
        return None
    if came == 2 and letter == "c":
        return DONE
    return (2, since) if letter == "b" else (came, since)


def third_near(state: tuple[bool, int | None], letter: str) -> State:
    """``a ; b ; c`` with c less than 4 seconds after b: whether the row has no b, and the time since its last one."""
    open_, since = state
    since = None if since is None or since + 1 >= 4 else since + 1
    if letter == "c" and since is not None:
        return DONE
    if letter == "b" and open_:
        since = 0
    return (open_, since) if open_ or since is not None else None


def next_to(state: tuple[bool, int], letter: str) -> State:
    """``a ; b, c`` within 8 events: whether b was the last event, and the events since a."""
    ready, since = state
    since += 1
    if since >= 8:
        return None
    return DONE if ready and letter == "c" else (letter == "b", since)


def one_of(waits: bool) -> Follow:
    """``a , ((b ; c) | d)``, or with ``;`` behind a where a waits on: whether a waits, and whether b came."""

    def follow(state: tuple[bool, bool], letter: str) -> State:
        waiting, came = state
        if (waiting and letter == "d") or (came and letter == "c"):
            return DONE
        came = came or (waiting and letter == "b")
        return (waits and waiting, came) if came or (waits and waiting) else None

    return follow


def both(state: frozenset[str], letter: str) -> State:
    """``b & c``: which of them came."""
    state = state | ({letter} & {"b", "c"})
    return DONE if len(state) == 2 else state


N1, N2, INSIDE = CompositeState(1), CompositeState(2), CompositeState(1, 0, (CompositeState(1),))
ONE_SIDE = CompositeState(1, -1, (CompositeState(1), CompositeState(0)))
CASES: list[tuple[str, Follow, Rest, dict[CompositeState, list[State]]]] = [
    ("a ; b @(t(b) - t(a) < 3 SEC)", before(3), in_time(3), {N1: [0, 1, 2]}),
    ("a ; b @(t(b) - t(a) < 12 SEC)", before(12), in_time(12), {N1: [*range(12)]}),
    ("a ; b WITHIN 5 SEC", before(5), in_time(5), {N1: [*range(5)]}),
    ("a ; b WITHIN 5 EVENTS", before(5), lambda since: {"events": 4 - since}, {N1: [*range(4)]}),
    ("a ; b @(t(b) - t(a) > 3 SEC)", after(3), lambda since: {"closed": (3 - since) * SECOND + 1},
     {N1: [0, 1, 2]}),
    ("a ; b ; c @(t(c) - t(a) < 6 SEC)", third_before, in_time(6),
     {N1: [(1, since) for since in range(5)], N2: [(2, since) for since in range(1, 6)]}),
    ("a ; b ; c @(t(c) - t(b) < 4 SEC)", third_near, lambda state: {} if state[0] else in_time(4)(state),
     {N1: [(True, None)], N2: [(False, since) for since in range(4)]}),
    ("a ; b, c WITHIN 8 EVENTS", next_to, lambda state: {"events": 6 - state[1]},
     {N1: [(False, since) for since in range(6)]}),
    ("a , (b | d)", lambda state, letter: DONE if letter in "bd" else None, nothing, {N1: [0]}),
    ("a , ((b ; c) | d)", lambda state, letter: one_of(False)(state, letter) if state[1] or letter in "bd" else None,
     nothing, {N1: [(True, False)], INSIDE: [(False, True)]}),
    ("a ; ((b ; c) | d)", one_of(True), nothing, {N1: [(True, False)], INSIDE: [(False, True)]}),
    ("a ; (b & c)", both, nothing, {N1: [frozenset()], ONE_SIDE: [frozenset("b")]}),
]  # fmt: skip


@pytest.mark.parametrize(("query", "follow", "rest", "rows"), CASES, ids=[case[0] for case in CASES])
def test_forecasts_are_the_exact_answers(
    query: str, follow: Follow, rest: Rest, rows: dict[CompositeState, list[State]]
) -> None:
    forecaster = forecaster_of(query, independent(60_000, 1), LOOKAHEADS[-1])
    for composite_state, states in rows.items():
        for state in states:
            at_spot = spot(forecaster, composite_state, **rest(state))
            told = probability(forecaster, composite_state, at_spot)[LOOKAHEADS]
            assert told == pytest.approx([within(follow, state, n) for n in LOOKAHEADS], abs=0.025), state


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_quiet_time_counts_against_the_deadline(limit: int) -> None:
    # A letter a second in the mean, and a fifth of them b: after a quiet time, what is left of the limit is due alike.
    source = independent(60_000, 2, irregular=True)
    query, left = f"a ; b WITHIN {limit} SEC", limit * SECOND - 1
    for time in (None, 4 * SECOND, SECOND // 2):
        forecaster = forecaster_of(query, source, 10, time)
        at_spot = spot(forecaster, N1, left)
        for quiet in (0.0, 0.5 * limit, 0.975 * limit):
            told = probability(forecaster, N1, at_spot, round(quiet * SECOND), left=left, last=1)[-1]
            due = min(limit - quiet, 10.0 if time is None else time / SECOND)
            # Of what is next to its deadline there are few cases to learn from.
            assert told == pytest.approx(1 - exp(-0.2 * due), rel=0.06, abs=0.004), (time, quiet)


QUIET_SOURCES = {"exponential": lambda rng, n: rng.exponential(1.0, n), "heavy tail": lambda rng, n: rng.lognormal(
    -1.125, 1.5, n)}  # fmt: skip


@pytest.mark.parametrize("gaps", QUIET_SOURCES)
@pytest.mark.parametrize("limit", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)])
def test_as_many_forecasts_of_quiet_partitions_come_true_as_they_say(gaps: str, limit: int) -> None:
    # At second 30, in all partitions: what is live forecasts, and what follows tells.
    rng, count, moment = np.random.default_rng(limit), 3_000, 30 * SECOND
    times = np.cumsum(QUIET_SOURCES[gaps](rng, count * 400).reshape(count, 400) * SECOND, axis=1).astype(np.int64)
    letters = rng.integers(len(LETTERS), size=times.shape)
    known = times <= moment
    begins = np.concatenate([[0], np.cumsum(known.sum(axis=1))[:-1]])
    kept = known.any(axis=1)
    source = Source(letters[known], times[known], LETTERS, tuple(begins[kept].tolist()))
    for time in (4 * SECOND, SECOND // 2, None):
        forecaster = forecaster_of(f"a ; b WITHIN {limit} SEC", source, 10, time, now=moment)
        told, true = [], []
        for own, at in zip(letters[kept], times[kept], strict=True):
            last = int((at <= moment).sum())
            live = [int(one) for one in at[:last][own[:last] == 0] if one + limit * SECOND > moment]
            # The last a does all that those before it can.
            if not live:
                continue
            left, quiet = live[-1] + limit * SECOND - 1 - int(at[last - 1]), moment - int(at[last - 1])
            at_spot = spot(forecaster, N1, left)
            told.append(probability(forecaster, N1, at_spot, quiet, left=left, last=1)[-1])
            until = min(live[-1] + limit * SECOND - 1, moment + time if time else at[last + 9])
            true.append(bool((own[last:][at[last:] <= until] == 1).any()))
        assert len(told) > 300
        spread = sqrt(np.mean(true) * (1 - np.mean(true)) / len(true))
        assert np.mean(told) == pytest.approx(np.mean(true), abs=3 * spread + 0.005), time


SOURCES: dict[str, Callable[[int, int], Source]] = {
    "independent letters": independent,
    "irregular times": lambda events, seed: independent(events, seed, irregular=True),
}
QUERIES = [
    "a ; b @(t(b) - t(a) < 3 SEC)",
    "a ; b @(t(b) - t(a) < 20 SEC)",
    "a ; b ; c @(t(c) - t(a) < 6 SEC)",
    "a ; b ; c @(t(c) - t(b) < 3 SEC)",
    "a ; b @(t(b) - t(a) > 2 SEC) WITHIN 8 SEC",
    "a ; b, c WITHIN 10 EVENTS",
    "a, b @(t(b) - t(a) < 2 SEC)",
    "a , ((b ; c) | d)",
    "a ; (b & c @(t(c) - t(b) < 4 SEC))",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("source", SOURCES)
def test_as_many_forecasts_come_true_as_they_say(source: str, query: str) -> None:
    found = calibration(query, SOURCES[source](40_000, 1), SOURCES[source](40_000, 2), LOOKAHEADS)
    for lookahead, (told, true) in zip(LOOKAHEADS, found, strict=True):
        assert told == pytest.approx(true, abs=0.02), lookahead


@pytest.mark.parametrize(("query", "apart"), [(QUERIES[0], 0.04), (QUERIES[2], 0.03), (QUERIES[6], 0.01)])
def test_what_letters_remember_of_each_other_is_told_as_far_as_states_do(query: str, apart: float) -> None:
    # The chain knows the age of an instance, not the last letter, on which the next one depends.
    found = calibration(query, markov(40_000, 1), markov(40_000, 2), LOOKAHEADS)
    for lookahead, (told, true) in zip(LOOKAHEADS, found, strict=True):
        assert told == pytest.approx(true, abs=apart), lookahead
