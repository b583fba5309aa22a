"""What is remembered of a kept pattern between batches: which events may still take part in a match that is not final.

Source: SPEC section 3 and Behravesh et al., continuous matching. WITHIN bounds it. A match that is not final has its
first event inside the last window before the watermark; where a last ``+`` or ``*`` may still grow, or something must
be absent behind it, one window more tells what could be added before its first event. Windows of time, and windows of
events of a stream without partitions, give one moment for the whole stream: the events from there on are read again. A
partition of which windows count the events may have been quiet for years, so its last events are kept as rows of their
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.kleene.finality import Moment, ends_with_window
from patternlake.udfs.kleene.query import KleenePattern


@dataclass(frozen=True)
class Carried:
    """What an answer goes on from.

    Attributes
    ----------
    before
        The moment up to which matches are known; under ``past_last`` the events that they rule out are not given.
    from_time
        Time of the earliest event that is read again, microseconds; None: there is no such bound.
    events
        How many those are.
    """

    before: Moment
    from_time: int | None
    events: int

    @property
    def state(self) -> dict[str, Any]:
        """What a publication holds of it beside its watermark and its position."""
        return {"from_time": self.from_time, "events": self.events}

    @classmethod
    def of(cls, state: Mapping[str, Any], watermark: int, position: int) -> Carried:
        """What a publication has left.

        Parameters
        ----------
        state
            As `state` gave it.
        watermark, position
            Of the publication: microseconds, and the last position that it had read.
        """
        return cls(Moment(watermark, position), state["from_time"], int(state["events"]))


def reach(pattern: KleenePattern, policy: str) -> int:
    """How far before the watermark events may still matter: microseconds, or events of a partition.

    Of a window of n events that is still open, one is to come. The pattern has WITHIN. What must not come first lies up
    to one window before the match, and so does what could be added to one that waits for the end of its window; and
    deadlines reach beyond their windows on either side.
    """
    assert pattern.within is not None
    waits = ends_with_window(pattern, policy, resumes=False) or any(not gap.right for gap in pattern.gaps)
    windows = 2 if (policy == "skip_till_any" and waits) or pattern.looked_at_first else 1
    if pattern.within.counted:
        return windows * max(1, pattern.within.amount - 1)
    return windows * pattern.within.amount + 2 * pattern.beyond_window


def kept_as_rows(pattern: KleenePattern) -> bool:
    """Whether the events that may still matter are kept by partition."""
    return pattern.within is not None and pattern.within.counted and bool(pattern.partition)
