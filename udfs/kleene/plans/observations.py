"""What runs saw of conditions: how often each was judged and how often it held, kept from one call to the next.

Source: SPEC section 3 (the planner picks by "the selectivity seen so far"); Behravesh et al., "Selectivity of events",
measure how much shares matter, and give no way to find them. Observations of one condition add up, older ones at half
their weight for each `HALF_LIFE` between them and the newest: so it makes no difference in which order, or in which
groups, they are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

HALF_LIFE = 86_400_000_000
"""Microseconds after which an observation counts half as much beside a newer one: streams change."""
LEAST_JUDGED = 100
"""A share of fewer combinations tells too little."""
MOST_JUDGED = 1_000_000
"""A run counts as if it had judged no more: its share is known by then, and other runs are to be heard as well."""


@dataclass(frozen=True, order=True)
class JudgedCondition:
    """A condition, and the events that it is judged on.

    Attributes
    ----------
    predicate
        Its canonical text, in which operands are called what they take; a second one that takes the same gets a number.
    given
        What else these events satisfy: DEFINEs and filters of the operands, joined by ``;``; mostly empty.
    """

    predicate: str
    given: str


@dataclass(frozen=True)
class Observation:
    """How often a condition was judged, and held.

    Attributes
    ----------
    judged, held
        Events, or combinations of events; older ones count less, so that neither need be whole.
    at
        Microseconds: when the newest of them was judged.
    """

    judged: float
    held: float
    at: int

    @property
    def share(self) -> float | None:
        """How often it holds; None where too little was judged to say."""
        return self.held / self.judged if self.judged >= LEAST_JUDGED else None

    def limited(self) -> Observation:
        """The same share, with the weight that one run may have."""
        excess = max(1.0, self.judged / MOST_JUDGED)
        return Observation(self.judged / excess, self.held / excess, self.at)


Seen = Callable[[JudgedCondition], Observation | None]
"""What earlier runs saw of a condition; None: nothing."""


def merge_observations(observations: Iterable[Observation]) -> Observation:
    """Add up observations of one condition, of which there is at least one."""
    found = list(observations)
    newest = max(one.at for one in found)
    weights = [0.5 ** ((newest - one.at) / HALF_LIFE) for one in found]
    return Observation(
        judged=sum(one.judged * weight for one, weight in zip(found, weights, strict=True)),
        held=sum(one.held * weight for one, weight in zip(found, weights, strict=True)),
        at=newest,
    )
