"""What several observations of one condition say together, from the definition: each judgement has a weight.

A judgement weighs 1 where it is of the same moment as the newest one, half of that a day earlier, a quarter two days
earlier. A run of more than a million judgements weighs like one of a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

DAY = 86_400_000_000
MILLION = 1_000_000


class Run(NamedTuple):
    """How often a run judged the condition, how often it held, and when, in microseconds."""

    judged: int
    held: int
    at: int


def share(runs: Sequence[Run]) -> tuple[float, float]:
    """The weight of all judgements, and the part of it for which the condition held."""
    newest = max(run.at for run in runs)
    weights = [min(run.judged, MILLION) * 2 ** (-(newest - run.at) / DAY) for run in runs]
    whole = fsum(weights)
    return whole, fsum(weight * run.held / run.judged for weight, run in zip(weights, runs, strict=True)) / whole
