"""The writes of a batch of ingest: its events, what is counted of them, and the rows that were refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.registration import add_columns, register
from patternlake.jobs import few
from patternlake.jobs.contexts import in_background, keep_evaluated
from patternlake.jobs.ingest import few_rows, ordering, ranges
from patternlake.jobs.ingest.batch_counts import Total, by_range, count_names, quarantine, statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.batches.batch import Batch
    from patternlake.jobs.sources.columns import EventColumns


def write_by_tasks(
    batch: Batch,
    prepared: DataFrame,
    columns: EventColumns,
    *,
    good: Total,
    refused: int,
    bad_files: Mapping[str, str],
    parallelism: int,
) -> None:
    """Write the rows of all tables by tasks of Spark.

    Parameters
    ----------
    batch
        The batch, begun.
    prepared
        Its evaluated rows, kept.
    columns
        The stream's expressions.
    good, refused
        What was counted of the accepted rows, and the number of the others.
    bad_files
        By name of a file that is left out: why.
    parallelism
        Tasks at a time.
    """
    session, stream = prepared.sparkSession, columns.stream
    accepted = prepared.where(F.col("reason").isNull())
    phases.at("counting")
    cut = ordering.ranges(accepted, good.rows, good.quantiles, parallelism=parallelism)
    with keep_evaluated(count_names(accepted, cut)) as counts:
        sizes = by_range(counts) if len(cut) > 1 else {}

        # First of all, as the events may need columns that the table does not have yet.
        add_columns(batch, stream.types)

        def small_writes() -> None:
            register(batch, types=stream.types, timezone=stream.timezone)
            if good.rows:
                batch.append("event_statistics", statistics(counts, batch))
            if refused:
                batch.append("quarantine", quarantine(prepared, bad_files, batch))

        with in_background(session, small_writes):
            if good.rows:
                numbered = ordering.number(accepted, cut, sizes, batch.source_from + 1)
                batch.append("events", columns.events(numbered, batch.stream_id, batch.batch_id))


def write_here(batch: Batch, prepared: pa.Table, columns: EventColumns, *, bad_files: Mapping[str, str]) -> None:
    """Write the same of rows that the driver holds, or reads range by range; parameters as for `write_by_tasks`."""
    register(batch, types=columns.stream.types, timezone=columns.stream.timezone)
    phases.at("ordering", unit=None)
    cut = ranges.ranges(prepared)
    firsts = batch.source_from + 1 + np.cumsum([0, *map(len, cut)])
    _append(batch, "events", prepared, [
        partial(few_rows.events, prepared, places, first, columns)
        for places, first in zip(cut, firsts.tolist(), strict=False)
    ])  # fmt: skip
    _append(batch, "event_statistics", prepared, [partial(few_rows.statistics, prepared)] if cut else [])
    refused = [partial(few_rows.quarantine, prepared, places) for places in ranges.find_refused(prepared)]
    _append(batch, "quarantine", prepared, [*refused, *few_rows.bad_files(bad_files)])


def _append(batch: Batch, table: str, prepared: pa.Table, rows: Sequence[Callable[[], pa.Table]]) -> None:
    """Append what is made of a batch's rows, at once where they are few."""
    if rows:
        at_once = prepared.num_rows <= few.FEW_EVENTS
        batch.append(table, pa.concat_tables([made() for made in rows]) if at_once else rows)
