"""A disk that has lost what was published: jobs and functions say so, and a rebuild mends it."""

from __future__ import annotations

import shutil
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from sql.empty_database import lay

import patternlake
from patternlake.delta_tables.batches import durability
from patternlake.delta_tables.reading.open_tables import commit_of, log_of
from patternlake.delta_tables.writing import writes
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECTION = {
    "source": {"format": "csv", "path": "data", "options": {"header": True}},
    "time": "to_timestamp(at)",
    "name": "what",
    "allowed_lateness": "none",
}


class Lake:
    """Two streams, each with the events A B of one file."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.location = spark, folder, folder / "lake"
        self.database = f"lost_{zlib.crc32(str(folder).encode())}"
        (folder / "data").mkdir()
        self.deliver(1)
        lay(spark, self.location)
        tree = {"location": str(self.location), "streams": {"first": SECTION, "second": SECTION}}
        self.configuration = Configuration.from_text(yaml.safe_dump({"database": self.database, **tree}), folder=folder)

    def deliver(self, day: int) -> None:
        rows = f"2024-01-0{day} 00:00:00,A\n2024-01-0{day} 00:00:01,B\n"
        (self.folder / "data" / f"{day}.csv").write_text(f"at,what\n{rows}")

    def run(self, **how: Any) -> None:
        patternlake.run(self.spark, self.configuration, "ingest", side_by_side=1, **how)

    def ask(self, stream: str) -> int:
        patternlake.enable(self.spark, database=self.database, location=str(self.location))
        return self.spark.sql(f"SELECT * FROM match_pattern('{stream}', 'A ; B', policy => 'skip_till_next')").count()

    def error(self, stream: str) -> str:
        with pytest.raises(Exception) as caught:
            self.ask(stream)
        return message(caught.value)

    def last_commit(self, table: str) -> Path:
        return sorted(Path(log_of(str(self.location / f"{table}_log"))).glob("*.json"))[-1]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    made = Lake(spark, tmp_path)
    made.run()
    return made


def test_a_table_that_ends_before_what_was_published_is_refused_until_it_is_rebuilt(lake: Lake) -> None:
    last = lake.last_commit("events")
    version = int(last.stem)
    last.unlink()
    told = f"the table events_log is at version {version - 1}, and publications rest on version {version}"
    assert told in lake.error("second")
    assert told in lake.error("first")  # its events are there, but nobody can tell
    lake.deliver(2)
    with pytest.raises(StateError, match=r"with --rebuild, each of them: ingest of 'second'$"):
        lake.run(object="first")
    lake.run(object="second", rebuild=True)
    lake.run()
    assert (lake.ask("first"), lake.ask("second")) == (2, 2)


def test_maintenance_commits_to_no_table_that_has_lost_commits(lake: Lake) -> None:
    last = lake.last_commit("events")
    last.unlink()
    with pytest.raises(StateError, match="events_log is at version"):
        patternlake.run(lake.spark, lake.configuration, "maintain", side_by_side=1)
    assert lake.last_commit("events").name < last.name


def test_an_empty_last_commit_is_refused_by_its_name(lake: Lake) -> None:
    last = lake.last_commit("events")
    last.write_bytes(b"")
    assert f"the commit {last} is empty" in lake.error("first")
    last.unlink()
    assert "ingest of 'second'" in lake.error("first")


def test_a_backup_of_the_table_mends_it(lake: Lake) -> None:
    last = lake.last_commit("events")
    kept = last.with_name("kept")
    shutil.copy2(last, kept)
    last.unlink()
    assert "its last commits are gone" in lake.error("first")
    kept.rename(last)
    assert lake.ask("first") == 1


def test_what_a_publication_rests_on_is_on_the_disk_before_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    at: list[float] = []
    append, write_out = writes.append, durability.write_out

    def appended(table: str, *args: Any, **others: Any) -> Any:
        order.append(table.split(".")[-1].strip("`"))
        return append(table, *args, **others)

    def written_out(folder: str) -> None:
        order.append("write out")
        write_out(folder)
        at.append(time.time())

    monkeypatch.setattr(writes, "append", appended)
    monkeypatch.setattr(durability, "write_out", written_out)
    lake.deliver(2)
    lake.run(object="first")
    assert order[0] == "intents_log"
    assert "events_log" in order
    assert order[-3:] == ["write out", "publications_log", "write out"]
    # A moment between the two would be answered without the batch, and later with it.
    assert lake.ask("first") == 2
    row = lake.spark.sql(f"SELECT max(published_at) FROM {lake.database}.publications").collect()[0]
    assert row[0].timestamp() >= at[-2]


def test_a_failure_to_write_out_is_an_error_and_nothing_is_published(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(folder: str) -> None:
        raise OSError(5, "Input/output error", folder)

    lake.deliver(2)
    with monkeypatch.context() as patched:
        patched.setattr(durability, "write_out", failing)
        with pytest.raises(Exception, match="Input/output error"):
            lake.run(object="first")
    assert lake.ask("first") == 1
    lake.run()
    assert lake.ask("first") == 2
    assert Path(commit_of(log_of(str(lake.location / "events_log")), 1)).exists()
