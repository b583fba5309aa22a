"""Which files of a table are read: none that holds a wanted row may be left out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from patternlake.delta_tables.reading import direct_reader, file_rows, known_answers
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.file_choice import choose_files, truth
from patternlake.delta_tables.reading.known_answers import KnownAnswers
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.table_logs import UnreadableError

# Microseconds within one millisecond.
_BEGIN, _END = 1_357_041_600_000_100, 1_357_041_600_000_900


@pytest.fixture
def reader(tmp_path: Path) -> DirectReader:
    """`streams` with two files: of batch 1, whose types are not told, and of batch 2."""
    for batch, types, moment in ((1, None, _BEGIN), (2, "x", _END)):
        columns: dict[str, Any] = {
            "batch_id": pa.array([batch], pa.int64()),
            "name": pa.array([types], pa.string()),
            "at": pa.array([moment], pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
        write_deltalake(str(tmp_path / "streams_log"), pa.table(columns), mode="append")
    return DirectReader(str(tmp_path), TableCache())


def batches(reader: DirectReader, *where: Condition) -> list[int]:
    return sorted(reader.rows("streams", ["batch_id"], where)["batch_id"].to_pylist())


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        ("=", _BEGIN, [1]),
        ("=", _END, [2]),
        (">=", _BEGIN, [1, 2]),
        (">=", _BEGIN + 1, [2]),
        (">=", _END, [2]),
        ("<=", _END - 1, [1]),
        ("<=", _BEGIN, [1]),
    ],
)
def test_moments_are_found_to_the_microsecond(
    reader: DirectReader, operator: Any, value: int, found: list[int]
) -> None:
    assert batches(reader, Condition("at", operator, value)) == found


def test_a_file_with_nothing_but_null_in_a_column_is_left_out(reader: DirectReader) -> None:
    only = [Condition("batch_id", "=", 1)]
    assert reader.size("streams", only) > 0
    assert reader.size("streams", [*only, Condition("name", "=", "x")]) == 0
    assert reader.size("streams", [Condition("batch_id", "=", 2), Condition("name", "=", "x")]) > 0
    assert batches(reader, Condition("name", "null or >", "w")) == [1, 2]


def test_many_files_are_read_in_the_order_of_the_log_whatever_reads_them(tmp_path: Path) -> None:
    for batch in range(20):
        rows = {"batch_id": pa.array([batch] * 3, pa.int64()), "name": pa.array(["a", "b", None], pa.string())}
        write_deltalake(str(tmp_path / "streams_log"), pa.table(rows), mode="append")
    reader = DirectReader(str(tmp_path), TableCache())
    listed = reader.files("streams")["min.batch_id"].to_pylist()
    assert sorted(listed) == list(range(20))
    read = reader.rows("streams", ["batch_id", "name"], [Condition("name", "=", "b")])
    assert read["batch_id"].to_pylist() == listed
    assert set(read["name"].to_pylist()) == {"b"}
    assert len(reader.rows("streams", ["batch_id"], [Condition("name", "=", "c")])) == 0


def test_of_small_files_only_those_are_looked_through_that_the_same_question_has_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Condition] = []
    monkeypatch.setattr(
        file_rows, "truth", lambda column, condition: judged.append(condition) or truth(column, condition)
    )
    reader = DirectReader(str(tmp_path), TableCache())
    wanted, other = Condition("name", "=", "b"), Condition("name", "in", ("a", "b"))
    for batch in range(5):
        rows = {"batch_id": pa.array([batch] * 3, pa.int64()), "name": pa.array(["a", "b", None], pa.string())}
        write_deltalake(str(tmp_path / "streams_log"), pa.table(rows), mode="append")
        judged.clear()
        assert batches(reader, wanted) == list(range(batch + 1))
        assert judged == [wanted]
    judged.clear()
    assert batches(reader, other) == sorted([*range(5)] * 2)
    assert judged == [other], "of all files at once"


def test_of_a_later_version_only_the_files_that_have_come_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    monkeypatch.setattr(
        direct_reader,
        "choose_files",
        lambda files, where: looked_at.append(files.num_rows) or choose_files(files, where),
    )
    reader, folder = DirectReader(str(tmp_path), TableCache()), str(tmp_path / "streams_log")
    wanted = Condition("name", "=", "b")
    for batch in range(40):
        rows = {"batch_id": pa.array([batch] * 2, pa.int64()), "name": pa.array(["a", "b"], pa.string())}
        write_deltalake(folder, pa.table(rows), mode="append")
        assert batches(reader, wanted) == batches(reader, wanted) == list(range(batch + 1))
    assert looked_at == [1] * 40
    looked_at.clear()
    read = reader.bytes_read
    DeltaTable(folder).delete("batch_id < 38")
    assert batches(reader, wanted) == [38, 39]
    assert (looked_at, reader.bytes_read) == ([], read), "small files stay in memory"


def test_a_later_version_of_an_empty_table_is_empty(tmp_path: Path) -> None:
    folder = str(tmp_path / "streams_log")
    write_deltalake(folder, pa.table({"batch_id": pa.array([], pa.int64())}))
    reader = DirectReader(str(tmp_path), TableCache())
    assert batches(reader) == []
    DeltaTable(folder).alter.set_table_properties({"delta.appendOnly": "false"})
    assert batches(reader) == []


def test_answers_that_take_too_much_are_not_kept(reader: DirectReader, monkeypatch: pytest.MonkeyPatch) -> None:
    for largest, kept in ((1 << 20, 2), (100, 0)):
        cache = TableCache()
        known = KnownAnswers(cache, "here")
        monkeypatch.setattr(known_answers, "_LARGEST", largest)
        read: list[str] = []
        version = reader._logs.current("streams")
        for question in ("one", "other", "other", "one"):
            found = known.get(question, version, lambda files: read.append(question) or files.select(["path"]))  # noqa: B023
            assert found.num_rows == 2
        assert len(read) == 4 - kept
        assert (cache.bytes > 0) == (kept > 0)


@pytest.mark.parametrize(
    ("where", "bounds"),
    [
        ((), (6, 1, 9)),
        ((Condition("base_batch", "=", 1),), (3, 1, 3)),
        ((Condition("batch_id", ">=", 3),), (4, 3, 9)),
        ((Condition("name", "=", "b"),), (2, 2, 8)),
        ((Condition("base_batch", "=", 3),), (0, None, None)),
    ],
)
def test_rows_are_counted_and_bounded_by_the_log_or_by_reading_them(
    tmp_path: Path, where: tuple[Condition, ...], bounds: tuple[int, int | None, int | None]
) -> None:
    for base, batches_of_file in ((1, [1, 2, 3]), (2, [7, 8, 9])):
        rows = {
            "batch_id": pa.array(batches_of_file, pa.int64()),
            "base_batch": pa.array([base] * 3, pa.int64()),
            "name": pa.array(["a", "b", "c"], pa.string()),
        }
        write_deltalake(str(tmp_path / "streams_log"), pa.table(rows), mode="append")
    reader = DirectReader(str(tmp_path), TableCache())
    assert reader.bounds("streams", "batch_id", where) == bounds
    # Only what the log leaves open is read.
    assert (reader.bytes_read == 0) == (not where or where[0].column == "base_batch")


def test_a_table_that_was_made_anew_at_its_place_is_read_anew(reader: DirectReader, tmp_path: Path) -> None:
    assert batches(reader) == [1, 2]
    shutil.rmtree(tmp_path / "streams_log")
    for batch in (3, 4, 5):
        rows = pa.table({"batch_id": pa.array([batch], pa.int64())})
        write_deltalake(str(tmp_path / "streams_log"), rows, mode="append")
    assert batches(reader) == [3, 4, 5]


def test_a_table_that_is_given_features_later_is_left_to_spark(reader: DirectReader, tmp_path: Path) -> None:
    assert batches(reader) == [1, 2]
    table = DeltaTable(str(tmp_path / "streams_log"))
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    for _ in range(2):
        with pytest.raises(UnreadableError, match=r"the table streams at .* has features that need Spark"):
            batches(reader)
