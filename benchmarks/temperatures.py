"""Daily temperatures of many cities, and a Markov model that knows the last five days in four classes.

Muthusamy et al. 2010 (6.2) ask 324 cities of the Global Summary of the Day for five days above 30 °C. These are twins
of such a log, generated: a climate and a season for each city, and deviations that last (AR(1), 0.75 from day to day).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.known_sources import Source

DAYS_OF_WAVE = 5
CLASSES = (10.0, 20.0, 30.0)
"""°C between the classes of the full model; the last one is hot."""
HOT = len(CLASSES)
STATES = sum((HOT + 1) ** days for days in range(DAYS_OF_WAVE + 1))
"""1 365: all histories of no to five days."""
_DAY = 86_400_000_000
_LASTING, _SPREAD = 0.75, 4.0


def cities(count: int, years: int, seed: int) -> NDArray[np.int8]:
    """int8[cities, days]: the class of each day."""
    rng = np.random.default_rng(seed)
    days = 365 * years
    mean, season = rng.normal(18, 7, (count, 1)), np.abs(rng.normal(9, 4, (count, 1)))
    phase = np.where(rng.random((count, 1)) < 0.7, 0.0, np.pi)
    seasonal = mean + season * np.cos(2 * np.pi * np.arange(days) / 365 + phase)
    fresh = rng.normal(0, _SPREAD * np.sqrt(1 - _LASTING**2), (count, days))
    lasting = np.empty((count, days))
    lasting[:, 0] = rng.normal(0, _SPREAD, count)
    for day in range(1, days):
        lasting[:, day] = _LASTING * lasting[:, day - 1] + fresh[:, day]
    return np.digitize(seasonal + lasting, CLASSES).astype(np.int8)


def source(classes: NDArray[np.int8]) -> Source:
    """The days as events of a partition for each city: ``hot``, or another name."""
    count, days = classes.shape
    codes = (classes == HOT).astype(np.int64).ravel()
    times = np.tile(np.arange(days, dtype=np.int64) * _DAY, count)
    return Source(codes, times, ("cool", "hot"), tuple(range(0, count * days, days)))


@dataclass(frozen=True)
class FullModel:
    """How often a hot day followed each history: float64[4^5], the class of the latest day lowest."""

    after: NDArray[np.float64]

    @classmethod
    def trained(cls, classes: NDArray[np.int8]) -> FullModel:
        """Of the days of some cities."""
        history, hot = _histories(classes[:, :-1]), classes[:, DAYS_OF_WAVE:] == HOT
        size = (HOT + 1) ** DAYS_OF_WAVE
        seen = np.bincount(history.ravel(), minlength=size)
        came = np.bincount(history.ravel(), weights=hot.ravel(), minlength=size)
        return cls(np.divide(came, seen, out=np.zeros(size), where=seen > 0))

    def judged(
        self, classes: NDArray[np.int8], lookaheads: Sequence[int], thresholds: Sequence[float]
    ) -> NDArray[np.float64]:
        """float64[n, t, 2]: forecasts above each threshold, and how many came true, as `trials.judge` counts them.

        A forecast is made for each row of one to four hot days that end at a day; the first four days of the range,
        of which the model does not know five, and the last n are left out.
        """
        history = _histories(classes)
        hot = classes == HOT
        days = classes.shape[1]
        found = np.zeros((len(lookaheads), len(thresholds), 2))
        for length in range(1, DAYS_OF_WAVE):
            missing = DAYS_OF_WAVE - length
            last = np.arange(DAYS_OF_WAVE - 1, days)
            held = np.all([hot[:, last - back] for back in range(length)], axis=0)
            chance = self._all_hot(history, missing)
            for number, lookahead in enumerate(lookaheads):
                if missing > lookahead:
                    continue
                known = last < days - lookahead
                came = np.all([hot[:, np.minimum(last + ahead, days - 1)] for ahead in range(1, missing + 1)], axis=0)
                for place, threshold in enumerate(thresholds):
                    above = held & known & (chance > threshold)
                    found[number, place] += above.sum(), (above & came).sum()
        return found

    def _all_hot(self, history: NDArray[np.int64], days: int) -> NDArray[np.float64]:
        chance = np.ones(history.shape)
        for _ in range(days):
            chance = chance * self.after[history]
            history = (history * (HOT + 1) + HOT) % (HOT + 1) ** DAYS_OF_WAVE
        return chance


def _histories(classes: NDArray[np.int8]) -> NDArray[np.int64]:
    """int64[cities, days - 4]: the five days up to each one from the fifth on."""
    days = classes.shape[1] - DAYS_OF_WAVE + 1
    found = np.zeros((len(classes), days), np.int64)
    for back in range(DAYS_OF_WAVE):
        found = found * (HOT + 1) + classes[:, back : back + days]
    return found
