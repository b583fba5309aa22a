"""One portion of an exact answer: the events of some partitions, or of a block of a stream, matched."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import WHOLE_EVENTS, part, refused
from patternlake.udfs.kleene.answers import Matches
from patternlake.udfs.kleene.asking import KleeneAsked, too_many_events
from patternlake.udfs.kleene.events import Events, ranks
from patternlake.udfs.kleene.matching import match_events
from patternlake.udfs.language.event_columns import event_columns
from patternlake.udfs.partitions import partitions
from patternlake.udfs.sketch.hits import too_many

IntArray = NDArray[np.int64]

ROW_TYPE = pa.struct(
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
    ]
)
"""A row of the answer. Rows are numbered in the order of keys, then of the positions of their events."""


def match_part(question: KleeneAsked, portion: int, rows: Mapping[str, pa.Array]) -> pa.StructScalar:
    """Match the events of one portion.

    Parameters
    ----------
    question
        The question.
    portion
        Its number.
    rows
        ``part`` (list of the values that PARTITION BY names), ``position``, ``time``, ``step``, ``key``, ``name``,
        ``probability``, ``attributes`` of n `events` in any order; ``rank``: of each inside its partition, or NULL
        where all events of a partition are there, or none of the others matters.

    Returns
    -------
    A `PART_TYPE`.
    """
    try:
        if question.width is None and not question.pattern.partition and len(rows["position"]) > WHOLE_EVENTS:
            return refused(too_many_events(len(rows["position"])))
        return _matched(question, portion, rows)
    except PatternLakeError as error:
        return refused(str(error))


def _matched(question: KleeneAsked, portion: int, rows: Mapping[str, pa.Array]) -> pa.StructScalar:
    codes, shown = partitions(rows["part"], len(question.pattern.partition))
    if not question.pattern.partition:
        shown = [question.key]
    times = pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False)
    positions = rows["position"].to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((positions, times, codes))
    taken = pa.array(order)
    sorted_rows = {name: column.take(taken) for name, column in rows.items()}
    names = sorted_rows["name"].dictionary_encode()
    known = None
    if sorted_rows["rank"].null_count == 0 and len(order):
        known = sorted_rows["rank"].to_numpy(zero_copy_only=False).astype(np.int64)
    events = Events(
        keys=codes[order],
        times=times[order],
        positions=positions[order],
        names=names.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        vocabulary=names.dictionary.to_pylist(),
        columns=event_columns(sorted_rows, question.pattern.columns - {"name"}, question.types),
        ordinals=known,
    )
    begins = _may_begin(question, portion, events)
    matches = match_events(
        question.pattern,
        events,
        policy=question.policy,
        after_match=question.after_match,
        plan=question.plan,
        max_matches=question.max_matches,
        truncate=question.truncate,
        begins=begins,
    )
    told = refusal(matches.total, question.max_matches, question.truncate)
    return part(told, matches.total, _rows(question, matches, events, shown))


def _may_begin(question: KleeneAsked, portion: int, events: Events) -> NDArray[np.bool_] | None:
    """bool[n]: the events of the block itself; None where all are."""
    if question.width is None:
        return None
    span = events.times
    if question.counted:
        assert events.ordinals is not None
        span = events.ordinals
    block = np.clip(np.floor_divide(span, question.width), question.low, question.high)
    return np.asarray(block == portion)


def _rows(question: KleeneAsked, matches: Matches, events: Events, shown: list[str | None]) -> pa.StructArray:
    count, operands = len(matches), len(matches.operands)
    labels = pa.array(matches.operands, pa.string())
    lists = pa.ListArray.from_arrays(pa.array(matches.offsets.astype(np.int32)), pa.array(matches.positions))
    bindings = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(operands)),
        labels.take(pa.array(np.tile(np.arange(operands), count))),
        lists,
    )
    key = pa.array(shown, pa.string()).take(pa.array(matches.key)) if count else pa.array([], pa.string())
    columns = [
        pa.array(np.arange(1, count + 1)),
        key,
        pa.array(matches.first_position),
        pa.array(matches.last_position),
        pa.array(matches.first_time).cast(ROW_TYPE.field("first_time").type),
        pa.array(matches.last_time).cast(ROW_TYPE.field("last_time").type),
        bindings.cast(ROW_TYPE.field("bindings").type),
        pa.array(_final(question, matches, events)),
        pa.array(np.full(count, matches.truncated)),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(ROW_TYPE))


def _final(question: KleeneAsked, matches: Matches, events: Events) -> NDArray[np.bool_]:
    """bool[r]: no event at the watermark or later can change the match.

    Such an event stands behind all that were there before. So it changes a match only where a last ``+`` or ``*`` can
    still take it, and that ends with the window.
    """
    pattern, watermark = question.pattern, question.watermark
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


def refusal(total: int, max_matches: int, truncate: bool) -> str | None:
    """Why an answer of all portions is refused, if it is: more matches in all than are asked for."""
    # Counting ends where a row too many is found.
    return None if total <= max_matches or truncate else str(too_many(total, max_matches, complete=False))
