"""Three of the questions asked both ways: of a stream, and by MATCH_RECOGNIZE over the view of its events."""

from __future__ import annotations

from dataclasses import dataclass

from machines import WAVE
from patterns import NOTHING_BETWEEN
from questions import EVERY_AIRCRAFT

OF_BINDINGS = """
SELECT key, array_min(positions) AS first_position, array_max(positions) AS last_position
FROM (SELECT key, flatten(map_values(bindings)) AS positions FROM {call})
"""
"""Where each match of a function begins and ends, whose answer tells the positions of operands."""

OF_EVENTS = """
SELECT key, first_position, last_position
FROM patternlake.{stream} MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY time, position
  MEASURES FIRST(position) AS first_position, LAST(position) AS last_position
  {clause}
)
"""


@dataclass(frozen=True)
class BothWays:
    """A question of the demo, as a query over a function and as one with the clause.

    Attributes
    ----------
    title
        The question's headline.
    function
        The name of the function.
    of_stream
        The query over it.
    stream
        The stream whose events the clause looks at.
    clause
        The clause from AFTER MATCH or PATTERN on.
    """

    title: str
    function: str
    of_stream: str
    stream: str
    clause: str

    @property
    def of_rows(self) -> str:
        """The query with the clause."""
        return OF_EVENTS.format(stream=self.stream, clause=self.clause)


BOTH_WAYS = (
    BothWays(
        EVERY_AIRCRAFT.title,
        "match_seq",
        f"SELECT key, first_position, last_position FROM {EVERY_AIRCRAFT.call(verify=True)}",
        "flights",
        """PATTERN (late1 other*? late2 other*? late3 other*? cancelled)
  DEFINE
    late1 AS name = 'very_late', late2 AS name = 'very_late', late3 AS name = 'very_late',
    cancelled AS name = 'cancelled' AND time - late1.time < INTERVAL 1 DAY""",
    ),
    BothWays(
        NOTHING_BETWEEN.title,
        "match_pattern",
        OF_BINDINGS.format(call=f"match_pattern({NOTHING_BETWEEN.arguments})"),
        "flights",
        """AFTER MATCH SKIP TO NEXT ROW
  PATTERN (delayed cancelled)
  DEFINE
    delayed AS dep_delay > 120,
    cancelled AS name = 'cancelled' AND time - delayed.time < INTERVAL 12 HOURS""",
    ),
    BothWays(
        WAVE.title,
        "match_subscription",
        OF_BINDINGS.format(call=f"match_subscription('{WAVE.subscription}')"),
        WAVE.stream,
        """AFTER MATCH SKIP TO NEXT ROW
  PATTERN (hot{5})
  DEFINE hot AS name = 'hot' AND time - FIRST(time) < INTERVAL 5 DAYS""",
    ),
)
