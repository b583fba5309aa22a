"""Windows of trends, and the panes that they are made of.

Source: SPEC section 5. Windows are [k·s, k·s + w) for every integer k: over microseconds since the epoch in UTC, or,
where they count events, over the position minus 1. A pane is as wide as the greatest common divisor of w and s, so
that each window is a run of panes and each event lies in one pane.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray, expanded
from patternlake.udfs.trends.query import TrendQuery


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a query.

    Attributes
    ----------
    width, slide
        w and s, in microseconds or events; 0 without WITHIN: one window holds everything.
    counted
        True where they count events.
    """

    width: int
    slide: int
    counted: bool

    @classmethod
    def of(cls, query: TrendQuery) -> Windows:
        """The windows of a query."""
        if query.within is None or query.slide is None:
            return cls(0, 0, False)
        return cls(query.within.amount, query.slide.amount, query.within.counted)

    @property
    def pane(self) -> int:
        """Width of a pane; 0 without WITHIN."""
        return gcd(self.width, self.slide)

    @property
    def step(self) -> int:
        """A window begins at every step-th pane."""
        return max(self.slide // max(self.pane, 1), 1)

    @property
    def length(self) -> int:
        """Panes of a window."""
        return max(self.width // max(self.pane, 1), 1)

    def panes(self, positions: IntArray, times: IntArray) -> IntArray:
        """The pane of each event: int64[n]; 0 for all without WITHIN."""
        if not self.width:
            return np.zeros(len(times), np.int64)
        return np.floor_divide(positions - 1 if self.counted else times, self.pane)

    def spread(self, panes: IntArray, block: int = 1) -> tuple[IntArray, IntArray]:
        """Each row of a pane once for every window, or block of windows, that holds the pane.

        Parameters
        ----------
        panes
            int64[n]: the pane of each row.
        block
            Number of windows that make a block.

        Returns
        -------
        (int64[r], int64[r])
            Row and number k of the window, or of the block, rows in order.
        """
        if not self.width:
            return np.arange(len(panes), dtype=np.int64), np.zeros(len(panes), np.int64)
        step, length = self.slide // self.pane, self.width // self.pane
        last = np.floor_divide(np.floor_divide(panes, step), block)
        first = np.floor_divide(np.floor_divide(panes - length, step) + 1, block)
        return expanded(first, last + 1)

    def panes_of(self, window: int) -> range:
        """The panes of window k."""
        if not self.width:
            return range(1)
        first = window * (self.slide // self.pane)
        return range(first, first + self.width // self.pane)

    def bounds(self, windows: IntArray) -> tuple[IntArray, IntArray]:
        """Start (inclusive) and end (exclusive) of windows, in microseconds or in positions minus 1."""
        return windows * self.slide, windows * self.slide + self.width

    def final(
        self,
        windows: IntArray,
        watermark: int | None,
        last_position: int = 0,
        greatest_time: IntArray | None = None,
    ) -> NDArray[np.bool_]:
        """Whether the events of windows cannot change any more.

        Parameters
        ----------
        windows
            int64[r]: numbers k.
        watermark
            Published watermark in microseconds; None where events are never late.
        last_position
            Last published position of the stream; asked where windows count events.
        greatest_time
            int64[r]: greatest time of the events of each window, vertices or not; asked where windows count events.

        Returns
        -------
        bool[r]
            By time: the end is at or below the watermark. By events: the last position is published and every time in
            the window is below the watermark. False for all without WITHIN.
        """
        if not self.width or watermark is None:
            return np.zeros(len(windows), np.bool_)
        _, end = self.bounds(windows)
        if not self.counted:
            return np.asarray(end <= watermark)
        assert greatest_time is not None
        return np.asarray((end <= last_position) & (greatest_time < watermark))
