"""Sources of events whose answers are known, and what is forecast on them beside what comes true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts.passage import Forecaster
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.forecasts.trials import BINS, judge, told_by
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.kernels.matching_primitives import matching_primitives
from patternlake.udfs.machines.kernels.running import Machines, nothing_held
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import Compiled, IntArray, compiled
from patternlake.udfs.machines.query import compile_subscription

LETTERS, SHARES = ("a", "b", "c", "d", "x"), (0.2, 0.2, 0.2, 0.2, 0.2)
SECOND = 1_000_000


@dataclass(frozen=True)
class Source:
    """Codes of letters, and times in microseconds."""

    codes: IntArray
    times: IntArray


def independent(events: int, seed: int, *, irregular: bool = False) -> Source:
    """Independent letters, one a second; or `irregular`: one a second in the mean, times between them exponential."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(LETTERS), events, p=SHARES).astype(np.int64)
    gaps = rng.exponential(SECOND, events) if irregular else np.full(events, SECOND)
    return Source(codes, np.cumsum(gaps).astype(np.int64))


def markov(events: int, seed: int) -> Source:
    """One letter a second, each of which depends on the one before: it mostly stays, or goes on to the next one."""
    rng = np.random.default_rng(seed)
    kinds = len(LETTERS)
    chances = np.full((kinds, kinds), 0.1)
    chances[np.arange(kinds), np.arange(kinds)] += 0.2
    chances[np.arange(kinds), (np.arange(kinds) + 1) % kinds] += 0.3
    limits = np.cumsum(chances, axis=1)
    drawn = rng.random(events)
    codes = np.zeros(events, np.int64)
    for at in range(1, events):
        codes[at] = min(kinds - 1, np.searchsorted(limits[codes[at - 1]], drawn[at]))
    return Source(codes, np.arange(events, dtype=np.int64) * SECOND)


def made_of(query: str) -> Compiled:
    """A subscription, kept as the job `evaluate` keeps it."""
    return compiled([compile_subscription(parse(query))], merge=False, dominate=False)


def run(made: Compiled, source: Source, *, tracing: bool = False) -> Machines:
    """Let one partition take the events of a source."""
    events = len(source.codes)
    at, who = matching_primitives(made.primitives, source.codes, LETTERS, {})
    weight = np.arange(events + 1, dtype=np.float64)
    stream = Stream(source.times, np.arange(events) + 1, at, who, np.empty((0, events), np.int64), weight)
    machines = Machines(made, tracing=tracing)
    machines.take(nothing_held(made, 1), np.array([0, events]), stream)
    return machines


def forecaster_of(query: str, source: Source, lookahead: int) -> Forecaster:
    """A subscription trained on a source."""
    made = made_of(query)
    return Forecaster(made.subscriptions[0], counts_of(made, run(made, source).totals, 0), lookahead)


def calibration(query: str, trained: Source, tested: Source, lookaheads: Sequence[int]) -> list[tuple[float, float]]:
    """The mean forecast of all live rows at all events, and the share of them that comes true, by lookahead."""
    made = made_of(query)
    group = Group((query,), made, 0.0)
    told = told_by(group, run(made, trained).totals, max(lookaheads), [0.0])
    judged = np.zeros((1, len(lookaheads), BINS + 1, 4))
    judge(
        run(made, tested, tracing=True).trace,
        np.array([0, len(tested.codes)]),
        tested.times,
        made.tables,
        told,
        np.array(lookaheads),
        np.empty(0),
        judged,
    )
    return [(one[2] / one[0], one[1] / one[0]) for one in judged[0, :, -1].tolist()]
