"""Batches of few events: read, worked on and written in the driver's process, which takes less than to plan tasks.

What is made of the rows is what tasks make of them, by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication
from patternlake.udfs.partitions import number_partitions, order_of
from patternlake.udfs.record_batches import in_micros

FEW_EVENTS = 250_000
"""Events of a batch that the driver takes in for itself, at most."""
FEW_BYTES = 16 << 20
"""Bytes of files of remembered state that it reads for them, at most."""


def few_events(db: Database, count: int, *, light: int = 1) -> bool:
    """Whether the driver takes in a batch of so many events for itself; of light work, so many times as many."""
    return db.direct is not None and count <= light * FEW_EVENTS


def few_bytes(db: Database, table: str, where: Sequence[Condition], columns: Sequence[str] = ()) -> bool:
    """Whether the driver reads rows of a table, or some of their columns, for itself."""
    if db.direct is None:
        return False
    # What all columns take, the log tells; what some of them do, only the files.
    return db.direct.size(table, where) <= FEW_BYTES or (
        bool(columns) and db.direct.size(table, where, columns) <= FEW_BYTES
    )


def of_stream(publication: Publication, first: int, last: int) -> list[Condition]:
    """The conditions on the published events of a stream at the positions first to last, both included."""
    return [*published_rows(TABLES["events"], publication), *between("position", first, last)]


def in_partition_order(events: pa.Table, remembered: pa.Table | None, by: Sequence[str]) -> pa.Table:
    """Events and what is remembered of their partitions, partition by partition.

    Parameters
    ----------
    events
        Rows with a column ``part``.
    remembered
        Rows with a column ``part``, other columns or both; those of partitions without events are left out.
    by
        Columns of whole numbers or moments by which the events of a partition are ordered, none of them NULL.

    Returns
    -------
    pyarrow.Table
        The columns of both, NULL where rows don't have them; of each partition first what is remembered.
    """
    count = events.num_rows
    rows = events if remembered is None else pa.concat_tables([events, remembered], promote_options="default")
    if not count:
        return rows.slice(0, 0)
    part = rows["part"].combine_chunks()
    codes, _ = number_partitions(part)
    is_event = np.arange(rows.num_rows) < count
    keys = [_numbers(rows[name]) for name in by]
    order = order_of(codes, is_event, *keys)
    wanted = np.isin(codes, np.unique(codes[:count]))
    return rows.take(pa.array(order[wanted[order]]))


def table_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """What a task would give to Spark, as one table."""
    return pa.Table.from_batches(list(batches), schema).combine_chunks()


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    found: NDArray[np.int64] = pc.fill_null(in_micros(column), 0).to_numpy()
    return found
