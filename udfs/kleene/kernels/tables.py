"""Partial matches as rows of event numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray


@dataclass(frozen=True)
class Table:
    """Partial matches of some slots.

    Attributes
    ----------
    columns
        For each slot of kind ``one`` int64[r]: its event.
    part
        int64[r]: the part that the row lies in.
    low, high
        int64[r]: first and last event of the row.
    waiting
        Groups and picks that belong to the same node; their events lie within the bounds that the row gives.
    rowless
        True where there are only such: then there are no rows yet.
    whole
        True where a row stands for a whole part, because the linearization has no plain operand.
    """

    columns: Mapping[int, IntArray] = field(default_factory=dict)
    part: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    low: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    high: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    waiting: tuple[int, ...] = ()
    rowless: bool = False
    whole: bool = False

    def __len__(self) -> int:
        return len(self.part)

    def take(self, rows: IntArray | BoolArray | slice) -> Table:
        """Some of the rows."""
        columns = {slot: column[rows] for slot, column in self.columns.items()}
        return replace(self, columns=columns, part=self.part[rows], low=self.low[rows], high=self.high[rows])


def stacked(tables: Iterable[Table], slots: Sequence[int], waiting: tuple[int, ...]) -> Table:
    """Tables of the same slots one below the other."""
    given = list(tables)
    nothing = np.zeros(0, np.int64)

    def column(parts: list[IntArray]) -> IntArray:
        return np.concatenate([nothing, *parts])

    return Table(
        {slot: column([table.columns[slot] for table in given]) for slot in slots},
        column([table.part for table in given]),
        column([table.low for table in given]),
        column([table.high for table in given]),
        waiting,
    )
