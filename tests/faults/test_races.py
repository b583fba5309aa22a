"""Two processes that run the same job at once: one wins, the other stops with a clear message and does no harm."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.lakes import History
from tests.faults.steps import STEPS


def meet(folder: Path, workers: list[subprocess.Popen[str]]) -> None:
    """Wait until every worker stands at its write, or has ended before it."""
    until = time.monotonic() + 1800
    while any(not (folder / f"reached.{w.pid}").exists() and w.poll() is None for w in workers):
        assert time.monotonic() < until, "the workers did not meet"
        time.sleep(0.05)


def lost(said: str) -> bool:
    """Whether this is one line that speaks of another run."""
    return said.count("\n") == 1 and "another run" in said and "this " in said and "stopped" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stop"),
    [
        ("ingest", "append events"),
        pytest.param("ingest more", "append publications", marks=pytest.mark.slow),
        pytest.param("sketch", "append intents", marks=pytest.mark.slow),
        pytest.param("sketch more", "append sketch_nodes (2)", marks=pytest.mark.slow),
        pytest.param("trends more", "append trend_edges", marks=pytest.mark.slow),
        pytest.param("groups more", "append group_state", marks=pytest.mark.slow),
        pytest.param("predict more", "append machine_transitions", marks=pytest.mark.slow),
        pytest.param("told more", "append alerts", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_was_overtaken_stops(history: History, tmp_path: Path, step: str, stop: str) -> None:
    given = STEPS[step]
    clean = history.after(step)
    lake = history.copy(given.before)
    lake.prepare(given)
    slower = lake.worker(given.job, stop, str(tmp_path), *given.options)
    meet(tmp_path, [slower])
    assert lake.run(given.job, given.object).batches == 1
    (tmp_path / "go").touch()
    _, said = slower.communicate()
    assert (slower.returncode, lost(said)) == (1, True), said
    assert lake.rows() == clean.rows
    assert lake.run(given.job, given.object).batches == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stop"),
    [
        ("ingest", "append intents"),
        ("ingest", "append events"),
        ("ingest more", "append publications"),
        ("sketch", "append intents"),
        ("sketch", "append sketch_nodes"),
        ("sketch", "delete sketch_nodes"),
        ("sketch more", "update sketch_nodes"),
        ("sketch more", "append publications"),
        ("trends", "append trend_vertices"),
        ("trends more", "update trend_vertices"),
        ("groups", "append group_matches"),
        ("groups more", "update_matching group_state"),
        ("predict", "append machine_instances"),
        ("predict more", "update_matching machine_instances"),
        ("soon more", "append alerts"),
        ("told more", "append publications"),
    ],
)
def test_of_two_processes_at_the_same_write_one_wins(history: History, tmp_path: Path, step: str, stop: str) -> None:
    given = STEPS[step]
    clean = history.after(step)
    lake = history.copy(given.before)
    lake.prepare(given)
    workers = [lake.worker(given.job, stop, str(tmp_path), *given.options) for _ in range(2)]
    meet(tmp_path, workers)
    (tmp_path / "go").touch()
    said = [worker.communicate()[1] for worker in workers]
    codes = [worker.returncode for worker in workers]
    assert sorted(codes) == [0, 1], said
    assert lost(said[codes.index(1)]), said
    assert lake.rows() == clean.rows
    assert lake.run(given.job, given.object).batches == 0
