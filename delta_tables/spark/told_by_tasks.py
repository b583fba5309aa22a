"""How what Spark's tasks observe comes home to the driver's process: by an accumulator, which they have beside rows.

A task imports this and no more than it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.accumulators import Accumulator, AccumulatorParam

from patternlake.udfs.kleene.plans.observations import JudgedCondition

Observed = Mapping[JudgedCondition, tuple[int, int]]
"""How often each condition was judged in a run, and how often it held."""


def add_up(told: Iterable[Observed]) -> Observed:
    """What several runs found, as one."""
    found: dict[JudgedCondition, tuple[int, int]] = {}
    for condition, (judged, held) in (each for one in told for each in one.items()):
        before = found.get(condition, (0, 0))
        found[condition] = before[0] + judged, before[1] + held
    return found


class Gathered(AccumulatorParam[list[Any]]):
    """What a task tells: a list that grows."""

    def zero(self, value: list[Any]) -> list[Any]:
        """Return what nothing has been told to."""
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        """Put what is told behind what was."""
        return [*value1, *value2]


@dataclass(frozen=True)
class FromTasks:
    """Takes what tasks find; is pickled with them.

    Attributes
    ----------
    accumulator
        Of the application.
    location, stream
        Of the database, and the number of the stream in it.
    """

    accumulator: Accumulator[list[Any]]
    location: str
    stream: int

    def tell(self, found: Observed) -> None:
        """Tell what a task found; it comes home when the task ends."""
        if found:
            self.accumulator.add([(self.location, self.stream, dict(found))])
