"""Patterns with a rare name and a window in time: read around the rare events, beside reading all events of the names.

``python -m benchmarks.rare_names [events] [repeats]`` prints one line of JSON for each question: medians of seconds in
turns, of the function as it is and with reading around the rarest name turned off, and whether the rows are equal.
*cold* is the first call, with no file in the driver's memory.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from benchmarks.lakes import make_lake, new_folder
from benchmarks.measuring import median, seconds, side_by_side
from benchmarks.questions import STREAM
from benchmarks.sessions import ask_arrow, spark_session
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.patterns import around_anchors

QUESTIONS = {
    "rare, then all of a frequent one": ("rare0 ; n1+ ; n2 WITHIN 1 HOUR", "skip_till_next"),
    "the same, skip_till_any": ("rare0 ; n1+ ; n2 WITHIN 1 HOUR", "skip_till_any"),
    "rare at the end, by key": ("n1 ; n2 ; rare0 PARTITION BY account WITHIN 1 DAY", "skip_till_any"),
    "strict": ("n1 ; rare0 ; n2 WITHIN 1 HOUR", "strict"),
}


def measure(events: int, repeats: int) -> list[dict[str, Any]]:
    """All questions, of one lake."""
    with new_folder(f"rare_names_{events}") as folder, spark_session(folder) as spark:
        make_lake(spark, folder, events)
        return [_measure(spark, name, *question, repeats) for name, question in QUESTIONS.items()]


def _measure(spark: SparkSession, name: str, pattern: str, policy: str, repeats: int) -> dict[str, Any]:
    text = f"SELECT * FROM match_pattern('{STREAM}', '{pattern}', policy => '{policy}') ORDER BY match_no"
    rows: dict[str, Any] = {}

    def around() -> None:
        rows["around"] = ask_arrow(spark, text)

    def all_of_them() -> None:
        # No event is rare enough.
        with patch.object(around_anchors, "_RARE", 1 << 62):
            rows["all"] = ask_arrow(spark, text)

    lake_of(spark).cache.drop(lambda key: True)
    cold = seconds(around)
    taken = side_by_side({"around": around, "all": all_of_them}, repeats)
    medians = {way: median(times) for way, times in taken.items()}
    figures = {
        "question": name,
        "rows": rows["around"].num_rows,
        "equal": rows["around"].to_pylist() == rows["all"].to_pylist(),
        "cold": round(cold, 3),
        **{way: round(taken, 3) for way, taken in medians.items()},
        "times faster": round(medians["all"] / medians["around"], 1),
    }
    print(json.dumps(figures), flush=True)
    return figures


if __name__ == "__main__":
    measure(*(int(argument) for argument in [*sys.argv[1:3], *("10000000", "5")[len(sys.argv) - 1 :]]))
