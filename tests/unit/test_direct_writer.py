"""Commits without Spark: appended once, never one in the place of another."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake import write_deltalake as write

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.writing import direct_writer


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A Delta table without rows."""
    place = str(tmp_path / "table")
    write(place, rows().slice(0, 0))
    return place


def rows(*numbers: int) -> pa.Table:
    return pa.table({"number": pa.array(numbers, pa.int64())})


def numbers(folder: str) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table()["number"].to_pylist())


def append(folder: str, number: int, application: str, version: int = 1) -> bool:
    return direct_writer.append(TableFolder(folder), rows(number), application=application, version=version)


def append_many(folder: str, writer: int, count: int) -> int:
    """Append some numbers of a writer's own, each as the next version; how many commits were made."""
    return sum(append(folder, 1000 * writer + at, f"writer {writer}", at) for at in range(count))


def test_a_version_is_appended_once_and_the_later_call_says_so(folder: str) -> None:
    assert append(folder, 1, "a")
    assert not append(folder, 2, "a")
    assert append(folder, 3, "a", version=2)
    assert not append(folder, 4, "a"), "an older version counts as written, as it does to Spark"
    assert append(folder, 5, "b")
    assert numbers(folder) == [1, 3, 5]


def test_of_rivals_with_one_version_one_commits(folder: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        committed = list(pool.map(lambda number: append(folder, number, "a"), range(8)))
    assert committed.count(True) == 1
    assert numbers(folder) == [committed.index(True)]


def test_a_rival_between_the_look_and_the_commit_is_found_out(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is checked against the version of the table that was looked at."""

    def rival_first(table: DeltaTable, *given: object, **named: object) -> None:
        monkeypatch.undo()
        assert append(folder, 7, "a")
        write(table, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(direct_writer, "write_deltalake", rival_first)
    assert not append(folder, 1, "a")
    assert numbers(folder) == [7]


def test_threads_and_compaction_lose_nothing(folder: str) -> None:
    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(append_many, folder, writer, 6) for writer in range(4)]
        for _ in range(3):
            direct_writer.compact(folder)
        assert [writer.result() for writer in writers] == [6] * 4
    assert numbers(folder) == [1000 * writer + at for writer in range(4) for at in range(6)]


@pytest.mark.slow
def test_processes_lose_nothing(folder: str) -> None:
    spawned = multiprocessing.get_context("spawn")
    with spawned.Pool(4) as pool:
        made = pool.starmap(append_many, [(folder, writer, 25) for writer in range(4)])
    assert made == [25] * 4
    assert numbers(folder) == [1000 * writer + at for writer in range(4) for at in range(25)]


def test_commits_are_made_here_only_where_files_can_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert direct_writer.possible(str(tmp_path))

    def refuse(*given: object) -> None:
        raise OSError("Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    assert not direct_writer.possible(str(tmp_path))
    assert not list(tmp_path.iterdir())
