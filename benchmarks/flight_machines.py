"""The demo's subscriptions on its year of flights and weather: the job `predict` and both functions, cold and warm.

    python -m benchmarks.flight_machines [--repeats N]

*cold*: the first run of the job in a Spark session, which takes all events at once, and the first call of a function;
*warm*: the median of the runs after it, of the job with `rebuild`. Two cores. Beside them, the same count in plain SQL
from the events, where SQL has words for it: the heat waves, as each day's four predecessors by `lag`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pyspark.sql import SparkSession
from rich.table import Table

import patternlake
from benchmarks.lakes import new_folder
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.sessions import ask, spark_session
from benchmarks.tables import console

DEMO = Path(__file__).resolve().parents[1] / "demo"
CONFIGURATION = DEMO.parent / "conf" / "demo.yaml"
MONTHS = range(1, 13)
SUBSCRIPTIONS = ("third_strike", "city_in_trouble", "heat_wave")
CALLS = {
    "match_subscription": "SELECT count(*), sum(last_position) FROM match_subscription('{name}')",
    "predict_match": "SELECT count(*), sum(probability) FROM predict_match('{name}')",
}
PLAIN = """
SELECT count(*), sum(position) FROM (
  SELECT position, time, name, {before} FROM patternlake.events WHERE stream = 'days'
) WHERE name = 'hot' AND {hot} AND time - t4 < INTERVAL '5' DAYS
"""
LAG = "lag({column}, {step}) OVER (PARTITION BY key ORDER BY time, position) AS {alias}{step}"


def plain() -> str:
    """The heat waves in plain SQL."""
    steps = range(1, 5)
    before = [LAG.format(column="name", step=step, alias="n") for step in steps]
    before.append(LAG.format(column="time", step=4, alias="t"))
    return PLAIN.format(before=", ".join(before), hot=" AND ".join(f"n{step} = 'hot'" for step in steps))


def deliver(folder: Path) -> Path:
    """Write the year's files, and a configuration of both streams and the subscriptions; returns the latter."""
    sys.path.insert(0, str(DEMO))
    from deliver import Deliveries
    from heat import DailyMaxima

    deliveries = Deliveries()
    (folder / "data").mkdir()
    for month in MONTHS:
        deliveries.write(month, folder / "data")
    (folder / "weather").mkdir()
    DailyMaxima().write(MONTHS, folder / "weather")
    whole = yaml.safe_load(CONFIGURATION.read_text())
    streams = {name: whole["streams"][name] for name in ("flights", "days")}
    for name, source in (("flights", "data"), ("days", "weather")):
        streams[name]["source"]["path"] = str((folder / source).resolve())
    path = folder / "lake.yaml"
    names = {"database": "patternlake", "location": str((folder / "state").resolve())}
    path.write_text(yaml.safe_dump({**names, "streams": streams, "subscriptions": whole["subscriptions"]}))
    return path


def cold_and_warm(action: Callable[[], Any], name: str, repeats: int) -> tuple[float, float]:
    """Seconds of the first call, and the median of the others."""
    cold = seconds(action, f"{name}, first")
    return cold, statistics.median(seconds(action, name) for _ in range(repeats))


def main(repeats: Annotated[int, typer.Option("--repeats", help="how often each runs when warm")] = 3) -> None:
    """Measure and print a table."""
    with new_folder("flight_machines") as folder, spark_session(folder) as spark:
        path = str(deliver(folder))
        patternlake.run(spark, path, job="ingest")
        table = Table("", "cold, s", "warm, s", "rows")
        with PeakMemory(spark) as peak:
            rebuild = partial(patternlake.run, spark, path, job="predict", rebuild=True)
            cold, warm = cold_and_warm(rebuild, "predict", repeats)
        live = spark.sql(
            "SELECT count(*) FROM patternlake_internal.machine_instances WHERE size(operands) > 0"
        ).collect()[0][0]
        table.add_row("predict", f"{cold:.1f}", f"{warm:.1f}", f"{live:,} live instances")
        for name in SUBSCRIPTIONS:
            for function, text in CALLS.items():
                asked = partial(_answer, spark, text.format(name=name))
                cold, warm = cold_and_warm(asked, f"{function} {name}", repeats)
                table.add_row(f"{function}('{name}')", f"{cold:.2f}", f"{warm:.2f}", f"{asked()[0]:,}")
        if _answer(spark, plain()) != _answer(spark, CALLS["match_subscription"].format(name="heat_wave")):
            raise AssertionError("plain SQL finds other heat waves")
        cold, warm = cold_and_warm(partial(_answer, spark, plain()), "plain SQL", repeats)
        table.add_row("heat waves in plain SQL", f"{cold:.2f}", f"{warm:.2f}", f"{_answer(spark, plain())[0]:,}")
        console().print(table)
        workers, heap = peak.peaks["workers"], peak.peaks["jvm_heap_after_gc"]
        console().print(
            f"peaks of predict: workers {workers / 1e6:,.0f} MB, heap after collection {heap / 1e6:,.0f} MB"
        )


def _answer(spark: SparkSession, text: str) -> tuple[Any, ...]:
    return tuple(ask(spark, text)[0])


if __name__ == "__main__":
    typer.run(main)
