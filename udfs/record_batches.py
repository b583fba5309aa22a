"""Record batches as tables of a size that vectorised work is worth it for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray

_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
SETTINGS = {_LIMIT: "8m"}
"""Of Spark: batches for Python hold few blobs of some megabytes. By their rows alone they hold all of a task, and its
memory is new each time. Measured, of two executors that take in 10 million events: tasks that deal out blobs take 7
seconds, 8 with Spark's own 64 MB, and 12 without a limit."""
ROW_SETTINGS = {_LIMIT: str(2**31 - 1)}
"""While rows of a source go to Python: to limit batches by bytes as well, Spark 4.2 adds up all columns anew after each
row. Measured: ten columns take 1.0 microseconds a row with it, and 0.7 without."""
ROWS_AT_ONCE = 200_000
"""Rows of a table, at least, but for the last one."""
BATCH_ROWS = 20_000
"""Rows of a batch that is given to Spark, at most: it holds a batch several times while it takes it over."""


class _Columns(Mapping[str, pa.Array]):
    """Columns by name, each put in one piece when it is asked for first: kernels ask for some of those that are read,
    and to put texts together takes as long as to match them.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._whole: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._whole:
            self._whole[name] = self._table[name].combine_chunks()
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return self._table.num_columns  # type: ignore[no-any-return]


def columns_of(table: pa.Table) -> Mapping[str, pa.Array]:
    """Columns by name, each in one piece."""
    return _Columns(table)


def filled(columns: Mapping[str, pa.Array], schema: pa.Schema, count: int) -> list[pa.Array]:
    """The columns of a schema, of so many rows, from those that there are, NULL where there is none."""
    return [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of a schema, NULL where they have none."""
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    return pa.Table.from_arrays(filled(columns, schema, rows.num_rows), schema=schema)


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables with the columns of the first, NULL where another one has none."""
    first, *others = tables
    return pa.concat_tables([first, *(in_schema(each, first.schema) for each in others)])


def in_micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column, moments as whole microseconds since the epoch, of which no time zone takes part."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def rows_in_micros(table: pa.Table) -> list[dict[str, Any]]:
    """Rows by the names of their columns, moments as `in_micros`."""
    return pa.table({name: in_micros(table[name]) for name in table.column_names}).to_pylist()  # type: ignore[no-any-return]


def batches_of(table: pa.Table) -> list[pa.RecordBatch]:
    """A table as the batches in which Spark hands rows to Python, columns in one piece."""
    return list(table.combine_chunks().to_batches(max_chunksize=ROWS_AT_ONCE))


def tables(given: Iterable[pa.RecordBatch], *, rows: int = ROWS_AT_ONCE, size: int | None = None) -> Iterator[pa.Table]:
    """Some batches at a time, empty ones left out: so many rows, or bytes, or more where the last batch has more."""
    held: list[pa.RecordBatch] = []
    count = held_bytes = 0
    for batch in given:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
            held_bytes += 0 if size is None else batch.nbytes
        if count >= rows or (size is not None and held_bytes >= size):
            yield pa.Table.from_batches(held)
            held, count, held_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def as_blob(rows: pa.Table) -> bytes:
    """Rows in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def rows_in(blob: pa.BinaryScalar) -> pa.Table:
    """The rows that `as_blob` wrote, of which none is copied."""
    return pa.ipc.open_stream(blob.as_buffer()).read_all()


def in_order(columns: Mapping[str, pa.Array], *by: str) -> tuple[Mapping[str, pa.Array], IntArray]:
    """Rows in the order of some of their columns, whole numbers, the first of them before the others.

    Parameters
    ----------
    columns
        Of n rows each.
    by
        Names of columns.

    Returns
    -------
    (columns, int64[n])
        The rows in order, and the place that each had.
    """
    keys = [columns[name].to_numpy(zero_copy_only=False) for name in by]
    if np.all(keys[0][1:] > keys[0][:-1]):  # As jobs write them: to move them takes as long as to read them.
        return columns, np.arange(len(keys[0]))
    order = np.lexsort(keys[::-1])
    taken = pa.array(order)
    return {name: column.take(taken) for name, column in columns.items()}, order
