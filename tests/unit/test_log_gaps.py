"""A log that has lost a commit is refused where it is read, by the name of the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.log_gaps import check_commits
from patternlake.udfs.errors import StateError


def write(folder: Path, commits: int) -> None:
    for number in range(commits):
        write_deltalake(str(folder), pa.table({"x": [number]}), mode="append")


def commit(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The table `events` of six commits."""
    write(tmp_path / "events_log", 6)
    return tmp_path / "events_log"


def read(folder: Path) -> list[int]:
    return sorted(DirectReader(str(folder.parent), TableCache()).rows("events", ["x"])["x"].to_pylist())


def test_a_whole_log_is_read(table: Path) -> None:
    assert read(table) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("version", [0, 1, 3, 4])
def test_a_commit_that_is_missing_before_others_is_named(table: Path, version: int) -> None:
    commit(table, version).unlink()
    with pytest.raises(StateError, match=f"the commit .*{version:020}.json is missing, and later ones are there"):
        read(table)


@pytest.mark.parametrize("version", [0, 2, 5])
def test_an_empty_commit_is_named(table: Path, version: int) -> None:
    commit(table, version).write_bytes(b"")
    with pytest.raises(StateError, match=f"the commit .*{version:020}.json is empty"):
        read(table)


def test_commits_before_a_checkpoint_are_not_needed(table: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()
    for version in range(4):
        commit(table, version).unlink()
    write(table, 2)
    assert read(table) == [0, 0, 1, 1, 2, 3, 4, 5]
    commit(table, 6).unlink()
    with pytest.raises(StateError, match=f"{6:020}.json is missing"):
        read(table)


def test_a_reader_that_follows_looks_at_what_is_new(table: Path) -> None:
    reader = DirectReader(str(table.parent), TableCache())
    assert reader.version("events") == 5
    write(table, 2)
    commit(table, 7).write_bytes(b"")
    with pytest.raises(StateError, match=f"{7:020}.json is empty"):
        reader.version("events")


def test_what_was_checked_is_not_looked_at_again(table: Path) -> None:
    commit(table, 2).write_bytes(b"")
    check_commits(str(table), after=2)
    with pytest.raises(StateError, match="is empty"):
        check_commits(str(table), after=1)


def test_a_folder_without_a_log_has_no_gaps(tmp_path: Path) -> None:
    check_commits(str(tmp_path / "nothing"), after=None)
