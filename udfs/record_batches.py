"""Record batches as tables of a size that vectorised work is worth it for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Of Spark: batches for Python are limited by their rows alone. To limit them by bytes, Spark 4.2 adds up all columns
anew after each row, and an array or a map goes through the whole batch for it. Measured: a task of the job `predict`
took three times as long."""
ROWS_AT_ONCE = 200_000
"""Rows of a table, at least, but for the last one."""


def tables(given: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Some batches at a time, empty ones left out."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in given:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)
