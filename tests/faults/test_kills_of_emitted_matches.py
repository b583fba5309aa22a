"""Matches as events, where a job dies before any of its writes: none is lost, none becomes two events."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs import running
from tests.faults.interrupted import KilledError, Writes

pytestmark = pytest.mark.slow

NAME = "emitted_kills"
INGESTED = ("append intents", "append event_statistics", "append events", "append publications")
FIRST = ("append object_numbers", "append intents", "append streams", *INGESTED[1:])
PREDICTED = ("append subscription_matches", "append machine_instances", "append publications")
"""Where runs die, each of which goes on from where the one before died."""


class Lake:
    """A stream ``s`` that gains an a and a b with each batch, and the stream ``pairs`` of its matches."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "data").mkdir()
        tree = {
            "database": NAME,
            "location": str(folder / "lake"),
            "streams": {
                "s": {
                    "source": {"format": "csv", "path": str(folder / "data"), "options": {"header": True}},
                    "time": "timestamp_seconds(CAST(at AS BIGINT))",
                    "name": "what",
                }
            },
            "subscriptions": {"pairs": {"stream": "s", "query": "a , b", "emit": True}},
        }
        self.configuration = Configuration.from_text(yaml.safe_dump(tree))
        self.batches = 0

    def grow(self) -> None:
        """Write a file with an a and a b, and let `ingest` take it."""
        at = 2 * self.batches
        rows = [f"{at},a", f"{at + 1},b"]
        (self.folder / "data" / f"{self.batches}.csv").write_text("\n".join(["at,what", *rows]) + "\n")
        self.batches += 1
        self.run("ingest", "s")

    def run(self, job: str, object: str) -> Summary:
        (summary,) = running.run(self.spark, self.configuration, job, object=object)
        return summary

    def dies(self, job: str, object: str, stop: str) -> None:
        """Run a job that dies before a write."""
        with Writes(stop).watched() as writes, contextlib.suppress(KilledError):
            self.run(job, object)
        assert writes.stopped, (job, stop)

    def pairs(self) -> list[tuple[int, int]]:
        """Position of each event of `pairs`, and of the b that it stands for."""
        events = open_database(self.spark, NAME, str(self.folder / "lake")).view("events")
        rows = self.spark.sql(f"SELECT * FROM {events} WHERE stream = 'pairs' ORDER BY position").collect()
        return [(row["position"], int(row["attributes"]["b_position"])) for row in rows]


def test_each_match_is_one_event_wherever_a_job_dies(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.grow()
    lake.run("predict", "s")
    for stop in FIRST:
        lake.dies("ingest", "pairs", stop)
        assert lake.pairs() == [], stop
    lake.run("ingest", "pairs")
    assert lake.pairs() == [(1, 2)]
    lake.grow()
    lake.run("predict", "s")
    for stop in INGESTED:
        lake.dies("ingest", "pairs", stop)
        assert lake.pairs() == [(1, 2)], stop
    lake.dies("ingest", "pairs", "end")
    assert lake.pairs() == [(1, 2), (2, 4)]
    assert lake.run("ingest", "pairs").batches == 0
    lake.grow()
    for stop in PREDICTED:
        lake.dies("predict", "s", stop)
        # What is not published is not read.
        assert lake.run("ingest", "pairs").batches == 0
    lake.run("predict", "s")
    # A batch that was begun is done as it was meant, and what has come since is the next one of the same run.
    lake.dies("ingest", "pairs", "append events")
    lake.grow()
    lake.run("predict", "s")
    assert lake.run("ingest", "pairs").batches == 2
    assert lake.pairs() == [(1, 2), (2, 4), (3, 6), (4, 8)]
