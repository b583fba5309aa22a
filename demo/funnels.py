"""A question about the days of aircraft, as SQL over `match_funnel` and `match_funnel_rows`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from questions import IN_ORDER, LOCAL, TOLD

import patternlake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTS = """
SELECT group AS origin, concat(step, ' ', operand) AS step, reached,
  coalesce(string(round(100 * share_of_previous, 1)), '') AS percent,
  coalesce(string(round(seconds_p50 / 3600, 1)), '') AS hours,
  array_join(transform(next_events, x -> concat(coalesce(x.name, 'nothing'), ' ', x.partitions)), ', ') AS others_next
FROM {call} ORDER BY origin, step
"""
"""One line for each airport and step."""

AIRCRAFT = f"""
WITH chain AS (SELECT key, posexplode(positions) AS (number, position) FROM {{call}} WHERE reached = {{steps}}),
flight AS (
  SELECT chain.key, chain.number, e.origin, {LOCAL.format("e.time")} AS at, {TOLD} AS told
  FROM chain JOIN patternlake.flights e ON e.position = chain.position
)
SELECT min_by(origin, number) AS origin, key AS aircraft, date_format(min(at), 'd MMM') AS day, {IN_ORDER} AS flights
FROM flight GROUP BY key ORDER BY origin, min(at), aircraft
"""
"""One line for each aircraft that got to the last step, with the flights of its chain."""


@dataclass(frozen=True)
class FunnelQuestion:
    """A question for `match_funnel`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    pattern
        In the pattern language: the steps.
    steps
        How many there are.
    drawn
        The airport whose funnel is drawn.
    means
        What the answer means; ``{aircraft}`` is how many got to the last step.
    """

    title: str
    asked: str
    pattern: str
    steps: int
    drawn: str
    means: str

    @property
    def arguments(self) -> str:
        """The arguments of both functions."""
        return "'flights', '" + self.pattern.replace("'", "''") + "'"

    @property
    def call(self) -> str:
        """The call of match_funnel, for FROM."""
        return f"match_funnel({self.arguments}, by => 'origin')"

    @property
    def counts(self) -> str:
        """The query for how many aircraft got how far."""
        return COUNTS.replace("{call}", self.call)

    @property
    def aircraft(self) -> str:
        """The query for those that got to the last step."""
        call = f"match_funnel_rows({self.arguments})"
        return AIRCRAFT.replace("{call}", call).replace("{steps}", str(self.steps))

    def draw(self, spark: SparkSession, path: Path) -> None:
        """Draw the funnel of one airport."""
        rows = spark.sql(f"SELECT * FROM {self.call} WHERE group = '{self.drawn}'").toPandas()
        patternlake.plot.funnel(rows).figure.savefig(path, dpi=130)


BREAKS = FunnelQuestion(
    title="Where an aircraft's day breaks",
    asked="Of the aircraft that left an airport on time: how many left late within the day, then more than an hour "
    "late, and then not at all; and what did the others do instead?",
    pattern="on_time ; (late | very_late) ; very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY",
    steps=4,
    drawn="EWR",
    means="{aircraft} aircraft had a day that broke at its last step; each counts once, by its worst day.",
)
