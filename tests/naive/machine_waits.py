"""A lookahead in time by its definition: every number of events, every waiting time, one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

Waiting = Mapping[int, Fraction]
"""Waiting time to its probability."""


def gaps(partitions: Iterable[Sequence[int]]) -> list[int]:
    """The times between successive events of each partition."""
    return [late - early for times in partitions for early, late in pairwise(times)]


def waiting(found: Sequence[int]) -> Waiting:
    """How often each waiting time was seen."""
    return {gap: Fraction(found.count(gap), len(found)) for gap in set(found)}


def first_after(times: Waiting, quiet: int) -> Waiting:
    """What is left of the first waiting time after so long a quiet; nothing where it was never so long."""
    left = {gap - quiet: chance for gap, chance in times.items() if gap > quiet or quiet == 0}
    total = sum(left.values())
    return {gap: chance / total for gap, chance in left.items()}


def reached(times: Waiting, quiet: int, lookahead: int, events: int) -> Fraction:
    """The probability that so many events, one at least, come within the lookahead."""
    passed: Waiting = first_after(times, quiet)
    for _ in range(events - 1):
        longer: dict[int, Fraction] = defaultdict(Fraction)
        for time, chance in passed.items():
            for gap, more in times.items():
                if time + gap <= lookahead:
                    longer[time + gap] += chance * more
        passed = longer
    return sum((chance for time, chance in passed.items() if time <= lookahead), Fraction(0))


def completed(alpha: Sequence[Fraction], times: Waiting, quiet: int, lookahead: int) -> Fraction:
    """The probability of a match that the k-th next event completes with probability ``alpha[k - 1]``."""
    chances = (chance * reached(times, quiet, lookahead, events) for events, chance in enumerate(alpha, 1) if chance)
    return sum(chances, Fraction(0))
