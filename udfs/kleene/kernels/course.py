"""The course of a run whose plan may change: what is done along each plan, and when another one takes its place."""

from __future__ import annotations

from collections.abc import Iterator

from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels.ranges import first_event_ranges
from patternlake.udfs.kleene.plans.replanning import Replanning, replanned
from patternlake.udfs.kleene.plans.trees import Plan
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import Work

FIRST_TRIED = 1 << 12
"""First events of the first range, where the plan may change."""


class Course:
    """The plan of a run, and whether it turns out as expected."""

    def __init__(self, pattern: KleenePattern, stream: Stream, plan: Plan, replanning: Replanning) -> None:
        self.pattern = pattern
        self.stream = stream
        self.plan = plan
        self.replanning = replanning
        self.work = Work()
        self.earlier = Work()
        self.classes = {number: len(members) for number, members in enumerate(stream.members)}
        self.since = 0

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of first events: a small one tells what to expect of the others."""
        first = min(FIRST_TRIED, len(self.stream))
        yield from first_event_ranges(self.stream, 0, first)
        yield from first_event_ranges(self.stream, first)

    def turned(self, end: int) -> bool:
        """Whether there is another plan for the first events from `end` on."""
        done = (end - self.since) / len(self.stream)
        found = replanned(self.pattern, self.plan, self.replanning, self.classes, self.work, done)
        if found is None:
            return False
        before = self.plan
        self.plan, self.replanning = found
        self.earlier, self.work, self.since = self.whole, Work(), end
        return self.plan != before

    @property
    def whole(self) -> Work:
        """What was done along all plans."""
        found = Work()
        found.take(self.earlier)
        found.take(self.work)
        return found
