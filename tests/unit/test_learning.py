"""What sessions learn of conditions, in a table without Spark: told, written, read by others, forgotten."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark import cloudpickle

from patternlake.delta_tables import timestamps
from patternlake.delta_tables.database import Database
from patternlake.delta_tables.direct_reader import DirectReader
from patternlake.delta_tables.file_cache import TableCache
from patternlake.delta_tables.tables import observed_selectivities
from patternlake.delta_tables.tables.observed_selectivities import TABLE, ObservedSelectivities, read_observations
from patternlake.sql_ext import learning
from patternlake.sql_ext.learning import Learned
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
        made = Learned(str(self.folder), self.table)
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


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    """Nothing is written but where a test says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "PAUSE", 3600.0)
        yield
        for learned in list(learning._EVERYWHERE):
            if learned._timer is not None:
                learned._timer.cancel()


def share(learned: Learned, condition: JudgedCondition = RISING) -> float | None:
    found = learned.seen(STREAM)(condition)
    return None if found is None else found.share


def test_what_is_told_is_known_at_once_and_after_a_write_in_other_sessions(lake: Lake) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    assert share(one) == 0.01
    assert share(lake.session()) is None
    one.write()
    assert share(one) == 0.01
    assert share(lake.session()) == 0.01
    assert lake.session().seen(STREAM + 1)(RISING) is None


def test_a_session_sees_what_another_has_written_when_it_looks(lake: Lake) -> None:
    one, other = lake.session(), lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    one.write()
    other.look(lake.reader)  # it has looked a moment ago
    assert share(other) is None
    other.look(lake.reader, at_once=True)
    assert share(other) == 0.01


def test_what_two_sessions_observe_adds_up(lake: Lake) -> None:
    sessions = [lake.session(), lake.session()]
    for session, held in zip(sessions, (100, 500), strict=True):
        session.tell(STREAM, {RISING: (1000, held)})
        session.write()
    assert share(lake.session()) == pytest.approx(0.3, rel=1e-6)


def test_sessions_that_write_at_the_same_moment_lose_nothing(lake: Lake) -> None:
    sessions = [lake.session() for _ in range(4)]
    for number, session in enumerate(sessions):
        session.tell(STREAM, {JudgedCondition(f"A.x < {number}", ""): (1000, 500)})

    def write(session: Learned) -> None:
        while session._news():
            session.write()

    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lake.rows()) == 4


@pytest.mark.parametrize("judged", [1, 99])
def test_too_few_judgements_are_no_news(lake: Lake, judged: int) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (judged, 0)})
    one.write()
    assert lake.rows() == []


def test_what_is_known_already_is_not_written_again(lake: Lake) -> None:
    one = lake.session()
    for held in (300, 310, 290):
        one.tell(STREAM, {RISING: (1000, held)})
        one.write()
    assert [row["held"] for row in lake.rows()] == [300]
    assert share(one) == pytest.approx(0.3, rel=1e-6)
    one.tell(STREAM, {RISING: (100_000, 90_000)})
    one.write()
    assert len(lake.rows()) == 2


def test_what_is_known_is_confirmed_after_a_day(lake: Lake) -> None:
    yesterday = timestamps.to_micros(timestamps.now() - timedelta(days=1, minutes=1))
    lake.table.append({(STREAM, RISING): Observation(1000, 300, yesterday)})
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 300)})
    one.write()
    assert len(lake.rows()) == 2


def test_a_lake_that_may_only_be_read_stops_nothing(lake: Lake) -> None:
    one = lake.session()
    os.rename(lake.place, f"{lake.place}.gone")
    one.tell(STREAM, {RISING: (1000, 10)})
    one.write()
    one.look(lake.reader, at_once=True)
    assert share(one) == 0.01
    os.rename(f"{lake.place}.gone", lake.place)
    one.write()
    assert share(lake.session()) == 0.01


def test_a_write_waits_for_nobody(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job commits through Spark, what was observed is kept for the next time."""
    monkeypatch.setattr("patternlake.delta_tables.commit_lock._PATIENCE", 0.01)
    one, lock = lake.session(), lake.database.lock(TABLE.name)
    assert lock is not None
    one.tell(STREAM, {RISING: (1000, 10)})
    with lock.together():
        one.write()
    assert lake.rows() == []
    one.write()
    assert len(lake.rows()) == 1


def test_what_is_deleted_is_forgotten(lake: Lake) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10), LOW: (1000, 500)})
    one.write()
    one.look(lake.reader, at_once=True)
    one.tell(STREAM, {RISING: (1000, 10)})
    DeltaTable(lake.place).delete("predicate = 'A.x < B.x'")
    one.look(lake.reader, at_once=True)
    assert share(one) is None
    assert share(one, LOW) == 0.5


def test_a_process_writes_at_its_end_what_it_has_not_written(lake: Lake) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    one.write_at_exit()
    assert share(lake.session()) == 0.01


def test_conditions_that_are_no_news_do_not_pile_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_HELD", 10)
    one = lake.session()
    one.tell(STREAM, {RISING: (1000, 10)})
    for number in range(100):
        one.tell(STREAM, {JudgedCondition(f"A.x < {number}", ""): (1, 0)})
    assert len(one._own) <= 11
    assert share(one) == 0.01


def test_a_run_counts_no_more_than_a_million_judgements(lake: Lake) -> None:
    one = lake.session()
    one.tell(STREAM, {RISING: (10**15, 10**14)})
    one.write()
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
