"""Prepared rows in columns: what they amount to, their order, and the rows of tables that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.jobs.ingest import ordering
from patternlake.jobs.ingest.repeats import REASON as REPEAT
from patternlake.jobs.sources.columns import LATE
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.partitions import lists_of

_MOMENT = pa.timestamp("us", "UTC")
QUARANTINE = ("reason", "detail", "origin", "row")
"""Columns of prepared rows that say what is wrong with those that are refused."""
_AMOUNTS = pa.schema(
    [
        ("reason", pa.string()),
        ("rows", pa.int64()),
        ("greatest", pa.int64()),
        ("hash", pa.int64()),
        ("sample", pa.string()),
    ]
)


@dataclass(frozen=True)
class Total:
    """What the rows of one reason amount to.

    Parameters
    ----------
    rows
        How many.
    greatest
        Their greatest time in microseconds; None where none has one.
    sample
        The detail of one of them; None of accepted ones.
    """

    rows: int = 0
    greatest: int | None = None
    sample: str | None = None


def sum_up(prepared: pa.Table) -> pa.Table:
    """What rows amount to: ``reason, rows, greatest, hash, sample``, for `totals`."""
    read = prepared.select(["reason", "time", "hash", "detail"])
    found = []
    for reason in pc.unique(prepared["reason"]).to_pylist():
        rows = _only(read, _of(prepared, reason))
        least = int(np.argmin(rows["hash"].to_numpy()))
        greatest = pc.max(rows["time"].cast(pa.int64())).as_py()
        sample = rows["detail"][least].as_py()
        found.append((reason, rows.num_rows, greatest, rows["hash"][least].as_py(), sample))
    columns = zip(*found, strict=True) if found else [()] * len(_AMOUNTS)
    return pa.Table.from_arrays(
        [pa.array(values, type_) for values, type_ in zip(columns, _AMOUNTS.types, strict=True)], schema=_AMOUNTS
    )


def totals(amounts: pa.Table) -> dict[str | None, Total]:
    """By reason, of what `sum_up` gives of all rows; None stands for the accepted ones."""
    # In the order of their hashes, so that the first detail does not depend on how rows were parted.
    grouped = amounts.sort_by("hash").group_by("reason", use_threads=False)
    found = grouped.aggregate([("rows", "sum"), ("greatest", "max"), ("sample", "first")])
    return {
        row["reason"]: Total(row["rows_sum"], row["greatest_max"], row["sample_first"]) for row in found.to_pylist()
    }


def warning(stream: str, totals: Mapping[str | None, Total], share: float) -> str | None:
    """What to say about a batch of which more than a share of the rows is refused; None where it is less.

    Repeats are refused on purpose, and don't count; a row that shares its step with a bad one is no reason of its own.
    """
    refused = {reason: total for reason, total in totals.items() if reason not in (None, REPEAT)}
    rows = sum(total.rows for total in totals.values())
    bad = sum(total.rows for total in refused.values())
    if not bad or bad <= share * rows:
        return None
    causes = {reason: total for reason, total in refused.items() if reason != "companion"} or refused
    commonest = max(causes, key=lambda reason: (causes[reason].rows, str(reason)))
    most = causes[commonest]
    cure = "; --backfill takes them in, a larger allowed_lateness those to come" if commonest == LATE else ""
    return (
        f"stream {stream!r}: {bad:,} of {rows:,} rows went to quarantine, most of them ({most.rows:,}) for the reason "
        f"{commonest!r}, such as: {most.sample}{cure}"
    )


def accept(prepared: pa.Table) -> pa.Table:
    """The rows that become events, without the columns of `refuse`."""
    return _only(prepared, _of(prepared, None)).drop_columns([*QUARANTINE])


def refuse(prepared: pa.Table) -> pa.Table:
    """The other rows, as rows of `quarantine` without the batch's marks."""
    refused = pc.is_valid(prepared["reason"])
    return pa.table({name: prepared[name].filter(refused) for name in QUARANTINE})


def refuse_files(reasons: Mapping[str, str]) -> pa.Table:
    """Rows of `quarantine` of files that are bad, given why each is; without the batch's marks."""
    told = {
        "reason": ["file"] * len(reasons),
        "detail": [f"file: {reason}" for reason in reasons.values()],
        "origin": list(reasons),
        "row": [None] * len(reasons),
    }
    return pa.table({name: pa.array(told[name], pa.string()) for name in QUARANTINE})


def count_names(accepted: pa.Table) -> pa.Table:
    """Rows and span of each name: rows of `event_statistics`, without the batch's marks."""
    times = pa.table({"name": accepted["name"], "time": accepted["time"].cast(_MOMENT)})
    counted = times.group_by("name").aggregate([("time", "count"), ("time", "min"), ("time", "max")])
    columns = ("name", "time_count", "time_min", "time_max")
    return counted.select(columns).rename_columns(["name", "events", "first_time", "last_time"])


def merge_names(names: pa.Table) -> pa.Table:
    """Add up what `count_names` gives of several parts of the rows."""
    merged = names.group_by("name").aggregate([("events", "sum"), ("first_time", "min"), ("last_time", "max")])
    columns = ("name", "events_sum", "first_time_min", "last_time_max")
    return merged.select(columns).rename_columns(names.column_names)


@dataclass(frozen=True)
class EventShape:
    """What events keep of prepared rows.

    Parameters
    ----------
    columns
        By name of a column of `events`: the column of prepared rows that holds it, beside those of all streams.
    tokens
        Columns that hold the tokens; none where the name is the only token.
    """

    columns: Mapping[str, str]
    tokens: Sequence[str]


def divide_events(accepted: pa.Table, first: int, shape: EventShape) -> list[Callable[[], pa.Table]]:
    """Divide rows into ranges, each of which makes its rows of `events`, without the batch's marks, in their order.

    Parameters
    ----------
    accepted
        Accepted rows of which no other one of the batch lies between any two.
    first
        Position of the first of them.
    shape
        What is kept of them.
    """
    ranges = ordering.ranges(accepted)
    firsts = first + np.cumsum([0, *map(len, ranges)])
    return [
        partial(_make_range, accepted, places, begin, shape)
        for places, begin in zip(ranges, firsts.tolist(), strict=False)
    ]


def _make_range(accepted: pa.Table, places: IntArray, first: int, shape: EventShape) -> pa.Table:
    return make_events(_in_order(_take(accepted, places)), first, shape)


def make_events(rows: pa.Table, first: int, shape: EventShape) -> pa.Table:
    """Rows of `events`, without the batch's marks, of rows that are in order; parameters as of `divide_events`."""
    position = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
    found = {name: rows[name] for name in ("step", "key", "name", "probability")}
    found |= {name: rows[column] for name, column in shape.columns.items()}
    found["position"], found["time"] = position, rows["time"].cast(_MOMENT)
    found["block"] = pc.shift_right(pc.subtract(position, 1), pa.scalar(BLOCK_BITS, pa.int64())).cast(pa.int32())
    if shape.tokens:
        found["tokens"] = lists_of([rows[name].combine_chunks() for name in shape.tokens], rows.num_rows)
    return pa.table(found)


def _in_order(rows: pa.Table) -> pa.Table:
    # Texts by bytes of UTF-8, NULL first, NaN last, as Spark orders them.
    places = np.arange(rows.num_rows)
    by = {name: ordering.ranks(rows[name], places) for name in ordering.order_of(rows.column_names)}
    return rows.take(pc.sort_indices(pa.table(by), sort_keys=[(name, "ascending") for name in by]))


def _take(rows: pa.Table, places: IntArray) -> pa.Table:
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
