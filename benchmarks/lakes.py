"""Lakes to measure on: events made by `benchmarks.events`, taken in by the real jobs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from benchmarks.events import source
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.questions import STREAM
from patternlake.delta_tables.batches.upkeep import tidy
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import SketchConfiguration, StreamConfiguration
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.sketch.job import sketch

FOLDER = Path("build/bench")
CHUNK = 10_000_000
"""Events that one batch of ingest takes in; more than that come in several."""


def stream_configuration(path: Path, kind: str = "parquet") -> StreamConfiguration:
    """The stream over source files of a kind (parquet or csv)."""
    options: dict[str, Any] = {"header": True} if kind == "csv" else {}
    return StreamConfiguration.model_validate(
        {
            "source": {"format": kind, "path": str(path.resolve()), "options": options},
            "time": "at" if kind == "parquet" else "CAST(at AS TIMESTAMP)",
            "name": "action",
            "key": "account",
            "attributes": {"amount": "double"},
        }
    )


def sketch_configuration(events: int, *, keyed: bool = False, structure: str = "leveled") -> SketchConfiguration:
    """The sketch: all defaults, but for the events that are expected and the memory that they may take."""
    return SketchConfiguration.model_validate(
        {"expected_events": events, "memory": "16GB", "keyed": keyed, "structure": structure}
    )


@dataclass
class Lake:
    """A database with one stream."""

    db: Database
    folder: Path
    events: int
    seconds: dict[str, float] = field(default_factory=dict)
    batches: list[dict[str, float]] = field(default_factory=list)
    """Of each run of `ingest`: its seconds, and its peaks of memory as `PeakMemory` takes them."""
    memory: dict[str, int] = field(default_factory=dict)
    """Peaks of the last run of `sketch`."""

    def published(self, job: str) -> Publication:
        """The stream's latest publication of a job."""
        found = PublicationsReader(self.db).latest(job, STREAM)
        if found is None:
            raise RuntimeError(f"{job} has published nothing")
        return found

    @property
    def rows(self) -> str:
        """SQL text that selects the published events among the rows of the Delta table behind `events`."""
        p = self.published("ingest")
        return f"stream_id = {p.stream_id} AND batch_id BETWEEN {p.base_batch} AND {p.batch_id}"

    def build(self, configuration: SketchConfiguration) -> Summary:
        """Build the sketch, or build it anew."""
        start = time.perf_counter()
        last = PublicationsReader(self.db).latest("sketch", STREAM)
        with PeakMemory(self.db.spark) as peak:
            summary = sketch(self.db, STREAM, configuration, rebuild=last is not None)
        self.memory = peak.peaks
        self.seconds["sketch"] = time.perf_counter() - start
        return summary


def write_source(spark: SparkSession, path: Path, events: int, kind: str = "parquet") -> None:
    """Write source files that are not there yet."""
    if path.exists():
        return
    frame = source(spark, events)
    if kind == "csv":
        frame.write.option("header", True).csv(str(path))
    else:
        frame.write.parquet(str(path))


@contextmanager
def new_folder(name: str) -> Iterator[Path]:
    """An empty folder under build/bench, removed at the end unless PATTERNLAKE_BENCH_KEEP is set."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        if not os.environ.get("PATTERNLAKE_BENCH_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def make_lake(spark: SparkSession, folder: Path, events: int, name: str | None = None) -> Lake:
    """Make events and ingest them, in batches of `CHUNK`, into the database at ``folder/state``.

    Their files are left as the job `maintain` leaves them.

    Parameters
    ----------
    spark
        A session of `sessions.spark_session`.
    folder
        Where the source and the database lie.
    events
        How many.
    name
        SQL text of the names, over the columns of `events.source`; theirs where none is given.
    """
    lake = Lake(
        open_database(spark, "patternlake", str(folder / "state")), folder, events, {"source": 0.0, "ingest": 0.0}
    )
    configuration = stream_configuration(folder / "source")
    for first, last in pairwise([*range(0, events, CHUNK), events]):
        part = source(spark, events, first, last)
        if name is not None:
            part = part.withColumn("action", expr(name))
        written = seconds(partial(part.write.mode("append").parquet, str(folder / "source")))
        with PeakMemory(spark) as peak:
            taken = seconds(lambda: ingest(lake.db, STREAM, configuration))
        lake.seconds["source"] += written
        lake.seconds["ingest"] += taken
        lake.batches.append({"seconds": taken, **peak.peaks})
    accepted = lake.published("ingest").source_to
    if accepted != events:
        raise RuntimeError(f"{accepted} of {events} events were accepted")
    number = lake.published("ingest").stream_id
    lake.seconds["merging"] = seconds(lambda: tidy(lake.db, [number], [TABLES["events"]]))
    return lake
