"""Forecasts beside what comes true, on sources of events whose answers are known.

    python -m benchmarks.forecasts [--events N] [--quick]

Each subscription is trained on N events of a source, and judged on N others by `trials.judge`, as the job `evaluate`
judges: of all live rows after all events, the mean of what is forecast, and the share that comes true, within so many
events. The sources are independent letters, one a second or at irregular times, and letters of which each depends on
the one before. Where the letters are independent the two agree but for chance, which shrinks with the square root of N.
A source that remembers is another matter: a chain knows how long an instance has waited, not which letter came last.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from benchmarks.known_sources import calibration, independent, markov
from benchmarks.tables import console

LOOKAHEADS = (1, 2, 5, 10, 20)
QUERIES = (
    "a ; b",
    "a ; b ; c",
    "a ; b, c",
    "a, b, c",
    "a ; b @(t(b) - t(a) < 3 SEC)",
    "a ; b @(t(b) - t(a) < 20 SEC)",
    "a ; b @(t(b) - t(a) > 2 SEC) WITHIN 8 SEC",
    "a ; b WITHIN 6 EVENTS",
    "a ; b, c WITHIN 10 EVENTS",
    "a ; b ; c @(t(c) - t(a) < 6 SEC)",
    "a ; b ; c @(t(c) - t(b) < 3 SEC)",
    "a , (b | d)",
    "a , ((b ; c) | d)",
    "a ; ((b ; c) | d)",
    "a ; (b & c)",
    "a ; (b & c @(t(c) - t(b) < 4 SEC))",
)


def main(
    events: Annotated[int, typer.Option(help="events to train on, and to judge by")] = 300_000,
    quick: Annotated[bool, typer.Option("--quick", help="20,000 events")] = False,
) -> None:
    """Print what is forecast beside what comes true."""
    size = 20_000 if quick else events
    sources = {
        "independent letters, one a second": [independent(size, seed) for seed in (1, 2)],
        "independent letters at irregular times": [independent(size, seed, irregular=True) for seed in (1, 2)],
        "letters that depend on the one before": [markov(size, seed) for seed in (1, 2)],
    }
    for title, (trained, tested) in sources.items():
        table = Table(title=f"{size:,} {title}: forecast / came true, within so many events")
        table.add_column("subscription")
        for lookahead in LOOKAHEADS:
            table.add_column(str(lookahead), justify="right")
        table.add_column("apart", justify="right")
        for query in QUERIES:
            found = calibration(query, trained, tested, LOOKAHEADS)
            shown = [f"{told:.3f} / {true:.3f}" for told, true in found]
            table.add_row(query, *shown, f"{max(abs(told - true) for told, true in found):.3f}")
        console().print(table)


if __name__ == "__main__":
    typer.run(main)
