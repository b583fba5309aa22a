"""Which columns of a file are read, and that conditions hold however its texts are stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from numpy.typing import NDArray

from patternlake.delta_tables.reading import file_rows
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.file_choice import truth
from patternlake.delta_tables.reading.state_reader import Condition, Operator, among

STORED = {
    "by numbers of a dictionary": ColumnProperties(dictionary_enabled=True),
    "as they are": ColumnProperties(dictionary_enabled=False),
    "by what they add to the one before": ColumnProperties(dictionary_enabled=False, encoding="DELTA_BYTE_ARRAY"),
    "by their lengths": ColumnProperties(dictionary_enabled=False, encoding="DELTA_LENGTH_BYTE_ARRAY"),
}
NAMES = ["a", None, "b", "c", "b", None, "d"]
WIDE = "".join(map(str, np.random.default_rng(1).integers(0, 10, 60_000)))
"""A text that makes a file too large to be read as a whole for one of its columns."""


def reader_of(
    folder: Path, stored: ColumnProperties, *, names: list[str | None] = NAMES, types: str = ""
) -> DirectReader:
    """A table `streams` of one file: names, batches 1 to n, and a text that is the same in each row."""
    count = len(names)
    columns = {
        "batch_id": pa.array(range(1, count + 1), pa.int64()),
        "base_batch": pa.array([1] * count, pa.int64()),
        "name": pa.array(names, pa.string()),
        "timezone": pa.array([types] * count, pa.string()),
    }
    properties = WriterProperties(column_properties={"name": stored})
    write_deltalake(str(folder / "streams_log"), pa.table(columns), mode="append", writer_properties=properties)
    return DirectReader(str(folder), TableCache())


def found(reader: DirectReader, *where: Condition) -> list[tuple[int, str | None]]:
    rows = reader.rows("streams", ["batch_id", "name"], where)
    assert rows.schema.types == [pa.int64(), pa.string()]
    return sorted(zip(rows["batch_id"].to_pylist(), rows["name"].to_pylist(), strict=True))


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize(
    ("operator", "value", "batches"),
    [
        ("=", "b", [3, 5]),
        ("=", "x", []),
        ("in", ("a", "d", "x"), [1, 7]),
        (">=", "c", [4, 7]),
        ("<=", "b", [1, 3, 5]),
        ("null or >", "b", [2, 4, 6, 7]),
    ],
)
def test_texts_satisfy_conditions_however_they_are_stored(
    tmp_path: Path, stored: str, operator: Operator, value: object, batches: list[int]
) -> None:
    reader = reader_of(tmp_path, STORED[stored])
    assert found(reader, Condition("name", operator, value)) == [(batch, NAMES[batch - 1]) for batch in batches]
    assert found(reader) == list(enumerate(NAMES, start=1))


def test_columns_that_no_row_needs_are_not_read(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"], types=WIDE)
    assert found(reader, Condition("name", "=", "ab")) == []
    names_alone = reader.bytes_read
    assert found(reader, Condition("name", "=", "b")) == [(3, "b"), (5, "b")]
    assert 0 < names_alone < reader.bytes_read


def test_a_small_file_is_read_as_a_whole(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"])
    assert found(reader, Condition("name", "=", "ab")) == []
    once = reader.bytes_read
    assert reader.rows("streams", ["timezone", "base_batch"])["base_batch"].to_pylist() == [1] * len(NAMES)
    assert reader.bytes_read == once > 0


def test_conditions_that_statistics_settle_are_not_read(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"], types=WIDE)
    assert reader.rows("streams", ["name"], [Condition("batch_id", "<=", 7)]).num_rows == 7
    names_alone = reader.bytes_read
    assert reader.rows("streams", ["name"], [Condition("batch_id", "<=", 6)]).num_rows == 6
    assert 0 < names_alone < reader.bytes_read


def test_statistics_settle_nothing_where_a_value_is_missing(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"], names=["b", None, "b"])
    assert found(reader, Condition("name", "=", "b")) == [(1, "b"), (3, "b")]
    assert found(reader, Condition("name", "null or >", "a")) == [(1, "b"), (2, None), (3, "b")]


def test_what_was_read_of_a_file_is_not_read_again(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"])
    found(reader, among("name", ["b"]))
    once = reader.bytes_read
    found(reader)
    found(reader, Condition("batch_id", ">=", 3))
    assert reader.bytes_read == once


def test_which_rows_of_a_file_have_one_of_some_names_is_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_of(tmp_path, STORED["as they are"], types=WIDE)
    judged: list[str] = []

    def judging(column: pa.ChunkedArray, condition: Condition) -> NDArray[np.bool_]:
        judged.extend([condition.column] if len(column) else [])
        return truth(column, condition)

    monkeypatch.setattr(file_rows, "truth", judging)
    for last, batches in ((6, [3, 5]), (4, [3]), (5, [3, 5])):
        of_names = found(reader, among("name", ["b", "d"]), Condition("batch_id", "<=", last))
        assert of_names == [(batch, "b") for batch in batches]
    assert found(reader, among("name", ["c"]), Condition("batch_id", "<=", 6)) == [(4, "c")]
    assert judged.count("name") == 2


def test_the_size_of_columns_is_theirs_alone(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STORED["as they are"], types=WIDE)
    whole = reader.size("streams")
    narrow, most = (reader.size("streams", (), columns) for columns in (["name"], ["name", "timezone"]))
    assert 0 < narrow < whole / 10
    assert whole / 2 < most < whole
    assert reader.size("streams", [among("batch_id", [100])], ["name"]) == 0


def test_partitions_alone_are_told_by_the_log(tmp_path: Path) -> None:
    rows = pa.table({"stream_id": pa.array([1, 1, 2], pa.int32()), "segment": pa.array([7, 8, 9], pa.int64())})
    write_deltalake(str(tmp_path / "sketch_nodes_log"), rows, partition_by=["stream_id"])
    reader = DirectReader(str(tmp_path), TableCache())
    assert reader.rows("sketch_nodes", ["stream_id"], [Condition("stream_id", "=", 1)])["stream_id"].to_pylist() == [
        1,
        1,
    ]
    assert reader.bytes_read == 0
