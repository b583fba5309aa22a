"""How long partitions wait for their next event, and how likely each wait is after so long a quiet.

Departure from Muthusamy et al. 2010, whose chain knows events and no times: deadlines in time, a lookahead in time and
the quiet time of a partition need the distribution of waits. **Assumption**: the waits of a partition are independent
of each other and of what its events are (a renewal process), at the **pace** of the partition.

- The times between successive events of a partition are counted in bins, a sixteenth of an octave wide. A bin tells
  how many there were, their sum, the least and the greatest.
- Waits that are still open count as censored (Kaplan and Meier 1958): nothing says how long a quiet partition waits,
  but that it is longer than this. Only so the long waits are not missing. Open waits are kept by when they began, in
  bins that are narrow beside their age; what a bin is depends on the time of its waits and the watermark alone, so
  that a wait that ends is taken out of the bin into which it was put.
- Fast and slow partitions are told apart by their pace, the octave of the mean wait so far. One that has too few waits
  to tell by itself takes those of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import FloatArray, IntArray

PER_OCTAVE = 16
"""Bins from one power of 2 to the next; bin 0 counts events of one time."""
LEAST_WAITS = 200
"""A pace with fewer waits that ended takes those of all paces."""
ANY_PACE = 0
"""The pace of a partition with one event, and what stands for all of them."""
_NARROW = 16
"""How many times as wide as a bin of open waits the time since its end is, at least."""
_MOST_QUIETS = 1_024
_ALL = 62
_FAR = 2.0**62
_COLUMNS = 7


class _Key(NamedTuple):
    """Of waits: the pace, the bin, or -1 and less by the width of a bin of open ones, and the begin of that."""

    pace: int
    bin: int
    begin: int


class _Counted(NamedTuple):
    often: int
    sum: int
    least: int
    most: int


Waits = dict[_Key, _Counted]
"""Waits that ended, in microseconds, and open ones."""


def pace_of(span: IntArray, events: IntArray) -> IntArray:
    """The pace of partitions that have had so many events in so many microseconds: int64[n]."""
    mean = span / np.maximum(events - 1, 1)
    return np.where(events > 1, 1 + np.floor(np.log2(np.maximum(mean, 1.0))), ANY_PACE).astype(np.int64)


def counted(times: IntArray, event_at: IntArray, last: IntArray, taken: IntArray, began: IntArray, now: int) -> Waits:
    """Count the waits that events of partitions end, and those that they begin.

    Parameters
    ----------
    times
        int64[n]: of events, in microseconds, ascending in each partition.
    event_at
        int64[p + 1]: where the events of each partition begin.
    last, taken, began
        int64[p]: time of the last event of each partition before these, how many there were, time of the first.
    now
        The watermark in microseconds.

    Returns
    -------
    Open waits that were counted before and have ended are taken out: their count is negative.
    """
    if not len(times):
        return {}
    sizes = np.diff(event_at)
    part = np.repeat(np.arange(len(sizes)), sizes)
    first = event_at[:-1][sizes > 0]
    own = np.flatnonzero(sizes > 0)
    begin = np.where(taken > 0, began, 0)
    begin[own] = np.where(taken[own] > 0, began[own], times[first])
    rank = np.arange(len(times)) - event_at[part] + taken[part]
    before = np.roll(times, 1)
    before[first] = last[own]
    ended = rank > 0
    pace = pace_of((before - begin[part])[ended], rank[ended])
    gaps = (times - before)[ended]
    bins = np.zeros(len(gaps), np.int64)
    positive = gaps > 0
    bins[positive] = 1 + np.floor(np.log2(gaps[positive]) * PER_OCTAVE).astype(np.int64)
    found: Waits = {}
    keys, of = np.unique(np.stack([pace, bins]), axis=1, return_inverse=True)
    of = of.ravel()
    often = np.bincount(of, minlength=keys.shape[1])
    # Sums of microseconds are exact in int64, and not in the floats that bincount adds up.
    sums, most = np.zeros(keys.shape[1], np.int64), np.zeros(keys.shape[1], np.int64)
    least = np.full(keys.shape[1], np.iinfo(np.int64).max)
    np.add.at(sums, of, gaps)
    np.maximum.at(most, of, gaps)
    np.minimum.at(least, of, gaps)
    for one, bin_, *of_bin in zip(*(each.tolist() for each in (*keys, often, sums, least, most)), strict=True):
        found[_Key(one, bin_, 0)] = _Counted(*of_bin)
    ends = event_at[1:][sizes > 0] - 1
    begun = pace_of(times[ends] - begin[own], taken[own] + sizes[own])
    again = own[taken[own] > 0]
    gone = pace_of(last[again] - began[again], taken[again])
    opened = _open(begun, times[ends], np.ones(len(ends), np.int64), now)
    return together([found, opened, _open(gone, last[again], np.full(len(again), -1), now)], now)


def _open(pace: IntArray, since: IntArray, count: IntArray, now: int) -> Waits:
    """So many open waits, by when they began."""
    level = np.zeros(len(since), np.int64)
    for wide in range(1, _ALL - 4):
        # What holds of a bin holds of each half of it, so that bins never overlap.
        level[now - (((since >> wide) + 1) << wide) >= _NARROW << wide] = wide
    found: dict[_Key, int] = {}
    for key in zip(pace.tolist(), (-1 - level).tolist(), ((since >> level) << level).tolist(), count.tolist(),
                   strict=True):  # fmt: skip
        found[_Key(*key[:3])] = found.get(_Key(*key[:3]), 0) + key[3]
    return {key: _Counted(number, 0, 0, 0) for key, number in found.items()}


def together(parts: Iterable[Waits], now: int) -> Waits:
    """The counts of several parts of a stream, the open waits in the bins that they have at a watermark."""
    found: Waits = {}
    open_: list[tuple[int, int, int]] = []
    for part in parts:
        for key, one in part.items():
            if key.bin < 0:
                open_.append((key.pace, key.begin, one.often))
                continue
            before = found.get(key)
            if before is None:
                found[key] = one
                continue
            least, most = min(one.least, before.least), max(one.most, before.most)
            found[key] = _Counted(one.often + before.often, one.sum + before.sum, least, most)
    paces_, begins, often = np.array(open_, np.int64).reshape(-1, 3).T
    found |= _open(paces_, begins, often, now)
    return {key: one for key, one in found.items() if one.often}


def as_document(waits: Waits) -> list[list[int]]:
    """Counts as a publication holds them: pace, bin, begin, how many, their sum, the least, the greatest."""
    return [[*key, *one] for key, one in sorted(waits.items())]


def from_document(rows: Sequence[Sequence[int]]) -> Waits:
    """The same read back."""
    return {_Key(*row[:3]): _Counted(*row[3:]) for row in rows}


def from_numbers(numbers: Sequence[int]) -> Waits:
    """The same of all rows, one behind the other."""
    return from_document(np.array(numbers, np.int64).reshape(-1, _COLUMNS).tolist())


def paces(waits: Waits) -> list[int]:
    """The paces that have waits enough to tell by themselves, and `ANY_PACE`."""
    ended: dict[int, int] = {}
    for key, one in waits.items():
        if key.bin >= 0:
            ended[key.pace] = ended.get(key.pace, 0) + one.often
    return sorted({ANY_PACE, *(pace for pace, count in ended.items() if count >= LEAST_WAITS)})


def commonest(waits: Waits) -> int:
    """The commonest wait that is not 0, in microseconds, the shortest of several; 0: there is none."""
    by_bin: dict[int, tuple[int, int]] = {}
    for key, one in waits.items():
        if key.bin > 0:
            count, total = by_bin.get(key.bin, (0, 0))
            by_bin[key.bin] = count + one.often, total + one.sum
    count, total = max(by_bin.values(), key=lambda one: (one[0], -one[1]), default=(1, 0))
    return total // count


@dataclass(frozen=True)
class Waiting:
    """How long a partition waits after an event: uniform pieces, `low` to `high`, some of which are single values.

    Attributes
    ----------
    low, high, weight
        float64[n]: microseconds, and probabilities. What is left to 1 is longer than anything that was counted.
    """

    low: FloatArray
    high: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, waits: Waits, now: int, pace: int = ANY_PACE) -> Waiting:
        """The waits at a pace that were counted up to a watermark; at `ANY_PACE`, of all that were counted."""
        mine = [(key, one) for key, one in waits.items() if pace in (ANY_PACE, key.pace)]
        bins: dict[int, _Counted] = {}
        for key, one in mine:
            if key.bin >= 0:
                before = bins.get(key.bin, _Counted(0, 0, one.least, one.most))
                bins[key.bin] = _Counted(
                    before.often + one.often,
                    before.sum + one.sum,
                    min(before.least, one.least),
                    max(before.most, one.most),
                )
        if not bins:
            # Nothing is known: the next event comes at once.
            return cls(np.zeros(1), np.zeros(1), np.ones(1))
        ordered = [bins[bin_] for bin_ in sorted(bins)]
        count = np.array([one.often for one in ordered], np.float64)
        mean = np.array([one.sum for one in ordered], np.float64) / np.maximum(count, 1.0)
        open_ = [(now - key.begin - ((1 << (-1 - key.bin)) - 1) / 2, one.often) for key, one in mine if key.bin < 0]
        quiet = np.array([each for each, _ in open_])
        often = np.array([each for _, each in open_], np.float64)
        still = np.array([often[quiet >= value].sum() for value in mean]) if len(open_) else np.zeros(len(mean))
        at_risk = np.cumsum(count[::-1])[::-1] + still
        ends = np.divide(count, at_risk, out=np.zeros(len(count)), where=at_risk > 0)
        weight = ends * np.concatenate([[1.0], np.cumprod(1.0 - ends)])[:-1]
        low, high = _spread(sorted(bins), ordered)
        return cls._pieces(low, mean, high, weight)

    @classmethod
    def _pieces(cls, low: FloatArray, mean: FloatArray, high: FloatArray, weight: FloatArray) -> Waiting:
        """Pieces below and above the mean of each bin, such that the mean stays."""
        width = high - low
        below = np.divide(high - mean, width, out=np.ones(len(low)), where=width > 0)
        lows, highs = np.stack([low, mean], axis=1).ravel(), np.stack([mean, high], axis=1).ravel()
        weights = np.stack([weight * below, weight * (1.0 - below)], axis=1).ravel()
        kept = weights > 0
        return cls(lows[kept], highs[kept], weights[kept])

    @property
    def whole(self) -> Waiting:
        """The same with what is longer than anything that was counted: too late for all deadlines, but it comes."""
        rest = max(0.0, 1.0 - float(self.weight.sum()))
        return Waiting(np.append(self.low, _FAR), np.append(self.high, _FAR), np.append(self.weight, rest))


def _spread(bins: Sequence[int], counted_: Sequence[_Counted]) -> tuple[FloatArray, FloatArray]:
    """From where to where the waits of bins are spread.

    Those of one value, if there are several, are that value. Others reach as far beyond the least and the greatest as
    there is room between them in the mean, inside the bin; so that a short lookahead finds no holes.
    """
    low, high = np.zeros(len(bins)), np.zeros(len(bins))
    for at, (bin_, one) in enumerate(zip(bins, counted_, strict=True)):
        low[at], high[at] = one.least, one.most
        if bin_ > 0 and (one.often == 1 or one.most > one.least):
            edges = [2.0 ** ((bin_ - 1 + side) / PER_OCTAVE) for side in (0, 1)]
            room = edges[1] - edges[0] if one.often == 1 else (one.most - one.least) / (one.often - 1)
            low[at] = min(one.least, max(edges[0], one.least - room))
            high[at] = max(one.most, min(edges[1], one.most + room))
    return low, high


def round_times(times: IntArray) -> IntArray:
    """Times, rounded down by a 128th at the most where there are more than 1,024 different ones."""
    if len(np.unique(times)) <= _MOST_QUIETS:
        return times
    unit = np.exp2(np.maximum(0, np.floor(np.log2(np.maximum(times, 1))) - 7)).astype(np.int64)
    return np.asarray(times // unit * unit, np.int64)


def chance_of_more(waiting: Waiting, time: int, events: int) -> float:
    """The probability that more than so many events come within a time after one: by squaring, in slots of the time."""
    slots = 1_024
    middle = (waiting.low + waiting.high) / 2 / time * slots
    inside = middle <= slots
    one: FloatArray = np.zeros(slots + 2)
    low = np.floor(middle[inside]).astype(np.int64)
    part = middle[inside] - low
    np.add.at(one, low, waiting.weight[inside] * (1.0 - part))
    np.add.at(one, low + 1, waiting.weight[inside] * part)
    result, power, left = np.eye(1, slots + 1)[0], one[: slots + 1], events + 1
    size = 1 << (2 * slots + 1).bit_length()
    while left:
        if left & 1:
            result = np.fft.irfft(np.fft.rfft(result, size) * np.fft.rfft(power, size), size)[: slots + 1]
        power = np.fft.irfft(np.fft.rfft(power, size) ** 2, size)[: slots + 1]
        left >>= 1
    return float(np.clip(result.sum(), 0.0, 1.0))
