"""What a terminal is shown of jobs that run: phases in their order, with the rows that Spark's tasks have taken in."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

import patternlake
from patternlake.delta_tables.committing import sessions
from patternlake.jobs.batches import few
from patternlake.jobs.ingest import bringing
from patternlake.jobs.progress import reporting
from patternlake.jobs.progress.reporting import ShownProgress
from patternlake.jobs.sources import text_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIGURATION = """
database: progress
location: lake
streams:
  flights:
    source: {format: csv, path: flights, options: {header: true}}
    time: at
    name: what
    allowed_lateness: none
sketches:
  flights: {events_per_leaf: 4, expected_events: 1000, memory: 1MB}
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "conf.yaml").write_text(CONFIGURATION)
    (tmp_path / "flights").mkdir()
    lines = ["at,what"] + [f"2013-01-01 12:00:{n:02},{'ABC'[n % 3]}" for n in range(30)]
    (tmp_path / "flights" / "1.csv").write_text("\n".join([*lines, "never,A"]) + "\n")
    return tmp_path / "conf.yaml"


def test_a_run_shows_its_phases_with_the_rows_of_each(
    spark: SparkSession, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    begin = reporting._Work.at

    def at(work: reporting._Work, phase: str, unit: str | None) -> None:
        """Note what is told at the end of a phase, once Spark has counted all of it."""
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        work.look()
        told.append(", ".join(work._at[0].parts()))
        begin(work, phase, unit)

    monkeypatch.setattr(reporting._Work, "at", at)
    # Of few events the driver takes care: there would be no rows of tasks.
    monkeypatch.setattr(few, "FEW_EVENTS", -1)
    monkeypatch.setattr(text_files, "FEW_BYTES", -1)
    monkeypatch.setattr(bringing, "on_one_disk", lambda spark: False)
    # As users have it, and unlike the other tests: a stage that ends early shows its rows in the phase that runs it.
    monkeypatch.setitem(sessions.SETTINGS, "spark.sql.adaptive.enabled", "true")
    before = spark.sparkContext.getJobTags()
    screen = Console(file=io.StringIO(), force_terminal=True, width=200)
    with ShownProgress(screen, spark) as shown:
        for job in ("ingest", "sketch"):
            patternlake.run(spark, conf, job=job, progress=shown)
    ingest = ["looking for new files", "looking at new files", "reading, 31 rows", "beginning batch 1"]
    # Tasks that write files are told of as parts, which hold the rows of a range each.
    ingest += ["looking at events of one time", "counting", "writing events, 1 parts"]
    sketch = ["looking for new events", "sizing", "beginning batch 1", "writing sketch_nodes, 1 parts"]
    assert [line for line in told if line][: len(ingest)] == ingest
    assert [line for line in told if line][len(ingest) :][: len(sketch)] == sketch
    assert spark.sparkContext.getJobTags() == before
    assert "ingest flights: 31 rows in, 30 out, 1 quarantined" in screen.file.getvalue()  # type: ignore[attr-defined]
