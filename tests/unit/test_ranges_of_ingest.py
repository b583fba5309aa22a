"""A batch's rows in columns on disk: cut into ranges that follow each other in the order of the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from patternlake.jobs.ingest import chunks, ordering, spilling
from patternlake.jobs.ingest.ordering import cut_times, number_ranges, ranges
from patternlake.jobs.ingest.prepared_rows import _in_order, _take, accept

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("key", pa.string()),
        ("hash", pa.int64()),
        ("reason", pa.string()),
    ]
)
MORE = ("detail", "origin", "row")
Row = tuple[int | None, str | None, str | None, int, str | None]


def prepared(rows: list[Row], chunk: int) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    whole = pa.Table.from_arrays(arrays, schema=SCHEMA)
    for name in MORE:
        whole = whole.append_column(name, pa.nulls(whole.num_rows, pa.string()))
    return pa.Table.from_batches(whole.to_batches(max_chunksize=chunk), whole.schema)


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    """As Spark orders: texts by the bytes of UTF-8, NULL first."""
    return (row["time"], row["name"].encode(), row["key"] is not None, (row["key"] or "").encode(), row["hash"])


good = st.tuples(
    st.integers(-3, 3) | st.integers(-(10**15), 10**15),
    st.sampled_from(["a", "b", "é", "", "𝄞", "\uffff"]),
    st.none() | st.sampled_from(["", "k", "j"]),
    st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1),
    st.none(),
)
bad = st.tuples(st.none(), st.none(), st.none(), st.integers(0, 9), st.just("time"))


@given(st.lists(good | bad, max_size=60), st.integers(1, 7), st.integers(1, 9))
def test_ranges_hold_all_accepted_rows_in_order_whatever_is_equal(rows: list[Row], most: int, chunk: int) -> None:
    table = accept(prepared(rows, chunk))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "RANGE_ROWS", most)
        cut = ranges(table)
    assert all(0 < len(places) <= most for places in cut)
    found = [row for places in cut for row in _in_order(_take(table, places)).to_pylist()]
    wanted = table.to_pylist()
    assert [order(row) for row in found] == sorted(map(order, wanted))


def test_a_range_takes_fewer_rows_where_they_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = prepared([(n, "n" * 1000, None, n, None) for n in range(100)], 100)
    monkeypatch.setattr(ordering, "RANGE_BYTES", 20_000)
    sizes = [len(places) for places in ranges(accept(rows))]
    assert sum(sizes) == 100
    assert max(sizes) <= 20_000 // 1000


def test_times_are_cut_evenly_and_never_inside_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "RANGE_ROWS", 100)
    rows = accept(prepared([(n * n // 7, "a", None, n, None) for n in range(600)], 100))
    cut = cut_times(rows, 600, parallelism=1)
    sizes = np.bincount(number_ranges(rows, cut))
    assert len(sizes) == len(cut) + 1 == 6
    assert min(sizes) >= 90
    assert max(sizes) <= 110
    assert (np.diff(number_ranges(rows, cut)) >= 0).all()


@pytest.mark.parametrize(("rows", "parallelism", "wanted"), [(10, 4, 1), (25, 4, 4), (199, 1, 2), (0, 4, 1)])
def test_few_rows_are_one_range_and_more_keep_all_tasks_busy(
    rows: int, parallelism: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "RANGE_ROWS", 100)
    given = accept(prepared([(n, "a", None, n, None) for n in range(rows)], 1000))
    assert len(cut_times(given, rows, parallelism=parallelism)) + 1 == wanted


def test_a_task_writes_its_rows_to_a_file_in_large_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CHUNK_ROWS", 10)
    rows = prepared([(n, "a", None, n, None) for n in range(25)], 4)
    (told,) = spilling._write(str(tmp_path), iter(rows.to_batches()))
    (path,) = told["path"].to_pylist()
    assert sorted(map(str, tmp_path.iterdir())) == sorted(f"{path}.{name}" for name in chunks.COLUMNS)
    written = ipc.open_file(f"{path}.accepted").read_all()
    assert written.to_pylist() == accept(rows).to_pylist()
    assert [len(chunk) for chunk in written["time"].chunks] == [12, 12, 1]


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    empty = prepared([], 1)
    assert list(spilling._write(str(tmp_path), iter([]))) == []
    assert list(spilling._write(str(tmp_path), iter(empty.to_batches()))) == []
    assert list(tmp_path.iterdir()) == []
