"""The greatest temperature of each day at each airport, and what a model with all the days' history makes of it.

Muthusamy et al. 2010 (6.2) ask for five days above 30 °C, and set a model beside their machine that knows every history
of five days. Here a day is hot or not, so there are 2^5 histories.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from deliver import packaged, write_csv
from machines import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOT_DAYS = 5
"""Days of a heat wave, and of a history."""

DAYS = """
SELECT key, CAST(from_utc_timestamp(time, 'America/New_York') AS DATE) AS day, name = 'hot' AS hot
FROM patternlake.events WHERE stream = 'days' ORDER BY key, time
"""


class DailyMaxima:
    """The greatest temperature that each airport reported on each day of the year, as files of some months each.

    Parameters
    ----------
    reports
        The CSV file; by default that of the installed package.
    """

    def __init__(self, reports: Path | None = None) -> None:
        greatest: defaultdict[tuple[date, str], float] = defaultdict(lambda: -np.inf)
        with (reports or packaged().with_name("weather.csv")).open(encoding="utf-8", newline="") as file:
            for report in csv.DictReader(file):
                if report["temp"] != "NA":
                    day = date(*(int(report[name]) for name in ("year", "month", "day")))
                    celsius = (float(report["temp"]) - 32) * 5 / 9
                    greatest[day, report["origin"]] = max(greatest[day, report["origin"]], celsius)
        self._greatest = sorted(greatest.items())

    def write(self, months: range, folder: Path) -> Path:
        """Write the file of some months into the folder that the stream reads; it appears there whole."""
        rows = [
            (day.isoformat(), airport, f"{celsius:.2f}")
            for (day, airport), celsius in self._greatest
            if day.month in months
        ]
        return write_csv(folder / f"days-2013-{months[-1]:02}.csv", ["day", "airport", "celsius"], rows)


@dataclass(frozen=True)
class Airport:
    """The days of one airport, in order, with no day missing."""

    name: str
    days: Sequence[date]
    hot: np.ndarray

    def history(self, last: int) -> int:
        """The five days up to one, as bits, the last one lowest."""
        return int(self.hot[last - HOT_DAYS + 1 : last + 1] @ (1 << np.arange(HOT_DAYS)[::-1]))


@dataclass(frozen=True)
class Trial:
    """One to four hot days in a row.

    Attributes
    ----------
    chance
        That the days which are missing are hot, too.
    missing
        How many of five those are.
    came
        Whether they were.
    left
        How many days of the range follow.
    """

    chance: float
    missing: int
    came: bool
    left: int


class FullHistory:
    """How often a hot day followed each history of five days.

    Parameters
    ----------
    airports
        All days.
    train
        The first day, and the one after the last, that teach.
    """

    def __init__(self, airports: Sequence[Airport], train: tuple[date, date]) -> None:
        self.airports = airports
        self.seen, hot = np.zeros(2**HOT_DAYS), np.zeros(2**HOT_DAYS)
        for airport in airports:
            for last in range(HOT_DAYS - 1, len(airport.days) - 1):
                if train[0] <= airport.days[last - HOT_DAYS + 1] and airport.days[last + 1] < train[1]:
                    self.seen[airport.history(last)] += 1
                    hot[airport.history(last)] += airport.hot[last + 1]
        self.after = np.divide(hot, self.seen, out=np.zeros_like(hot), where=self.seen > 0)
        """float64[32]: of each history, the share of hot days next; 0 for those that never were."""

    def probability(self, history: int, missing: int) -> float:
        """That the next `missing` days are all hot."""
        found = 1.0
        for _ in range(missing):
            found *= self.after[history]
            history = (history << 1 | 1) % 2**HOT_DAYS
        return found

    def judged(
        self, test: tuple[date, date], lookaheads: Sequence[int], thresholds: Sequence[float]
    ) -> Iterator[Verdict]:
        """Judge the same forecasts as the job `evaluate`: of each day and each row of hot days that ends there.

        Parameters
        ----------
        test
            The first day, and the one after the last.
        lookaheads, thresholds
            Of the configuration.
        """
        trials = list(self._trials(test))
        for lookahead in lookaheads:
            # The last days of the range are left out: what follows is not known.
            judged = [trial for trial in trials if trial.left >= lookahead]
            told = np.array([trial.chance if trial.missing <= lookahead else 0.0 for trial in judged])
            came = np.array([trial.came and trial.missing <= lookahead for trial in judged])
            for threshold in thresholds:
                above = told > threshold
                hits = int((above & came).sum())
                yield Verdict(
                    lookahead, threshold, int(above.sum()), hits,
                    hits / above.sum() if above.any() else None, hits / came.sum() if came.any() else None,
                )  # fmt: skip

    def _trials(self, test: tuple[date, date]) -> Iterator[Trial]:
        for airport in self.airports:
            inside = [number for number, day in enumerate(airport.days) if test[0] <= day < test[1]]
            for last in inside:
                for length in range(1, HOT_DAYS):
                    first = last - length + 1
                    if first >= inside[0] and airport.hot[first : last + 1].all():
                        missing, left = HOT_DAYS - length, inside[-1] - last
                        came = left >= missing and bool(airport.hot[last + 1 : last + missing + 1].all())
                        chance = self.probability(airport.history(last), missing)
                        yield Trial(chance, missing, came, left)


def airports_of(spark: SparkSession) -> list[Airport]:
    """The days of the stream `days`, by airport."""
    found: dict[str, list[tuple[date, bool]]] = {}
    for row in spark.sql(DAYS).collect():
        found.setdefault(row["key"], []).append((row["day"], row["hot"]))
    return [
        Airport(name, [day for day, _ in days], np.array([hot for _, hot in days], dtype=np.int64))
        for name, days in sorted(found.items())
    ]
