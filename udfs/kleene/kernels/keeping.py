"""The rows of a run so far: counted, cut to the first ones where no more can be asked for, refused where too many."""

from __future__ import annotations

from patternlake.udfs.kleene.events import Events
from patternlake.udfs.kleene.kernels import bindings
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import MOST_WAYS, Limits
from patternlake.udfs.kleene.kernels.linearized import PlannedLinearization
from patternlake.udfs.limits import too_many


class Keeper:
    """The rows so far, no more than can be asked for."""

    def __init__(self, events: Events, most: int, truncate: bool) -> None:
        self.events = events
        self.most = most
        self.truncate = truncate
        self.kept: list[Rows] = []
        self.total = 0

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
        if sum(len(part) for part in self.kept) > 2 * self.most:
            self.kept = [self.first()]
        if sum(len(part.events) for part in self.kept) > bindings.MOST_BOUND:
            raise bindings.too_long()

    def limits(self, linearization: PlannedLinearization, in_order: bool) -> Limits:
        """How many matches of one partial match of a linearization are wanted.

        One more than the rows asked for says that there are too many, and holds the first ones where matches are found
        in the order of the answer and none is taken away later.
        """
        kept_all = not linearization.filtered and linearization.begins is None
        first = in_order and linearization.layout.total and not linearization.layout.pairs
        if kept_all and (first or not self.truncate):
            return Limits(self.most + 1, enough=True, first=self.truncate, events=bindings.MOST_BOUND)
        return Limits(max(MOST_WAYS, self.most + 1), enough=False, first=False, events=bindings.MOST_BOUND)

    @property
    def limit(self) -> int | None:
        """How many rows of one match can be wanted; None for all."""
        return self.most if self.truncate else None

    def first(self) -> Rows:
        """The first rows in order."""
        return bindings.first_rows(self.kept, self.events, self.most)

    def result(self) -> tuple[Rows, int]:
        """The rows and their number."""
        return self.first(), self.total
