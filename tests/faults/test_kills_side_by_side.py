"""A run of several jobs at once of which one dies, or all: those beside it end, and the next run completes them all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.jobs.runs import running
from tests.faults.interrupted import KilledError, Writes
from tests.faults.lakes import History, Lake

pytestmark = pytest.mark.slow

BEFORE = "ingest more"
SIDE_BY_SIDE = ("--side-by-side", "4")


@pytest.fixture(scope="module")
def clean(history: History) -> dict[str, list[str]]:
    """The rows of a lake whose jobs ran one after another."""
    lake = begun(history)
    running.run(lake.spark, lake.conf, side_by_side=1)
    return lake.rows()


def begun(history: History) -> Lake:
    """A lake that all jobs but `ingest` have something to do in."""
    history.after(BEFORE)
    lake = history.copy(BEFORE)
    lake.files("a", "b")
    return lake


def completed(lake: Lake, clean: dict[str, list[str]]) -> None:
    """Run all jobs again; the tables must be those of the clean run, and nothing be left to do."""
    running.run(lake.spark, lake.conf, side_by_side=4)
    assert lake.rows() == clean
    assert not any(each.batches for each in running.run(lake.spark, lake.conf, side_by_side=4))


@pytest.mark.parametrize("stop", ["append trend_edges", "update trend_vertices"])
def test_a_job_that_dies_leaves_the_others_to_their_end(
    history: History, clean: dict[str, list[str]], stop: str
) -> None:
    lake = begun(history)

    def die() -> None:
        until(lambda: "update_matching group_state" in writes.done)
        raise KilledError("no space left")

    writes = Writes(stop, die)
    with writes.watched(), pytest.raises(KilledError, match="no space left"):
        running.run(lake.spark, lake.conf, side_by_side=4)
    reader = PublicationsReader(lake.db)
    published = {job: reader.latest(job, name) for job, name in (("trends", "t"), ("groups", "g"))}
    assert {job: found and found.batch_id for job, found in published.items()} == {"trends": 1, "groups": 2}
    completed(lake, clean)


@pytest.mark.parametrize("stop", ["append trend_edges", "update sketch_nodes", "update_matching group_state"])
def test_a_process_that_is_killed_at_several_jobs_is_completed_by_the_next(
    history: History, clean: dict[str, list[str]], stop: str
) -> None:
    lake = begun(history)
    worker = lake.worker("all", stop, "kill", *SIDE_BY_SIDE)
    _, said = worker.communicate()
    assert worker.returncode == -signal.SIGKILL, said
    completed(lake, clean)


@pytest.mark.parametrize("stop", ["append trend_edges", "append group_matches"])
def test_an_interrupt_stops_all_jobs(history: History, clean: dict[str, list[str]], tmp_path: Path, stop: str) -> None:
    """The process ends although one of its jobs was between two commits, where nothing can cancel it."""
    lake = begun(history)
    worker = lake.worker("all", stop, str(tmp_path), *SIDE_BY_SIDE)
    until(lambda: (tmp_path / f"reached.{worker.pid}").exists() or worker.poll() is not None)
    os.kill(worker.pid, signal.SIGINT)
    (tmp_path / "go").touch()
    _, said = worker.communicate()
    assert (worker.returncode, said) == (130, "interrupted; nothing half-done is seen, run it again to go on\n")
    completed(lake, clean)


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 1800
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)
