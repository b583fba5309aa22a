"""Waits, and a lookahead in time, by their definition: every number of events, every wait, one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

Waiting = Mapping[int, Fraction]
"""Waiting time to its probability; what is left to 1 is longer than anything that was seen."""


def gaps(partitions: Iterable[Sequence[int]]) -> list[int]:
    """The times between successive events of each partition."""
    return [late - early for times in partitions for early, late in pairwise(times)]


def open_waits(partitions: Iterable[Sequence[int]], now: int) -> list[int]:
    """How long each partition that has events has been quiet."""
    return [now - times[-1] for times in partitions if times]


def waiting(found: Sequence[int], still: Sequence[int] = ()) -> Waiting:
    """The distribution of waits of which some have ended and some are open (Kaplan and Meier).

    Of those that lasted at least so long, the share that ended then.
    """
    left, chances = Fraction(1), dict[int, Fraction]()
    for gap in sorted(set(found)):
        lasted = sum(one >= gap for one in (*found, *still))
        chances[gap] = left * Fraction(found.count(gap), lasted)
        left -= chances[gap]
    return chances


def first_after(times: Waiting, quiet: int) -> Waiting:
    """What is left of the first waiting time after so long a quiet; nothing where it was never so long."""
    left = {gap - quiet: chance for gap, chance in times.items() if gap > quiet or quiet == 0}
    total = sum(left.values()) + 1 - sum(times.values())
    return {gap: chance / total for gap, chance in left.items()} if total else {}


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


def in_time(share: Fraction, times: Waiting, quiet: int, left: int, lookahead: int, events: int) -> Fraction:
    """The probability that one of so many next events completes a match, as each does with this share.

    That is in time as long as `left` and `lookahead` have not passed; both run from now, after so long a quiet.
    """

    def completed_by(first: Waiting, passed: int, more: int) -> Fraction:
        if not more:
            return Fraction(0)
        chances = Fraction(0)
        for gap, chance in first.items():
            if passed + gap <= min(left, lookahead):
                chances += chance * (share + (1 - share) * completed_by(times, passed + gap, more - 1))
        return chances

    return completed_by(first_after(times, quiet), 0, events)
