"""The writes of a batch of ingest: its events, what is counted of them, and the rows that were refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.registration import add_columns, register
from patternlake.delta_tables.writing.arrow_rows import frame_of
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import in_background
from patternlake.jobs.ingest import ordering, prepared_rows
from patternlake.jobs.ingest.chunks import Chunk, KeptChunks, unpack, unpack_portions
from patternlake.jobs.ingest.ordering import RANGE_ROWS
from patternlake.jobs.ingest.prepared_rows import EventShape
from patternlake.udfs.attributes import column_of
from patternlake.udfs.record_batches import BATCH_ROWS, as_blob

if TYPE_CHECKING:
    from patternlake.delta_tables.batches.batch import Batch
    from patternlake.jobs.sources.columns import EventColumns
    from patternlake.udfs.arrays import IntArray


def write(
    batch: Batch, rows: Chunk | KeptChunks, columns: EventColumns, bad_files: Mapping[str, str] | None = None
) -> None:
    """Write the rows of all tables: at once where the driver holds them, else by tasks of Spark.

    Parameters
    ----------
    batch
        The batch, begun.
    rows
        Its prepared rows.
    columns
        The stream's expressions.
    bad_files
        By name of a file that is left out: why.
    """
    left_out = prepared_rows.refuse_files(bad_files or {})
    if isinstance(rows, Chunk):
        _write_here(batch, rows, columns, left_out)
    else:
        _write_by_tasks(batch, rows, columns, left_out)


def _write_here(batch: Batch, rows: Chunk, columns: EventColumns, bad_files: pa.Table) -> None:
    register(batch, types=columns.stream.types, timezone=columns.stream.timezone)
    phases.at("ordering", unit=None)
    events = prepared_rows.divide_events(rows.accepted, batch.source_from + 1, _shape_of(columns))
    _append(batch, "events", rows.accepted.num_rows, events)
    if events:
        batch.append("event_statistics", prepared_rows.merge_names(rows.names))
    refused = pa.concat_tables([rows.refused, bad_files])
    divided = [partial(refused.slice, begin, RANGE_ROWS) for begin in range(0, refused.num_rows, RANGE_ROWS)]
    _append(batch, "quarantine", refused.num_rows, divided)


def _append(batch: Batch, table: str, count: int, rows: Sequence[Callable[[], pa.Table]]) -> None:
    """Append rows, so many in all, at once where they are few."""
    if rows:
        batch.append(table, pa.concat_tables([made() for made in rows]) if count <= few.FEW_EVENTS else rows)


def _write_by_tasks(batch: Batch, rows: KeptChunks, columns: EventColumns, bad_files: pa.Table) -> None:
    spark, good = rows.kept.sparkSession, rows.accepted_count
    phases.at("counting", unit=None)
    cut = ordering.cut_times(rows.sample, good, parallelism=spark.sparkContext.defaultParallelism)
    firsts = batch.source_from + 1 + np.append(0, np.cumsum(_count_by_range(rows, cut)))
    # First of all, as the events may need columns that the table does not have yet.
    add_columns(batch, columns.stream.types)

    def write_small() -> None:
        register(batch, types=columns.stream.types, timezone=columns.stream.timezone)
        if good:
            batch.append("event_statistics", _statistics(rows))
        if bad_files.num_rows or len(rows.totals) > (None in rows.totals):
            blobs = rows.kept.select("refused").union(frame_of(spark, pa.table({"refused": [as_blob(bad_files)]})))
            batch.append("quarantine", replace(rows.rows("refused"), given=blobs))

    with in_background(spark, write_small):
        if good:
            batch.append("events", _events(rows, cut, firsts, _shape_of(columns)))


def _count_by_range(rows: KeptChunks, cut: IntArray) -> IntArray:
    """int64[n]: how many accepted rows each range has, but for the last one."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for times in unpack("times", batches):
            counts = np.bincount(ordering.number_ranges(times, cut), minlength=len(cut) + 1)
            yield pa.RecordBatch.from_pydict({"counts": [counts[:-1]]})

    if not len(cut):
        return cut
    found = rows.kept.select("times").mapInArrow(run, "counts ARRAY<BIGINT>").toArrow()["counts"]
    counts: IntArray = pc.list_flatten(found).to_numpy().reshape(-1, len(cut)).sum(axis=0)
    return counts


def _events(rows: KeptChunks, cut: IntArray, firsts: IntArray, shape: EventShape) -> TaskRows:
    """Rows of `events`, each range made by a task; `firsts`: the first position of each."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, accepted in unpack_portions(batches):
            for made in prepared_rows.divide_events(accepted, int(firsts[number]), shape):
                yield from made().to_batches(max_chunksize=BATCH_ROWS)

    dealt = rows.deal("accepted", partial(ordering.number_ranges, cut=cut), len(firsts))
    return TaskRows(dealt, make, prepared_rows.make_events(rows.none.accepted, 1, shape).schema)


def _statistics(rows: KeptChunks) -> TaskRows:
    """Rows of `event_statistics`."""
    counted = rows.rows("names").frame().groupBy("name")
    bounds = F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time")
    return TaskRows.of(counted.agg(F.sum("events").alias("events"), *bounds))


def _shape_of(columns: EventColumns) -> EventShape:
    stored = {
        column_of(attribute, kind): column
        for column, (attribute, kind) in zip(columns.attributes, columns.stream.types.items(), strict=True)
    }
    identified = {} if columns.stream.event_id is None else {"event_id": "event_id"}
    return EventShape({**stored, **identified}, tuple(columns.tokens))
