"""Three questions about what is under way and how likely it is to come, as SQL over the functions for subscriptions.

They are `match_subscription` and `predict_match`; conf/demo.yaml has the subscriptions, and how `evaluate` judges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from questions import IN_ORDER, LOCAL, TOLD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEGREES = "format_string('%.1f °C', e.celsius)"
"""A day `e` in a few words."""

HAPPENED = f"""
WITH found AS (SELECT * FROM match_subscription('{{subscription}}')),
step AS (SELECT key, last_position, explode(flatten(map_values(bindings))) AS position FROM found),
event AS (
  SELECT step.key, step.last_position, {LOCAL.format("e.time")} AS at, (e.time, e.position) AS number,
    {{told}} AS told
  FROM step JOIN patternlake.{{stream}} e ON e.position = step.position
)
SELECT date_format(min(at), 'd MMM') AS day, key AS {{key}}, {{in_order}} AS {{events}}
FROM event
GROUP BY key, last_position
ORDER BY min(at), key, last_position
"""
"""One line per match, its events in order."""

LIKELY = f"""
WITH now AS (
  SELECT max(watermark) AS now FROM patternlake.publications
  WHERE job = 'predict' AND object = '{{stream}}' AND published_at <= TIMESTAMP '{{as_of}}'
),
forecast AS (
  SELECT * FROM predict_match('{{subscription}}', as_of => TIMESTAMP '{{as_of}}') WHERE is_best
),
step AS (SELECT key, explode(flatten(map_values(bindings))) AS position FROM forecast),
begun AS (
  SELECT event.key, min(at) AS at, {{in_order}} AS events
  FROM (
    SELECT step.key, e.time AS moment, {LOCAL.format("e.time")} AS at, (e.time, e.position) AS number, {{told}} AS told
    FROM step JOIN patternlake.{{stream}} e ON e.position = step.position
  ) AS event CROSS JOIN now
  GROUP BY event.key HAVING min(moment) > any_value(now) - {{within}}
)
SELECT forecast.key AS {{key}}, begun.events AS {{events}}, state, round(probability, 3) AS probability, trained_on,
  CASE WHEN EXISTS (
    SELECT 1 FROM match_subscription('{{subscription}}') m, now
    WHERE m.key = forecast.key AND m.first_time <= now.now AND m.last_time > now.now
  ) THEN 'yes' ELSE 'no' END AS came
FROM forecast JOIN begun ON forecast.key = begun.key
ORDER BY forecast.probability DESC, begun.at, forecast.key
"""
"""The best forecast of each key whose window is still open, as of a moment, and whether it came true."""

VERDICTS = """
SELECT lookahead, low AS threshold, forecasts, hits, precision, recall
FROM patternlake.forecast_evaluation WHERE subscription = '{subscription}' AND kind = 'threshold'
ORDER BY lookahead, low
"""


@dataclass(frozen=True)
class Verdict:
    """How good the forecasts above a threshold were, as a row of `forecast_evaluation` says."""

    lookahead: int
    threshold: float
    forecasts: int
    hits: int
    precision: float | None
    recall: float | None

    def __str__(self) -> str:
        if self.precision is None:
            return ""
        recall = "–" if self.recall is None else f"{self.recall:.2f}"
        return f"{self.precision:.2f} / {recall} ({self.forecasts:,})"


@dataclass(frozen=True)
class MachineQuestion:
    """A question for `match_subscription` and `predict_match`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    subscription
        Name under `subscriptions` in the configuration.
    stream, key, events
        The stream, and what the key and the events of an answer are called.
    within
        The pattern's WITHIN, as SQL's interval.
    means
        What the answer means; ``{matches}`` is the number of matches, ``{keys}`` that of their keys.
    told
        SQL text: an event ``e`` in a few words.
    stamp
        How the moment of an event is shown.
    """

    title: str
    asked: str
    subscription: str
    stream: str
    key: str
    events: str
    within: str
    means: str
    told: str = TOLD
    stamp: str = "HH:mm"

    @property
    def happened(self) -> str:
        """The query for readable matches."""
        return self._filled(HAPPENED)

    def likely(self, as_of: str) -> str:
        """The query for readable forecasts of a moment."""
        return self._filled(LIKELY, as_of=as_of)

    @property
    def verdicts(self) -> str:
        """The query for precision and recall by lookahead and threshold."""
        return VERDICTS.format(subscription=self.subscription)

    def judged(self, spark: SparkSession) -> list[Verdict]:
        """The answer of that query."""
        return [Verdict(**row.asDict()) for row in spark.sql(self.verdicts).collect()]

    def _filled(self, query: str, as_of: str = "") -> str:
        names = ("subscription", "stream", "key", "events", "within", "told")
        values = {name: str(getattr(self, name)) for name in names}
        return query.format(**values, in_order=IN_ORDER.replace("HH:mm", self.stamp), as_of=as_of)


STRIKE = MachineQuestion(
    title="The third strike",
    asked="Which aircraft left late three times in a row and then, within a day of the first, did not leave?",
    subscription="third_strike",
    stream="flights",
    key="aircraft",
    events="flights",
    within="INTERVAL '1' DAY",
    means="{matches} cancellations of {keys} aircraft. A forecast knows how often a cancellation was next, not that "
    "the day is ending: looking far ahead, it promises too much.",
)
TROUBLE = MachineQuestion(
    title="A city in trouble",
    asked="To which city was one flight diverted and one cancelled within two hours, in any order, and then another "
    "one diverted within four hours of the first, or left more than two hours late within two of the cancellation?",
    subscription="city_in_trouble",
    stream="flights",
    key="city",
    events="flights",
    within="INTERVAL '6' HOURS",
    means="{matches} times, to {keys} cities. Such flights come in clusters and the windows are short. A forecast "
    "knows neither: looking far ahead, it promises too much.",
)
WAVE = MachineQuestion(
    title="Heat waves",
    asked="Where was it hotter than 30 °C on five days directly one after another?",
    subscription="heat_wave",
    stream="days",
    key="airport",
    events="days",
    within="INTERVAL '5' DAYS",
    means="{matches} days of {keys} airports end five hot ones; what a longer wave adds is counted again.",
    told=DEGREES,
    stamp="d MMM",
)
MACHINE_QUESTIONS = (STRIKE, TROUBLE, WAVE)
