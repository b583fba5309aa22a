"""Figures 10 and 11 of Muthusamy et al. 2010 as tables: precision by ratio and drift, and the size of the model.

    python -m benchmarks.forecast_figures [--quick]

**Figure 10**: subscriptions and streams by the paper's generator (`machine_subscriptions`). (a): trained with as many
partial matches as full ones, tested with ever more partial ones. (b), (c): trained on partial matches of uniform and of
Gaussian length, tested on those of uniform length.

**Figure 11**: five hot days in a row, of cities whose days are generated (`temperatures`), beside a Markov model that
knows all histories of five days in four classes. The first half of the years trains, the second tests.

A forecast is one of a live row at an event; `precision` is the share of those above a threshold that came true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from benchmarks import known_sources
from benchmarks.known_sources import SECOND, Source, judged, made_of, run
from benchmarks.machine_subscriptions import GAUSSIAN, UNIFORM, Asked, Workload, asked, stream
from benchmarks.measuring import seconds
from benchmarks.tables import console
from benchmarks.temperatures import DAYS_OF_WAVE, HOT, STATES, FullModel, cities, source
from patternlake.udfs.machines.forecasts.totals import counts_of

THRESHOLDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
AHEAD_10, AHEAD_11 = (5, 10, 20, 50), (1, 2, 3, 4)
RATIOS = (1, 2, 3, 4)
HEAT_WAVE = known_sources.asked(" , ".join(f"hot AS h{day}" for day in range(1, DAYS_OF_WAVE + 1)))


def print_forecasts(title: str, rows: Sequence[tuple[str, NDArray[np.float64]]]) -> None:
    """Print forecasts above thresholds and how many came true: of each row float64[thresholds, 2]."""
    table = Table(title=f"{title}: precision (true / false), by threshold")
    table.add_column("")
    for threshold in THRESHOLDS:
        table.add_column(f"> {threshold:g}", justify="right")
    for name, counts in rows:
        cells = []
        for forecasts, hits in counts.tolist():
            told = f"{hits / forecasts:.3f} " if forecasts else ""
            cells.append(f"{told}({hits:,.0f} / {forecasts - hits:,.0f})")
        table.add_row(name, *cells)
    console().print(table)


def of_all(subscriptions: Asked, trained: Source, tested: Source) -> NDArray[np.float64]:
    """float64[lookaheads, thresholds, 2]: forecasts above each threshold and how many came true, of all together."""
    found = judged(subscriptions.compiled("e"), trained, tested, AHEAD_10, THRESHOLDS)
    return np.asarray(found[:, :, : len(THRESHOLDS), :2].sum(axis=0))


def events_of(subscriptions: Asked, events: int, seed: int, *, ratio: int = 1, partial: str = UNIFORM) -> Source:
    """A stream with so many partial matches for each full one, of lengths so distributed."""
    workload = replace(subscriptions.workload, partial=partial)
    codes = stream(replace(subscriptions, workload=workload), events, np.random.default_rng(seed), partial=ratio)
    letters = (*(f"e{number}" for number in range(workload.pool)), "irrelevant")
    return Source(codes, np.arange(events, dtype=np.int64) * SECOND, letters)


def figure_10(count: int, events: int) -> None:
    """Print precision by the ratio of full and partial matches, and by drift."""
    subscriptions = asked(Workload(subscriptions=count), np.random.default_rng(10))
    print(f"{count} subscriptions; {events:,} events train, as many test", flush=True)
    trained = events_of(subscriptions, events, 1)
    rows = []
    for ratio in RATIOS:
        found = of_all(subscriptions, trained, events_of(subscriptions, events, 2, ratio=ratio))
        rows += [(f"1 : {ratio}, within {n}", each) for n, each in zip(AHEAD_10, found, strict=True)]
    print_forecasts("Fig. 10 (a), full : partial matches of the test", rows)
    tested = events_of(subscriptions, events, 3)
    for figure, partial in (("b", UNIFORM), ("c", GAUSSIAN)):
        found = of_all(subscriptions, events_of(subscriptions, events, 4, partial=partial), tested)
        title = f"Fig. 10 ({figure}), trained on partial matches of {partial} length, tested on uniform"
        print_forecasts(title, [(f"within {n}", each) for n, each in zip(AHEAD_10, found, strict=True)])


def figure_11(count: int, years: int) -> None:
    """Print precision and the model's size, beside those of the full model."""
    classes = cities(count, 2 * years, 11)
    train, test = classes[:, : 365 * years], classes[:, 365 * years :]
    print(f"{count} cities; {train.size:,} days train, {test.size:,} test", flush=True)
    made = judged([HEAT_WAVE], source(train), source(test), AHEAD_11, THRESHOLDS)[0, :, : len(THRESHOLDS), :2]
    full = FullModel.trained(train)
    for figure, found in (("a-c, ours", made), ("d-f, full", full.judged(test, AHEAD_11, THRESHOLDS))):
        print_forecasts(f"Fig. 11 ({figure})", [(f"within {n}", each) for n, each in zip(AHEAD_11, found, strict=True)])
    compiled = made_of(HEAT_WAVE)
    moves = counts_of(compiled, run(compiled, source(train)).totals, 0)
    table = Table(title="Fig. 11, the model's size")
    for name in ("", "states", "numbers", "seconds to train", "seconds to train and judge"):
        table.add_column(name, justify="right")
    days = source(train), source(test)
    ours = _time(lambda: run(compiled, days[0]), lambda: judged([HEAT_WAVE], *days, AHEAD_11, THRESHOLDS))
    theirs = _time(
        lambda: FullModel.trained(train), lambda: FullModel.trained(train).judged(test, AHEAD_11, THRESHOLDS)
    )
    # Of the final state nothing is kept.
    table.add_row("ours", str(len(moves)), str(sum(map(len, moves.values()))), *ours)
    table.add_row("full", f"{STATES:,}", f"{STATES * (HOT + 1):,}", *theirs)
    console().print(table)


def _time(*actions: Callable[[], Any]) -> list[str]:
    return [f"{min(seconds(action) for _ in range(3)):.3f}" for action in actions]


def main(
    quick: Annotated[bool, typer.Option("--quick", help="few subscriptions and cities: does it work?")] = False,
) -> None:
    """Print the tables."""
    figure_10(10 if quick else 100, 20_000 if quick else 500_000)
    figure_11(20 if quick else 324, 2 if quick else 10)


if __name__ == "__main__":
    typer.run(main)
