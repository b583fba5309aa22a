"""How many events a pick takes, and how many choices of them there are."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from patternlake.udfs.kleene.layout import Layout


@dataclass(frozen=True, slots=True)
class Pick:
    """How many events a pick takes.

    Attributes
    ----------
    least, most
        So many; `most` is None where there is no greatest number.
    last
        Whether nothing stands behind it.
    """

    least: int
    most: int | None
    last: bool

    def ways(self, length: int) -> int:
        """How many choices there are among so many events."""
        most = length if self.most is None else min(self.most, length)
        if most == length and self.least <= length // 2:
            return (1 << length) - sum(comb(length, size) for size in range(self.least))
        return sum(comb(length, size) for size in range(self.least, most + 1))

    def longest(self, length: int) -> int:
        """How many events one of them has at most."""
        return length if self.most is None else min(self.most, length)


def pick_of(layout: Layout, slot: int) -> Pick:
    """What a slot of a layout takes."""
    own = layout.slots[slot]
    return Pick(own.count, own.most, last=not any((slot, other) in layout.before for other in range(len(layout.slots))))
