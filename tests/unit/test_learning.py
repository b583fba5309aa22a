"""What is learned of conditions: by a process for itself, and in a table that a job writes and sessions read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark import cloudpickle

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.spark.told_by_tasks import add_up
from patternlake.delta_tables.tables import observed_selectivities
from patternlake.delta_tables.tables.observed_selectivities import TABLE, ObservedSelectivities, read_observations
from patternlake.sql_ext.lakes import learning
from patternlake.sql_ext.lakes.learning import Learned
from patternlake.udfs.kleene.plans.observations import JudgedCondition, Observation

STREAM = 7
RISING, LOW = JudgedCondition("A.x < B.x", ""), JudgedCondition("A.x < 3", "")
_TYPES = {"INT": pa.int32(), "STRING": pa.string(), "DOUBLE": pa.float64(), "TIMESTAMP": pa.timestamp("us", "UTC")}


class Lake:
    """A database that has the one table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        schema = pa.schema([(column.name, _TYPES[column.type]) for column in TABLE.columns])
        write_deltalake(self.place, schema.empty_table())
        spark: Any = None
        self.reader = DirectReader(str(folder), TableCache())
        self.database = Database(spark, "d", str(folder), folder_on_disk=str(folder), direct=self.reader)
        self.table = ObservedSelectivities(self.database)

    @property
    def place(self) -> str:
        return str(self.folder / TABLE.log)

    def session(self) -> Learned:
        """What a session of another process has that begins at this moment."""
        made = Learned(str(self.folder))
        made.look(self.reader)
        return made

    def rows(self) -> list[dict[str, Any]]:
        return DeltaTable(self.place).to_pyarrow_table().to_pylist()

    @property
    def version(self) -> int:
        return DeltaTable(self.place).version()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def share(learned: Learned, condition: JudgedCondition = RISING) -> float | None:
    found = learned.seen(STREAM)(condition)
    return None if found is None else found.share


def test_what_a_question_tells_is_known_to_its_process_and_written_nowhere(lake: Lake) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    assert share(one) == 0.01
    assert share(lake.session()) is None
    assert lake.rows() == []
    assert one.seen(STREAM + 1)(RISING) is None


def test_what_a_job_tells_is_known_to_all_when_they_look(lake: Lake) -> None:
    one = lake.session()
    lake.table.tell(STREAM, {RISING: (1000, 10)})
    assert share(lake.session()) == 0.01
    one.look(lake.reader)  # it has looked a moment ago
    assert share(one) is None
    one.look(lake.reader, at_once=True)
    assert share(one) == 0.01


def test_what_jobs_and_the_own_process_observe_adds_up(lake: Lake) -> None:
    for held in (100, 500):
        lake.table.tell(STREAM, {RISING: (1000, held)})
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 300)})
    assert share(one) == pytest.approx(0.3, rel=1e-6)


def test_runs_that_write_at_the_same_moment_lose_nothing_that_is_told_again(lake: Lake) -> None:
    def tell(number: int) -> None:
        while not any(row["predicate"] == f"A.x < {number}" for row in lake.rows()):
            lake.table.tell(STREAM, {JudgedCondition(f"A.x < {number}", ""): (1000, 500)})

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lake.rows()) == 4


@pytest.mark.parametrize("judged", [0, 1, 99])
def test_too_few_judgements_are_no_news(lake: Lake, judged: int) -> None:
    lake.table.tell(STREAM, {RISING: (judged, 0)})
    assert lake.rows() == []


def test_what_is_known_already_is_not_written_again(lake: Lake) -> None:
    for held in (300, 310, 290):
        lake.table.tell(STREAM, {RISING: (1000, held)})
    assert [row["held"] for row in lake.rows()] == [300]
    lake.table.tell(STREAM, {RISING: (100_000, 90_000)})
    assert len(lake.rows()) == 2


def test_what_is_known_is_confirmed_after_a_day(lake: Lake) -> None:
    yesterday = timestamps.to_micros(timestamps.now() - timedelta(days=1, minutes=1))
    lake.table.append({(STREAM, RISING): Observation(1000, 300, yesterday)})
    lake.table.tell(STREAM, {RISING: (1000, 300)})
    assert len(lake.rows()) == 2


def test_a_lake_that_is_gone_stops_no_question(lake: Lake) -> None:
    one = lake.session()
    os.rename(lake.place, f"{lake.place}.gone")
    one.tell(STREAM, {RISING: (1000, 10)})
    one.look(lake.reader, at_once=True)
    assert share(one) == 0.01


