"""Forecasts on streams whose answers are known: independent letters, so that every wait has an exact distribution.

    python -m benchmarks.forecasts [--events N] [--quick]

Each subscription is trained on N events, and judged on N others by `trials.judge`: of all forecasts that a state makes,
how many come true. *trained*: greatest difference, over lookaheads 1 to 20, of the probability that the trained machine
forecasts from the exact one; *judged*: of the share that came true from the exact one. Both shrink with the square root
of N. The exact ones are powers of the chain that the letters' shares give:

- `a ; b` and `a ; b ; c`: each state waits for its letter;
- `a ; b, c`: behind b either c comes, or b again, or the wait for b begins anew;
- `a, b, c`: what follows is the next letter or it is over.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from benchmarks.tables import console
from patternlake.udfs.language.parser import parse
from patternlake.udfs.machines.cuts import Cut
from patternlake.udfs.machines.forecasting import Forecaster
from patternlake.udfs.machines.running import Machines, counts_of, nothing_held
from patternlake.udfs.machines.stream import Stream
from patternlake.udfs.machines.subscription import compile_subscription
from patternlake.udfs.machines.tables import Compiled, IntArray, compiled
from patternlake.udfs.machines.takers import takers
from patternlake.udfs.machines.trials import judge

LETTERS, SHARES = ("a", "b", "c", "x"), (0.1, 0.2, 0.05, 0.65)
LOOKAHEADS = np.arange(1, 21)
A, B, C, _ = SHARES
CHAINS = {
    "a ; b": [[1 - A, A, 0], [0, 1 - B, B], [0, 0, 0]],
    "a ; b ; c": [[1 - A, A, 0, 0], [0, 1 - B, B, 0], [0, 0, 1 - C, C], [0, 0, 0, 0]],
    "a ; b, c": [[1 - A, A, 0, 0], [0, 1 - B, B, 0], [0, 1 - B - C, B, C], [0, 0, 0, 0]],
    "a, b, c": [[1 - A, A, 0, 0], [0, 0, B, 0], [0, 0, 0, C], [0, 0, 0, 0]],
}
"""Probabilities of moves between the states N0, N1, …"""


def exact(query: str) -> np.ndarray:
    """float64[states, lookaheads]: probability to be matched within so many events."""
    matrix = np.array(CHAINS[query])
    passage = np.eye(len(matrix))[:, -1]
    found = []
    for _ in LOOKAHEADS:
        passage = matrix @ passage
        found.append(passage)
    return np.cumsum(found, axis=0).T


def letters(events: int, seed: int) -> IntArray:
    """Codes of independent letters."""
    return np.random.default_rng(seed).choice(len(LETTERS), events, p=SHARES).astype(np.int64)


def run(made: Compiled, codes: IntArray, *, tracing: bool) -> Machines:
    """Let one partition take a letter a second."""
    numbers = np.arange(len(codes))
    at, who = takers(made.primitives, codes, LETTERS, {})
    weight = np.arange(len(codes) + 1, dtype=np.float64)
    stream = Stream(numbers * 1_000_000, numbers + 1, at, who, np.empty((0, len(codes)), np.int64), weight)
    machines = Machines(made, tracing=tracing)
    machines.take(nothing_held(made, 1), np.array([0, len(codes)]), stream)
    return machines


def differences(query: str, events: int) -> tuple[float, float]:
    """The greatest differences from the exact answer: of trained forecasts, and of what came true."""
    made = compiled([compile_subscription(parse(query))], merge=False, dominate=False)
    trained = run(made, letters(events, 1), tracing=False)
    forecaster = Forecaster(made.subscriptions[0], counts_of(made, trained.totals, 0), int(LOOKAHEADS[-1]))
    tested = run(made, letters(events, 2), tracing=True)
    judged = np.zeros((2, len(made.graph.waits), len(LOOKAHEADS)))
    judge(tested.trace, np.array([0, events]), LOOKAHEADS, judged)
    wanted = exact(query)
    of_trained, of_judged = [0.0], [0.0]
    for state in range(1, len(wanted) - 1):
        told = forecaster.probability(Cut(state))[LOOKAHEADS]
        number = made.graph.states[0][Cut(state)]
        share = judged[1, number] / judged[0, number]
        of_trained.append(float(np.abs(told - wanted[state]).max()))
        of_judged.append(float(np.abs(share - wanted[state]).max()))
    return max(of_trained), max(of_judged)


def main(
    events: Annotated[int, typer.Option(help="events to train on, and to judge by")] = 1_000_000,
    quick: Annotated[bool, typer.Option("--quick", help="20,000 events")] = False,
) -> None:
    """Print the greatest differences."""
    size = 20_000 if quick else events
    table = Table(title=f"Forecasts on {size:,} independent letters, lookaheads 1 to 20: greatest difference")
    for name in ("subscription", "trained", "judged"):
        table.add_column(name, justify="left" if name == "subscription" else "right")
    for query in CHAINS:
        trained, judged = differences(query, size)
        table.add_row(query, f"{trained:.5f}", f"{judged:.5f}")
    console().print(table)


if __name__ == "__main__":
    typer.run(main)
