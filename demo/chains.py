"""Two questions about chains of delays, as SQL over `cet_count` and `cet_trends`; conf/demo.yaml has their queries."""

from __future__ import annotations

from dataclasses import dataclass

from questions import IN_ORDER, LOCAL, TOLD

CHAINS = f"""
WITH chain AS (
  SELECT key, positions, length, first_time FROM cet_trends({{asked}}) WHERE {{wanted}}
),
step AS (SELECT *, posexplode(positions) AS (number, position) FROM chain),
flight AS (
  SELECT step.*, e.origin, {LOCAL.format("e.time")} AS at,
    {TOLD} AS told
  FROM step JOIN patternlake.flights e ON e.position = step.position
)
SELECT date_format(min(at), 'd MMM') AS day, {{columns}},
  {IN_ORDER} AS flights
FROM flight
GROUP BY key, positions, length, first_time
ORDER BY length DESC, first_time, key, positions
"""
"""One line per trend, its flights in order; the longest ones first."""

DAY = f"hour({LOCAL.format('window_start')}) IN (3, 4)"
"""Windows that begin when New York's airports sleep: 8 o'clock in UTC, in winter and in summer."""

JULY = "from_time => TIMESTAMP '2013-07-01 08:00:00', to_time => TIMESTAMP '2013-08-01 08:00:00'"
"""The windows that lie in July, from four in the morning on."""


@dataclass(frozen=True)
class ChainQuestion:
    """A question for `cet_count` and `cet_trends`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    trend
        Name of the query under `trends` in the configuration.
    counted, counts
        What a table of numbers from `cet_count` shows, and its SQL.
    listed, chains
        What a table of trends from `cet_trends` shows, and its SQL.
    means
        What the answer means; ``{listed}`` is the number of trends in the second table.
    """

    title: str
    asked: str
    trend: str
    counted: str
    counts: str
    listed: str
    chains: str
    means: str


GROWING = ChainQuestion(
    title="Delays that grow all day",
    asked="Which aircraft left New York later and later in the course of one day, each delay greater than the last?",
    trend="growing_delays",
    counted="Days by their longest chain",
    counts=f"""
SELECT longest, count(*) AS aircraft_days, sum(CAST(trends AS BIGINT)) AS chains
FROM cet_count('growing_delays') WHERE {DAY}
GROUP BY longest ORDER BY longest DESC
""",
    listed="Chains of three flights or more in July",
    chains=CHAINS.format(
        asked=f"'growing_delays', {JULY}",
        wanted=f"length >= 3 AND {DAY}",
        columns="key AS aircraft",
    ),
    means="{listed} in July. On nine of ten days on which an aircraft left late, no later delay of it was greater.",
)
SNOWBALLS = ChainQuestion(
    title="Delays that double",
    asked="When did the flights of one airport to one city clog: each at least twice as late as one less than two "
    "hours before?",
    trend="snowballs",
    counted="Windows with chains of four flights or more",
    counts=f"""
SELECT date_format({LOCAL.format("window_start")}, 'd MMM HH:mm') AS hours_from, key AS city,
  CAST(trends AS BIGINT) AS chains, longest
FROM cet_count('snowballs') WHERE longest >= 4
ORDER BY longest DESC, trends_approx DESC, window_start, key
""",
    listed="Chains of four flights or more",
    chains=CHAINS.format(
        asked="'snowballs'",
        wanted="length >= 4",
        columns="any_value(origin) AS airport, key AS city",
    ),
    means="{listed} chains in the year: from a few minutes late to an hour and more, each step less than two hours.",
)
CHAIN_QUESTIONS = (GROWING, SNOWBALLS)
