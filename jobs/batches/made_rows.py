"""What the kernel of a batch has made: rows of several kinds, which the driver holds, or which Spark keeps for it.

Spark keeps them as Arrow blobs, each of rows of one kind. One by one, rows would go through its memory, and be
serialized to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.writing.row_files import Made, TaskRows
from patternlake.jobs.batches.contexts import keep_evaluated
from patternlake.udfs.record_batches import BATCH_ROWS, as_blob, rows_in, tables

KIND = "kind"
_COUNT, _ROWS = "count", "rows"
_BLOBS = f"{KIND} STRING, {_COUNT} BIGINT, {_ROWS} BINARY"
_CHUNK_ROWS, _CHUNK_BYTES = 200_000, 16 << 20
"""Rows that a task holds before it makes blobs of them: so many, or so many bytes."""


class HeldRows:
    """Rows with a column ``kind``, which the driver holds.

    Parameters
    ----------
    rows
        The rows.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def counts(self) -> dict[str, int]:
        """How many rows there are by kind."""
        return {row["values"]: row["counts"] for row in self._rows[KIND].value_counts().to_pylist()}

    def read(self, kind: str, columns: Sequence[str]) -> pa.Table:
        """The rows of one kind, brought into this process."""
        return self.of([kind], columns)

    def of(self, kinds: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """The rows of some kinds, for `Batch.append`."""
        chosen = pc.is_in(self._rows[KIND], pa.array(kinds, pa.string()))
        return self._rows.select(list(columns)).filter(chosen)


class KeptRows:
    """The same of rows that Spark keeps.

    Parameters
    ----------
    blobs
        The rows, as `_to_blobs` makes them.
    schema
        Of the rows.
    counts
        How many there are by kind.
    """

    def __init__(self, blobs: DataFrame, schema: pa.Schema, counts: dict[str, int]) -> None:
        self._blobs, self._schema, self._counts = blobs, schema, counts

    def counts(self) -> dict[str, int]:
        """As of `HeldRows`."""
        return self._counts

    def read(self, kind: str, columns: Sequence[str]) -> pa.Table:
        """As of `HeldRows`."""
        blobs = self._of([kind]).toArrow()[_ROWS]
        pieces = [rows_in(blob).select(list(columns)) for blob in blobs]
        return pa.concat_tables([self._select_schema(columns).empty_table(), *pieces])

    def of(self, kinds: Sequence[str], columns: Sequence[str]) -> TaskRows:
        """As of `HeldRows`."""
        names = list(columns)

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for blob in batch.column(0):
                    yield from rows_in(blob).select(names).to_batches(max_chunksize=BATCH_ROWS)

        return TaskRows(self._of(kinds), made, self._select_schema(columns))

    def _of(self, kinds: Sequence[str]) -> DataFrame:
        return self._blobs.where(F.col(KIND).isin(list(kinds))).select(_ROWS)

    def _select_schema(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in columns])


MadeRows = HeldRows | KeptRows


@contextmanager
def keep(rows: Sequence[TaskRows]) -> Iterator[KeptRows]:
    """Have tasks make rows, all of one schema, once, and Spark keep them for the length of a block."""
    first, *_ = rows
    frames = [each.given.mapInArrow(_to_blobs(each.made), _BLOBS) for each in rows]
    with keep_evaluated(reduce(DataFrame.unionAll, frames)) as blobs:
        found = blobs.groupBy(KIND).agg(F.sum(_COUNT)).collect()
        yield KeptRows(blobs, first.schema, {row[0]: row[1] for row in found})


def _to_blobs(made: Made) -> Made:
    """Makes blobs of what a task makes."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in tables(made(batches), rows=_CHUNK_ROWS, size=_CHUNK_BYTES):
            for kind in rows[KIND].unique().to_pylist():
                mine = rows.filter(pc.equal(rows[KIND], kind)).combine_chunks()
                columns = {KIND: [kind], _COUNT: np.array([mine.num_rows]), _ROWS: [as_blob(mine)]}
                yield pa.RecordBatch.from_pydict(columns)

    return write
