"""What did not come in time, by `match_pattern` and by an anti-join of Spark's on a range of times.

``python -m benchmarks.absences [events] [repeats]`` prints one line of JSON for each question: medians of seconds in
turns; it fails where both do not find the same events. *cold* is the first call, with no file in the driver's memory.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.lakes import make_lake, new_folder
from benchmarks.measuring import measure_beside, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask_arrow, spark_session
from patternlake.sql_ext.lakes.enabled import lake_of

QUESTIONS = {
    "not within an hour": ("n1 ; !n2 PARTITION BY account WITHIN 1 HOUR", "after", "1 HOUR"),
    "not within a day": ("n1 ; !n2 PARTITION BY account WITHIN 1 DAY", "after", "1 DAY"),
    "not in the day before": ("!n2 ; n1 PARTITION BY account WITHIN 1 DAY", "before", "1 DAY"),
}


def anti_join(side: str, window: str) -> str:
    """The same question by Spark alone."""
    earlier, later = ("a", "b") if side == "after" else ("b", "a")
    behind = f"({later}.time, {later}.position) > ({earlier}.time, {earlier}.position)"
    return (
        f"SELECT a.position FROM events AS a LEFT ANTI JOIN events AS b ON b.stream = '{STREAM}' AND b.name = 'n2' "
        f"AND b.key <=> a.key AND {later}.time >= {earlier}.time AND {behind} "
        f"AND {later}.time < {earlier}.time + INTERVAL {window} WHERE a.stream = '{STREAM}' AND a.name = 'n1'"
    )


def measure(events: int, repeats: int) -> dict[str, Any]:
    """All questions, of one lake."""
    with new_folder(f"absences_{events}") as folder, spark_session(folder) as spark:
        make_lake(spark, folder, events)
        found = [_measure(spark, name, *question, repeats) for name, question in QUESTIONS.items()]
        return {"events": events, "repeats": repeats, "beside": found}


def _measure(spark: SparkSession, name: str, pattern: str, side: str, window: str, repeats: int) -> dict[str, Any]:
    asked = {
        "match_pattern": f"SELECT last_position AS position FROM match_pattern('{STREAM}', '{pattern}', "
        "max_matches => 100000000)",
        "anti-join": anti_join(side, window),
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
