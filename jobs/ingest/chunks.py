"""The prepared rows of a batch in columns, chunk by chunk: whoever evaluated them made of each chunk what is asked for.

Chunks that tasks made stay on their disks as bytes of Arrow. Rows as they are would go one by one through Spark's
memory, each time that they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import keep_evaluated
from patternlake.jobs.ingest import ordering, prepared_rows, ties
from patternlake.jobs.ingest.prepared_rows import Total
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import by_portion
from patternlake.udfs.record_batches import BATCH_ROWS, as_blob, rows_in, tables, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database

PORTION, ROWS = "portion", "rows"
_DEALT = pa.schema([(PORTION, pa.int32()), (ROWS, pa.binary())])
_TIED_ROWS = 4_000_000
"""Rows of which the tied ones are counted at once."""
_CHUNK_ROWS, _CHUNK_BYTES = 200_000, 32 << 20


@dataclass(frozen=True)
class Chunk:
    """Some prepared rows, and what is made of them.

    Attributes
    ----------
    accepted
        The rows that become events.
    refused
        The others, as rows of `quarantine`.
    amounts
        As `prepared_rows.sum_up` gives them.
    names
        As `prepared_rows.count_names` gives them.
    tied
        As `ties.numbers_of` gives them.
    times
        The times of the accepted rows.
    sample
        Some of these, as `ordering.sample_times` chooses them.
    """

    accepted: pa.Table
    refused: pa.Table
    amounts: pa.Table
    names: pa.Table
    tied: pa.Table
    times: pa.Table
    sample: pa.Table

    @cached_property
    def totals(self) -> dict[str | None, Total]:
        """What the rows amount to, by reason; None stands for the accepted ones."""
        return prepared_rows.totals(self.amounts)

    def count_ties(self) -> int:
        """Count the accepted rows that are tied, see `ties`."""
        if self.tied.num_rows <= _TIED_ROWS:
            return ties.count_tied(self.tied)
        parts = -(-self.tied.num_rows // _TIED_ROWS)
        part = ties.part_of(self.tied, parts)
        return sum(ties.count_tied(self.tied.filter(pa.array(part == number))) for number in range(parts))

    @classmethod
    def of(cls, prepared: pa.Table, one_in: int = ordering.SAMPLED) -> Chunk:
        """All that is made of prepared rows; of so many of their times, one is in the sample."""
        accepted = prepared_rows.accept(prepared)
        return cls(
            accepted=accepted.drop_columns([name for name in ties.COLUMNS if name in accepted.column_names]),
            refused=prepared_rows.refuse(prepared),
            amounts=prepared_rows.sum_up(prepared),
            names=prepared_rows.count_names(accepted),
            tied=ties.numbers_of(accepted),
            times=accepted.select(["time"]),
            sample=ordering.sample_times(accepted, one_in),
        )


COLUMNS = tuple(field.name for field in fields(Chunk))


@dataclass(frozen=True)
class KeptChunks:
    """Chunks that tasks made.

    Attributes
    ----------
    kept
        A row for each chunk: for each attribute of `Chunk`, a column of its rows as bytes.
    none
        A chunk without rows.
    """

    kept: DataFrame
    none: Chunk

    @property
    def totals(self) -> dict[str | None, Total]:
        """What all rows amount to, by reason; None stands for the accepted ones."""
        return prepared_rows.totals(self._told[0])

    @property
    def accepted_count(self) -> int:
        """How many rows become events."""
        return self.totals.get(None, Total()).rows

    @property
    def sample(self) -> pa.Table:
        """Times of some accepted rows."""
        return self._told[1]

    @cached_property
    def _told(self) -> list[pa.Table]:
        return self.collect("amounts", "sample")

    def collect(self, *columns: str) -> list[pa.Table]:
        """Bring some columns to the driver's process, of each the rows of all chunks."""
        found = self.kept.select(*columns).toArrow()
        return [together([getattr(self.none, name), *map(rows_in, found[name])]) for name in columns]

    def count_ties(self) -> int:
        """Count the accepted rows that are tied, see `ties`."""
        tasks = self.kept.sparkSession.sparkContext.defaultParallelism
        parts = tasks * max(1, -(-self.accepted_count // (tasks * _TIED_ROWS)))

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, numbers in unpack_portions(batches):
                yield pa.RecordBatch.from_pydict({"tied": [ties.count_tied(numbers)]})

        dealt = self.deal("tied", partial(ties.part_of, parts=parts), parts)
        return sum(row["tied"] for row in dealt.mapInArrow(run, "tied BIGINT").collect())

    def here_if_few(self, db: Database) -> Chunk | KeptChunks:
        """All rows in the driver's process, as one chunk, where it takes in so many for itself."""
        if not few.few_events(db, sum(total.rows for total in self.totals.values())):
            return self
        return Chunk(*self.collect(*COLUMNS))

    def rows(self, column: str) -> TaskRows:
        """The rows of a column of all chunks, for other tasks."""

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in unpack(column, batches):
                yield from rows.to_batches(max_chunksize=BATCH_ROWS)

        return TaskRows(self.kept.select(column), made, getattr(self.none, column).schema)

    def deal(self, column: str, deal: Callable[[pa.Table], IntArray], portions: int) -> DataFrame:
        """Bring together what goes to the same portion, of the rows of a column of all chunks.

        Parameters
        ----------
        column
            Of `kept`.
        deal
            From rows to the portion of each.
        portions
            How many there are.

        Returns
        -------
        DataFrame
            ``portion INT, rows BINARY``; a partition holds a portion as a whole, perhaps in several rows.
        """

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in unpack(column, batches):
                dealt = by_portion(rows, deal(rows)) if rows.num_rows else []
                yield pa.RecordBatch.from_pydict(
                    {PORTION: [number for number, _ in dealt], ROWS: [as_blob(mine) for _, mine in dealt]},
                    schema=_DEALT,
                )

        dealt = self.kept.select(column).mapInArrow(run, f"{PORTION} INT, {ROWS} BINARY")
        return dealt.repartitionById(portions, PORTION)


@contextmanager
def keep_chunks(prepared: DataFrame) -> Iterator[KeptChunks]:
    """Chunks of prepared rows, kept on the disks of those who evaluate them for the length of a block."""
    one_in = ordering.SAMPLED

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks_of(batches, one_in):
            yield pa.RecordBatch.from_pydict({name: [as_blob(getattr(chunk, name))] for name in COLUMNS})

    columns = ", ".join(f"{name} BINARY" for name in COLUMNS)
    with keep_evaluated(prepared.mapInArrow(run, columns)) as kept:
        yield KeptChunks(kept, Chunk.of(arrow_schema(prepared.schema).empty_table()))


def chunks_of(batches: Iterable[pa.RecordBatch], one_in: int = ordering.SAMPLED) -> Iterator[Chunk]:
    """The chunks of a task's prepared rows; `one_in` as of `Chunk.of`."""
    for rows in tables(batches, rows=_CHUNK_ROWS, size=_CHUNK_BYTES):
        # In one piece: of a size at which taking some of the rows is worth a call.
        yield Chunk.of(rows.combine_chunks(), one_in)


def unpack(column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of a column of chunks, chunk by chunk; in tasks."""
    for batch in batches:
        yield from map(rows_in, batch[column])


def unpack_portions(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The portions of a partition of `KeptChunks.deal`, with the rows of each; in tasks."""
    held: dict[int, list[pa.Table]] = {}
    for batch in batches:
        for number, blob in zip(batch[PORTION].to_pylist(), batch[ROWS], strict=True):
            held.setdefault(number, []).append(rows_in(blob))
    for number in sorted(held):
        yield number, pa.concat_tables(held.pop(number))
