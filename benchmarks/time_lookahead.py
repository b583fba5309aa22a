"""Forecasts within a time beside what comes true, on partitions whose events are generated.

    python -m benchmarks.time_lookahead [--partitions N] [--quick]

Each source has N partitions of independent letters, one a second in the mean; what differs is how long a partition
waits for its next event. Up to a moment all events train, and all partial matches that are live then forecast: what
`predict_match` shows of `lookahead => '… SEC'`. Beside the mean forecast stands the share of them that is completed in
that time, by the events that follow. Partitions have been quiet for different times at that moment, so it is shown by
the third of the quietest ones as well.

- **renewal** sources keep the assumption: independent waiting times, regular, exponential, or of a heavy tail.
- **moods**: a partition changes between busy and idle hours, so that short waits follow short ones.
- **letters**: a b follows soon, other letters later: a wait that depends on what comes.
- **kinds**: half of the partitions have ten times as many events as the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from benchmarks.known_sources import LETTERS, SECOND, Source, asked, made_of, run
from benchmarks.tables import console
from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.forecasts.grids import limits_of
from patternlake.udfs.machines.forecasts.passage import Forecaster, Waited
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.forecasts.waiting_times import counted, pace_of
from patternlake.udfs.machines.graph.composite_states import CompositeState

Gaps = Callable[[np.random.Generator, IntArray], FloatArray]
"""Waiting times in seconds before events, by their letters: float64[n]."""

MOMENT, AHEAD = 60, (1, 3, 10)
"""Seconds: when is forecast, and how far."""
QUERIES = (("a ; b", "ab"), ("a ; b ; c", "abc"))


def moods(rng: np.random.Generator, letters: IntArray) -> FloatArray:
    """Busy and idle by turns, for 20 events in the mean."""
    changes = np.cumsum(rng.random(len(letters)) < 0.05) + rng.integers(2)
    return rng.exponential(np.where(changes % 2 == 0, 0.2, 1.8))


def letters_tell(rng: np.random.Generator, letters: IntArray) -> FloatArray:
    """A b comes after a fifth of the time that others take."""
    return rng.exponential(np.where(letters == LETTERS.index("b"), 0.24, 1.19))


def kinds(rng: np.random.Generator, letters: IntArray) -> FloatArray:
    """A partition is fast or slow."""
    return rng.exponential(rng.choice([0.55, 5.5]), len(letters))


SOURCES: dict[str, Gaps] = {
    "renewal, regular": lambda rng, letters: np.ones(len(letters)),
    "renewal, exponential": lambda rng, letters: rng.exponential(1.0, len(letters)),
    "renewal, heavy tail": lambda rng, letters: rng.lognormal(-1.125, 1.5, len(letters)),
    "moods": moods,
    "letters": letters_tell,
    "kinds": kinds,
}


def partitions(count: int, gaps: Gaps, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Letters and times of the events of each, to the end of what is looked ahead."""
    rng = np.random.default_rng(seed)
    end, most_late = (MOMENT + max(AHEAD)) * SECOND, 10 * SECOND
    found = []
    for _ in range(count):
        size = 64
        while True:
            letters = rng.integers(len(LETTERS), size=size)
            times = np.cumsum(gaps(rng, letters) * SECOND).astype(np.int64)
            if times[-1] > end + most_late:
                break
            size *= 2
        # Nobody began when we began to look.
        times = times - rng.integers(most_late)
        inside = (times >= 0) & (times <= end)
        found.append((letters[inside], times[inside]))
    return found


def follow(word: str, letters: IntArray) -> list[int]:
    """The place of each letter of a word in some events, each the first one behind that before; as far as they come."""
    found: list[int] = []
    for letter in word:
        rest = np.flatnonzero(letters[found[-1] + 1 if found else 0 :] == LETTERS.index(letter))
        if not len(rest):
            break
        found.append(int(rest[0]) + (found[-1] + 1 if found else 0))
    return found


def judge_forecasts(
    query: str, word: str, some: list[tuple[IntArray, IntArray]], ahead: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Of each live partial match at the moment the forecast, whether it came true, and how long it was quiet."""
    known = [(letters[times <= MOMENT * SECOND], times[times <= MOMENT * SECOND]) for letters, times in some]
    known_times = np.concatenate([times for _, times in known])
    event_at = np.concatenate([[0], np.cumsum([len(times) for _, times in known])]).astype(np.int64)
    source = Source(
        np.concatenate([letters for letters, _ in known]), known_times, LETTERS, tuple(event_at[:-1].tolist())
    )
    made, now, new = made_of(asked(query)), MOMENT * SECOND, np.zeros(len(known), np.int64)
    waited = Waited(counted(known_times, event_at, new, new, new, now), now)
    counts = counts_of(made, run(made, source).totals, 0)
    limits = limits_of(made.graph, made.ages, 0, made.subscriptions[0].master)
    passage = Forecaster(made.subscriptions[0], counts, 1, limits=limits, waited=waited, time=ahead * SECOND).passage
    rows = []
    for (letters, times), (past, past_times) in zip(some, known, strict=True):
        inside = (times > now) & (times <= now + ahead * SECOND)
        for done in range(1, len(word)):
            # A live row has all its letters in order; the first that have them are as good as any.
            if len(follow(word[:done], past)) == done:
                hit = len(follow(word[done:], letters[inside])) == len(word) - done
                rows.append((done, now - int(past_times[-1]), past_times[-1] - past_times[0], len(past_times), hit))
    done, quiet, span, events, hits = np.array(rows, np.int64).T
    pace = pace_of(span, events)
    told = np.zeros(len(rows))
    for step, how_fast in set(zip(done.tolist(), pace.tolist(), strict=True)):
        mine = (done == step) & (pace == how_fast)
        state, none = CompositeState(step), np.zeros(int(mine.sum()), np.int64)
        told[mine] = passage.within(state, none, quiet[mine], how_fast, last=1)[:, 0]
    return told, hits.astype(np.float64), quiet


def main(
    partitions_: Annotated[int, typer.Option("--partitions", help="of each source")] = 20_000,
    quick: Annotated[bool, typer.Option("--quick", help="1,000 partitions")] = False,
) -> None:
    """Print what is forecast beside what comes true."""
    count = 1_000 if quick else partitions_
    table = Table(title=f"{count:,} partitions a source: forecast / came true, of the quietest third in parentheses")
    table.add_column("source")
    table.add_column("subscription")
    for ahead in AHEAD:
        table.add_column(f"within {ahead} s", justify="right")
    table.add_column("apart", justify="right")
    for title, gaps in SOURCES.items():
        some = partitions(count, gaps, 7)
        for query, word in QUERIES:
            cells, apart = [], 0.0
            for ahead in AHEAD:
                told, true, quiet = judge_forecasts(query, word, some, ahead)
                last = quiet >= np.quantile(quiet, 2 / 3)
                apart = max(apart, abs(float(told.mean() - true.mean())))
                cells.append(
                    f"{told.mean():.3f} / {true.mean():.3f} ({told[last].mean():.3f} / {true[last].mean():.3f})"
                )
            table.add_row(title, query, *cells, f"{apart:.3f}")
    console().print(table)


if __name__ == "__main__":
    typer.run(main)
