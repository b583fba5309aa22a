"""Rows of the answer of `match_pattern`, from matches and the events that they were found in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.kleene.events import Events
from patternlake.udfs.kleene.kernels.aggregates import values_of
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.language.predicate.aggregates import written
from patternlake.udfs.language.predicate.expressions import to_sql
from patternlake.udfs.partitions import ranks

ROWS = pa.schema(
    [
        ("match_no", pa.int64()),
        ("key", pa.string()),
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("first_time", pa.timestamp("us", "UTC")),
        ("last_time", pa.timestamp("us", "UTC")),
        ("bindings", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("final", pa.bool_()),
        ("truncated", pa.bool_()),
        ("values", pa.map_(pa.string(), pa.string())),
    ]
)
"""Rows of the answer, in the order of keys, then of the positions of their events; numbered in each partition."""


def answer_rows(request: KleeneRequest, matches: Matches, events: Events, shown: Sequence[str | None]) -> pa.Table:
    """Matches as rows of the answer.

    Parameters
    ----------
    request
        The request.
    matches, events
        The matches, and the events that they were found in.
    shown
        What is shown of each partition, by the code that `events` has for it.

    Returns
    -------
    Rows of `ROWS`.
    """
    count, operands = len(matches), len(matches.operands)
    labels = pa.array(matches.operands, pa.string())
    lists = pa.ListArray.from_arrays(pa.array(matches.offsets.astype(np.int32)), pa.array(matches.positions))
    bindings = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(operands)),
        labels.take(pa.array(np.tile(np.arange(operands), count))),
        lists,
    )
    key = pa.array(shown, pa.string()).take(pa.array(matches.key))
    columns = [
        pa.array(ranks(matches.key) + 1),
        key,
        pa.array(matches.first_position),
        pa.array(matches.last_position),
        pa.array(matches.first_time).cast(ROWS.field("first_time").type),
        pa.array(matches.last_time).cast(ROWS.field("last_time").type),
        bindings.cast(ROWS.field("bindings").type),
        pa.array(_final(request, matches, events)),
        pa.array(np.full(count, matches.truncated)),
        _values(request, matches, events),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _values(request: KleeneRequest, matches: Matches, events: Events) -> pa.MapArray:
    """map[r]: each aggregate of the query, by its canonical text."""
    found = {to_sql(one): written(column) for one, column in values_of(request.pattern, events, matches).items()}
    count, size = len(matches), len(found)
    texts = [text for row in zip(*found.values(), strict=True) for text in row]
    keys = pa.array(list(found), pa.string()).take(pa.array(np.tile(np.arange(size), count)))
    return pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(size)), keys, pa.array(texts, pa.string())
    )


def _final(request: KleeneRequest, matches: Matches, events: Events) -> NDArray[np.bool_]:
    """bool[r]: no event at the watermark or later can change the match.

    Such an event stands behind all that were there before. So it changes a match only where a last ``+`` or ``*`` can
    still take it, and that ends with the window.
    """
    pattern, watermark = request.pattern, request.watermark
    if watermark is None:
        return np.zeros(len(matches), np.bool_)
    if not pattern.open_end:
        return np.asarray(matches.last_time <= watermark)
    if pattern.within is None:
        return np.zeros(len(matches), np.bool_)
    if not pattern.within.counted:
        return np.asarray(matches.first_time + pattern.within.amount <= watermark)
    ordinals = ranks(events.keys) if events.ordinals is None else events.ordinals
    settled = np.full(int(events.keys.max(initial=0)) + 1, -1, np.int64)
    past = events.times <= watermark
    np.maximum.at(settled, events.keys[past], ordinals[past])
    first = ordinals[matches.events[matches.event_offsets[:-1]]]
    return np.asarray(first + pattern.within.amount - 1 <= settled[matches.key])
