"""What a task does with the rows that Spark hands it: which partitions it takes together, and what it hands back."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.translation import MatchNumberAtom
from patternlake.udfs.rows import task as rows_task
from patternlake.udfs.rows.query import compile_pattern
from patternlake.udfs.rows.task import SIZE, Limits, RowsTask

SETTINGS = ("bytes", "steps", "rows")


def task(partition_bytes: int = 1 << 30) -> RowsTask:
    """Finds each fall; hands on the symbol of its partition, and the day of its first row."""
    return RowsTask(
        pattern=compile_pattern(parse_clause("PATTERN (down+) DEFINE down AS price < PREV(price)")),
        holding=("falls",),
        kernel_columns=(),
        columns={},
        shown={"day": "day"},
        shown_once={"symbol": "symbol"},
        atoms={"number": MatchNumberAtom()},
        limits=Limits(partition_bytes, 1000, 1000, SETTINGS),
    )


def rows_of(partitions: list[tuple[str | None, list[bool]]]) -> pa.Table:
    """Partitions' rows, in which only the first one of each says how many there are, and of what symbol."""
    rows = [
        (len(falls) if not day else None, symbol if not day else None, fall, day)
        for symbol, falls in partitions
        for day, fall in enumerate(falls)
    ]
    schema = pa.schema([(SIZE, pa.int64()), ("symbol", pa.string()), ("falls", pa.bool_()), ("day", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def falls_of(partitions: list[tuple[str | None, list[bool]]]) -> list[tuple[str | None, int, int]]:
    """By definition: symbol, first day and number of each longest run of falls."""
    found = []
    for symbol, falls in partitions:
        starts = [day for day, fall in enumerate(falls) if fall and not (day and falls[day - 1])]
        found += [(symbol, day, number) for number, day in enumerate(starts, start=1)]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_each_match_has_the_symbol_of_its_partition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(rows_task, "ROWS_AT_ONCE", rng.choice([1, 5, 1000]))
    partitions = [
        (rng.choice(["a", "b", None]), [rng.random() < 0.5 for _ in range(rng.randint(1, 6))])
        for _ in range(rng.randint(1, 12))
    ]
    batches = rows_of(partitions).to_batches(max_chunksize=rng.choice([1, 3, 100]))
    given = task()
    answers = [given.answers(portion) for _, portion in given.portions(batches)]
    found = pa.concat_tables(answers).select(["symbol", "day", "number"])
    assert [tuple(row.values()) for row in found.to_pylist()] == falls_of(partitions)


def test_a_partition_that_is_too_large_is_refused_with_its_size() -> None:
    rows = rows_of([("a", [True]), ("b", [False] * 50)])
    with pytest.raises(ArgumentError, match=r"a partition has 50 rows, about .* \(bytes\)"):
        list(task(partition_bytes=200).portions(rows.to_batches()))
