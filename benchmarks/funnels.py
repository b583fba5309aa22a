"""Funnels and paths in `spark.sql`, beside plain Spark SQL over the same table.

``python -m benchmarks.funnels [events] [repeats]`` prints one line of JSON for each question: medians of seconds, in
turns with plain Spark SQL where it can say the same: it folds over the sorted events of each key, which says a funnel
without a window. *equal* says whether both count the same at each step.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import frequent
from benchmarks.lakes import make_lake, new_folder
from benchmarks.measuring import median, side_by_side
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session

FUNNELS = {"12 steps": frequent(12), "64 steps": frequent(32) * 2}


def measure(events: int, repeats: int) -> list[dict[str, Any]]:
    """All questions, of one lake."""
    with new_folder(f"funnels_{events}") as folder, spark_session(folder) as spark:
        lake = make_lake(spark, folder, events)
        table = f"(SELECT key, time, position, name FROM {lake.db.log('events')} WHERE {lake.rows})"
        found = [_measure_funnel(spark, table, name, steps, repeats) for name, steps in FUNNELS.items()]
        paths = {"paths around a name": "around => 'n9'", "paths of whole keys": "around => NULL"}
        return found + [_measure_paths(spark, name, asked, repeats) for name, asked in paths.items()]


def _measure_funnel(spark: SparkSession, table: str, name: str, steps: tuple[str, ...], repeats: int) -> dict[str, Any]:
    rows: dict[str, list[int]] = {}
    texts = ", ".join(f"'{step}'" for step in steps)

    def ours() -> None:
        text = f"SELECT reached FROM match_funnel('{STREAM}', '{' ; '.join(steps)}') ORDER BY step"
        rows["match_funnel"] = [row.reached for row in ask(spark, text)]

    def plain() -> None:
        counted = ask(
            spark,
            f"""SELECT level, count(*) AS keys FROM (
              SELECT aggregate(array_sort(collect_list(struct(time, position, name))), 0,
                (level, event) -> level + int(get(array({texts}), level) <=> event.name)) AS level
              FROM {table} GROUP BY key) GROUP BY level""",
        )
        rows["Spark SQL"] = [
            sum(row["keys"] for row in counted if row.level >= step) for step in range(1, len(steps) + 1)
        ]

    figures = _timed(name, {"match_funnel": ours, "Spark SQL": plain}, repeats)
    return _told({**figures, "equal": rows["match_funnel"] == rows["Spark SQL"]})


def _measure_paths(spark: SparkSession, name: str, asked: str, repeats: int) -> dict[str, Any]:
    text = f"SELECT * FROM match_paths('{STREAM}', {asked})"
    return _told(_timed(name, {"match_paths": lambda: ask(spark, text)}, repeats))


def _timed(name: str, actions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Any]:
    for action in actions.values():
        action()
    taken = side_by_side(actions, repeats)
    return {"question": name, **{way: round(median(times), 2) for way, times in taken.items()}}


def _told(figures: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(figures), flush=True)
    return figures


if __name__ == "__main__":
    measure(*(int(argument) for argument in [*sys.argv[1:3], *("10000000", "3")[len(sys.argv) - 1 :]]))
