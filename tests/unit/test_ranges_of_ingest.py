"""A batch's rows in columns on disk: cut into ranges that follow each other in the order of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from patternlake.jobs.ingest import ranges as ranges_module
from patternlake.jobs.ingest import spilling
from patternlake.jobs.ingest.few_rows import accept, take_rows
from patternlake.jobs.ingest.ranges import find_refused, ranges

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("key", pa.string()),
        ("hash", pa.int64()),
        ("reason", pa.string()),
    ]
)
Row = tuple[int | None, str | None, str | None, int, str | None]


def prepared(rows: list[Row], chunk: int) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    whole = pa.Table.from_arrays(arrays, schema=SCHEMA)
    return pa.Table.from_batches(whole.to_batches(max_chunksize=chunk), SCHEMA)


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
    table = prepared(rows, chunk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges_module, "RANGE_ROWS", most)
        cut = ranges(table)
    assert all(0 < len(places) <= most for places in cut)
    found = [row for places in cut for row in accept(take_rows(table, places), 1).drop(["position"]).to_pylist()]
    wanted = [row for row in table.to_pylist() if row["reason"] is None]
    assert [order(row) for row in found] == sorted(map(order, wanted))


def test_a_range_takes_fewer_rows_where_they_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = prepared([(n, "n" * 1000, None, n, None) for n in range(100)], 100)
    monkeypatch.setattr(ranges_module, "RANGE_BYTES", 20_000)
    sizes = [len(places) for places in ranges(rows)]
    assert sum(sizes) == 100
    assert max(sizes) <= 20_000 // 1000


def test_refused_rows_come_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges_module, "RANGE_ROWS", 2)
    rows = prepared([(1, "a", None, 0, None), *[(None, None, None, n, "time") for n in range(5)]], 3)
    portions = find_refused(rows)
    assert [len(places) for places in portions] == [2, 2, 1]
    assert np.concatenate(portions).tolist() == [1, 2, 3, 4, 5]
    assert find_refused(rows.slice(0, 1)) == []


def _as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_a_task_writes_its_rows_to_one_file_in_large_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "_CHUNK_ROWS", 10)
    rows = prepared([(n, "a", None, n, None) for n in range(25)], 4)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()

    (told,) = spilling._to_files(_as_they_are, str(tmp_path))(batches())
    assert told.to_pydict() == {"path": [str(path) for path in tmp_path.iterdir()]}
    written = ipc.open_file(told["path"][0].as_py()).read_all()
    assert written.to_pylist() == rows.to_pylist()
    assert [len(chunk) for chunk in written["time"].chunks] == [12, 12, 1]


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    empty = prepared([], 1)
    assert list(spilling._to_files(_as_they_are, str(tmp_path))(iter([]))) == []
    assert list(spilling._to_files(_as_they_are, str(tmp_path))(iter(empty.to_batches()))) == []
    assert list(tmp_path.iterdir()) == []
