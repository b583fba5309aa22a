"""The jobs `ingest` and `sketch`, each beside plain Spark reading the same input and writing it to a Delta table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import source
from benchmarks.lakes import (
    Lake,
    new_folder,
    sketch_configuration,
    stream_configuration,
    write_source,
)
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.questions import STREAM
from benchmarks.sessions import spark_session
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.sketch.job import sketch
from patternlake.udfs.sketch.sizing.sizes import Sizing

WARM_UP = 20_000


def measure(events: int, repeats: int, kind: str = "parquet") -> dict[str, Any]:
    """Both jobs at one size, a fresh lake for each repetition."""
    with new_folder(f"jobs_{kind}_{events}") as folder, spark_session(folder, functions=False) as spark:
        write_source(spark, folder / "small", WARM_UP, kind)
        _round(spark, folder / "warm", folder / "small", WARM_UP, kind)
        path = folder / "source"
        write_source(spark, path, events, kind)
        rounds = []
        for number in range(repeats):
            place = folder / f"round{number}"
            rounds.append(_round(spark, place, path, events, kind))
            shutil.rmtree(place)
        size = sum(file.stat().st_size for file in path.glob("*") if not file.name.startswith(("_", ".")))
        return {"events": events, "repeats": repeats, "source": kind, "source_bytes": size, "rounds": rounds}


def _round(spark: SparkSession, folder: Path, path: Path, events: int, kind: str) -> dict[str, Any]:
    """One fresh lake: the plain copies and the jobs, in turn."""
    database = f"jobs_{folder.name}"
    db = open_database(spark, database, str(folder / "state"))
    configuration = stream_configuration(path, kind)
    taken: dict[str, float] = {}
    memory: dict[str, dict[str, int]] = {}

    def plain_source() -> None:
        reader = spark.read.option("header", True).schema(source(spark, 1000).schema) if kind == "csv" else spark.read
        reader.format(kind).load(str(path)).write.format("delta").save(str(folder / "copied_source"))

    def plain_events() -> None:
        rows = spark.table(db.log("events")).where(lake.rows)
        rows.write.format("delta").save(str(folder / "copied_events"))

    taken["plain_source"] = seconds(plain_source)
    with PeakMemory(spark) as peak:
        taken["ingest"] = seconds(lambda: ingest(db, STREAM, configuration))
    memory["ingest"] = peak.peaks
    lake = Lake(db, folder, events)
    accepted = lake.published("ingest").source_to
    if accepted != events:
        raise RuntimeError(f"{accepted} of {events} events were accepted")
    taken["plain_events"] = seconds(plain_events)
    with PeakMemory(spark) as peak:
        taken["sketch"] = seconds(lambda: sketch(db, STREAM, sketch_configuration(events)))
    memory["sketch"] = peak.peaks
    sizing = Sizing.of(lake.published("sketch").state["plans"][0]["sizing"])
    segment = {"events": sizing.segment_events, "bytes": sizing.segment_bytes}
    spark.sql(f"DROP DATABASE {database} CASCADE")
    return {"seconds": taken, "memory": memory, "segment": segment}
