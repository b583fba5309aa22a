"""Three exact questions about single aircraft, as SQL over `match_pattern`, each with the plan of `explain_pattern`."""

from __future__ import annotations

from dataclasses import dataclass

from questions import IN_ORDER, LOCAL, TOLD

MATCHES = f"""
WITH matches AS (SELECT * FROM {{call}}),
step AS (
  SELECT match_no, key, explode(flatten(map_values(bindings))) AS position FROM matches
),
flight AS (
  SELECT step.match_no, step.key, {LOCAL.format("e.time")} AS at, (e.time, e.position) AS number,
    {TOLD} AS told
  FROM step JOIN patternlake.flights e ON e.position = step.position
)
SELECT date_format(min(at), 'd MMM') AS day, any_value(key) AS aircraft,
  {IN_ORDER} AS flights
FROM flight
GROUP BY match_no, key
ORDER BY count(*) DESC, min(at), key, match_no
"""
"""One line per match, its flights in order; those of most flights first."""


@dataclass(frozen=True)
class PatternQuestion:
    """A question for `match_pattern`.

    Attributes
    ----------
    title, asked
        A headline, and one sentence that says what is asked.
    pattern
        In the pattern language.
    means
        What the answer means; ``{matches}`` is the number of its rows.
    """

    title: str
    asked: str
    pattern: str
    means: str

    @property
    def arguments(self) -> str:
        """The arguments of both functions."""
        return "'flights', '" + self.pattern.replace("'", "''") + "'"

    @property
    def plan(self) -> str:
        """The query for the plan."""
        return f"SELECT plan, round(cost) AS cost, round(rows, 1) AS rows FROM explain_pattern({self.arguments})"

    @property
    def rows(self) -> str:
        """The query for readable rows."""
        return MATCHES.replace("{call}", f"match_pattern({self.arguments})")


GIVEN_UP = PatternQuestion(
    title="Later, later, given up",
    asked="Which aircraft left on time, then late and later with every flight, until one was cancelled, within a day?",
    pattern="on_time ; late+ worse[] ; cancelled DEFINE late AS name IN ('late', 'very_late') "
    "WHERE worse[i].dep_delay > worse[i-1].dep_delay PARTITION BY tailnum WITHIN 1 DAY",
    means="{matches} chains: of each on-time flight, all the later ones that kept getting worse, and the cancellation.",
)
EVERYTHING = PatternQuestion(
    title="Everything in one day",
    asked="Which aircraft had a flight diverted, one cancelled and one more than an hour late within a day, in any "
    "order?",
    pattern="diverted & cancelled & very_late PARTITION BY tailnum WITHIN 1 DAY",
    means="{matches} combinations; the order did not matter.",
)
NOTHING_BETWEEN = PatternQuestion(
    title="The next flight did not leave",
    asked="When was a flight cancelled after one that left more than two hours late, with no flight of the aircraft "
    "from New York in between?",
    pattern="delayed ; !other ; cancelled DEFINE delayed AS dep_delay > 120, other AS TRUE "
    "PARTITION BY tailnum WITHIN 12 HOURS",
    means="{matches} times the next flight that the aircraft should have left New York with was cancelled.",
)
PATTERN_QUESTIONS = (GIVEN_UP, EVERYTHING, NOTHING_BETWEEN)
