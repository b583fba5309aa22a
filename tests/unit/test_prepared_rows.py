"""Prepared rows in columns: their order, what they amount to, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.jobs.ingest.prepared_rows import (
    EventShape,
    Total,
    _take,
    accept,
    count_names,
    divide_events,
    merge_names,
    refuse,
    refuse_files,
    sum_up,
    totals,
)

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
        ("step", pa.int64()),
        ("probability", pa.float64()),
    ]
)


def prepared(*rows: tuple[int | None, str | None, str | None, int, str | None]) -> pa.Table:
    """Rows of time, name, key, hash and reason; the detail is the reason and the hash."""
    whole = [(*row, row[4] and f"{row[4]}: {row[3]}", "file", f"{row[3]}", None, None) for row in rows]
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
    (made,) = divide_events(accept(rows), 11, EventShape({"event_id": "hash"}, ()))
    found = made()
    assert found["event_id"].to_pylist() == [-4, 9, 2, 3, 6, 1], "texts by the bytes of UTF-8"
    assert found["position"].to_pylist() == [11, 12, 13, 14, 15, 16]


def test_totals_tell_rows_greatest_time_and_the_detail_of_the_least_hash() -> None:
    rows = prepared(
        (5, "a", None, 1, None), (9, "a", None, 2, None), (7, None, None, 5, "name"), (3, None, None, 4, "name")
    )
    wanted = {None: Total(2, 9), "name": Total(2, 7, "name: 4")}
    assert totals(sum_up(rows)) == wanted
    assert totals(pa.concat_tables([sum_up(rows.slice(0, 3)), sum_up(rows.slice(3))])) == wanted, "of parts"
    assert totals(sum_up(prepared())) == {}


def test_names_are_counted_with_their_first_and_last_time() -> None:
    accepted = accept(prepared((5, "a", None, 1, None), (9, "a", None, 2, None), (7, "b", None, 3, None)))
    parts = [count_names(accepted.slice(0, 1)), count_names(accepted.slice(1))]
    found = merge_names(pa.concat_tables(parts))
    rows = [(row["name"], row["events"], row["first_time"], row["last_time"]) for row in found.to_pylist()]
    times = {name: (events, first.microsecond, last.microsecond) for name, events, first, last in rows}
    assert times == {"a": (2, 5, 9), "b": (1, 7, 7)}


def test_refused_rows_go_with_their_reason_and_files_that_are_bad_beside_them() -> None:
    rows = prepared((5, "a", None, 1, None), (None, "a", None, 2, "time"))
    refused = {"reason": "time", "detail": "time: 2", "origin": "file", "row": "2"}
    bad = {"reason": "file", "detail": "file: is cut off", "origin": "x.csv", "row": None}
    assert refuse(rows).to_pylist() == [refused]
    assert refuse_files({"x.csv": "is cut off"}).to_pylist() == [bad]
    assert refuse_files({}).schema == refuse(rows).schema


def test_rows_are_taken_from_any_number_of_chunks() -> None:
    rows = prepared(*((n, "a", None, n, None) for n in range(9)))
    parts = pa.concat_tables([rows.slice(0, 2), rows.slice(2, 0), rows.slice(2, 3), rows.slice(5, 4)])
    assert _take(parts, np.array([0, 1, 4, 8]))["hash"].to_pylist() == [0, 1, 4, 8]
    assert _take(parts, np.array([3]))["hash"].to_pylist() == [3]
    assert _take(parts, np.array([], np.int64)).num_rows == 0
