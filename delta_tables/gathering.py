"""Rows that work is done on: declared once, read in this process or by Spark's tasks, which deal them out.

Tasks read files for themselves, and what one of them read for a portion goes through Spark's shuffle as one Arrow blob:
to hand over the rows one by one takes Spark longer than to match them. Rows of a location that only Spark can read come
from its own scan, and are dealt out in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from patternlake.delta_tables.arrow_rows import arrow_schema, frame_of
from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.direct_reader import DirectReader
from patternlake.delta_tables.file_cache import TableCache
from patternlake.delta_tables.quoting import identifier
from patternlake.delta_tables.spark_reader import chosen
from patternlake.delta_tables.state_reader import Condition, ListedFiles, StateReader
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import PART, order_of, partition_values, portions_by_partition, rows_of_key
from patternlake.udfs.record_batches import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.database import Database

Deal = Callable[[pa.Table], tuple[pa.Table, IntArray]]
"""From rows to rows, of which some may come again and others be left out, and the portion of each."""

SOURCE, PORTION, ROWS = "source", "portion", "rows"
_BLOBS = f"{SOURCE} INT, {PORTION} INT, {ROWS} BINARY"
_BLOB_SCHEMA = pa.schema([(SOURCE, pa.int32()), (PORTION, pa.int32()), (ROWS, pa.binary())])
_MOST_TASKS = 1000
_READ_AT_ONCE = 16 << 20
"""Bytes of files that a task reads before it deals out what it read: blobs are then some thousand rows each."""
_READING_TASKS = 8
"""So many times as many tasks as run at once read, at most: the last of them then begins not long before the end."""


@dataclass(frozen=True)
class Gather:
    """Rows of one table that work is done on.

    Attributes
    ----------
    table
        Plain name.
    columns
        What is read of each row. With `PART` among them it is stored; else it is made of `partition`.
    where
        The conditions on the rows.
    partition
        The columns of PARTITION BY.
    key
        Only the partition that is shown so; without `partition`, only rows of this key. None: all.
    make
        What is made of the rows that were read, with their `PART`, before they are dealt out.
    """

    table: str
    columns: tuple[str, ...]
    where: tuple[Condition, ...]
    partition: tuple[str, ...] = ()
    key: str | None = None
    make: Callable[[pa.Table], pa.Table] | None = None

    def read(self, reader: StateReader) -> pa.Table:
        """The rows, in this process."""
        return self.made(reader.rows(self.table, self.columns, self.where))

    @property
    def none(self) -> pa.Table:
        """What is gathered where there are no rows."""
        types = {column.name: column.type for column in TABLES[self.table].columns}
        read = ", ".join(f"{identifier(name)} {types[name]}" for name in self.columns)
        return self.made(arrow_schema(cast(StructType, StructType.fromDDL(read))).empty_table())

    def made(self, rows: pa.Table) -> pa.Table:
        """What is made of rows that were read."""
        if PART not in self.columns:
            rows = rows.append_column(PART, partition_values(rows, self.partition))
        rows = rows_of_key(rows, self.partition, self.key)
        return rows if self.make is None else self.make(rows)


def by_partition(portions: int, rows: pa.Table) -> tuple[pa.Table, IntArray]:
    """Deal rows out by their `PART`: each partition to one of so many portions."""
    return rows, portions_by_partition(rows[PART].combine_chunks(), portions)


def anyhow(portions: int, rows: pa.Table) -> tuple[pa.Table, IntArray]:
    """Deal rows out that belong to no portion, to so many alike."""
    return rows, np.arange(rows.num_rows) % portions


def deal(database: Database, reader: StateReader, sources: Sequence[tuple[Gather, Deal]], portions: int) -> DataFrame:
    """Let Spark's tasks read what is gathered, and bring together what they dealt to each of 0 to `portions` - 1.

    Parameters
    ----------
    database
        In whose session tasks run.
    reader
        Knows the files of the tables.
    sources
        What is gathered, and how it is dealt out.
    portions
        How many there are; one task holds a portion as a whole.

    Returns
    -------
    DataFrame
        For `portions_of`.
    """
    listed = [reader.list_files(gather.table, gather.where) for gather, _ in sources]
    places = [place for place, files in enumerate(listed) if files is None]
    frames = [_scanned(database, place, *sources[place]) for place in places]
    read = {place: (files, *sources[place]) for place, files in enumerate(listed) if files is not None}
    if read:
        frames.append(_read_by_tasks(database, read))
    # To coalesce instead, where there is one portion, would let one task read everything.
    blobs = reduce(lambda one, other: one.unionAll(other), frames)
    return blobs.repartitionById(min(portions, _MOST_TASKS), PORTION)


def collect(database: Database, reader: StateReader, gather: Gather) -> pa.Table:
    """Bring into this process what tasks make of the rows that they read; parameters as of `deal`."""
    blobs = deal(database, reader, [(gather, partial(anyhow, 1))], 1).toArrow()
    none = gather.none
    return pa.concat_tables([none, *(rows for _, (rows,) in portions_of(blobs.to_batches(), [none]))])


def portions_of(batches: Iterable[pa.RecordBatch], none: Sequence[pa.Table]) -> Iterator[tuple[int, list[pa.Table]]]:
    """Find the portions that a task holds, of what `deal` gave.

    Parameters
    ----------
    batches
        What the task is given.
    none
        For each source, what it is where a portion has no rows of it.

    Yields
    ------
    (portion, rows of each of the sources)
    """
    held: dict[int, list[list[pa.Table]]] = {}
    for batch in batches:
        places, numbers = (batch.column(name).to_pylist() for name in (SOURCE, PORTION))
        for place, number, blob in zip(places, numbers, batch.column(ROWS), strict=True):
            mine = held.setdefault(number, [[] for _ in none])
            mine[place].append(_rows_in(blob))
    for number in sorted(held):
        yield number, [pa.concat_tables(rows) if rows else none[place] for place, rows in enumerate(held.pop(number))]


def _scanned(database: Database, place: int, gather: Gather, deal: Deal) -> DataFrame:
    """Blobs of rows that only Spark can read."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in tables(batches):
            yield _blobs(place, *deal(gather.made(rows)))

    rows = chosen(database.table(gather.table), gather.where).select(*gather.columns)
    return rows.mapInArrow(run, _BLOBS)


