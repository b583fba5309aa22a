"""New events of partitions and what is remembered of them, for a kernel that takes them in order.

The driver's process does the work where there are few events and little is remembered, else Spark's tasks do; what is
gathered, and what is made of it, are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.gather import Gather, deal
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.writing.row_files import Made, TaskRows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.made_rows import HeldRows, MadeRows, keep
from patternlake.udfs.partitions import ByPartition, count_portions
from patternlake.udfs.record_batches import batches_of

TASK_EVENTS = 500_000
"""Events that one task takes in, about; a partition is never divided."""


@dataclass(frozen=True)
class PartitionWork:
    """What is done with the new events of each partition.

    Attributes
    ----------
    events
        New events, and earlier ones that are taken now; each is in one of them.
    size
        How many the first of them gathers, at most.
    remembered
        What is known of partitions: those without new events stay as they are. None: nothing is.
    columns
        Names and types of what is remembered, NULL in the rows of events.
    by
        Columns by which the events of a partition are ordered.
    kernel
        From rows, partition by partition, of each first what is remembered, to rows; is pickled.
    schema
        Of what it makes.
    """

    events: Sequence[Gather]
    size: int
    remembered: Gather | None
    columns: pa.Schema
    by: tuple[str, ...]
    kernel: Made
    schema: pa.Schema

    def do_here(self, db: Database, *, light: int = 1) -> pa.Table | None:
        """Return what the driver's process makes; None where there is too much for it.

        Parameters
        ----------
        db
            The open database.
        light
            As of `few.few_events`.
        """
        reader = db.direct
        # To count earlier events may take a look at their times.
        if reader is None or not few.few_events(db, self.size, light=light):
            return None
        if not few.few_events(db, self._count_earlier(reader), light=light):
            return None
        known = self.remembered
        if known is not None and not few.few_bytes(db, known.table, known.where):
            return None
        sources = [*self.events, *([] if known is None else [known])]
        return few.table_of(self._make([source.read(reader) for source in sources]), self.schema)

    def give_to_tasks(self, db: Database) -> TaskRows:
        """Return what Spark's tasks make, each of some partitions."""
        parallelism = db.spark.sparkContext.defaultParallelism
        portions = max(count_portions(self.size, TASK_EVENTS), count_portions(parallelism, 1))
        sources = [*self.events, *([] if self.remembered is None else [self.remembered])]
        blobs, dealt = deal(db, db.state, [(source, ByPartition(portions)) for source in sources], portions)

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, rows in dealt.read(batches):
                yield from self._make(rows)

        return TaskRows(blobs, made, self.schema)

    def _count_earlier(self, reader: DirectReader) -> int:
        """How many events all sources but the first gather."""
        return sum(reader.bounds(source.table, "position", source.conditions)[0] for source in self.events[1:])

    def _make(self, gathered: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        """What the kernel makes of the rows of all sources."""
        count = len(self.events)
        events = pa.concat_tables(gathered[:count])
        known = gathered[count] if self.remembered is not None else None
        rows = few.in_partition_order(events, known, self.by)
        for field in self.columns:
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        yield from self.kernel(iter(batches_of(rows)))


@contextmanager
def make(db: Database, works: Sequence[PartitionWork], schema: pa.Schema, *, light: int = 1) -> Iterator[MadeRows]:
    """Give what comes of some work for the length of a block, made in the driver's process where all of it may be.

    Parameters
    ----------
    db
        The open database.
    works
        What is done; all of it makes rows of one schema.
    schema
        That schema.
    light
        As of `few.few_events`.
    """
    held = []
    for work in works:
        rows = work.do_here(db, light=light)
        if rows is None:
            break
        held.append(rows)
    else:
        yield HeldRows(pa.concat_tables([schema.empty_table(), *held]))
        return
    with keep([work.give_to_tasks(db) for work in works]) as kept:
        yield kept
