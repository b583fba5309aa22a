"""Kept patterns: a stream in batches, the job `patterns` after each, beside one run of it over the whole stream.

``python -m benchmarks.kept_patterns [events] [batches] [pattern …]`` prints one line of JSON for each pattern: the
seconds of each run, and their sum beside two ways from scratch: `match_pattern` over all events, written to a Delta
table, and one run of the job over all events. Beside these, what runs cost that have next to nothing to match, what a
last batch of a hundred events costs, and what the function takes for the kept pattern and for its text. Each pattern
has run once before, on the first batch under another name: what a process loads once is in no figure, on either side.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import source
from benchmarks.lakes import new_folder, stream_configuration
from benchmarks.measuring import median, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.patterns import PatternConfiguration
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.patterns.job import patterns
from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.lakes.enabled import lake_of

PATTERNS: dict[str, dict[str, str]] = {
    "window of time": {"query": "n1 ; n2 ; n3 WHERE n3.amount > n1.amount + n2.amount WITHIN 1 MIN"},
    "by key": {"query": "n1 ; n2+ ; n3 PARTITION BY account WITHIN 1 DAY"},
    "funnel by key": {
        "query": "n1 ; n2 ; n3 PARTITION BY account WITHIN 2 DAYS",
        "policy": "skip_till_next",
        "after_match": "past_last",
    },
    "events of a key": {"query": "n1 ; n2 PARTITION BY account WITHIN 5 EVENTS"},
}
FEW = 100
"""Events of the last batch, which is none of those that are summed up."""
NOTHING = {"query": "nobody ; nothing WITHIN 1 MIN"}
"""What a run costs that has next to nothing to match."""


def measure(events: int, batches: int, *names: str) -> list[dict[str, Any]]:
    """Patterns on one stream; all, unless some are named."""
    chosen = {name: PATTERNS[name] for name in names or PATTERNS}
    with new_folder(f"kept_patterns_{events}") as folder, spark_session(folder) as spark:
        db = open_database(spark, "patternlake", str(folder / "state"))
        asked = {**chosen, "nothing": NOTHING}
        taken: dict[str, list[float]] = {name: [] for name in asked}
        step = -(-events // batches)
        for first in range(0, events, step):
            _ingest(db, folder, first, min(first + step, events), events)
            for name in asked if not first else ():
                _run(db, f"warm {name}", asked[name])
            for name in asked:
                taken[name].append(_run(db, name, asked[name]))
                print(f"batch {len(taken[name])}, {name}: {taken[name][-1]:.2f} s", file=sys.stderr, flush=True)
        _ingest(db, folder, events, events + FEW, events)
        few = {name: _run(db, name, asked[name]) for name in asked}
        return [{**_figures(spark, db, name, one, taken), "few": round(few[name], 2)} for name, one in chosen.items()]


def _ingest(db: Database, folder: Path, first: int, last: int, events: int) -> None:
    source(db.spark, events, first, last).write.mode("append").parquet(str(folder / "source"))
    ingest(db, STREAM, stream_configuration(folder / "source"))


def _run(db: Database, name: str, pattern: dict[str, str], *, rebuild: bool = False) -> float:
    configuration = PatternConfiguration.model_validate({"stream": STREAM, **pattern})
    return seconds(lambda: patterns(db, name, configuration, rebuild=rebuild))


def _figures(
    spark: SparkSession, db: Database, name: str, pattern: dict[str, str], taken: dict[str, list[float]]
) -> dict[str, Any]:
    """What one pattern costs."""
    given = ", ".join(f"{key} => '{value}'" for key, value in pattern.items() if key != "query")
    texts = {
        "kept": f"SELECT count(*), sum(first_position) FROM match_pattern(query => '{name}')",
        "text": f"SELECT count(*), sum(first_position) FROM match_pattern('{STREAM}', '{pattern['query']}'"
        + (f", {given})" if given else ")"),
    }
    answers = {each: ask(spark, text) for each, text in texts.items()}
    if answers["kept"] != answers["text"]:
        raise RuntimeError(f"{name}: the kept pattern says {answers['kept']}, its text {answers['text']}")
    scratch = [seconds(lambda: _from_scratch(spark, texts["text"])) for _ in range(3)]
    asking = {each: seconds(lambda text=text: ask(spark, text)) for each, text in texts.items()}  # type: ignore[misc]
    whole = [_run(db, name, pattern, rebuild=True) for _ in range(3)]
    return {
        "pattern": name,
        "matches": answers["kept"][0][0],
        "runs": [round(each, 2) for each in taken[name]],
        "sum": round(sum(taken[name]), 2),
        "match_pattern to Delta": round(median(scratch), 2),
        "ratio to match_pattern": round(sum(taken[name]) / median(scratch), 2),
        "one run": round(median(whole), 2),
        "ratio to one run": round(sum(taken[name]) / median(whole), 2),
        "runs of nothing": round(sum(taken["nothing"]), 2),
        "asking": {each: round(value, 2) for each, value in asking.items()},
    }


def _from_scratch(spark: SparkSession, text: str) -> None:
    """Write what the function says of the text to a Delta table."""
    forget(lake_of(spark).cache)
    rows = spark.sql(text.replace("count(*), sum(first_position)", "*"))
    rows.write.format("delta").mode("overwrite").saveAsTable("from_scratch")


if __name__ == "__main__":
    sizes = [int(value) for value in sys.argv[1:3]]
    for found in measure(*(sizes or (1_000_000, 20)), *sys.argv[3:]):
        print(json.dumps(found), flush=True)
