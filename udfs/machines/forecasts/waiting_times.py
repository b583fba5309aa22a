"""How long partitions wait for their next event, and how many events of a partition a time brings.

Departure from Muthusamy et al. 2010, who look a number of events ahead: a lookahead in time. The times between
successive events of a partition are counted in bins, a sixteenth of an octave wide, each of which stands for the mean
of what it counts. **Assumption**: they are independent of each other and of what the events are (a renewal process).
Then a match that is completed at exactly the k-th next event with probability alpha_k is completed within a time T with

    sum over k of alpha_k * P(X_1 + … + X_k <= e + T | X_1 > e),

where X_1, X_2, … are times between events as they were counted, and e is how long the partition has been quiet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PER_OCTAVE = 16
"""Bins from one power of 2 to the next; bin 0 counts events of one time."""
SLOTS, MOST_SLOTS = 512, 4_096
"""Of a lookahead: at least so many, and at most."""
NEGLIGIBLE = 1e-9
"""Chances of more events than have this probability are left out."""
_CHUNK = 512

Waits = dict[int, tuple[int, int]]
"""By bin: how many waiting times, and their sum in microseconds."""


def counted(times: IntArray, event_at: IntArray, last: IntArray, taken: IntArray) -> Waits:
    """Count the times between successive events of each partition.

    Parameters
    ----------
    times
        int64[n]: of events, in microseconds, ascending in each partition.
    event_at
        int64[p + 1]: where the events of each partition begin.
    last, taken
        int64[p]: time of the last event of each partition before these, and how many there were.
    """
    if not len(times):
        return {}
    gaps = np.diff(times, prepend=times[0])
    begins = event_at[:-1][np.diff(event_at) > 0]
    own = np.flatnonzero(np.diff(event_at) > 0)
    gaps[begins] = times[begins] - last[own]
    counts = np.ones(len(gaps), np.bool_)
    counts[begins] = taken[own] > 0
    gaps = gaps[counts]
    bins = np.zeros(len(gaps), np.int64)
    positive = gaps > 0
    bins[positive] = 1 + np.floor(np.log2(gaps[positive]) * PER_OCTAVE).astype(np.int64)
    found, of = np.unique(bins, return_inverse=True)
    often = np.bincount(of, minlength=len(found))
    # Sums of microseconds are exact in int64, and not in the floats that bincount adds up.
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, of, gaps)
    return {int(bin_): (int(count), int(sum_)) for bin_, count, sum_ in zip(found, often, sums, strict=True)}


def together(parts: Iterable[Waits]) -> Waits:
    """The counts of several parts of a stream."""
    found: Waits = {}
    for part in parts:
        for bin_, (count, sum_) in part.items():
            before = found.get(bin_, (0, 0))
            found[bin_] = before[0] + count, before[1] + sum_
    return found


def as_document(waits: Waits) -> list[list[int]]:
    """Counts as a publication holds them: bin, how many, their sum."""
    return [[bin_, count, sum_] for bin_, (count, sum_) in sorted(waits.items())]


def from_document(rows: Sequence[Sequence[int]]) -> Waits:
    """The same read back."""
    return {bin_: (count, sum_) for bin_, count, sum_ in rows}


@dataclass(frozen=True)
class Steps:
    """How many events of a partition come within a time.

    Attributes
    ----------
    steps
        K: more events come with a negligible probability, or are more than what was asked for.
    truncated
        Probability that more than K events come after one that came just now.
    """

    waits: Mapping[int, tuple[int, int]]
    lookahead: int
    slot: float
    steps: int
    truncated: float
    _within: FloatArray

    @classmethod
    def of(cls, waits: Waits, lookahead: int, most: int) -> Steps:
        """Find out.

        Parameters
        ----------
        waits
            What was counted; not empty.
        lookahead
            T, microseconds, more than 0.
        most
            The greatest K.
        """
        values, weights = _distribution(waits)
        slot = _slot(values, weights, lookahead)
        count = int(np.floor(lookahead / slot + 1e-6))
        one = _dealt(values / slot, weights, count)
        size = 1 << int(2 * count + 1).bit_length()
        spectrum = np.fft.rfft(one, size)
        # After k events: float64[slots], the time that has passed.
        after = np.zeros(count + 1)
        after[0] = 1.0
        within = []
        for _ in range(most):
            within.append(np.cumsum(after))
            after = np.maximum(np.fft.irfft(np.fft.rfft(after, size) * spectrum, size)[: count + 1], 0.0)
            if after.sum() < NEGLIGIBLE:
                break
        return cls(waits, lookahead, slot, len(within), float(after.sum()), np.array(within))

    def reached(self, quiet: IntArray) -> FloatArray:
        """The probability that the k-th next event comes within the time.

        Parameters
        ----------
        quiet
            int64[n]: e, microseconds without an event so far, 0 or more.

        Returns
        -------
        float64[n, K], by k from 1; 0 where a partition has been quiet for longer than any wait that was counted.
        """
        values, weights = _distribution(self.waits)
        count = self._within.shape[1] - 1
        found = np.zeros((len(quiet), self.steps))
        for begin in range(0, len(quiet), _CHUNK):
            some = quiet[begin : begin + _CHUNK]
            rest = values[None, :] - some[:, None]
            left = np.where((rest > 0) | (some[:, None] == 0), weights[None, :], 0.0)
            total = left.sum(axis=1, keepdims=True)
            share = np.divide(left, total, out=np.zeros_like(left), where=total > 0)
            first = np.zeros((len(some), count + 1))
            place = np.maximum(rest, 0.0) / self.slot
            low = np.floor(place + 1e-6).astype(np.int64)
            part = np.clip(place - low, 0.0, 1.0)
            row = np.broadcast_to(np.arange(len(some))[:, None], low.shape)
            for at, weight in ((low, share * (1.0 - part)), (low + 1, share * part)):
                inside = at <= count
                np.add.at(first, (row[inside], at[inside]), weight[inside])
            found[begin : begin + _CHUNK] = first @ self._within[:, ::-1].T
        return np.clip(found, 0.0, 1.0)


def _distribution(waits: Mapping[int, tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    """float64 each, by bin: the mean of what was counted, microseconds, and its share of all."""
    counts = np.array([count for _, (count, _) in sorted(waits.items())], np.float64)
    sums = np.array([sum_ for _, (_, sum_) in sorted(waits.items())], np.float64)
    return sums / counts, counts / counts.sum()


def _slot(values: FloatArray, weights: FloatArray, lookahead: int) -> float:
    """Microseconds of a slot: a whole number of them make the commonest waiting time, where that is not too short."""
    positive = values > 0
    if not positive.any():
        return lookahead / SLOTS
    commonest = float(values[positive][np.argmax(weights[positive])])
    slot = commonest / np.ceil(commonest * SLOTS / lookahead)
    return float(slot) if lookahead / slot <= MOST_SLOTS else lookahead / MOST_SLOTS


def _dealt(places: FloatArray, weights: FloatArray, count: int) -> FloatArray:
    """float64[count + 1]: weights at whole places, those between two dealt so that their mean stays."""
    found = np.zeros(count + 1)
    low = np.floor(places + 1e-6).astype(np.int64)
    part = np.clip(places - low, 0.0, 1.0)
    for at, weight in ((low, weights * (1.0 - part)), (low + 1, weights * part)):
        inside = at <= count
        np.add.at(found, at[inside], weight[inside])
    return found
