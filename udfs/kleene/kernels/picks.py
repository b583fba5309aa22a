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
            return (1 << length) - _choices(length, 0, self.least - 1)
        return _choices(length, self.least, most)


def _choices(length: int, least: int, most: int) -> int:
    """How many choices there are of `least` to `most` among so many events."""
    if most < least:
        return 0
    # Each binomial from the one before it: those of long lists have many digits, and are many.
    ways = total = comb(length, least)
    for size in range(least, most):
        ways = ways * (length - size) // (size + 1)
        total += ways
    return total


def pick_of(layout: Layout, slot: int) -> Pick:
    """What a slot of a layout takes."""
    own = layout.slots[slot]
    return Pick(own.count, own.most, last=not any((slot, other) in layout.before for other in range(len(layout.slots))))
