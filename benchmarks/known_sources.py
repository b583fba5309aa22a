"""Sources of events whose answers are known, and what is forecast on them beside what comes true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.named_events import named_events
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts.grids import limits_of
from patternlake.udfs.machines.forecasts.passage import Forecaster, Waited
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.forecasts.trials import BINS, Trained, judge, told_by
from patternlake.udfs.machines.forecasts.waiting_times import counted
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.kernels.matching_primitives import matching_primitives
from patternlake.udfs.machines.kernels.running import Machines, nothing_held
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import Compiled, compiled
from patternlake.udfs.machines.query import Subscription, compile_subscription

LETTERS, SHARES = ("a", "b", "c", "d", "x"), (0.2, 0.2, 0.2, 0.2, 0.2)
SECOND = 1_000_000


@dataclass(frozen=True)
class Source:
    """Codes of letters, and times in microseconds; `begins` is where partitions begin, the first one at 0."""

    codes: IntArray
    times: IntArray
    letters: tuple[str, ...] = LETTERS
    begins: tuple[int, ...] = (0,)

    @property
    def event_at(self) -> IntArray:
        """Where the events of each partition begin, and where the last one's end."""
        return np.array([*self.begins, len(self.codes)], np.int64)


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


def made_of(*subscriptions: Subscription) -> Compiled:
    """Subscriptions, kept as the job `evaluate` keeps them."""
    return compiled(subscriptions, merge=False, dominate=False)


def asked(query: str) -> Subscription:
    """A subscription by its text."""
    return compile_subscription(parse(query))


def run(made: Compiled, source: Source, *, tracing: bool = False) -> Machines:
    """Let the partitions of a source take its events."""
    events = len(source.codes)
    at, who = matching_primitives(made.primitives, named_events(source.codes, list(source.letters)))
    weight = np.arange(events + 1, dtype=np.float64)
    stream = Stream(source.times, np.arange(events) + 1, at, who, np.empty((0, events), np.int64), weight)
    machines = Machines(made, tracing=tracing)
    machines.take(nothing_held(made, len(source.begins)), source.event_at, stream)
    return machines


def waited(source: Source, now: int | None = None) -> Waited:
    """The waits of the partitions of a source, up to a watermark, or its last event."""
    new = np.zeros(len(source.begins), np.int64)
    now = int(source.times.max()) if now is None else now
    return Waited(counted(source.times, source.event_at, new, new, new, now), now)


def forecaster_of(
    query: str, source: Source, lookahead: int, time: int | None = None, now: int | None = None
) -> Forecaster:
    """A subscription trained on a source up to a watermark, for a number of events or a time in microseconds."""
    made = made_of(asked(query))
    counts = counts_of(made, run(made, source).totals, 0)
    limits = limits_of(made.graph, made.ages, 0, made.subscriptions[0].master)
    return Forecaster(made.subscriptions[0], counts, lookahead, limits=limits, waited=waited(source, now), time=time)


def judged(
    subscriptions: Sequence[Subscription],
    trained: Source,
    tested: Source,
    lookaheads: Sequence[int],
    thresholds: Sequence[float] = (),
) -> NDArray[np.float64]:
    """What `trials.judge` makes of the forecasts of some subscriptions: float64[subscriptions, n, t + BINS + 1, 4]."""
    made, count = made_of(*subscriptions), len(subscriptions)
    group = Group(tuple(map(str, range(count))), made, 0.0)
    known = waited(trained)
    told = told_by(group, Trained(run(made, trained).totals, known.counts), known.now, max(lookaheads), [0.0] * count)
    found = np.zeros((count, len(lookaheads), len(thresholds) + BINS + 1, 4))
    judge(
        run(made, tested, tracing=True).trace,
        tested.event_at,
        tested.times,
        told,
        np.array(lookaheads),
        np.array(thresholds, np.float64),
        found,
    )
    return found


def calibration(query: str, trained: Source, tested: Source, lookaheads: Sequence[int]) -> list[tuple[float, float]]:
    """The mean forecast of all live rows at all events, and the share of them that comes true, by lookahead."""
    found = judged([asked(query)], trained, tested, lookaheads)
    return [(one[2] / one[0], one[1] / one[0]) for one in found[0, :, -1].tolist()]
