"""What a call of each function costs on the demo's year, beside Spark's own queries; many at once, and many in a row.

    python -m benchmarks.calls [--repeats N] [--calls N]

*warm*: the median of calls that take turns, each worked out anew (`sessions.ask`), on two cores; beside it
``range(3)``, which is what Spark itself takes for any query, and ``count(*)`` of one name in the view `events`.
*first*: the first query of a new process, after Spark has started. Then 64 calls on 16 threads, and the driver's memory
after many calls that all differ.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
import yaml
from pyspark.sql import SparkSession
from rich.table import Table

import patternlake
from benchmarks.flight_machines import CONFIGURATION, deliver
from benchmarks.lakes import new_folder
from benchmarks.measuring import median, side_by_side
from benchmarks.sessions import CORES, ask, spark_session
from benchmarks.tables import console
from patternlake.sql_ext.lakes.enabled import lake_of

JOBS = ("ingest", "sketch", "trends", "groups", "predict")
DAY = "from_time => TIMESTAMP '2013-07-01 08:00:00', to_time => TIMESTAMP '2013-07-21 07:00:00'"
BESIDE = {
    "range(3)": "SELECT * FROM range(3)",
    "count(*) of one name": "SELECT count(*) FROM patternlake.events WHERE stream = 'flights' AND name = 'cancelled'",
}
CALLS = {
    "match_seq, rare names": "SELECT * FROM match_seq('flights', 'diverted ; ''cancelled:ORD'' WITHIN 1 HOUR')",
    "match_seq, rare names, the sketch alone": (
        "SELECT * FROM match_seq('flights', 'diverted ; ''cancelled:ORD'' WITHIN 1 HOUR', verify => false)"
    ),
    "match_seq, every key": (
        "SELECT * FROM match_seq('flights', 'very_late ; very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY')"
    ),
    "match_exists": "SELECT match_exists('flights', 'diverted ; ''cancelled:ORD'' WITHIN 1 HOUR')",
    "match_exists, the sketch alone": (
        "SELECT match_exists('flights', 'diverted ; ''cancelled:ORD'' WITHIN 1 HOUR', verify => false)"
    ),
    "match_exists, 2,000 keys": (
        "SELECT count_if(match_exists('flights', 'very_late ; very_late ; very_late WITHIN 1 DAY', key => key)) "
        "FROM (SELECT key FROM patternlake.events WHERE stream = 'flights' GROUP BY key LIMIT 2000)"
    ),
    "match_exists, 2,000 keys, the sketch alone": (
        "SELECT count_if(match_exists('flights', 'very_late ; very_late ; very_late WITHIN 1 DAY', key => key, "
        "verify => false)) "
        "FROM (SELECT key FROM patternlake.events WHERE stream = 'flights' GROUP BY key LIMIT 2000)"
    ),
    "match_pattern": ("SELECT * FROM match_pattern('flights', 'diverted ; cancelled PARTITION BY dest WITHIN 1 HOUR')"),
    "explain_pattern": (
        "SELECT * FROM explain_pattern('flights', 'diverted ; cancelled PARTITION BY dest WITHIN 1 HOUR')"
    ),
    "match_groups, kept": (
        "SELECT * FROM match_groups('sky', '(calm | breeze), wind+, rain', within => 12, threshold => 0.05)"
    ),
    "match_groups, from events": ("SELECT * FROM match_groups('sky', 'wind+, rain', within => 12, threshold => 0.2)"),
    "cet_count of 60 windows": f"SELECT * FROM cet_count('growing_delays', {DAY})",
    "cet_trends of 60 windows": f"SELECT * FROM cet_trends('growing_delays', {DAY})",
    "match_subscription": "SELECT * FROM match_subscription('third_strike')",
    "predict_match of one key": "SELECT * FROM predict_match('third_strike', key => 'N15910')",
    "predict_match of all keys": "SELECT * FROM predict_match('third_strike')",
}
TOGETHER = ("match_seq, rare names", "match_exists", "match_subscription", "predict_match of one key")
FIRST = """
import logging, os, sys, time
begun = time.perf_counter()
import patternlake
spark = patternlake.session({location!r}, "local[{cores}]")
started = time.perf_counter()
rows = spark.sql({text!r}).collect()
print(started - begun, time.perf_counter() - started)
"""


def main(
    repeats: Annotated[int, typer.Option("--repeats", help="how often each runs when warm")] = 9,
    calls: Annotated[int, typer.Option("--calls", help="how many different calls in a row")] = 10_000,
) -> None:
    """Measure and print tables."""
    with new_folder("calls") as folder:
        location = str(folder.resolve() / "state")
        with spark_session(folder) as spark:
            path = _configure(folder)
            for job in JOBS:
                patternlake.run(spark, str(path), job=job)
            warm(spark, repeats)
            together(spark)
            many(spark, calls)
        first(location)


def _configure(folder: Path) -> Path:
    """The demo's year with all its objects but the evaluation."""
    path = deliver(folder)
    sys.path.insert(0, str(CONFIGURATION.parents[1] / "demo"))
    from sky import Weather

    Weather().write(range(1, 13), folder / "weather")
    tree, whole = yaml.safe_load(path.read_text()), yaml.safe_load(CONFIGURATION.read_text())
    tree["streams"]["sky"] = whole["streams"]["sky"]
    tree["streams"]["sky"]["source"]["path"] = str((folder / "weather").resolve())
    tree |= {section: whole[section] for section in ("sketches", "trends", "groups")}
    path.write_text(yaml.safe_dump(tree))
    return path


