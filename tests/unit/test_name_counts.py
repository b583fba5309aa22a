"""How often names occur is told of all batches, however much of that was summed up when it was asked before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from drawn import SEEDED
from hypothesis import given, settings

from patternlake.delta_tables.gathering import snapshots
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.udfs.published import NameCount
from patternlake.udfs.requests import BatchRange

SCHEMA = pa.schema(
    {
        "stream_id": pa.int32(),
        "batch_id": pa.int64(),
        "name": pa.string(),
        "events": pa.int64(),
        "first_time": pa.timestamp("us", "UTC"),
        "last_time": pa.timestamp("us", "UTC"),
        "attributes": pa.list_(pa.struct({"attribute": pa.string(), "events": pa.int64()})),
    }
)
Row = tuple[int, str, int, int | None, int | None, str | None]
"""Batch, name, events, first and last time, and an attribute that is told of."""


def write(folder: str, rows: Sequence[Row]) -> None:
    told = [None if row[5] is None else [{"attribute": row[5], "events": 1}] for row in rows]
    columns: list[Any] = [
        [1] * len(rows),
        *(list(column) for column in zip(*(row[:5] for row in rows), strict=True)),
        told,
    ]
    arrays = [
        pa.array(column, pa.int64() if pa.types.is_timestamp(field.type) else field.type).cast(field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
    ]
    write_deltalake(folder, pa.Table.from_arrays(arrays, schema=SCHEMA), mode="append")


def expected(rows: Sequence[Row], batch: int) -> list[NameCount]:
    found: dict[str, dict[str, Any]] = {}
    for row in sorted(row for row in rows if row[0] <= batch):
        one = found.setdefault(row[1], {"name": row[1], "events": 0, "first": None, "last": None, "attributes": None})
        one["events"] += row[2]
        if row[5] is not None:
            one["attributes"] = [{"attribute": row[5], "events": 1}]
        for end, value, best in (("first", row[3], min), ("last", row[4], max)):
            if value is not None:
                one[end] = value if one[end] is None else best(one[end], value)
    return [NameCount(**one) for one in sorted(found.values(), key=lambda one: (-one["events"], one["name"]))]


def counts(reader: DirectReader, batch: int) -> list[NameCount]:
    return Snapshot(reader, None).name_counts(BatchRange(1, 1, batch), 100)


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_FEW_STATISTICS", 3)


@pytest.mark.usefixtures("_few")
@settings(max_examples=30)
@given(SEEDED)
def test_counts_are_those_of_all_rows_whoever_asked_before(tmp_path_factory: Any, rng: random.Random) -> None:
    place = tmp_path_factory.mktemp("lake")
    folder = str(place / "event_statistics_log")
    reader = DirectReader(str(place), TableCache())
    written: list[Row] = []
    for batch in range(1, 9):
        new: list[Row] = []
        for name in rng.sample("abcde", rng.randint(1, 4)):
            first = rng.randint(0, 100)
            new.append((batch, name, rng.randint(1, 9), first, first + rng.randint(0, 9), None))
        described = rng.randint(1, batch)
        if rng.random() < 0.3 and not any(row[0] == described and row[5] for row in written):
            new.append((described, rng.choice("abc"), 0, None, None, f"told in {batch}"))
        write(folder, new)
        written += new
        if rng.random() < 0.2:
            DeltaTable(folder).optimize.compact()
        # The newest batch may not be published yet, and somebody may ask for an earlier moment.
        for asked in rng.sample([batch, batch, batch - 1, rng.randint(1, batch)], rng.randint(0, 3)):
            assert counts(reader, asked) == expected(written, asked)


def test_the_last_time_is_that_of_all_names(tmp_path: Path) -> None:
    write(str(tmp_path / "event_statistics_log"), [(1, "a", 2, 0, 1, None), (1, "b", 1, 5, 5, None)])
    snapshot = Snapshot(DirectReader(str(tmp_path), TableCache()), None)
    assert [each.name for each in snapshot.name_counts(BatchRange(1, 1, 1), 1)] == ["a"]
    assert snapshot.last_time(BatchRange(1, 1, 1)) == 5
    assert snapshot.last_time(BatchRange(2, 1, 1)) is None, "a stream without events"


@pytest.mark.usefixtures("_few")
def test_what_was_summed_up_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path / "event_statistics_log")
    reader = DirectReader(str(tmp_path), TableCache())
    summed: list[int] = []
    sum_up = snapshots._in_sums
    monkeypatch.setattr(snapshots, "_in_sums", lambda batch, rows: summed.append(rows.num_rows) or sum_up(batch, rows))
    for batch in range(1, 6):
        write(folder, [(batch, name, 1, batch, batch, None) for name in "abcdefgh"])
        assert [row.events for row in counts(reader, batch)] == [batch] * 8
    assert summed == [8, 16, 16, 16, 16]


def test_they_are_summed_up_once_for_a_version_of_the_table(tmp_path: Path) -> None:
    folder = str(tmp_path / "event_statistics_log")
    write(folder, [(1, "a", 2, 0, 1, None)])
    reader = DirectReader(str(tmp_path), TableCache(1 << 20))
    first = counts(reader, 1)
    assert counts(reader, 1) is first
    write(folder, [(2, "a", 3, 2, 3, None)])
    assert [each.events for each in counts(reader, 2)] == [5]
    assert counts(reader, 1) == first
