"""What did not come in time, by `match_pattern` and by an anti-join of Spark's on a range of times.

``python -m benchmarks.absences [events] [repeats]`` prints one line of JSON for each question: medians of seconds in
turns; it fails where both do not find the same events. *cold* is the first call, with no file in the driver's memory.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from benchmarks.lakes import make_lake, new_folder
from benchmarks.measuring import measure_beside, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask_arrow, spark_session
from patternlake.sql_ext.lakes.enabled import lake_of


class Question(NamedTuple):
    """Which events of one name have none of another name near them."""

    name: str
    absent: str
    window: str
    by_key: bool
    before: bool = False

    @property
    def pattern(self) -> str:
        """For `match_pattern`."""
        operands = (f"!{self.absent}", self.name) if self.before else (self.name, f"!{self.absent}")
        return f"{' ; '.join(operands)}{' PARTITION BY account' if self.by_key else ''} WITHIN {self.window}"

    @property
    def anti_join(self) -> str:
        """For Spark alone; without a key, on the range of times alone."""
        earlier, later = ("b", "a") if self.before else ("a", "b")
        behind = f"({later}.time, {later}.position) > ({earlier}.time, {earlier}.position)"
        return (
            f"SELECT a.position FROM events AS a LEFT ANTI JOIN events AS b ON b.stream = '{STREAM}' "
            f"AND b.name = '{self.absent}' {'AND b.key <=> a.key ' if self.by_key else ''}"
            f"AND {later}.time >= {earlier}.time AND {behind} "
            f"AND {later}.time < {earlier}.time + INTERVAL {self.window} "
            f"WHERE a.stream = '{STREAM}' AND a.name = '{self.name}'"
        )


QUESTIONS = {
    "not within an hour, by key": Question("n1", "n2", "1 HOUR", by_key=True),
    "not within a day, by key": Question("n1", "n2", "1 DAY", by_key=True),
    "not in the day before, by key": Question("n1", "n2", "1 DAY", by_key=True, before=True),
    "not within an hour": Question("n201", "n202", "1 HOUR", by_key=False),
    "not within a minute": Question("rare0", "n2", "1 MINUTE", by_key=False),
}


def measure(events: int, repeats: int) -> dict[str, Any]:
    """All questions, of one lake."""
    with new_folder(f"absences_{events}") as folder, spark_session(folder) as spark:
        make_lake(spark, folder, events)
        found = [_measure(spark, name, question, repeats) for name, question in QUESTIONS.items()]
        return {"events": events, "repeats": repeats, "beside": found}


def _measure(spark: SparkSession, name: str, question: Question, repeats: int) -> dict[str, Any]:
    asked = {
        "match_pattern": f"SELECT last_position AS position FROM match_pattern('{STREAM}', '{question.pattern}', "
        "max_matches => 100000000)",
        "anti-join": question.anti_join,
    }
    found: dict[str, Any] = {}

    def ask(way: str) -> None:
        found[way] = ask_arrow(spark, asked[way])

    lake_of(spark).cache.drop(lambda key: True)
    cold = seconds(lambda: ask("match_pattern"))
    ask("anti-join")
    ours, theirs = (sorted(found[way]["position"].to_pylist()) for way in asked)
    if ours != theirs:
        raise RuntimeError(f"{name}: {len(ours):,} events by match_pattern, {len(theirs):,} by the anti-join, differ")
    ways = {way: partial(ask, way) for way in asked}
    return measure_beside(name, ways, repeats, warm=False, rows=len(ours), cold=round(cold, 3))


if __name__ == "__main__":
    measure(*(int(argument) for argument in [*sys.argv[1:3], *("10000000", "3")[len(sys.argv) - 1 :]]))
