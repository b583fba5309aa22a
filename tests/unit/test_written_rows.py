"""Rows that a process has written are at hand for its readers, and are what the files hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.reading import written_rows
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.parquet_columns import write_file
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.writing import direct_writer

FEW, MANY = 3, 10_001
COLUMNS = ("stream_id", "position", "name")


def rows(count: int, stream: int = 1, first: int = 0) -> pa.Table:
    """So many rows of a stream; every third is called a."""
    places = range(first, first + count)
    columns: dict[str, Any] = {
        "stream_id": pa.array([stream] * count, pa.int32()),
        "position": pa.array(places, pa.int64()),
        "name": pa.array(["abc"[place % 3] for place in places], pa.string()),
    }
    return pa.table(columns)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """`streams` without rows, by stream."""
    place = str(tmp_path / "streams_log")
    write_deltalake(place, rows(0), partition_by=["stream_id"])
    return place


@pytest.fixture
def reader(folder: str) -> DirectReader:
    return DirectReader(str(Path(folder).parent), TableCache())


def positions(reader: DirectReader, *where: Condition) -> list[int]:
    return sorted(reader.rows("streams", ["position"], where)["position"].to_pylist())


@pytest.mark.parametrize("count", [FEW, MANY])
def test_what_this_process_has_written_is_read_without_its_file(folder: str, reader: DirectReader, count: int) -> None:
    assert direct_writer.append(TableFolder(folder), rows(count), application="a", version=1)
    assert direct_writer.append(TableFolder(folder), rows(count, first=count), application="a", version=2)
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(rows(2 * count))
    assert positions(reader, Condition("name", "=", "a")) == list(range(0, 2 * count, 3))
    assert positions(reader, Condition("position", ">=", count + 1), Condition("stream_id", "=", 1)) == list(
        range(count + 1, 2 * count)
    )
    assert positions(reader, Condition("stream_id", "=", 2)) == []
    assert reader.bytes_read == 0


def test_what_another_one_writes_is_read_from_its_file(folder: str, reader: DirectReader) -> None:
    assert direct_writer.append(TableFolder(folder), rows(FEW), application="a", version=1)
    write_deltalake(folder, rows(FEW, first=FEW), mode="append")
    assert positions(reader, Condition("stream_id", "=", 1)) == list(range(2 * FEW))
    assert reader.bytes_read > 0


def test_files_hold_what_is_at_hand(folder: str) -> None:
    given = pa.concat_tables([rows(MANY), rows(FEW, stream=2), rows(FEW, first=MANY)])
    assert direct_writer.append(TableFolder(folder), given, application="a", version=1)
    there = DeltaTable(folder).to_pyarrow_table().select(COLUMNS)
    order = [("stream_id", "ascending"), ("position", "ascending")]
    assert there.sort_by(order).cast(given.schema).equals(given.sort_by(order))


@pytest.mark.parametrize("count", [FEW, MANY])
def test_of_rivals_with_one_version_one_commits(folder: str, reader: DirectReader, count: int) -> None:
    def append(number: int) -> bool:
        return direct_writer.append(TableFolder(folder), rows(count, first=number * count), application="a", version=1)

    with ThreadPoolExecutor(4) as pool:
        committed = list(pool.map(append, range(4)))
    assert committed.count(True) == 1
    first = committed.index(True) * count
    assert positions(reader) == list(range(first, first + count))


def test_a_column_that_came_later_is_null_in_rows_at_hand(folder: str, reader: DirectReader) -> None:
    for count, version in ((FEW, 1), (MANY, 2)):
        assert direct_writer.append(TableFolder(folder), rows(count), application="a", version=version)
    assert positions(reader, Condition("position", "<=", 0)) == [0, 0]
    wider = rows(1).append_column("since", pa.array([7], pa.int64()))
    write_deltalake(folder, wider, mode="append", schema_mode="merge")
    found = reader.rows("streams", ["position", "since"], [Condition("position", "<=", 0)])
    assert sorted(found["since"].to_pylist(), key=str) == [7, None, None]


def test_a_few_rows_of_many_do_not_keep_the_others(tmp_path: Path) -> None:
    file = str(tmp_path / "file")
    written_rows.hold(file, rows(1_000_000).slice(999_990, 3))
    held = written_rows.few(file)
    assert held is not None
    assert held["position"].to_pylist() == [999_990, 999_991, 999_992]
    assert held.get_total_buffer_size() < 1000


def test_a_file_has_dictionaries_where_values_come_often(tmp_path: Path) -> None:
    many = range(20_000)
    columns: dict[str, Any] = {
        "batch": pa.array([7] * len(many), pa.int64()),
        "position": pa.array(many, pa.int64()),
        "part": pa.array([[f"k{place // 4}"] for place in many]),
        "names": pa.array([["a", "b"] for _ in many]),
        "operands": pa.array([[[place], [place, place]] for place in many]),
        "bound": pa.array([{"operand": "abc"[place % 3], "at": place} for place in many]),
        "attributes": pa.array([[("color", f"c{place}")] for place in many], pa.map_(pa.string(), pa.string())),
        "nothing": pa.nulls(len(many), pa.float64()),
    }
    # A slice, whose lists lie behind others.
    given = pa.table(columns).slice(100)
    write_file(given, str(tmp_path / "file"), Layout.PLAIN)
    file = pq.ParquetFile(tmp_path / "file")
    group = file.metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    assert {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page} == {
        "batch",
        "names.list.element",
        "bound.operand",
        "attributes.key_value.key",
    }
    assert file.read().equals(given.drop_columns("nothing"))


def test_a_file_goes_without_columns_of_nulls_and_keeps_one_where_all_are(tmp_path: Path) -> None:
    nulls = pa.nulls(3, pa.int64())
    for layout in (Layout.PLAIN, Layout.PACKED):
        write_file(pa.table({"a": nulls, "b": [None, 2, None], "c": nulls}), str(tmp_path / "some"), layout)
        write_file(pa.table({"a": nulls, "c": nulls}), str(tmp_path / "none"), layout)
        assert pq.read_table(tmp_path / "some").to_pydict() == {"b": [None, 2, None]}
        assert pq.read_table(tmp_path / "none").to_pydict() == {"a": [None, None, None]}
