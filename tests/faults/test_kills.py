"""A run that dies before or after any of its writes: readers see the last published state, a re-run completes it."""

from __future__ import annotations

import contextlib
import json
import signal
import sys

import pytest

from tests.faults.interrupted import KilledError, Writes
from tests.faults.lakes import History, Lake
from tests.faults.steps import STEPS

FAST = {("ingest", "append events")}
READ_BY_SPARK = "append publications"
"""The stop of each step at which Spark reads the views: all is written then, and nothing of it may be seen."""
# A stop before a write is also one after the write before it; `end` is the stop after the last one.
STOPS = [
    pytest.param(step, stop, id=f"{step}: {stop}", marks=[] if (step, stop) in FAST else [pytest.mark.slow])
    for step, given in STEPS.items()
    for stop in (*given.writes, "end")
]
SLOW_STEPS = [pytest.param(step, marks=[] if step == "ingest" else [pytest.mark.slow], id=step) for step in STEPS]


def completed(history: History, step: str, lake: Lake, *, nothing_done: bool) -> None:
    """Run the job again; the tables must be those of the clean run."""
    given = STEPS[step]
    # Before its intent, nobody can know that a rebuild was wanted.
    lake.run(given.job, given.object, rebuild=given.rebuild and nothing_done)
    assert lake.rows() == history.after(step).rows


@pytest.mark.parametrize("step", SLOW_STEPS)
def test_a_clean_run_writes_what_is_interrupted_here(history: History, step: str) -> None:
    # The small tables are written beside the events, so their order may differ.
    assert sorted(history.after(step).writes) == sorted(STEPS[step].writes)


@pytest.mark.parametrize(("step", "stop"), STOPS)
def test_a_run_that_dies_is_completed_by_the_next(history: History, step: str, stop: str) -> None:
    given = STEPS[step]
    history.after(step)
    lake = history.copy(given.before)
    lake.prepare(given)
    with Writes(stop).watched() as writes, contextlib.suppress(KilledError):
        lake.run(given.job, given.object, rebuild=given.rebuild)
    assert writes.stopped
    published = step if stop == "end" else given.before
    clean = history.after(published)
    if stop == READ_BY_SPARK:
        assert lake.seen(by_spark=True) == clean.seen_by_spark
    else:
        seen = lake.seen(by_spark=False, but_as=None if stop == "end" else clean.lake)
        assert seen == {name: clean.seen[name] for name in seen}
    completed(history, step, lake, nothing_done=not writes.done)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stop"),
    [
        ("ingest", "append event_statistics"),
        ("sketch", "delete sketch_nodes"),
        ("ingest more", "append publications"),
        ("ingest more", "end"),
        ("sketch more", "update sketch_nodes"),
        ("sketch more", "append publications"),
        ("trends more", "update trend_edges"),
        ("patterns more", "append pattern_state"),
        ("patterns few", "update_matching pattern_state"),
        ("predict more", "update machine_transitions"),
        ("soon more", "append alerts"),
    ],
)
def test_a_process_that_is_killed_is_completed_by_the_next(history: History, step: str, stop: str) -> None:
    given = STEPS[step]
    history.after(step)
    lake = history.copy(given.before)
    lake.prepare(given)
    worker = lake.worker(given.job, stop, "kill", *given.options)
    _, said = worker.communicate()
    assert worker.returncode == -signal.SIGKILL, said
    completed(history, step, lake, nothing_done=False)
    assert lake.run(given.job, given.object).batches == 0


@pytest.mark.slow
@pytest.mark.parametrize("stop", STEPS["ingest"].writes[:2])
def test_a_run_that_died_before_its_first_batch_began_has_read_nothing(history: History, stop: str) -> None:
    lake = history.copy(None)
    lake.files("a")
    with Writes(stop).watched() as writes, contextlib.suppress(KilledError):
        lake.run("ingest")
    assert writes.stopped
    lake.files("a", "b")
    assert lake.run("ingest").batches == 1
    # A row of b that is late behind a's batch is not beside a's rows.
    found, clean = lake.rows(), history.after("ingest more").rows
    assert len(found["events"] + found["quarantine"]) == len(clean["events"] + clean["quarantine"])


@pytest.mark.slow
# The first two writes number the stream and begin the batch: before them, nothing has been read.
@pytest.mark.parametrize("stop", [*STEPS["ingest"].writes[2:], "end"])
def test_a_source_that_grew_after_the_death_changes_nothing_of_the_batch(history: History, stop: str) -> None:
    """The batch that died keeps its rows; what came later becomes the next batch of the same run."""
    lake = history.copy(None)
    lake.files("a")
    with Writes(stop).watched(), contextlib.suppress(KilledError):
        lake.run("ingest")
    lake.files("a", "b")
    assert lake.run("ingest").batches == (1 if stop == "end" else 2)
    clean = history.after("ingest more").rows
    of_ingest = ("streams", "events", "event_statistics", "quarantine")
    rows = lake.rows()
    assert {name: rows[name] for name in of_ingest} == {name: clean[name] for name in of_ingest}


@pytest.mark.slow
@pytest.mark.parametrize("stop", [*STEPS["told"].writes, "append alert_deliveries", "end"])
def test_an_alert_is_delivered_wherever_its_run_died(history: History, stop: str) -> None:
    """At least once, by its id; what was delivered and not written down before the death, twice."""
    lake = history.copy("predict")
    lake.prepare(STEPS["told"])
    letters = lake.folder / "letters.jsonl"
    program = f"import sys; open({str(letters)!r}, 'ab').write(sys.stdin.buffer.read())"
    outside = json.dumps(
        {"of": "subscription", "name": "m", "to": "command", "command": [sys.executable, "-c", program]}
    )
    text = lake.conf.read_text()
    lake.conf.write_text(text.replace("{of: subscription, name: m}", outside))
    with Writes(stop, last="append alert_deliveries").watched() as writes, contextlib.suppress(KilledError):
        lake.run("alerts", "told")
    assert writes.stopped
    lake.run("alerts", "told")
    found = {row["alert_id"]: row for row in lake.spark.table(lake.db.view("alerts")).collect()}
    sent = [json.loads(line)["alert_id"] for line in letters.read_text().splitlines()]
    assert set(sent) == set(found)
    assert len(sent) == len(found) * (2 if stop == "append alert_deliveries" else 1)
    assert all(row["delivered_at"] is not None and row["attempts"] == 1 for row in found.values())
    rows = lake.rows()
    clean = history.after("told").rows
    assert {name: rows[name] for name in ("alerts", "publications")} == {
        name: clean[name] for name in ("alerts", "publications")
    }
