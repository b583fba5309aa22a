"""Files by key: a row group for each bucket of keys, and who asks for some keys reads no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
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

from patternlake.delta_tables.batches import upkeep
from patternlake.delta_tables.batches.upkeep import MERGED_FILES, _find_crowded
from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.committing.unlisted_files import Place, write_portions
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import CACHE, TableCache
from patternlake.delta_tables.reading.state_reader import Condition, ListedFiles
from patternlake.delta_tables.schema import layout
from patternlake.delta_tables.schema.layout import BUCKETS, Layout, buckets_of, buckets_of_unit, lie_by_key
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import direct_rewriting

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


def commit(folder: str, given: pa.Table, laid: Layout = Layout.BY_KEY) -> str:
    """Append rows as one file; where it is."""
    (action,) = write_portions(Place.at(folder, layout=laid), [lambda: given])
    table = DeltaTable(folder)
    table.create_write_transaction([action], "append", pa.schema(table.schema().to_arrow()), ["stream_id"])
    return f"{folder}/{action.path}"


def merge(folder: str, partition: Mapping[str, Any]) -> bool:
    """Merge the files of a partition, by key."""
    given = TableFolder(folder)
    return direct_rewriting.merge(given, [partition], layout=Layout.BY_KEY, largest=1 << 20, most_bytes=1 << 20)


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
    beside = sum(bucket == crc32(b"k0") % BUCKETS for bucket in buckets_of(given["key"].combine_chunks()).tolist())
    assert other.size("streams", [Condition("key", "=", "k0")]) == size * beside // MANY
    two = [Condition("key", "in", ("k0", "nobody"))]
    assert other.rows("streams", COLUMNS, two).sort_by("position").equals(given.filter(pc.equal(given["key"], "k0")))


def test_of_many_rows_a_bucket_has_several_row_groups_and_a_key_is_read_from_those_that_can_hold_it(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 100)
    given = rows(MANY, 500)
    file = pq.ParquetFile(commit(folder, given))
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    assert sum(sizes) == MANY
    assert 90 <= min(sizes) <= max(sizes) <= 110
    CACHE.drop(lambda key: True)  # the rows that were just written
    for asked in (("k0",), ("k499",), ("k17", "k3", "nobody"), ("nobody",), ("k10", ""), ()):
        other = DirectReader(str(Path(folder).parent), TableCache())
        found = other.rows("streams", COLUMNS, [Condition("key", "in", asked)])
        wanted = given.filter(pc.is_in(given["key"], pa.array(asked, pa.string())))
        assert found.sort_by("position").equals(wanted)
        holding = [
            group
            for group in range(file.num_row_groups)
            if {*asked} & {*file.read_row_group(group, columns=["key"])["key"].to_pylist()}
        ]
        mine = sum(file.metadata.row_group(group).total_byte_size for group in holding)
        # Of a key that is not there, a row group in whose bounds it would lie.
        beside = 2 * max(file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups))
        assert other.bytes_read <= mine + beside


def test_keys_that_are_too_long_for_bounds_are_found(folder: str) -> None:
    long = "k" * 5000
    given = rows(MANY, 50)
    keys = [None if key is None else f"{long}{key}" for key in given["key"].to_pylist()]
    given = given.set_column(2, "key", pa.array(keys, pa.string()))
    commit(folder, given)
    CACHE.drop(lambda key: True)
    other = DirectReader(str(Path(folder).parent), TableCache())
    found = other.rows("streams", COLUMNS, [Condition("key", "=", f"{long}k7")]).sort_by("position")
    assert found.num_rows > 0
    assert found.equals(given.filter(pc.fill_null(pc.equal(given["key"], f"{long}k7"), False)))


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
    read = range(file.num_row_groups) if len(touched) > 0.8 * file.num_row_groups else touched
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
    assert merge(folder, {"stream_id": 1})
    (path,) = DeltaTable(folder).file_uris()
    assert pq.ParquetFile(path).num_row_groups == BUCKETS
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(given)


def test_neighbouring_partitions_become_one_file_in_the_first_of_them(tmp_path: Path) -> None:
    place, given = str(tmp_path / "events_log"), rows(MANY, 500)
    blocks = pa.array([(at - 1) // 2500 for at in given["position"].to_pylist()], pa.int32())
    given = given.append_column("block", blocks)
    names = ["stream_id", "block"]
    write_deltalake(place, given.slice(0, 0), partition_by=names)
    actions = write_portions(Place.at(place, layout=Layout.BY_KEY), [lambda: given])
    table = DeltaTable(place)
    table.create_write_transaction(actions, "append", pa.schema(table.schema().to_arrow()), names)
    span = {"stream_id": 1, "block": range(2, 7)}
    assert merge(place, span)
    files = pa.table(DeltaTable(place).get_add_actions(flatten=True)).sort_by("min.position").to_pylist()
    assert [(file["partition.block"], file["num_records"]) for file in files] == [
        (0, 2500), (1, 2500), (2, 12_500), (7, 2500),
    ]  # fmt: skip
    assert lie_by_key(pa.chunked_array([[file["path"] for file in files]])).to_pylist() == [False, False, True, False]
    reader = DirectReader(str(tmp_path), TableCache())
    assert reader.rows("events", COLUMNS).sort_by("position").equals(given.select(COLUMNS))
    nowhere = [Condition("position", "in ranges", ())]
    assert reader.rows("events", COLUMNS, nowhere).num_rows == 0
    assert reader.size("events", nowhere, COLUMNS, few=1) == 0
    some = [Condition("position", "in ranges", ((4_000, 6_000), (9_999, 15_001), (19_000, 30_000)))]
    wanted = pc.or_(
        pc.or_(pc.and_(pc.greater_equal(given["position"], 4_000), pc.less_equal(given["position"], 6_000)),
               pc.and_(pc.greater_equal(given["position"], 9_999), pc.less_equal(given["position"], 15_001))),
        pc.greater_equal(given["position"], 19_000),
    )  # fmt: skip
    assert reader.rows("events", COLUMNS, some).sort_by("position").equals(given.filter(wanted).select(COLUMNS))
    log = [
        json.loads(line)
        for commit in sorted((tmp_path / "events_log" / "_delta_log").glob("*.json"))[-1:]
        for line in commit.read_text().splitlines()
    ]
    removed = [each["remove"] for each in log if "remove" in each]
    assert sorted(each["partitionValues"]["block"] for each in removed) == ["2", "3", "4", "5", "6"]
    assert all(each["path"].startswith(f"stream_id=1/block={each['partitionValues']['block']}/") for each in removed)


def test_spans_are_merged_once_they_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_SPAN_ROWS", 8000)

    def file(block: int, last: int, *, stream: int = 1, keys: bool = True, size: int = 1000) -> dict[str, Any]:
        return {
            "path": f"{'by-key-' if keys else ''}{stream}-{block}.parquet",
            "size_bytes": size,
            "num_records": 1000,
            "null_count.key": 0 if keys else 1000,
            "partition.stream_id": stream,
            "partition.block": block,
            "max.position": last,
        }

    full = [file(block, 1000 * (block + 1)) for block in range(16)]

    def found(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return upkeep._find_full_spans(TABLES["events"], pa.Table.from_pylist(files))

    first, second = ({"stream_id": 1, "block": blocks} for blocks in (range(8), range(8, 16)))
    assert found(full) == [first, second]
    assert found(full[:15]) == [first], "the second is not full"
    assert found([file(0, 8000), *full[8:]]) == [second], "the first is merged"
    assert found([*full[:8], file(8, 9000, stream=2)]) == [first], "another stream's positions do not count"
    assert found([file(block, 1000 * (block + 1), keys=False) for block in range(8)]) == [], "there are no keys"
    assert found([file(block, 1000 * (block + 1), size=9 << 20) for block in range(8)]) == [], "too many bytes"


def test_a_file_that_lies_as_it_came_is_put_by_key_once(folder: str, reader: DirectReader) -> None:
    given = rows(MANY, 500)
    commit(folder, given, Layout.PACKED)
    table = replace(TABLES["events"], partitions=("stream_id",))
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=False) == []
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=True) == [{"stream_id": 1}]
    assert merge(folder, {"stream_id": 1})
    assert _find_crowded(table, reader.files("streams"), MERGED_FILES, directly=True) == []
    (path,) = DeltaTable(folder).file_uris()
    assert pq.ParquetFile(path).num_row_groups == BUCKETS
    assert reader.rows("streams", COLUMNS).sort_by("position").equals(given)
