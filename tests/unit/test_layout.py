"""Files by key: a row group for each bucket of keys, and who asks for some keys reads no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables import direct_rewriting
from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.direct_reader import DirectReader
from patternlake.delta_tables.file_cache import CACHE, TableCache
from patternlake.delta_tables.layout import BUCKETS, Layout, buckets_of, buckets_of_unit, lie_by_key
from patternlake.delta_tables.state_reader import Condition, ListedFiles
from patternlake.delta_tables.unlisted_files import write_portions
from patternlake.delta_tables.upkeep import MERGED_FILES, _find_crowded

MANY = 20_000
COLUMNS = ("stream_id", "position", "key", "name")


def rows(count: int, keys: int, first: int = 1) -> pa.Table:
    """So many rows, at random of so many keys and of none."""
    random = np.random.default_rng(count)
    mine = [None if key == keys else f"k{key}" for key in random.integers(0, keys + 1, count).tolist()]
    columns: dict[str, Any] = {
        "stream_id": pa.array([1] * count, pa.int32()),
        "position": pa.array(range(first, first + count), pa.int64()),
        "key": pa.array(mine, pa.string()),
        "name": pa.array(["abc"[place % 3] for place in range(count)], pa.string()),
    }
    return pa.table(columns)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = str(tmp_path / "streams_log")
    write_deltalake(place, rows(0, 1), partition_by=["stream_id"])
    return place


@pytest.fixture
def reader(folder: str) -> DirectReader:
    return DirectReader(str(Path(folder).parent), TableCache())


def commit(folder: str, given: pa.Table, layout: Layout = Layout.BY_KEY) -> str:
    """Append rows as one file; where it is."""
    (action,) = write_portions(folder, [lambda: given], layout)
    table = DeltaTable(folder)
    table.create_write_transaction([action], "append", pa.schema(table.schema().to_arrow()), ["stream_id"])
    return f"{folder}/{action.path}"


def test_a_key_lies_in_the_bucket_of_its_checksum_and_none_in_the_second() -> None:
    keys = ["", "k1", "jürgen"]
    expected = [*(crc32(key.encode()) % BUCKETS for key in keys), 1]
    assert buckets_of(pa.array([*keys, None], pa.string())).tolist() == expected


def test_a_file_has_a_row_group_for_each_bucket_with_the_events_of_a_key_side_by_side(folder: str) -> None:
    file = pq.ParquetFile(commit(folder, rows(MANY, 500)))
    for group in range(file.num_row_groups):
        found = file.read_row_group(group).select(["key", "position"])
        keys = found["key"].to_pylist()
        buckets = {1 if key is None else crc32(key.encode()) % BUCKETS for key in keys}
        assert buckets == {group}
        order = [("" if key is None else key, at) for key, at in zip(keys, found["position"].to_pylist(), strict=True)]
        assert order == sorted(order)


def test_rows_are_the_same_whichever_way_they_lie(folder: str, reader: DirectReader) -> None:
    given = rows(MANY, 500)
    commit(folder, given)
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(given)
    some = Condition("position", ">=", 15_000)
    assert reader.rows("streams", COLUMNS, [some]).sort_by("position").equals(given.slice(14_999))


@pytest.mark.parametrize("keys", [1, 3, 500])
def test_one_key_is_read_from_its_row_group_alone(folder: str, keys: int) -> None:
    given = rows(MANY, keys)
    size = Path(commit(folder, given)).stat().st_size
    other = DirectReader(str(Path(folder).parent), TableCache())
    for key in ("k0", f"k{keys - 1}", "nobody"):
        found = other.rows("streams", COLUMNS, [Condition("key", "=", key)]).sort_by("position")
        assert found.equals(given.filter(pc.fill_null(pc.equal(given["key"], key), False)))
    assert other.size("streams", [Condition("key", "=", "k0")]) <= size // BUCKETS + 1
    two = [Condition("key", "in", ("k0", "nobody"))]
    assert other.rows("streams", COLUMNS, two).sort_by("position").equals(given.filter(pc.equal(given["key"], "k0")))


@pytest.mark.parametrize("count", [1, 2, 3, 40])
@pytest.mark.parametrize("keys", [3, 500])
def test_few_rows_are_read_from_their_row_groups_alone(folder: str, keys: int, count: int) -> None:
    random = np.random.default_rng(count)
    rare = random.choice(MANY, count, replace=False)
    names = np.array(["abc"[place % 3] for place in range(MANY)], object)
    names[rare] = "rare"
    given = rows(MANY, keys).set_column(3, "name", pa.array(names.tolist(), pa.string()))
    file = pq.ParquetFile(commit(folder, given))
    CACHE.drop(lambda key: True)  # the rows that were just written
    other = DirectReader(str(Path(folder).parent), TableCache())
    where = [Condition("name", "=", "rare")]
    found = other.rows("streams", COLUMNS, where)
    assert found.sort_by("position").equals(given.take(pa.array(np.sort(rare))))
    touched = {
        group
        for group in range(file.num_row_groups)
        if "rare" in file.read_row_group(group, columns=["name"])["name"].to_pylist()
    }
    stored = {
        name: [
            file.metadata.row_group(group).column(place).total_compressed_size for group in range(file.num_row_groups)
        ]
        for place, name in enumerate(file.schema_arrow.names)
    }
    read = range(file.num_row_groups) if 2 * len(touched) > file.num_row_groups else touched
    others = [name for name in COLUMNS if name in stored and name != "name"]
    assert other.bytes_read == sum(stored["name"]) + sum(stored[name][group] for name in others for group in read)
    assert other.size("streams", where, COLUMNS, few=1) < other.size("streams", where, COLUMNS)


@pytest.mark.parametrize("units", [1, 2, 4, 8, 32])
def test_units_read_all_rows_once_each_those_of_its_own_keys(folder: str, reader: DirectReader, units: int) -> None:
    given = rows(MANY, 500)
    path = commit(folder, given)
    listed = reader.list_files("streams")
    assert listed is not None
    seen = []
    for unit in range(units):
        mine = ListedFiles(
            listed.location, (), "streams", listed.schema, listed.files, tuple(buckets_of_unit(unit, units))
        )
        found = reader.rows_of(mine, COLUMNS)
        places = [1 if key is None else crc32(key.encode()) for key in found["key"].to_pylist()]
        seen.append(found.filter(pa.array([place % units == unit for place in places], pa.bool_())))
    assert pa.concat_tables(seen).sort_by("position").equals(given)
    assert lie_by_key(listed.files["path"]).to_pylist() == [True], path


@pytest.mark.parametrize(
    "given",
    [rows(1000, 50), rows(MANY, 50).set_column(2, "key", pa.nulls(MANY, pa.string()))],
    ids=["few rows", "no keys"],
)
def test_a_file_of_few_rows_or_without_keys_lies_as_it_comes(folder: str, given: pa.Table) -> None:
    assert pq.ParquetFile(commit(folder, given)).num_row_groups == 1
    assert not lie_by_key(pa.chunked_array([DeltaTable(folder).file_uris()]))[0].as_py()


def test_small_files_that_are_merged_lie_by_key(folder: str, reader: DirectReader) -> None:
    given = rows(MANY, 500)
    for first in range(0, MANY, 2000):
        commit(folder, given.slice(first, 2000))
    assert direct_rewriting.merge(folder, [{"stream_id": 1}], layout=Layout.BY_KEY, largest=1 << 20, most_bytes=1 << 20)
    (path,) = DeltaTable(folder).file_uris()
    assert pq.ParquetFile(path).num_row_groups == BUCKETS
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(given)


def test_a_file_that_lies_as_it_came_is_put_by_key_once(folder: str, reader: DirectReader) -> None:
    given = rows(MANY, 500)
    commit(folder, given, Layout.PACKED)
    table = replace(TABLES["events"], partitions=("stream_id",))
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=False) == []
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=True) == [{"stream_id": 1}]
    assert direct_rewriting.merge(folder, [{"stream_id": 1}], layout=Layout.BY_KEY, largest=1 << 20, most_bytes=1 << 20)
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=True) == []
    (path,) = DeltaTable(folder).file_uris()
    assert pq.ParquetFile(path).num_row_groups == BUCKETS
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(given)
