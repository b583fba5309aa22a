"""What MEASURES show, slow and obviously right: one value at a time, from the rows of one match.

Values are Python's, None is NULL. As in Spark, NaN is above every other number, aggregates leave NULLs out, of nothing
``count`` is 0 and a list is empty, and all other aggregates are NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """A row of the answer.

    Attributes
    ----------
    first
        The first row of the match; None of a row that is of no match.
    labels
        The variables of all rows of the match.
    taken
        How many of these RUNNING looks at.
    number
        MATCH_NUMBER.
    low, high
        Where the partition begins and ends.
    """

    first: int | None
    labels: tuple[str, ...]
    taken: int
    number: int
    low: int
    high: int

    def rows(self, variables: Sequence[str], *, final: bool) -> list[int]:
        """The rows of some variables, or of all."""
        if self.first is None:
            return []
        labels = self.labels if final else self.labels[: self.taken]
        return [self.first + at for at, label in enumerate(labels) if not variables or label in variables]

    def row(self, variables: Sequence[str], *, first: bool, offset: int, shift: int, final: bool) -> int | None:
        """The row that a navigation goes to."""
        rows = self.rows(variables, final=final)
        if offset >= len(rows):
            return None
        row = (rows[offset] if first else rows[-1 - offset]) + shift
        return row if self.low <= row < self.high else None

    def label(self, row: int | None) -> str | None:
        """The variable of a row of the match, which may be behind the row that is shown: the match is known."""
        if row is None or row not in self.rows((), final=True):
            return None
        return self.labels[row - (self.first or 0)]


def aggregate(name: str, values: Sequence[Any], *, distinct: bool) -> Any:
    """An aggregate of values in the order of rows."""
    known = [value for value in values if value is not None]
    if distinct:
        # The same NaN is in a list by identity only.
        kept: list[Any] = []
        for value in known:
            if not any(value == one or (is_nan(value) and is_nan(one)) for one in kept):
                kept.append(value)
        known = kept
    if name == "count":
        return len(known)
    if name == "array_agg":
        return known
    if not known:
        return None
    if name in ("sum", "avg"):
        total = known[0] * (1.0 if name == "avg" else 1)
        for value in known[1:]:
            total += value
        return total / len(known) if name == "avg" else total
    return (min if name == "min" else max)(known, key=lambda value: (is_nan(value), 0 if is_nan(value) else value))


def is_nan(value: Any) -> bool:
    """Whether a value is no number."""
    return isinstance(value, float) and math.isnan(value)
