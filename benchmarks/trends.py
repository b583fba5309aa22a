"""The job `trends`, `cet_count` and `cet_trends`, each beside plain Spark or beside the kernels' own time.

The query is the paper's over stock prices: of even prices from 5 to 15, each more than 2.8 times the one before; here
over amounts from 0 to 1000, which are such prices on another scale. A window of 10,000 s holds 10,000 events and about
90,000 trends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from benchmarks.lakes import Lake, make_lake, new_folder, stream_configuration
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session
from patternlake.delta_tables.committing.database import Database
from patternlake.jobs.configuration.file import TrendConfiguration
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.trends.job import trends
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import vertices_of
from patternlake.udfs.trends.query import compile_query

WINDOW = 10_000
STOCK = f"e+ s[] DEFINE e AS TRUE WHERE s[i].amount > s[i-1].amount * 2.8 + 900 WITHIN {WINDOW} SECONDS"
RISING = "e+ s[] DEFINE e AS TRUE WHERE s[i].amount > s[i-1].amount"
RISING_EVENTS = 24
"""2^22 trends, all of which begin at the first event."""
LISTED_WINDOWS = 60
TOTALS = "count(*), sum(length), sum(positions[0]) FROM cet_trends('{query}', max_trends => 100000000{more})"
_START = 1_577_836_800


def measure(events: int, repeats: int) -> dict[str, Any]:
    """All figures at one size: the job, both functions, the kernels alone, and extraction on one core and on two."""
    figures: dict[str, Any] = {"events": events, "repeats": repeats}
    with new_folder(f"trends_{events}") as folder:
        with spark_session(folder) as spark:
            lake = make_lake(spark, folder, events)
            _rising(lake.db, folder / "rising")
            figures["jobs"] = [_job(lake, folder / f"copy{number}") for number in range(repeats + 1)][1:]
            figures["calls"] = {name: _call(spark, name, text, repeats) for name, text in _calls(events).items()}
            amounts = spark.read.parquet(str(folder / "source")).orderBy("at").select("amount").toArrow()["amount"]
        figures["kernels"] = [_kernels(amounts.to_numpy(), events) for _ in range(repeats + 1)][1:]
        figures["cores"] = {str(cores): _on_cores(folder, cores, events, repeats) for cores in (1, 2)}
    return figures


def _rising(db: Database, path: Path) -> None:
    """A stream of few events with many trends that all begin at the first, and its graph."""
    columns = "timestamp_seconds(id) AS at, 'n1' AS action, 'k1' AS account, CAST(id AS DOUBLE) AS amount"
    db.spark.range(RISING_EVENTS).selectExpr(*columns.split(", ")).coalesce(1).write.parquet(str(path))
    ingest(db, "rising", stream_configuration(path))
    trends(db, "rising", TrendConfiguration(stream="rising", query=RISING))


def _job(lake: Lake, copy: Path) -> dict[str, Any]:
    """One build of the graph, beside plain Spark that copies the events."""
    rows = lake.db.spark.table(lake.db.log("events")).where(lake.rows)
    plain = seconds(lambda: rows.write.format("delta").save(str(copy)), "plain copy")
    asked = TrendConfiguration(stream=STREAM, query=STOCK)
    with PeakMemory(lake.db.spark) as peak:
        taken = seconds(lambda: trends(lake.db, "stock", asked, rebuild=True), "job trends")
    return {"seconds": {"trends": taken, "plain": plain}, "memory": peak.peaks}


def _calls(events: int) -> dict[str, str]:
    """The questions: all windows counted, some counted, the same ones listed."""
    first = _first_listed(events)
    bounds = (f"timestamp_seconds({window * WINDOW})" for window in (first, first + LISTED_WINDOWS))
    some = ", from_time => {}, to_time => {}".format(*bounds)
    # The sum makes the count of every window be computed, and hands none of them over.
    counted = "SELECT count(*), sum(trends_approx), max(longest) FROM cet_count('stock'{})"
    return {
        "cet_count, all windows": counted.format(""),
        "cet_count, some windows": counted.format(some),
        "cet_trends, the same": "SELECT " + TOTALS.format(query="stock", more=some),
    }


def _first_listed(events: int) -> int:
    """Number of the first window that is listed."""
    return (_START + events // 5) // WINDOW


def _call(spark: SparkSession, name: str, text: str, repeats: int) -> dict[str, Any]:
    answer = spark.sql(text).collect()[0]
    with PeakMemory(spark) as peak:
        taken = [seconds(lambda: ask(spark, text), name) for _ in range(repeats)]
    return {"seconds": taken, "answer": [float(value) for value in answer], "memory": peak.peaks, "text": text}


def _kernels(amounts: NDArray[np.float64], events: int) -> dict[str, Any]:
    """The same answers from arrays, on one core, without Spark."""
    columns = {"amount": Column(amounts, np.ones(events, np.bool_), "double")}
    numbers = np.arange(events, dtype=np.int64)
    given = Events(
        positions=numbers + 1,
        times=(numbers + _START) * 1_000_000,
        names=numbers * 0,
        vocabulary=["e"],
        keys=numbers * 0,
        columns=columns,
    )
    asked = compile_query(parse(STOCK), Scope(attributes={"amount": "double"}))
    taken: dict[str, float] = {}
    found: list[Trends] = []
    taken["build"] = seconds(lambda: found.append(Trends(asked, vertices_of(asked, given))))
    taken["count"] = seconds(found[0].counts)
    counts = found[0].counts()
    first = _first_listed(events)
    window = found[0].cells.window
    low, high = (sum(counts.trends[:cell]) for cell in np.searchsorted(window, [first, first + LISTED_WINDOWS]))
    taken["list"] = seconds(lambda: [None for _ in found[0].extract(low, high)])
    return {"seconds": taken, "trends": float(sum(counts.trends)), "listed": high - low}


def _on_cores(folder: Path, cores: int, events: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of extraction in a session with so many cores."""
    texts = {
        "windows": _calls(events)["cet_trends, the same"],
        "one start": "SELECT " + TOTALS.format(query="rising", more=""),
    }
    with spark_session(folder, cores=cores) as spark:
        return {name: _call(spark, f"{name}, cores: {cores}", text, repeats)["seconds"] for name, text in texts.items()}
