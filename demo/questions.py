"""Five questions about the year's flights, each as SQL over `match_seq` and `match_exists`."""

from __future__ import annotations

from dataclasses import dataclass

LOCAL = "from_utc_timestamp({}, 'America/New_York')"
"""Times are stored as moments; people at an airport read their own clock."""

TOLD = """concat(
      e.carrier, e.flight, ' to ', e.dest, ' ',
      CASE WHEN e.name IN ('cancelled', 'diverted') THEN e.name ELSE format_string('%+.0f min', e.dep_delay) END
    )"""
"""A flight `e` in a few words."""

IN_ORDER = """array_join(transform(
    array_sort(collect_list(struct(number, at, told))),
    x -> concat(date_format(x.at, 'HH:mm'), ' ', x.told)
  ), ' | ')"""
"""The flights of a group, each with its number, its local time and what is told of it, in one line."""

STEPS = f"""
WITH matches AS (SELECT * FROM {{call}}),
step AS (SELECT match_no, key AS part, posexplode(steps) AS (number, operand) FROM matches),
flight AS (
  SELECT step.match_no, step.part, step.number, e.key, {LOCAL.format("e.time")} AS at,
    {TOLD} AS told
  FROM step JOIN patternlake.flights e ON e.position = step.operand.from_position
)
SELECT date_format(min(at), 'd MMM') AS day,
  {{columns}}
  {IN_ORDER} AS flights
FROM flight
GROUP BY match_no, part
ORDER BY min(at)
"""
"""One line per match, its flights in order."""

DAYS = f"""
SELECT date_format({LOCAL.format("first_time")}, 'd MMMM') AS day, count(*) AS waves,
  date_format({LOCAL.format("min(first_time)")}, 'HH:mm') AS first_from,
  date_format({LOCAL.format("max(last_time)")}, 'HH:mm') AS last_until
FROM {{call}}
GROUP BY day
ORDER BY min(first_time)
"""
"""One line per day, with its number of matches."""


@dataclass(frozen=True)
class Question:
    """A question for `match_seq`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    pattern
        In the pattern language.
    means
        What an answer means; ``{exact}`` is the number of its rows.
    key
        The one key that is asked for, if any.
    shown
        SQL that makes readable rows of ``{call}``; it must name it.
    as_of
        Whether to ask for the state after June's file, too.
    """

    title: str
    asked: str
    pattern: str
    means: str
    key: str | None = None
    shown: str = STEPS.replace("{columns}", "")
    as_of: bool = False

    def call(self, *, verify: bool, as_of: str | None = None) -> str:
        """The call of the table function, for FROM."""
        arguments = ["'flights'", "'" + self.pattern.replace("'", "''") + "'"]
        if self.key is not None:
            arguments.append(f"key => '{self.key}'")
        if not verify:
            arguments.append("verify => false")
        if as_of is not None:
            arguments.append(f"as_of => TIMESTAMP '{as_of}'")
        return f"match_seq({', '.join(arguments)})"

    def rows(self) -> str:
        """The query for the readable rows of the exact answer."""
        return self.shown.replace("{call}", self.call(verify=True))


CHICAGO = Question(
    title="A traveller to Chicago",
    asked="When a flight to O'Hare had to land elsewhere, how often was another one cancelled within the hour, with no "
    "departure on time in between?",
    pattern="'diverted:ORD' ; !'on_time:ORD' ; 'cancelled:ORD' WITHIN 1 HOUR",
    means="{exact} times in the year: a diverted flight and then, instead of a departure on time, a cancelled one.",
    as_of=True,
)
AIRCRAFT = Question(
    title="One aircraft's bad days",
    asked="On which days did N15910 leave on time, then late, then more than an hour late, all within 24 hours?",
    pattern="on_time ; late ; very_late WITHIN 1 DAY",
    means="{exact} days on which its delays grew with every departure.",
    key="N15910",
)
EVERY_AIRCRAFT = Question(
    title="Every aircraft: when to cancel",
    asked="Which aircraft left more than an hour late three times and then did not leave at all, within 24 hours?",
    pattern="very_late ; very_late ; very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY",
    means="{exact} times an airline struggled on for three flights before it gave the fourth up.",
    shown=STEPS.replace("{columns}", "any_value(key) AS aircraft,"),
)
WAVES = Question(
    title="The days when nobody flew",
    asked="When did all of the five biggest airlines cancel a flight within the same half hour?",
    pattern="'cancelled:UA' & 'cancelled:B6' & 'cancelled:EV' & 'cancelled:DL' & 'cancelled:AA' WITHIN 30 MINUTES",
    means="{exact} separate waves on a handful of days: the blizzard of 8 and 9 February has most of them.",
    shown=DAYS,
)
QUESTIONS = (CHICAGO, AIRCRAFT, EVERY_AIRCRAFT, WAVES)


@dataclass(frozen=True)
class RowQuestion:
    """A question for `match_exists`, asked for each row of a table of aircraft.

    Attributes
    ----------
    title, asked, means
        As of `Question`; ``{yes}`` and ``{rows}`` are numbers of rows.
    sequence, window
        The pattern, and its WITHIN, before which PARTITION BY has its place.
    """

    title: str
    asked: str
    sequence: str
    window: str
    means: str

    table = """
SELECT key AS tailnum, count_if(name = 'very_late') AS very_late, count(*) AS flights
FROM patternlake.flights WHERE key IS NOT NULL
GROUP BY key ORDER BY very_late DESC, tailnum LIMIT 10
"""
    """The rows: the ten aircraft with the most flights that were very late."""

    def sketched(self) -> str:
        """The query over the view `aircraft` that the sketch alone answers."""
        asked = f"match_exists('flights', '{self.sequence} {self.window}', key => a.tailnum)"
        return f"SELECT a.tailnum, a.flights, a.very_late, {asked} AS sketch_says FROM aircraft a"

    def exact(self) -> str:
        """The query for the number of exact matches of each key."""
        pattern = f"{self.sequence} PARTITION BY tailnum {self.window}"
        call = f"match_seq('flights', '{pattern}')"
        return f"SELECT key AS tailnum, count(*) AS matches FROM {call} GROUP BY key"


TIRED = RowQuestion(
    title="A table of aircraft",
    asked="Of the ten aircraft with the most very late flights, which had three of them within 24 hours?",
    sequence="very_late ; very_late ; very_late",
    window="WITHIN 1 DAY",
    means="{yes} of {rows} did; match_exists is called once per row of an ordinary table.",
)