def warm(spark: SparkSession, repeats: int) -> None:
    """Each call beside the others."""
    actions: dict[str, Callable[[], Any]] = {
        name: partial(ask, spark, text) for name, text in {**BESIDE, **CALLS}.items()
    }
    rows = {name: len(action()) for name, action in actions.items()}
    side_by_side(actions, 2)
    taken = {name: median(values) for name, values in side_by_side(actions, repeats).items()}
    count = taken["count(*) of one name"]
    table = Table("warm", "s", "of the count", "rows")
    for name, seconds in taken.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / count:.2f}", f"{rows[name]:,}")
    console().print(table)


def together(spark: SparkSession, calls: int = 64, threads: int = 16) -> None:
    """Calls of many threads of one session."""
    texts = [CALLS[TOGETHER[number % len(TOGETHER)]] for number in range(calls)]
    expected = {text: sorted(map(str, ask(spark, text))) for text in set(texts)}
    begun = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(partial(ask, spark), texts))
    taken = time.perf_counter() - begun
    wrong = sum(sorted(map(str, rows)) != expected[text] for text, rows in zip(texts, found, strict=True))
    console().print(f"{calls} calls on {threads} threads: {calls / taken:.1f} a second, {wrong} wrong")


def many(spark: SparkSession, calls: int) -> None:
    """The driver's memory after so many calls that all differ."""
    table = Table("calls", "Python, MB", "heap after collection, MB", "kept answers and files, MB")
    marks = {0, calls // 100, calls // 10, calls // 2, calls}
    for number, text in enumerate(_different(calls + 1)):
        if number in marks:
            gc.collect()
            jvm: Any = spark._jvm
            jvm.java.lang.System.gc()
            runtime = jvm.java.lang.Runtime.getRuntime()
            heap = runtime.totalMemory() - runtime.freeMemory()
            own = psutil.Process().memory_info().rss
            table.add_row(*(f"{n:,.0f}" for n in (number, own / 1e6, heap / 1e6, lake_of(spark).cache.bytes / 1e6)))
        spark.sql(text)
    console().print(table)


def _different(calls: int) -> Iterator[str]:
    for number in range(calls):
        last = 1 + number * 7919 % 300_000
        if number % 2:
            yield f"SELECT match_exists('flights', 'diverted ; cancelled WITHIN 1 HOUR', to_position => {last})"
        else:
            yield f"SELECT * FROM match_seq('flights', 'diverted ; cancelled WITHIN 1 HOUR', to_position => {last})"


def first(location: str) -> None:
    """The first query of a new process."""
    table = Table("a new process", "Spark and PatternLake start, s", "first call, s")
    for name in ("range(3)", *TOGETHER, "match_pattern", "cet_count of 60 windows"):
        text = {**BESIDE, **CALLS}[name]
        program = FIRST.format(location=location, cores=CORES, text=text)
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        started, taken = map(float, run.stdout.split())
        table.add_row(name, f"{started:.1f}", f"{taken:.1f}")
    console().print(table)


if __name__ == "__main__":
    typer.run(main)
