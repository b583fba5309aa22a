"""A batch of few source rows in the driver: its order, what it amounts to, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.jobs.ingest.batch_counts import Total
from patternlake.jobs.ingest.few_rows import accept, bad_files, quarantine, statistics, take_rows, totals

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "America/New_York")),
        ("name", pa.string()),
        ("key", pa.string()),
        ("hash", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("row", pa.string(), nullable=False),
    ]
)


def prepared(*rows: tuple[int | None, str | None, str | None, int, str | None]) -> pa.Table:
    """Rows of time, name, key, hash and reason; the detail is the reason and the hash."""
    whole = [(*row, row[4] and f"{row[4]}: {row[3]}", "file", f"{row[3]}") for row in rows]
    columns: list[Any] = [list(column) for column in zip(*whole, strict=True)] if whole else [[] for _ in SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def test_accepted_rows_come_by_time_name_key_and_hash_without_a_key_first() -> None:
    rows = prepared(
        (2, "a", "k", 1, None),
        (1, "b", None, 2, None),
        (1, "b", "", 3, None),
        (1, "Z", "z", 9, None),
        (1, "Z", "z", -4, None),
        (None, None, None, 7, "time"),
        (1, "ä", "k", 6, None),
    )
    found = accept(rows, 11)
    assert found["hash"].to_pylist() == [-4, 9, 2, 3, 6, 1], "texts by the bytes of UTF-8"
    assert found["position"].to_pylist() == [11, 12, 13, 14, 15, 16]


def test_totals_tell_rows_greatest_time_and_the_detail_of_the_least_hash() -> None:
    rows = prepared(
        (5, "a", None, 1, None), (9, "a", None, 2, None), (7, None, None, 5, "name"), (3, None, None, 4, "name")
    )
    assert totals(rows) == {None: Total(2, 9), "name": Total(2, 7, (), "name: 4")}
    assert totals(prepared()) == {}


def test_names_are_counted_with_their_first_and_last_time() -> None:
    found = statistics(accept(prepared((5, "a", None, 1, None), (9, "a", None, 2, None), (7, "b", None, 3, None)), 1))
    rows = [(row["name"], row["events"], row["first_time"], row["last_time"]) for row in found.to_pylist()]
    times = {name: (events, first.microsecond, last.microsecond) for name, events, first, last in rows}
    assert times == {"a": (2, 5, 9), "b": (1, 7, 7)}


def test_refused_rows_go_with_their_reason_and_files_that_are_bad_beside_them() -> None:
    rows = prepared((5, "a", None, 1, None), (None, "a", None, 2, "time"))
    refused = {"reason": "time", "detail": "time: 2", "origin": "file", "row": "2"}
    bad = {"reason": "file", "detail": "file: is cut off", "origin": "x.csv", "row": None}
    assert quarantine(rows, np.array([1])).to_pylist() == [refused]
    assert [made().to_pylist() for made in bad_files({"x.csv": "is cut off"})] == [[bad]]
    assert bad_files({}) == []


def test_rows_are_taken_from_any_number_of_chunks() -> None:
    rows = prepared(*((n, "a", None, n, None) for n in range(9)))
    parts = pa.concat_tables([rows.slice(0, 2), rows.slice(2, 0), rows.slice(2, 3), rows.slice(5, 4)])
    assert take_rows(parts, np.array([0, 1, 4, 8]))["hash"].to_pylist() == [0, 1, 4, 8]
    assert take_rows(parts, np.array([3]))["hash"].to_pylist() == [3]
    assert take_rows(parts, np.array([], np.int64)).num_rows == 0
