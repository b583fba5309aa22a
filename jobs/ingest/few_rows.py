"""A batch of few rows in the driver's process: what it amounts to, its order, and the rows of the tables.

The same as `batch_counts`, `ordering` and `EventColumns.events` say for Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.jobs.ingest.batch_counts import Total
from patternlake.jobs.sources.columns import EventColumns
from patternlake.udfs.blocks import BLOCK_BITS

_ORDER = [(name, "ascending") for name in ("time", "name", "has_key", "key", "hash")]
_MOMENT = pa.timestamp("us", "UTC")


def totals(prepared: pa.Table) -> dict[str | None, Total]:
    """By reason; None stands for the accepted rows."""
    found: dict[str | None, Total] = {}
    for reason in pc.unique(prepared["reason"]).to_pylist():
        rows = prepared.filter(_of(prepared, reason))
        first = int(np.argmin(rows["hash"].to_numpy()))
        greatest = pc.max(rows["time"].cast(pa.int64())).as_py()
        found[reason] = Total(rows.num_rows, greatest, (), rows["detail"][first].as_py())
    return found


def accepted(prepared: pa.Table, first: int) -> pa.Table:
    """The accepted rows in their order, with a column ``position`` that begins with `first`."""
    rows = prepared.filter(_of(prepared, None))
    # Texts by bytes of UTF-8, NULL first, as Spark orders them.
    keyed = rows.append_column("has_key", pc.is_valid(rows["key"]))
    order = pc.sort_indices(keyed, sort_keys=_ORDER)
    position = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
    return rows.take(order).append_column("position", position)


def events(rows: pa.Table, columns: EventColumns) -> pa.Table:
    """Rows of `events`, of what `accepted` gives; without the batch's marks."""
    count = rows.num_rows
    position = rows["position"].combine_chunks()
    found = {name: rows[name] for name in ("position", "step", "key", "name", "probability")}
    found["time"] = rows["time"].cast(_MOMENT)
    found["block"] = pc.shift_right(pc.subtract(position, 1), pa.scalar(BLOCK_BITS, pa.int64()))
    names = list(columns.stream.attributes)
    words = pa.array(np.tile(np.arange(len(names), dtype=np.int32), count))
    keys = pa.array(names, pa.string()).take(words)
    found["attributes"] = pa.MapArray.from_arrays(_offsets(count, len(names)), keys, _dealt(rows, columns.attributes))
    if columns.tokens:
        found["tokens"] = pa.ListArray.from_arrays(_offsets(count, len(columns.tokens)), _dealt(rows, columns.tokens))
    if columns.stream.event_id is not None:
        found["event_id"] = rows["event_id"]
    return pa.table(found)


def statistics(rows: pa.Table) -> pa.Table:
    """Rows of `event_statistics`, of what `accepted` gives; without the batch's marks."""
    times = rows.select(["name", "time"]).set_column(1, "time", rows["time"].cast(_MOMENT))
    counted = times.group_by("name").aggregate([("time", "count"), ("time", "min"), ("time", "max")])
    columns = ("name", "time_count", "time_min", "time_max")
    return counted.select(columns).rename_columns(["name", "events", "first_time", "last_time"])


def quarantine(prepared: pa.Table, bad_files: Mapping[str, str]) -> pa.Table:
    """Rows of `quarantine`, without the batch's marks: those with a reason, and one for each file that is bad."""
    refused = prepared.filter(pc.is_valid(prepared["reason"]))
    told = {
        "reason": ["file"] * len(bad_files),
        "detail": [f"file: {reason}" for reason in bad_files.values()],
        "origin": list(bad_files),
        "row": [None] * len(bad_files),
    }
    columns = {
        name: pa.chunked_array([*refused[name].chunks, pa.array(values, pa.string())], pa.string())
        for name, values in told.items()
    }
    return pa.table(columns)


def _of(prepared: pa.Table, reason: str | None) -> pa.ChunkedArray:
    return pc.is_null(prepared["reason"]) if reason is None else pc.equal(prepared["reason"], reason)


def _offsets(rows: int, width: int) -> pa.Array:
    return pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))


def _dealt(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The values of some columns of texts, row by row."""
    count, width = rows.num_rows, len(columns)
    flat = pa.concat_arrays([pa.array([], pa.string()), *(rows[name].combine_chunks() for name in columns)])
    return flat.take(pa.array(np.arange(count * width).reshape(width, count).T.ravel()))
