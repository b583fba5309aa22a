"""Rows that are changed without Spark: those that are meant, in one commit, beside rivals; and the lock of commits."""

from __future__ import annotations

import json
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.committing.commit_lock import CommitLock, lock_of
from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.committing.file_statistics import statistics_of
from patternlake.delta_tables.reading.file_choice import choose_files
from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.writing import direct_rewriting, direct_writer

SCHEMA = pa.schema(
    [
        ("stream_id", pa.int32()),
        ("segment", pa.int64()),
        ("from_batch", pa.int64()),
        ("to_batch", pa.int64()),
        ("part", pa.list_(pa.string())),
        ("attributes", pa.map_(pa.string(), pa.string())),
        ("time", pa.timestamp("us", "UTC")),
    ]
)
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Two streams of three segments each, every segment a file; of batch 1, none closed."""
    place = str(tmp_path / "table")
    for segment in range(3):
        write_deltalake(
            place,
            pa.concat_tables([_row(stream, segment) for stream in (1, 2)]),
            mode="append",
            partition_by=["stream_id"],
            configuration={"delta.dataSkippingStatsColumns": "segment,from_batch,to_batch"},
        )
    return place


def _row(stream: int, segment: int) -> pa.Table:
    moment = datetime(2024, 1, 1, segment, tzinfo=timezone.utc)
    values = [stream, segment, 1, None, [f"k{segment}", None], [("a", None)], moment]
    return pa.table({field.name: pa.array([value], field.type) for field, value in zip(SCHEMA, values, strict=True)})


def rows(folder: str) -> list[dict[str, Any]]:
    found = pa.table(DeltaTable(folder).to_pyarrow_table())
    return sorted(found.to_pylist(), key=lambda row: (row["stream_id"], row["segment"]))


def closed(folder: str) -> dict[tuple[int, int], int | None]:
    return {(row["stream_id"], row["segment"]): row["to_batch"] for row in rows(folder)}


def close(folder: str, *any_of: list[Condition], batch: int = 2, most_bytes: int = MIB) -> bool:
    return direct_rewriting.update(TableFolder(folder), any_of, {"to_batch": batch}, only=None, most_bytes=most_bytes)


MINE = Condition("stream_id", "=", 1)


def test_rows_that_satisfy_all_conditions_are_changed_and_nothing_else(folder: str) -> None:
    before = rows(folder)
    assert close(folder, [MINE, Condition("segment", ">=", 1)])
    assert closed(folder) == {(1, 0): None, (1, 1): 2, (1, 2): 2, (2, 0): None, (2, 1): None, (2, 2): None}
    unchanged = [{**row, "to_batch": None} for row in rows(folder)]
    assert unchanged == before


def test_one_of_several_lists_of_conditions_is_enough(folder: str) -> None:
    assert close(folder, [MINE, Condition("segment", "<=", 0)], [MINE, among("segment", (2, 7))])
    assert [key for key, batch in closed(folder).items() if batch == 2] == [(1, 0), (1, 2)]


def test_of_rows_that_satisfy_the_conditions_those_are_meant_that_are_said(folder: str) -> None:
    def second(found: pa.Table) -> Any:
        return np.array([part[0] == "k1" for part in found["part"].to_pylist()])

    assert direct_rewriting.update(TableFolder(folder), [[MINE]], {"to_batch": 2}, only=second, most_bytes=MIB)
    assert [key for key, batch in closed(folder).items() if batch == 2] == [(1, 1)]


def test_one_commit_changes_all_files_and_none_is_made_for_nothing(folder: str) -> None:
    version = DeltaTable(folder).version()
    assert close(folder, [MINE])
    assert DeltaTable(folder).version() == version + 1
    assert close(folder, [Condition("stream_id", "=", 3)])
    assert DeltaTable(folder).version() == version + 1


def test_more_bytes_than_allowed_are_left_alone(folder: str) -> None:
    assert not close(folder, [MINE], most_bytes=10)
    assert set(closed(folder).values()) == {None}


def test_deleted_rows_are_gone_and_the_others_of_their_files_stay(folder: str) -> None:
    before, version = rows(folder), DeltaTable(folder).version()
    any_of = [[MINE, Condition("segment", "<=", 0)], [Condition("stream_id", "=", 2), Condition("segment", ">=", 0)]]
    assert not direct_rewriting.delete(TableFolder(folder), any_of, most_bytes=10)
    assert rows(folder) == before
    assert direct_rewriting.delete(TableFolder(folder), any_of, most_bytes=MIB)
    assert rows(folder) == [row for row in before if row["stream_id"] == 1 and row["segment"] > 0]
    assert direct_rewriting.delete(TableFolder(folder), any_of, most_bytes=MIB)
    assert DeltaTable(folder).version() == version + 1, "a commit, and none where nothing is left to delete"


def test_what_the_log_tells_of_a_changed_file_is_what_it_holds(folder: str) -> None:
    assert close(folder, [MINE, Condition("segment", "=", 1)])
    told = pa.table(DeltaTable(folder).get_add_actions(flatten=True)).to_pylist()
    (changed,) = (file for file in told if file["min.to_batch"] == 2)
    assert (changed["min.segment"], changed["max.segment"], changed["num_records"]) == (1, 1, 1)
    assert (changed["null_count.to_batch"], changed["partition.stream_id"]) == (0, 1)


def test_statistics_are_of_plain_columns_and_leave_out_what_bounds_cannot_tell() -> None:
    table = pa.table(
        {
            "number": pa.array([3, None, 1], pa.int64()),
            "text": ["b", "a", None],
            "long": ["x" * 40, "a", "b"],
            "share": [0.5, float("nan"), 0.1],
            "moment": pa.array([0, 1, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
            "part": pa.array([["a"], None, []], pa.list_(pa.string())),
            "none": pa.nulls(3, pa.int64()),
        }
    )
    assert json.loads(statistics_of(table, None)) == {
        "numRecords": 3,
        "minValues": {"number": 1, "text": "a", "moment": "1970-01-01T00:00:00.000000Z"},
        "maxValues": {"number": 3, "text": "b", "moment": "2023-11-14T22:13:20.123456Z"},
        "nullCount": {"number": 1, "text": 1, "long": 0, "share": 0, "moment": 0, "none": 3},
    }
    assert json.loads(statistics_of(table, ["number", "gone"]))["maxValues"] == {"number": 3}


def test_a_rival_that_changed_the_same_file_is_found_out(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = DeltaTable.create_write_transaction

    def rival_first(table: DeltaTable, *given: object, **named: object) -> None:
        monkeypatch.undo()
        assert close(folder, [MINE, Condition("segment", "=", 0)], batch=7)
        made(table, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTable, "create_write_transaction", rival_first)

    def still_open(found: pa.Table) -> Any:
        return found["to_batch"].is_null().to_numpy()

    assert direct_rewriting.update(TableFolder(folder), [[MINE]], {"to_batch": 2}, only=still_open, most_bytes=MIB)
    assert [closed(folder)[1, segment] for segment in range(3)] == [7, 2, 2]


def test_threads_that_change_rows_and_append_lose_nothing(folder: str) -> None:
    def work(number: int) -> None:
        if number % 2:
            added = _row(3, number)
            assert direct_writer.append(TableFolder(folder), added, application=f"writer {number}", version=1)
        else:
            assert close(folder, [Condition("stream_id", "=", 1), Condition("segment", "=", number // 2)], batch=number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(2, 6)))
    assert closed(folder) | {(1, 0): 0} == {
        **{(1, 0): 0, (1, 1): 2, (1, 2): 4},
        **{(2, segment): None for segment in range(3)},
        **{(3, number): None for number in (3, 5)},
    }


def test_commits_through_spark_are_together_and_one_without_it_is_alone(tmp_path: Path) -> None:
    lock = lock_of(str(tmp_path), "events_log")
    with lock.together(), lock.together(), lock.alone() as held:
        assert not held
    with lock.alone() as held:
        assert held
        with lock.alone() as another:
            assert not another
    with lock.alone() as held:
        assert held


def test_who_commits_through_spark_waits_for_one_without_it(tmp_path: Path) -> None:
    lock = lock_of(str(tmp_path), "events_log")
    order: list[str] = []

    def through_spark() -> None:
        with lock.together():
            order.append("through Spark")

    with ThreadPoolExecutor(1) as pool:
        with lock.alone():
            waiting = pool.submit(through_spark)
            time.sleep(0.05)
            order.append("alone")
        waiting.result()
    assert order == ["alone", "through Spark"]


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    lock = lock_of(str(tmp_path), "events_log")
    spawned = multiprocessing.get_context("spawn")
    taken = spawned.Event()
    process = spawned.Process(target=_hold, args=(lock, taken))
    process.start()
    try:
        assert taken.wait(60)
        with lock.alone() as held:
            assert not held
    finally:
        process.kill()
        process.join()
    with lock.alone() as held:
        assert held


def _hold(lock: CommitLock, taken: Event) -> None:
    with lock.together():
        taken.set()
        time.sleep(600)


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.PACKED])
def test_small_files_of_a_partition_become_one_with_the_same_rows(folder: str, layout: Layout) -> None:
    before = rows(folder)
    merged = direct_rewriting.merge(TableFolder(folder), [{"stream_id": 1}], layout=layout, largest=MIB, most_bytes=MIB)
    assert merged
    assert rows(folder) == before
    told = pa.table(DeltaTable(folder).get_add_actions(flatten=True)).to_pylist()
    counts = sorted((file["partition.stream_id"], file["num_records"]) for file in told)
    assert counts == [(1, 3), (2, 1), (2, 1), (2, 1)]
    (whole,) = (file for file in told if file["num_records"] == 3)
    assert (whole["min.segment"], whole["max.segment"], whole["null_count.to_batch"]) == (0, 2, 3)


def test_partitions_with_more_bytes_are_left_to_spark(folder: str) -> None:
    version = DeltaTable(folder).version()
    assert not direct_rewriting.merge(
        TableFolder(folder), [{"stream_id": 1}], layout=Layout.PLAIN, largest=MIB, most_bytes=10
    )
    assert DeltaTable(folder).version() == version


def test_rows_are_replaced_by_others_and_the_rest_of_their_file_stays(folder: str) -> None:
    new = pa.concat_tables([_row(1, 7), _row(1, 8)])
    where = [MINE, Condition("segment", "<=", 1)]
    for _ in range(2):
        assert direct_rewriting.replace(TableFolder(folder), [*where], new, only=None, most_bytes=MIB)
        where = [MINE, Condition("segment", ">=", 7)]
    assert list(closed(folder)) == [(1, 2), (1, 7), (1, 8), (2, 0), (2, 1), (2, 2)]
    assert not direct_rewriting.replace(TableFolder(folder), [MINE], new, only=None, most_bytes=10)


def test_rows_that_are_changed_leave_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is closed is not read and written again when others are closed later."""
    monkeypatch.setattr(direct_rewriting, "_FEW_ROWS", 2)
    place = str(tmp_path / "table")
    whole = pa.concat_tables([_row(1, segment) for segment in range(4)])
    told = {"delta.dataSkippingStatsColumns": "segment,from_batch,to_batch"}
    write_deltalake(place, whole, partition_by=["stream_id"], configuration=told)
    still_open = Condition("to_batch", "null or >", 1)
    assert close(place, [MINE, still_open, Condition("segment", "<=", 0)])
    (left,) = [file["path"] for file in _files(place) if file["null_count.to_batch"]]
    assert close(place, [MINE, Condition("to_batch", "null or >", 2), among("segment", (3,))], batch=3)
    assert closed(place) == {(1, 0): 2, (1, 1): None, (1, 2): None, (1, 3): 3}
    found = sorted((file["num_records"], file["max.to_batch"]) for file in _files(place) if file["max.to_batch"])
    assert found == [(1, 2), (1, 3)]
    assert left not in [file["path"] for file in _files(place)]


