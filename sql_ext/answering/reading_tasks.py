"""Spark's tasks that read state for themselves, without Spark: where no row has to be dealt out by a shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.reading.worker_reader import Location, location_of, reader_at
from patternlake.sql_ext.answering import tasks
from patternlake.udfs.equal_shares import equal_shares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lakes.lake import Lake

Reading = Callable[[DirectReader, Sequence[tuple[int, int]]], Iterable[pa.Table]]
"""What one task does: from a reader and its ranges to rows of the answer, some at a time."""


def place_of(lake: Lake) -> Location | None:
    """Return where tasks can read a lake for themselves; None: only Spark can."""
    place = getattr(lake.reader, "place", None)
    return None if place is None else location_of(*place)


def deal_ranges(
    lake: Lake, place: Location, ranges: Sequence[Sequence[tuple[int, int]]], work: Reading, schema: str
) -> DataFrame:
    """Give each task some ranges of numbers, and let it read what it needs for them.

    Parameters
    ----------
    lake
        Where it is asked.
    place
        As `place_of` gives it.
    ranges
        For each task; what the numbers are, `work` knows.
    work
        Is pickled, with what it has in its closure.
    schema
        Columns of the answer, as DDL.

    Returns
    -------
    DataFrame
        As `tasks.answer_portions` gives it.
    """

    def task(_: int, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        mine = zip(batch["low"].to_pylist(), batch["high"].to_pylist(), strict=True)
        yield from work(reader_at(place), sorted(mine))

    rows = [(number, low, high) for number, some in enumerate(ranges) for low, high in some]
    numbers = pa.table(
        {
            tasks.PORTION: pa.array([row[0] for row in rows], pa.int32()),
            "low": pa.array([row[1] for row in rows], pa.int64()),
            "high": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    given = lake.local(numbers, f"{tasks.PORTION} INT, low BIGINT, high BIGINT")
    frame = given.repartitionById(max(1, len(ranges)), tasks.PORTION)
    return tasks.answer_portions(frame, lambda batches: enumerate(b for b in batches if b.num_rows), task, schema)


@dataclass(frozen=True)
class RowsRead:
    """What a task does that reads rows of a table whose numbers lie in its ranges, some of them at a time.

    Attributes
    ----------
    table
        Plain name.
    columns
        What is read of each row.
    where
        The conditions on the rows.
    number
        The column whose values are dealt out.
    at_once
        So many neighbouring numbers.
    work
        What is made of the rows.
    """

    table: str
    columns: tuple[str, ...]
    where: tuple[Condition, ...]
    number: str
    at_once: int
    work: Callable[[pa.Table], pa.Table]

    def __call__(self, reader: DirectReader, ranges: Sequence[tuple[int, int]]) -> Iterator[pa.Table]:
        """What is made of the rows of the ranges."""
        for low, high in ranges:
            for begin in range(low, high + 1, self.at_once):
                mine = between(self.number, begin, min(begin + self.at_once - 1, high))
                rows = reader.rows(self.table, self.columns, (*self.where, *mine))
                if rows.num_rows:
                    yield self.work(rows)


def rows_dealt(lake: Lake, place: Location, read: RowsRead, numbers: Sequence[int], schema: str) -> DataFrame:
    """Read rows by tasks, each those of some of the given numbers, which ascend.

    Parameters are those of `deal_ranges`; `schema` is that of what `read` makes of the rows.
    """
    shares = equal_shares(len(numbers), min(len(numbers), 2 * lake.spark.sparkContext.defaultParallelism))
    ranges = [[(numbers[begin], numbers[end - 1])] for begin, end in shares]
    return deal_ranges(lake, place, ranges, read, schema)
