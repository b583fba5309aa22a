"""Rows of a batch in the driver's process, few or a range of many: what they amount to, their order, the tables' rows.

The same as `batch_counts`, `ordering` and `EventColumns.events` say for Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.jobs.ingest import ranges
from patternlake.jobs.ingest.batch_counts import Total
from patternlake.jobs.ingest.ordering import order_of
from patternlake.jobs.sources.columns import EventColumns
from patternlake.udfs.attributes import column_of
from patternlake.udfs.blocks import BLOCK_BITS

_MOMENT = pa.timestamp("us", "UTC")


def totals(prepared: pa.Table) -> dict[str | None, Total]:
    """By reason; None stands for the accepted rows."""
    found: dict[str | None, Total] = {}
    for reason in pc.unique(prepared["reason"]).to_pylist():
        rows = _only(prepared.select(["reason", "time", "hash", "detail"]), _of(prepared, reason))
        sample = None if reason is None else rows["detail"][int(np.argmin(rows["hash"].to_numpy()))].as_py()
        found[reason] = Total(rows.num_rows, pc.max(rows["time"].cast(pa.int64())).as_py(), (), sample)
    return found


def accept(prepared: pa.Table, first: int) -> pa.Table:
    """The accepted rows in their order, with a column ``position`` that begins with `first`."""
    rows = _only(prepared, _of(prepared, None))
    # Texts by bytes of UTF-8, NULL first, NaN last, as Spark orders them.
    places = np.arange(rows.num_rows)
    by = {name: ranges.ranks(rows[name], places) for name in order_of(rows.column_names)}
    order = pc.sort_indices(pa.table(by), sort_keys=[(name, "ascending") for name in by])
    position = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
    return rows.take(order).append_column("position", position)


def events(prepared: pa.Table, places: NDArray[np.int64], first: int, columns: EventColumns) -> pa.Table:
    """Rows of `events`, without the batch's marks.

    Parameters
    ----------
    prepared
        All rows of the batch.
    places
        Ascending, of those of a range.
    first
        Position of the first in their order.
    columns
        Of the stream.
    """
    rows = accept(take_rows(prepared, places), first)
    count = rows.num_rows
    position = rows["position"].combine_chunks()
    found = {name: rows[name] for name in ("position", "step", "key", "name", "probability")}
    found["time"] = rows["time"].cast(_MOMENT)
    found["block"] = pc.shift_right(pc.subtract(position, 1), pa.scalar(BLOCK_BITS, pa.int64()))
    for (attribute, kind), column in zip(columns.stream.types.items(), columns.attributes, strict=True):
        found[column_of(attribute, kind)] = rows[column]
    if columns.tokens:
        found["tokens"] = pa.ListArray.from_arrays(
            _offsets(count, len(columns.tokens)), _interleave(rows, columns.tokens)
        )
    if columns.stream.event_id is not None:
        found["event_id"] = rows["event_id"]
    return pa.table(found)


def statistics(rows: pa.Table) -> pa.Table:
    """Rows of `event_statistics`, of prepared rows, of which the accepted ones count; without the batch's marks."""
    rows = _only(rows.select(["name", "time"]), _of(rows, None))
    times = rows.set_column(1, "time", rows["time"].cast(_MOMENT))
    counted = times.group_by("name").aggregate([("time", "count"), ("time", "min"), ("time", "max")])
    columns = ("name", "time_count", "time_min", "time_max")
    return counted.select(columns).rename_columns(["name", "events", "first_time", "last_time"])


def quarantine(prepared: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """Rows of `quarantine`, of some of the refused ones, whose places ascend; without the batch's marks."""
    return take_rows(prepared.select(["reason", "detail", "origin", "row"]), places)


def bad_files(reasons: Mapping[str, str]) -> list[Callable[[], pa.Table]]:
    """What makes rows of `quarantine` of files that are bad, without the batch's marks; nothing where none is."""
    told = {
        "reason": ["file"] * len(reasons),
        "detail": [f"file: {reason}" for reason in reasons.values()],
        "origin": list(reasons),
        "row": [None] * len(reasons),
    }
    rows = pa.table({name: pa.array(values, pa.string()) for name, values in told.items()})
    return [lambda: rows] if reasons else []


def take_rows(rows: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    """The rows at some places, ascending, chunk by chunk: Arrow would look for the chunk of each."""
    found = []
    begin = 0
    for chunk in rows.to_batches():
        low, high = np.searchsorted(places, [begin, begin + chunk.num_rows])
        if high > low:
            found.append(chunk.take(pa.array(places[low:high] - begin)))
        begin += chunk.num_rows
    return pa.Table.from_batches(found, rows.schema).combine_chunks()


def _only(rows: pa.Table, chosen: pa.ChunkedArray) -> pa.Table:
    """The rows that are chosen, not copied where all are."""
    return rows if pc.all(pc.fill_null(chosen, False), min_count=0).as_py() else rows.filter(chosen)


def _of(prepared: pa.Table, reason: str | None) -> pa.ChunkedArray:
    return pc.is_null(prepared["reason"]) if reason is None else pc.equal(prepared["reason"], reason)


def _offsets(rows: int, width: int) -> pa.Array:
    return pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))


def _interleave(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The values of some columns of texts, row by row."""
    count, width = rows.num_rows, len(columns)
    flat = pa.concat_arrays([pa.array([], pa.string()), *(rows[name].combine_chunks() for name in columns)])
    return flat.take(pa.array(np.arange(count * width).reshape(width, count).T.ravel()))
