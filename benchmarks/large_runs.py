"""What many events cost each job, beside a plain copy, and in which phases the seconds go.

    python -m benchmarks.large_runs [--events N] [--rounds N]
    python -m benchmarks.large_runs --events N --in-batches

Each round makes a fresh lake and takes all events in at once, job by job; before each job plain Spark copies what the
job reads: the source files for `ingest`, the table of events for the others. The last round is told, as medians of all
but the first, which warms Spark up. In batches, 10 million events come at a time: what `ingest` takes for each, and
`sketch` for all of them, and the memory of both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

from benchmarks import groups as probable
from benchmarks.lakes import make_lake, new_folder, sketch_configuration, stream_configuration, write_source
from benchmarks.machines import QUERIES
from benchmarks.measuring import seconds
from benchmarks.months import Measured
from benchmarks.questions import STREAM
from benchmarks.sessions import spark_session
from benchmarks.tables import console
from benchmarks.trends import STOCK
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.file import GroupConfiguration, SubscriptionConfiguration, TrendConfiguration
from patternlake.jobs.groups.job import groups
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.predict.job import predict
from patternlake.jobs.sketch.job import sketch
from patternlake.jobs.trends.job import trends

PROBABLE = "probable"


def main(
    events: Annotated[int, typer.Option("--events", help="events of each of the two streams")] = 10_000_000,
    rounds: Annotated[int, typer.Option("--rounds", help="rounds, of which the first is not counted")] = 3,
    in_batches: Annotated[bool, typer.Option("--in-batches", help="ingest and sketch alone, batch by batch")] = False,
) -> None:
    """Measure and print a table."""
    if in_batches:
        _in_batches(events)
        return
    with new_folder(f"large_runs_{events}") as folder, spark_session(folder, functions=False) as spark:
        write_source(spark, folder / "source", events, "parquet")
        probable.source(spark, events).write.parquet(str(folder / PROBABLE))
        found = []
        for number in range(rounds):
            found.append(_round(spark, folder, folder / f"round{number}", events))
            shutil.rmtree(folder / f"round{number}")
    _tell(found[1:] or found)


def _in_batches(events: int) -> None:
    with new_folder(f"batches_{events}") as folder, spark_session(folder, functions=False) as spark:
        lake = make_lake(spark, folder, events)
        lake.build(sketch_configuration(events))
    table = Table("what", "s", "peaks of memory, MB")
    for number, batch in enumerate(lake.batches, 1):
        taken = batch.pop("seconds")
        table.add_row(f"ingest, batch {number}", f"{taken:.1f}", _megabytes(batch))
    table.add_row("ingest", f"{lake.seconds['ingest']:.1f}", "")
    table.add_row("sketch", f"{lake.seconds['sketch']:.1f}", _megabytes(lake.memory))
    console().print(table)


def _megabytes(peaks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in peaks.items())


def _round(spark: SparkSession, folder: Path, place: Path, events: int) -> list[tuple[Any, float]]:
    """The steps of one round, each with the seconds of its plain copy."""
    db = open_database(spark, place.name, str(place / "state"))
    measured = Measured(spark, place / "state")
    plain: list[float] = []

    def step(job: str, name: str, read: DataFrame, work: Callable[[], Any]) -> None:
        copy = place / f"copy_{job}"
        plain.append(seconds(lambda: read.write.format("delta").save(str(copy)), f"plain copy for {job}"))
        shutil.rmtree(copy)
        with measured.working(job, name):
            work()

    stream = stream_configuration(folder / "source", "parquet")
    step("ingest", STREAM, spark.read.parquet(str(folder / "source")), lambda: ingest(db, STREAM, stream))
    taken_in = spark.table(db.log("events"))
    step("sketch", STREAM, taken_in, lambda: sketch(db, STREAM, sketch_configuration(events)))
    stock = TrendConfiguration(stream=STREAM, query=STOCK)
    step("trends", "stock", taken_in, lambda: trends(db, "stock", stock))
    asked = {
        name: SubscriptionConfiguration.model_validate({"stream": STREAM, "query": text})
        for name, text in QUERIES.items()
    }
    step("predict", STREAM, taken_in, lambda: predict(db, STREAM, asked))
    uncertain = probable.stream_configuration(folder / PROBABLE)
    ingest(db, PROBABLE, uncertain)
    query = GroupConfiguration(
        stream=PROBABLE, pattern=probable.PATTERN, within=probable.WITHIN, threshold=probable.THRESHOLD
    )
    own = taken_in.where(f"stream_id <> (SELECT min(stream_id) FROM {db.log('events')})")
    step("groups", PROBABLE, own, lambda: groups(db, PROBABLE, query))
    spark.sql(f"DROP DATABASE {place.name} CASCADE")
    return list(zip(measured.steps, plain, strict=True))


def _tell(found: list[list[tuple[Any, float]]]) -> None:
    table = Table("job", "plain copy, s", "the job, s", "ratio", "Spark jobs", "commits", "phases, s")
    for rounds in zip(*found, strict=True):
        step = rounds[-1][0]
        told = [f"{name} {taken:.2f}" for name, taken in step.phases if taken >= 0.05]
        plain, own = median(plain for _, plain in rounds), median(step.seconds for step, _ in rounds)
        ratio = median(step.seconds / plain for step, plain in rounds)
        counts = (str(step.spark_jobs), str(step.commits))
        table.add_row(step.job, f"{plain:.2f}", f"{own:.2f}", f"{ratio:.2f}", *counts, ", ".join(told))
    console().print(table)


if __name__ == "__main__":
    typer.run(main)
