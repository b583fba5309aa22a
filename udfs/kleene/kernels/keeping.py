"""The rows of a run so far: counted, cut to the first ones where no more can be asked for, refused where too many."""

from __future__ import annotations

import numpy as np

from patternlake.udfs.events import Events
from patternlake.udfs.kleene.kernels import bindings
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import MOST_WAYS, Limits
from patternlake.udfs.kleene.kernels.linearized import MOST_COUNTED, PlannedLinearization
from patternlake.udfs.limits import too_many

FEWEST_ROWS_AT_ONCE = 1 << 12
"""Partial matches of the first join, where few rows are asked for."""


class Keeper:
    """The rows so far, no more than can be asked for.

    Parameters
    ----------
    events
        The events that they are of.
    most
        So many are asked for.
    truncate
        Whether there may be more, which are let go.
    """

    def __init__(self, events: Events, most: int, truncate: bool) -> None:
        self.events = events
        self.most = most
        self.truncate = truncate
        self.kept: list[Rows] = []
        self.total = 0
        self.last: tuple[int, ...] | None = None

    def add(self, rows: Rows) -> None:
        """Count and keep rows that are not among the earlier ones."""
        self.count(len(rows))
        self.keep(rows)

    def count(self, rows: int) -> None:
        """Count rows; fail where there are too many and they may not be cut."""
        self.total += rows
        if self.total > self.most and not self.truncate:
            raise too_many(self.total, self.most, complete=False)

    def keep(self, rows: Rows) -> None:
        """Keep rows, as long as they may be among the first."""
        self.kept.append(rows)
        count, bound = sum(len(part) for part in self.kept), sum(len(part.events) for part in self.kept)
        first_time = self.truncate and self.last is None and count > self.most
        if first_time or count > 2 * self.most or bound > bindings.MOST_BOUND:
            self.kept = [self.first()]
            if len(self.kept[0].events) > bindings.MOST_BOUND:
                raise bindings.too_long()
            if len(self.kept[0]) > self.most:
                events = self.kept[0].events[self.kept[0].offsets[-2] :]
                self.last = (int(self.events.keys[events[0]]), *self.events.positions[events].tolist())

    @property
    def full(self) -> bool:
        """Whether there are more rows than are asked for."""
        return self.last is not None

    def beyond(self, lower: tuple[int, ...]) -> bool:
        """Whether no rows are asked for that begin with a partition and positions, or with later ones."""
        return self.truncate and self.last is not None and lower > self.last[: len(lower)]

    def limits(self, linearization: PlannedLinearization, in_order: bool) -> Limits:
        """How many matches of one partial match of a linearization are wanted.

        One more than the rows asked for says that there are too many, and holds the first ones where matches are found
        in the order of the answer and none is taken away later.
        """
        rows = max(FEWEST_ROWS_AT_ONCE, 2 * self.most) if self.truncate else MOST_COUNTED
        kept_all = not linearization.filtered and linearization.begins is None
        layout = linearization.layout
        first = in_order and layout.total and not layout.pairs and len(layout.of_kind("choice")) <= 1
        if kept_all and (first or not self.truncate):
            return Limits(self.most + 1, enough=True, first=self.truncate, events=bindings.MOST_BOUND, rows=rows)
        ways = max(MOST_WAYS, self.most + 1)
        return Limits(ways, enough=False, first=False, events=bindings.MOST_BOUND, rows=rows)

    @property
    def limit(self) -> int | None:
        """How many rows of one match can be wanted; None for all."""
        return self.most + 1 if self.truncate else None

    def first(self) -> Rows:
        """The first rows in order, with one that says that there are more."""
        return bindings.first_rows(self.kept, self.events, self.most + 1)

    def result(self) -> tuple[Rows, int]:
        """The rows and their number, or, where some are let go, how many there are at least."""
        rows = self.first()
        if len(rows) <= self.most:
            return rows, len(rows)
        return rows.take(np.arange(self.most)), self.total
