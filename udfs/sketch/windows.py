"""Windows of a question: from and to, by position or by time, both ends inclusive.

A window hides events, it does not renumber them: two events are next to each other, and WITHIN counts them, as they
arrived. (For streams whose times rise with positions that is the same as cutting the stream.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Window:
    """Bounds of a question; None where there is none.

    Attributes
    ----------
    from_position, to_position
        Positions, inclusive.
    from_time, to_time
        Microseconds since the epoch, inclusive.
    """

    from_position: int | None = None
    to_position: int | None = None
    from_time: int | None = None
    to_time: int | None = None

    @property
    def empty(self) -> bool:
        """True where a lower bound lies above its upper bound."""
        return any(
            low is not None and high is not None and low > high
            for low, high in ((self.from_position, self.to_position), (self.from_time, self.to_time))
        )

    def of_events(self, positions: IntArray, times: IntArray) -> BoolArray:
        """The events inside: bool[n]."""
        return self.of_intervals(positions, positions, times, times)

    def of_intervals(self, pos_lo: IntArray, pos_hi: IntArray, time_lo: IntArray, time_hi: IntArray) -> BoolArray:
        """The intervals that may hold an event inside: bool[n].

        Those across an end of the window stay, so existence is never lost.
        """
        inside = np.full(len(pos_lo), not self.empty)
        if self.from_position is not None:
            inside &= pos_hi >= self.from_position
        if self.to_position is not None:
            inside &= pos_lo <= self.to_position
        if self.from_time is not None:
            inside &= time_hi >= self.from_time
        if self.to_time is not None:
            inside &= time_lo <= self.to_time
        return inside
