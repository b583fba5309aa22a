"""From the events of some segments to the rows that keep their trees: one row per segment and level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.sketch.kernels.build import LevelNodes, build_segment
from patternlake.udfs.sketch.sizing.sizes import Sizing
from patternlake.udfs.sketch.tokens import tokenise

PART_EVENTS = 102_400
"""Events that one part of the node table covers at least; a part is what a question reads or leaves."""

TOP_BUCKET = -1
"""The part that holds all top rows."""

ROW_SCHEMA = pa.schema(
    [
        ("stream_id", pa.int32()),
        ("tier", pa.string()),
        ("bucket", pa.int32()),
        ("segment", pa.int64()),
        ("level", pa.int32()),
        ("from_batch", pa.int64()),
        ("to_batch", pa.int64()),
        ("plan", pa.int32()),
        ("finished", pa.bool_()),
        ("m", pa.int32()),
        ("k", pa.int32()),
        ("node", pa.list_(pa.int32())),
        ("pos_lo", pa.list_(pa.int64())),
        ("pos_hi", pa.list_(pa.int64())),
        ("time_lo", pa.list_(pa.int64())),
        ("time_hi", pa.list_(pa.int64())),
        ("ones", pa.list_(pa.int32())),
        ("distinct", pa.list_(pa.int32())),
        ("topmost", pa.list_(pa.bool_())),
        ("keys", pa.list_(pa.string())),
        ("bits", pa.binary()),
    ]
)


@dataclass(frozen=True)
class SegmentPlan:
    """What a task needs to build segments.

    Attributes
    ----------
    sizing
        The plan for all segments of the task; `sizing.segment_events` cuts them.
    seed
        Seed of the hashes.
    keyed
        Whether (key, token) pairs are inserted as well.
    expressions
        Number of token expressions; 1 without a tokens column means the event name.
    number
        Which of the sketch's plans this is, counted from 0.
    stream_id, batch_id
        Written to every row.
    """

    sizing: Sizing
    seed: int
    keyed: bool
    expressions: int
    number: int
    stream_id: int
    batch_id: int


def part_segments(segment_events: int) -> int:
    """Segments whose nodes below the top share a part of the node table: one, or as many as reach `PART_EVENTS`."""
    return max(1, PART_EVENTS // segment_events)


def segment_rows(events: pa.Table, plan: SegmentPlan) -> Iterator[pa.RecordBatch]:
    """Build the trees of all segments that the events belong to.

    Parameters
    ----------
    events
        Columns ``position`` (int64), ``time`` (timestamp, µs), ``key`` (string), ``tokens`` (list of strings, one for
        each token expression, never NULL itself), in any order. A segment's events must all be here.
    plan
        See `SegmentPlan`.

    Yields
    ------
    One record batch per segment, in `ROW_SCHEMA`: a row per level that has nodes, and always a row of the top level,
    which also carries the segment's sorted distinct keys.
    """
    if events.num_rows == 0:
        return
    position = events["position"].to_numpy()
    time = pc.cast(events["time"], pa.int64()).to_numpy()
    keys = events["key"].combine_chunks() if plan.keyed else None
    tokens = tokenise(token_columns(events, plan.expressions), keys, plan.seed)
    size = plan.sizing.segment_events
    segment = (position - 1) // size
    order = np.argsort(segment, kind="stable")
    starts = np.flatnonzero(np.diff(segment[order], prepend=-1))
    for begin, end in zip(starts, np.append(starts[1:], len(order)), strict=True):
        rows = order[begin:end]
        number = int(segment[rows[0]])
        nodes = build_segment(
            plan.sizing, number * size + 1, position[rows], time[rows], tokens.codes[rows], tokens.hashes
        )
        yield _rows(number, nodes, len(rows) == size, _segment_keys(keys, rows), plan)


def token_columns(events: pa.Table, expressions: int) -> list[pa.Array]:
    """The values of each token expression."""
    flat = pc.list_flatten(events["tokens"].combine_chunks())
    return [flat.take(pa.array(np.arange(number, len(flat), expressions))) for number in range(expressions)]


def _segment_keys(keys: pa.Array | None, rows: NDArray[np.int64]) -> list[str | None] | None:
    """The distinct keys of some rows in ascending order of their UTF-8 bytes, NULL first; None without keys."""
    if keys is None:
        return None
    distinct = pc.unique(keys.take(pa.array(rows)))
    return sorted(distinct.to_pylist(), key=lambda key: (key is not None, key or ""))


def _rows(
    segment: int, nodes: list[LevelNodes], finished: bool, keys: list[str | None] | None, plan: SegmentPlan
) -> pa.RecordBatch:
    top = len(nodes) - 1
    kept = [level for level in nodes if len(level) or level.level == top]
    columns: dict[str, list[object]] = {name: [] for name in ROW_SCHEMA.names}
    for level in kept:
        at_top = level.level == top
        values = {
            "stream_id": plan.stream_id,
            "tier": "top" if at_top else "body",
            "bucket": TOP_BUCKET if at_top else segment // part_segments(plan.sizing.segment_events),
            "segment": segment,
            "level": level.level,
            "from_batch": plan.batch_id,
            "to_batch": None,
            "plan": plan.number,
            "finished": finished,
            "m": level.m,
            "k": level.k,
            "node": level.node,
            "pos_lo": level.pos_lo,
            "pos_hi": level.pos_hi,
            "time_lo": level.time_lo,
            "time_hi": level.time_hi,
            "ones": level.ones,
            "distinct": level.distinct,
            "topmost": _topmost(level, nodes, plan.sizing.fanout),
            "keys": keys if at_top else None,
            "bits": level.bits.tobytes(),
        }
        for name, value in values.items():
            columns[name].append(value)
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in ROW_SCHEMA], schema=ROW_SCHEMA
    )


def _topmost(level: LevelNodes, nodes: list[LevelNodes], fanout: int) -> NDArray[np.bool_]:
    """bool[c]: the node has no parent (`uniform` leaves out parents that would be too dense)."""
    if level.level + 1 == len(nodes):
        return np.ones(len(level), np.bool_)
    return ~np.isin(level.node // fanout, nodes[level.level + 1].node)
