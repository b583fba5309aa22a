"""Spark's tasks that read state for themselves, without Spark: where no row has to be dealt out by a shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.direct_reader import DirectReader
from patternlake.delta_tables.file_cache import TableCache
from patternlake.sql_ext import tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lake import Lake

Location = tuple[str, tuple[tuple[str, str], ...]]
"""Location and storage options of a database."""
Reading = Callable[[DirectReader, Sequence[tuple[int, int]]], Iterable[pa.Table]]
"""What one task does: from a reader and its ranges to rows of the answer, some at a time."""

_CACHE = TableCache()
"""Of a worker process: the files that its tasks have read."""


@lru_cache(maxsize=4)
def reader_at(place: Location) -> DirectReader:
    """Return what reads a database in a worker process, which keeps it for later tasks."""
    return DirectReader(place[0], _CACHE, dict(place[1]))


def place_of(lake: Lake) -> Location | None:
    """Return where tasks can read a lake for themselves; None: only Spark can."""
    found = getattr(lake.reader, "place", None)
    return None if found is None else (found[0], tuple(sorted(found[1].items())))


def dealt(
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
        As `tasks.dealt` gives it.
    """

    def task(_: int, columns: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
        mine = zip(columns["low"].to_pylist(), columns["high"].to_pylist(), strict=True)
        yield from work(reader_at(place), sorted(mine))

    rows = [(number, low, high) for number, some in enumerate(ranges) for low, high in some]
    numbers = pa.table(
        {
            tasks.PORTION: pa.array([row[0] for row in rows], pa.int32()),
            "low": pa.array([row[1] for row in rows], pa.int64()),
            "high": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    return tasks.dealt(lake.local(numbers, f"{tasks.PORTION} INT, low BIGINT, high BIGINT"), len(ranges), task, schema)