def test_a_write_waits_for_nobody(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job commits through Spark, what was observed is left to the next run."""
    monkeypatch.setattr("patternlake.delta_tables.committing.commit_lock._PATIENCE", 0.01)
    commits = lake.database.commits(TABLE)
    assert commits is not None
    with commits.through_spark():
        lake.table.tell(STREAM, {RISING: (1000, 10)})
    assert lake.rows() == []
    lake.table.tell(STREAM, {RISING: (1000, 10)})
    assert len(lake.rows()) == 1


def test_what_is_deleted_is_forgotten(lake: Lake) -> None:
    lake.table.tell(STREAM, {RISING: (1000, 10), LOW: (1000, 500)})
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    DeltaTable(lake.place).delete("predicate = 'A.x < B.x'")
    one.look(lake.reader, at_once=True)
    assert share(one) is None
    assert share(one, LOW) == 0.5


def test_conditions_do_not_pile_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_HELD", 10)
    one = lake.session()
    for number in range(100):
        one.tell(STREAM, {RISING: (1000, 10)})
        one.tell(STREAM, {JudgedCondition(f"A.x < {number}", ""): (1, 0)})
    assert len(one._own) == 10
    assert share(one) == pytest.approx(0.01)


def test_what_several_tasks_found_is_one(lake: Lake) -> None:
    assert add_up([{RISING: (60, 1), LOW: (5, 5)}, {RISING: (50, 2)}]) == {RISING: (110, 3), LOW: (5, 5)}


def test_a_run_counts_no_more_than_a_million_judgements(lake: Lake) -> None:
    lake.table.tell(STREAM, {RISING: (10**15, 10**14)})
    assert [(row["judged"], row["held"]) for row in lake.rows()] == [(1e6, 1e5)]


def test_condensing_changes_no_share_and_leaves_a_row_for_a_condition(lake: Lake) -> None:
    now = timestamps.to_micros(timestamps.now())
    for hours, held in ((30, 900), (20, 500), (1, 100)):
        lake.table.append({(STREAM, RISING): Observation(1000, held, now - hours * 3_600_000_000)})
    lake.table.append({(STREAM, LOW): Observation(1000, 1, now), (8, RISING): Observation(100, 1, now)})
    before = read_observations(lake.reader)
    lake.table.condense()
    assert len(lake.rows()) == 3
    after = read_observations(lake.reader)
    assert {key: one.share for key, one in after.items()} == pytest.approx(
        {key: one.share for key, one in before.items()}
    )
    version = lake.version
    lake.table.condense()
    assert lake.version == version


def test_what_nobody_asks_for_any_more_is_forgotten(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed_selectivities, "MOST_KEPT", 2)
    now = timestamps.to_micros(timestamps.now())
    day = 86_400_000_000
    ages = {"A.x < 1": 91, "A.x < 2": 3, "A.x < 3": 2, "A.x < 4": 1}
    for text, days in ages.items():
        lake.table.append({(STREAM, JudgedCondition(text, "")): Observation(1000, 1, now - days * day)})
    lake.table.append({(8, JudgedCondition("A.x < 1", "")): Observation(1000, 1, now - 91 * day)})
    lake.table.condense()
    assert sorted(row["predicate"] for row in lake.rows()) == ["A.x < 3", "A.x < 4"]


def test_what_is_written_while_the_table_is_condensed_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timestamps.to_micros(timestamps.now())
    for number in range(2):
        lake.table.append({(STREAM, RISING): Observation(1000, 500, now - number)})
    read = observed_selectivities._add_up

    def meanwhile(rows: pa.Table) -> Any:
        lake.table.append({(STREAM, LOW): Observation(1000, 1, now + 1)})
        return read(rows)

    monkeypatch.setattr(observed_selectivities, "_add_up", meanwhile)
    lake.table.condense()
    assert sorted(row["predicate"] for row in lake.rows()) == ["A.x < 3", "A.x < B.x"]


def test_tasks_gather_and_the_driver_takes(lake: Lake) -> None:
    one = lake.session()
    in_driver = learning._ToDriver()
    in_task = cloudpickle.loads(cloudpickle.dumps(in_driver))
    told: list[Any] = in_task.zero([])
    for held in (10, 30):
        told = in_task.addInPlace(told, [(str(lake.folder), STREAM, {RISING: (1000, held)})])
    gone = [("/nowhere", STREAM, {RISING: (1000, 1)})]
    assert in_driver.addInPlace([], [*told, *gone]) == []
    assert share(one) == pytest.approx(0.02, rel=1e-6)


LOOKING = """
import threading
import time
from patternlake.sql_ext.lakes.learning import Learned

class ThroughSpark:
    def identity(self, name):
        time.sleep(1)
        print("looked", flush=True)

# Calls are planned in threads whose end nobody waits for.
planning = threading.Thread(target=Learned("lake").look, args=(ThroughSpark(),), daemon=True)
planning.start()
planning.join()
print("ending", flush=True)
"""


def test_a_process_ends_behind_what_it_looks_for_beside_the_calls() -> None:
    ended = subprocess.run([sys.executable, "-c", LOOKING], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()) == (0, ["ending", "looked"]), ended.stderr