def test_rows_of_several_files_that_are_closed_together_stand_in_one(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_rewriting, "_FEW_ROWS", 0)
    assert close(folder, [MINE, Condition("segment", ">=", 1)])
    assert closed(folder) == {(1, 0): None, (1, 1): 2, (1, 2): 2, (2, 0): None, (2, 1): None, (2, 2): None}
    assert [file["num_records"] for file in _files(folder) if file["max.to_batch"]] == [2]


def test_what_stays_of_several_files_becomes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the rows of one batch would lie in as many files as later batches have closed some of them."""
    monkeypatch.setattr(direct_rewriting, "_FEW_ROWS", 2)
    place = str(tmp_path / "table")
    told = {"delta.dataSkippingStatsColumns": "segment,from_batch,to_batch"}
    for first in (0, 10, 20):
        rows = pa.concat_tables([_row(1, first + number) for number in range(4)])
        write_deltalake(place, rows, partition_by=["stream_id"], mode="append", configuration=told)
    assert close(place, [MINE, among("segment", (0, 11))])
    assert {at for at, batch in closed(place).items() if batch == 2} == {(1, 0), (1, 11)}
    files = [(file["num_records"], file["min.segment"], file["max.segment"]) for file in _files(place)]
    assert sorted(files) == [(2, 0, 11), (4, 20, 23), (6, 1, 13)], "closed, not touched, left of two"
    monkeypatch.setattr(direct_rewriting, "_GATHERED_ROWS", 2)
    assert close(place, [MINE, among("segment", (12, 20))], batch=3)
    files = [(file["num_records"], file["min.segment"], file["max.segment"]) for file in _files(place)]
    assert sorted(files) == [(2, 0, 11), (2, 12, 20), (3, 21, 23), (5, 1, 13)], "large ones stay apart"


def test_files_whose_rows_are_all_closed_are_not_read_for_open_ones(folder: str) -> None:
    close(folder, [MINE, Condition("segment", "<=", 0)])
    close(folder, [MINE, Condition("segment", ">=", 2)], batch=4)
    open_at = {at: choose_files(_told(folder), [MINE, Condition("to_batch", "null or >", at)]) for at in (1, 2, 4)}
    assert {at: files.num_rows for at, files in open_at.items()} == {1: 3, 2: 2, 4: 1}


def _told(folder: str) -> pa.Table:
    return pa.table(DeltaTable(folder).get_add_actions(flatten=True))


def _files(folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _told(folder).to_pylist()
    return found


@pytest.mark.parametrize("layout", [Layout.PLAIN, Layout.PACKED])
@pytest.mark.parametrize("told", [True, False], ids=["told", "never told"])
def test_files_with_a_text_and_without_it_are_changed_and_merged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Layout, told: bool
) -> None:
    """Files leave out columns of NULLs, and have texts as numbers of a dictionary, or not."""
    place = str(tmp_path / "table")
    schema = pa.schema([("stream_id", pa.int32()), ("to_batch", pa.int64()), ("key", pa.string())])

    def given(first: int, key: str | None) -> pa.Table:
        numbers = pa.array(range(first, first + 40), pa.int64())
        columns = [pa.array([1] * 40, pa.int32()), numbers, pa.array([key] * 40, pa.string())]
        return pa.Table.from_arrays(columns, schema=schema)

    write_deltalake(place, schema.empty_table(), partition_by=["stream_id"])
    keys = ("x" if told else None, None)
    for version, key in enumerate(keys, 1):
        direct_writer.append(TableFolder(place), given(100 * version, key), application="a", version=version)
    table, touched = TableFolder(place), [MINE, among("to_batch", (100, 200))]
    for batch, few in ((1, 100), (2, 2)):
        monkeypatch.setattr(direct_rewriting, "_FEW_ROWS", few)
        assert direct_rewriting.update(
            TableFolder(place), [touched], {"to_batch": batch}, only=None, most_bytes=MIB, layout=layout
        )
        touched = [MINE, among("to_batch", (101, 201))]
    write_deltalake(place, given(300, "y"), mode="append", partition_by=["stream_id"])
    assert direct_rewriting.merge(table, [{"stream_id": 1}], layout=layout, largest=MIB, most_bytes=MIB)
    found = pa.table(DeltaTable(place).to_pyarrow_table())
    assert found.num_rows == 120
    counts = {each["values"]: each["counts"] for each in found["key"].value_counts().to_pylist()}
    assert counts == ({"x": 40, None: 40, "y": 40} if told else {None: 80, "y": 40})
    assert sorted(found["to_batch"].to_pylist())[:4] == [1, 1, 2, 2]
