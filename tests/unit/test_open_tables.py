"""Tables that stay open between commits: what others commit is seen, and so is another table at the same place."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.reading import open_tables
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.open_tables import open_table
from patternlake.delta_tables.writing import direct_writer


def rows(*numbers: int) -> pa.Table:
    return pa.table({"number": pa.array(numbers, pa.int64())})


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = str(tmp_path / "streams_log")
    write_deltalake(place, rows(1))
    return place


def numbers(folder: str) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table()["number"].to_pylist())


def test_a_table_that_nobody_has_changed_is_opened_once(folder: str) -> None:
    with open_table(folder) as first:
        pass
    with open_table(folder) as second:
        assert second is first


def test_what_others_commit_in_between_is_seen(folder: str) -> None:
    with open_table(folder) as table:
        assert table.version() == 0
    write_deltalake(folder, rows(2), mode="append")
    with open_table(folder) as table:
        assert table.version() == 1
    assert direct_writer.append(TableFolder(folder), rows(3), application="a", version=1)
    assert not direct_writer.append(TableFolder(folder), rows(3), application="a", version=1)
    assert direct_writer.is_appended(TableFolder(folder), application="a", version=1)
    assert numbers(folder) == [1, 2, 3]


def test_another_table_at_the_same_place_is_another_table(folder: str) -> None:
    assert direct_writer.append(TableFolder(folder), rows(2), application="a", version=1)
    shutil.rmtree(folder)
    for number in (7, 8):
        write_deltalake(folder, rows(number), mode="append")
    assert direct_writer.append(TableFolder(folder), rows(9), application="a", version=1), "that was the other one's"
    assert numbers(folder) == [7, 8, 9]


def test_another_table_of_the_same_version_at_the_same_place_is_told_from_it(folder: str) -> None:
    reader = DirectReader(str(Path(folder).parent), TableCache())
    before = reader.identity("streams")
    assert reader.identity("streams") == before
    shutil.rmtree(folder)
    time.sleep(0.01)
    write_deltalake(folder, rows(1))
    assert (reader.version("streams"), reader.identity("streams") == before) == (0, False)


def test_two_blocks_at_once_have_a_table_each(folder: str) -> None:
    with open_table(folder) as one, open_table(folder) as other:
        assert one is not other


def test_a_table_does_not_stay_open_where_its_block_fails_or_more_are_open_than_are_kept(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="on purpose"), open_table(folder) as failed:
        raise ValueError("on purpose")
    with open_table(folder) as table:
        assert table is not failed
    monkeypatch.setattr(open_tables, "MOST_OPEN", 1)
    other = str(tmp_path / "other")
    write_deltalake(other, rows(1))
    with open_table(other):
        pass
    with open_table(folder) as again:
        assert again is not table


def test_a_reader_looks_into_a_log_only_where_there_is_news(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = DirectReader(str(Path(folder).parent), TableCache())
    assert reader.rows("streams", ("number",))["number"].to_pylist() == [1]
    looks = []
    update = DeltaTable.update_incremental
    monkeypatch.setattr(DeltaTable, "update_incremental", lambda table: (looks.append(table), update(table)))
    assert reader.version("streams") == 0
    assert not looks
    write_deltalake(folder, rows(2), mode="append")
    looks.clear()
    assert sorted(reader.rows("streams", ("number",))["number"].to_pylist()) == [1, 2]
    assert len(looks) == 1


def test_what_this_process_has_committed_is_read_without_a_look_into_the_log(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = DirectReader(str(Path(folder).parent), TableCache())
    assert reader.version("streams") == 0
    monkeypatch.setattr(DeltaTable, "update_incremental", lambda table: pytest.fail("the log was read again"))
    assert direct_writer.append(TableFolder(folder), rows(2), application="a", version=1)
    assert sorted(reader.rows("streams", ("number",))["number"].to_pylist()) == [1, 2]
    assert direct_writer.append(TableFolder(folder), rows(3), application="a", version=2)
    assert reader.version("streams") == 2


def test_a_table_is_opened_anew_once_there_is_another_checkpoint(tmp_path: Path) -> None:
    folder = str(tmp_path / "streams_log")
    write_deltalake(folder, rows(1), configuration={"delta.checkpointInterval": "4"})
    with open_table(folder) as first:
        pass
    for version in (1, 2):
        assert direct_writer.append(TableFolder(folder), rows(version), application="a", version=version)
    with open_table(folder) as table:
        assert table is first
    assert direct_writer.append(TableFolder(folder), rows(3), application="a", version=3)
    assert json.loads(Path(folder, "_delta_log", "_last_checkpoint").read_text())["version"] == 3
    with open_table(folder) as table:
        assert table is not first
        assert table.version() == 3
    assert not direct_writer.append(TableFolder(folder), rows(3), application="a", version=3), (
        "the checkpoint knows of it"
    )
    assert numbers(folder) == [1, 1, 2, 3]