def _read_by_tasks(database: Database, read: Mapping[int, tuple[ListedFiles, Gather, Deal]]) -> DataFrame:
    """Blobs of rows that tasks read for themselves."""
    groups = [(place, some) for place, (listed, _, _) in read.items() for some in _in_groups(listed)]
    tasks = max(1, min(len(groups), _READING_TASKS * database.spark.sparkContext.defaultParallelism))
    shares = {
        SOURCE: [place for place, _ in groups],
        PORTION: [number % tasks for number in range(len(groups))],
        ROWS: [_written(some) for _, some in groups],
    }
    # The files go with the groups.
    known = {
        place: (replace(listed, files=listed.files.slice(0, 0)), gather, dealt)
        for place, (listed, gather, dealt) in read.items()
    }

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, blob in zip(batch.column(SOURCE).to_pylist(), batch.column(ROWS), strict=True):
                listed, gather, dealt = known[place]
                # Nothing is kept: what a task reads of a table that is too large for the driver, none reads again soon.
                reader = DirectReader(listed.location, TableCache(0), dict(listed.storage_options))
                listed = replace(listed, files=_rows_in(blob))
                rows = gather.made(reader.rows_of(listed, gather.columns, gather.where))
                if rows.num_rows:
                    yield _blobs(place, *dealt(rows))

    frame = frame_of(database.spark, pa.table(shares, schema=_BLOB_SCHEMA), _BLOBS)
    return frame.repartitionById(tasks, PORTION).mapInArrow(run, _BLOBS)


def _in_groups(listed: ListedFiles) -> list[pa.Table]:
    """The files, as many together as are read at once."""
    before = np.cumsum(np.append(0, listed.files["size_bytes"].to_numpy()))[:-1]
    groups = before // _READ_AT_ONCE
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(begins, len(groups))[1:]
    return [listed.files.slice(begin, end - begin) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _blobs(place: int, rows: pa.Table, portions: IntArray) -> pa.RecordBatch:
    """Rows as one blob for each portion."""
    found, counts = np.unique(portions, return_counts=True)
    if len(found) > 1:
        rows = rows.combine_chunks().take(pa.array(order_of(portions)))
    ends = np.cumsum(counts)
    blobs = [
        _written(rows.slice(end - count, count)) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
    ]
    columns = {SOURCE: np.full(len(found), place), PORTION: found, ROWS: blobs}
    return pa.RecordBatch.from_pydict(columns, schema=_BLOB_SCHEMA)


def _rows_in(blob: pa.BinaryScalar) -> pa.Table:
    return pa.ipc.open_stream(blob.as_buffer()).read_all()


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written
