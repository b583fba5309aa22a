"""What the portions of an exact answer give, whichever engine it is of: rows in chunks, or why there are none.

Spark holds a value several times while it hands it on, so rows travel some thousands at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

PART_TYPE = pa.struct([("error", pa.string()), ("total", pa.int64()), ("chunks", pa.list_(pa.binary()))])
"""Of a portion: why it has no answer, or how many matches it has, and those within the limit."""

CHUNK_ROWS = 20_000

MOST_TOLD = 1 << 50
"""Matches of one portion that are told apart: more are that many, so that the sum of all portions fits."""

WHOLE_EVENTS = 4_000_000
"""Greatest number of events that one portion takes in where nothing divides them."""


def chunks(rows: pa.StructArray, at_once: int = CHUNK_ROWS) -> list[bytes]:
    """Rows as bytes, so many in each."""
    return [_sealed(rows.slice(begin, at_once)) for begin in range(0, len(rows), at_once)]


def rows_of(sealed: Sequence[bytes], row_type: pa.StructType) -> pa.ListArray:
    """The rows of chunks, as one list of rows for each."""
    rows = [pa.array([], row_type)]
    for chunk in sealed:
        with pa.ipc.open_stream(chunk) as reader:
            rows += [batch.column("row") for batch in reader]
    ends = np.cumsum([len(part) for part in rows]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.concat_arrays(rows), type=pa.list_(row_type))


def part(error: str | None, total: int, rows: pa.StructArray) -> pa.StructScalar:
    """The `PART_TYPE` of a portion; with an error, without its rows. Totals end at `MOST_TOLD`."""
    return pa.scalar(
        {"error": error, "total": min(total, MOST_TOLD), "chunks": None if error else chunks(rows)}, PART_TYPE
    )


def refused(message: str) -> pa.StructScalar:
    """The `PART_TYPE` of a portion that has an error."""
    return pa.scalar({"error": message, "total": 0, "chunks": None}, PART_TYPE)


def _sealed(rows: pa.StructArray) -> bytes:
    batch = pa.RecordBatch.from_arrays([rows], names=["row"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
