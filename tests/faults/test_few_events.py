"""Batches of few events are worked on in the driver, others by tasks of Spark: the tables get the same rows."""

from __future__ import annotations

import pytest

from patternlake.delta_tables.batches.batch_rows import BatchRows
from patternlake.delta_tables.databases import opening
from patternlake.jobs.batches import few
from patternlake.jobs.ingest import bringing
from patternlake.jobs.sources import text_files
from tests.faults.interrupted import Writes
from tests.faults.lakes import History
from tests.faults.steps import STEPS

COMPARED = [pytest.param(step, id=step, marks=[] if step == "ingest" else [pytest.mark.slow]) for step in STEPS]


@pytest.mark.parametrize("writer", ["tasks", "spark", "spark alone"])
@pytest.mark.parametrize("step", COMPARED)
def test_tasks_of_spark_write_what_the_driver_writes_of_few_events(
    history: History, step: str, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks write files for themselves where the driver commits them; else Spark does, and perhaps reads all, too."""
    given = STEPS[step]
    by_the_driver = history.after(step)
    monkeypatch.setattr(few, "FEW_EVENTS", -1)
    monkeypatch.setattr(few, "FEW_BYTES", -1)
    monkeypatch.setattr(text_files, "FEW_BYTES", -1)
    monkeypatch.setattr(bringing, "on_one_disk", lambda spark: writer == "tasks")
    if writer == "spark":
        monkeypatch.setattr(BatchRows, "_commits", lambda rows, table: None)
    if writer == "spark alone":
        monkeypatch.setattr(opening, "_on_disk", lambda registered, location: None)
    lake = history.copy(given.before)
    lake.prepare(given)
    with Writes().watched() as writes:
        lake.run(given.job, given.object, rebuild=given.rebuild)
    assert sorted(writes.done) == sorted(by_the_driver.writes)
    assert lake.rows() == by_the_driver.rows
