"""Generated twins of the logs of the BPI challenges 2020 and 2017, and the queries that the thesis asks of them.

The logs themselves are to be had from 4TU alone, and no package holds them, so these have their shape: 36,796 events of
19 names in traces of 5.3 events, 1,202,267 of 26 in traces of 38. A process is a random Markov chain over the names,
with a start and an end; traces begin at random moments, and are long beside the time between two, so that they
overlap. Events are in the order of their times, as the thesis orders them.

A query is of the thesis' kind, the only one that both programs there take: a sequence without other operators, skip
till next. It is drawn from the log: names of a random trace at random places, in order; of a trace that is shorter than
the query, the rest are random names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

MOST_NAMES = 20
"""Of a query: those of the thesis' Figure 5.3; its tables go to 8."""
_START = 1_577_836_800_000_000
_SECOND = 1_000_000


@dataclass(frozen=True)
class Log:
    """The shape of a log: events, distinct names, mean events of a trace, and the seed of its twin."""

    name: str
    events: int
    names: int
    per_trace: float
    seed: int


LOGS = (Log("BPI 2020", 36_796, 19, 5.3, 2020), Log("BPI 2017", 1_202_267, 26, 38.0, 2017))


def twin(log: Log) -> pd.DataFrame:
    """Events of a generated log in the order of their times: time (microseconds), name, trace, position."""
    rng = np.random.default_rng(log.seed)
    follows = rng.dirichlet(np.full(log.names, 0.3), log.names)
    limits = np.cumsum(follows, axis=1)
    begin = np.cumsum(rng.dirichlet(np.full(log.names, 0.3)))
    # Every trace has an event, and goes on with the same chance after each.
    lengths = rng.geometric(1 / log.per_trace, int(2 * log.events / log.per_trace) + 10)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), log.events)) + 1]
    trace = np.repeat(np.arange(len(lengths)), lengths)[: log.events]
    place = np.arange(len(trace)) - np.searchsorted(trace, trace)
    names = np.zeros(len(trace), np.int64)
    drawn = rng.random(len(trace))
    at = np.flatnonzero(place == 0)
    names[at] = np.searchsorted(begin, drawn[at]).clip(max=log.names - 1)
    step = 0
    while len(at := np.flatnonzero(place == (step := step + 1))):
        names[at] = (limits[names[at - 1]] < drawn[at, None]).sum(axis=1).clip(max=log.names - 1)
    # A trace's events are a day apart in the mean, and some hundreds of traces are open at a time.
    starts = np.sort(rng.random(len(lengths))) * len(lengths) * log.per_trace * 86_400 / 300
    gaps = np.where(place == 0, 0.0, rng.exponential(86_400, len(trace)))
    passed = np.cumsum(gaps)
    times = starts[trace] + passed - passed[np.searchsorted(trace, trace)]
    order = np.argsort(times, kind="stable")
    return pd.DataFrame(
        {
            "at": (_START + times[order] * _SECOND).astype(np.int64) // 1000 * 1000,
            "name": np.array([f"act{number}" for number in range(log.names)])[names[order]],
            "trace": np.array([f"t{number}" for number in trace[order]]),
            "position": np.arange(1, len(trace) + 1),
        }
    )


def queries(events: pd.DataFrame, count: int, seed: int) -> dict[int, list[list[str]]]:
    """For each length so many queries, as names in order."""
    rng = np.random.default_rng(seed)
    by_trace = [group.to_numpy() for _, group in events.groupby("trace")["name"]]
    known = sorted(set(events["name"]))
    asked = {}
    for length in range(2, MOST_NAMES + 1):
        found = []
        for _ in range(count):
            names = by_trace[rng.integers(len(by_trace))]
            chosen = np.sort(rng.choice(len(names), min(length, len(names)), replace=False))
            found.append([*names[chosen], *rng.choice(known, length - len(chosen))])
        asked[length] = found
    return asked
