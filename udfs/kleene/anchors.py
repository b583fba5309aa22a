"""Which events lie in every match: where one name is rare, a window around each of its events holds all matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.published import NameCount


@dataclass(frozen=True)
class Anchors:
    """Names of which every match has an event.

    Attributes
    ----------
    names
        The names, those that never occurred among them.
    events
        How many events have one of them.
    within
        Microseconds: the times of an event of a match, and of any other that it looks at, differ by less.
    """

    names: frozenset[str]
    events: int
    within: int

    def ranges(self, times: IntArray, most: int) -> tuple[tuple[int, int], ...]:
        """The times that matches can lie in, given those of all anchors.

        Parameters
        ----------
        times
            int64[n], microseconds, in any order.
        most
            How many ranges may come out; of more, those that are closest to each other become one.

        Returns
        -------
        tuple
            (first, last), both included, ascending, apart from each other.

        Examples
        --------
        >>> Anchors(frozenset("A"), 3, within=10).ranges(np.array([50, 12, 100]), most=2)
        ((3, 59), (91, 109))
        """
        if not len(times):
            return ()
        times = np.unique(times)
        gaps = np.diff(times) - 2 * self.within
        # Where a gap lies between two of them: the widest ones, and none that windows close.
        apart = np.flatnonzero(gaps >= 0)
        if len(apart) >= most:
            apart = np.sort(apart[np.argsort(gaps[apart], kind="stable")[len(apart) - most + 1 :]])
        reach = self.within - 1
        begins, ends = times[np.append(0, apart + 1)] - reach, times[np.append(apart, len(times) - 1)] + reach
        return tuple(zip(begins.tolist(), ends.tolist(), strict=True))


def find_anchors(pattern: KleenePattern, counts: Sequence[NameCount]) -> Anchors | None:
    """Find the rarest names of which every match has an event.

    Parameters
    ----------
    pattern
        The pattern.
    counts
        How often each name of the stream occurs.

    Returns
    -------
    Anchors or None
        None where the pattern has no window in time, or a match may do without any operand whose names are known.

    Notes
    -----
    Of each order that the pattern allows, the rarest operand that it cannot do without; they lie in a match's window
    (Körber et al., SIGMOD 2021, for one order and one operand).
    """
    if pattern.within is None or pattern.within.counted:
        return None
    events = {row.name: row.events for row in counts}
    names: set[str] = set()
    for linearization in pattern.linearizations:
        found = [
            admitted
            for number in linearization.operands
            if pattern.operands[number].always
            for admitted in [pattern.operands[number].names]
            if admitted is not None
        ]
        if not found:
            return None
        names |= min(found, key=lambda each: (_total(each, events), sorted(each)))
    return Anchors(frozenset(names), _total(names, events), pattern.within.amount + pattern.beyond_window)


def _total(names: AbstractSet[str], events: Mapping[str, int]) -> int:
    return sum(events.get(name, 0) for name in names)
