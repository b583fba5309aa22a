"""Rows of the answer of `match_pattern`, from matches and the events that they were found in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.measures.of_matches import KEPT, kept_texts, measure_columns, with_columns
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.partitions import ranks

_MOMENT = pa.timestamp("us", "UTC")
_BINDINGS = pa.map_(pa.string(), pa.list_(pa.int64()))
_EXTENT = (
    ("first_position", pa.int64()),
    ("last_position", pa.int64()),
    ("first_time", _MOMENT),
    ("last_time", _MOMENT),
)

ROWS = pa.schema(
    [
        ("match_no", pa.int64()),
        ("key", pa.string()),
        *_EXTENT,
        ("bindings", _BINDINGS),
        ("final", pa.bool_()),
        ("truncated", pa.bool_()),
    ]
)
"""Rows of the answer, in the order of keys, then of the positions of their events; numbered in each partition. What
measures need of the matches stands behind these columns."""

MISSING = pa.schema([("missing", pa.string()), ("deadline", _MOMENT)])
"""What near misses have besides."""

MATCHES = pa.schema(
    [
        ("part", pa.list_(pa.string())),
        *_EXTENT,
        ("positions", pa.list_(pa.int64())),
        ("operands", pa.list_(pa.int32())),
        ("bindings", _BINDINGS),
        ("final", pa.bool_()),
        ("values", KEPT),
    ]
)
"""Matches with what orders them inside their partition: the positions of all events in the order of events, then the
number of the operand that takes each; ``values`` is what measures need of them."""


def answer_rows(
    matches: Matches,
    shown: Sequence[str | None],
    final: BoolArray,
    measures: PatternMeasures | None,
    rows: Mapping[str, pa.Array],
) -> pa.Table:
    """Matches as rows of the answer.

    Parameters
    ----------
    matches
        The matches, r of them.
    shown
        What is shown of each partition, by the code that `matches` has for it.
    final
        bool[r].
    measures
        Those of the pattern.
    rows
        The columns of the events whose rows `matches` have.

    Returns
    -------
    Rows of `ROWS`, with what measures need.
    """
    count = len(matches)
    key = pa.array(shown, pa.string()).take(pa.array(matches.key))
    columns = [
        pa.array(ranks(matches.key) + 1),
        key,
        *_extent(matches),
        _bindings(matches),
        pa.array(final),
        pa.array(np.full(count, matches.truncated)),
    ]
    answer = pa.Table.from_arrays(columns, schema=ROWS)
    if measures is None:
        return answer
    found = measure_columns(measures, rows, matches.event_offsets, matches.rows.events, matches.bound_operands)
    return with_columns(answer, found)


def with_missing(rows: pa.Table, missing: Sequence[str | None], deadlines: IntArray) -> pa.Table:
    """Rows of the answer with what each awaits.

    Parameters
    ----------
    rows
        r rows that begin with the columns of `ROWS`.
    missing
        The operand that each awaits; None for a whole match.
    deadlines
        int64[r]: microseconds from which on it is too late, or `near_misses.NEVER`.

    Returns
    -------
    pyarrow.Table
        With the columns of `MISSING` behind those of `ROWS`.
    """
    known = deadlines < np.iinfo(np.int64).max
    until = pa.array(np.where(known, deadlines, 0), mask=~known).cast(_MOMENT)
    at = len(ROWS)
    rows = rows.add_column(at, MISSING.field("missing"), pa.array(missing, pa.string()))
    return rows.add_column(at + 1, MISSING.field("deadline"), until)


def match_rows(
    matches: Matches,
    parts: pa.ListArray,
    final: BoolArray,
    measures: PatternMeasures | None,
    rows: Mapping[str, pa.Array],
) -> pa.Table:
    """Matches as they are kept, and put in order beside kept ones.

    Parameters
    ----------
    matches, final, measures, rows
        As of `answer_rows`.
    parts
        The values of each partition, by the code that `matches` has for it.

    Returns
    -------
    Rows of `MATCHES`.
    """
    runs = pa.array(matches.event_offsets.astype(np.int32))
    columns = [
        parts.take(pa.array(matches.key)).cast(MATCHES.field("part").type),
        *_extent(matches),
        pa.ListArray.from_arrays(runs, pa.array(matches.bound_positions)),
        pa.ListArray.from_arrays(runs, pa.array(matches.bound_operands.astype(np.int32))),
        _bindings(matches),
        pa.array(final),
        kept_texts(measures, rows, matches.event_offsets, matches.rows.events),
    ]
    return pa.Table.from_arrays(columns, schema=MATCHES)


def _extent(matches: Matches) -> list[pa.Array]:
    """Positions and times of the first and the last event."""
    return [
        pa.array(matches.first_position),
        pa.array(matches.last_position),
        pa.array(matches.first_time).cast(_MOMENT),
        pa.array(matches.last_time).cast(_MOMENT),
    ]


def _bindings(matches: Matches) -> pa.Array:
    """For each operand the positions of its events."""
    count, operands = len(matches), len(matches.operands)
    lists = pa.ListArray.from_arrays(pa.array(matches.offsets.astype(np.int32)), pa.array(matches.positions))
    found = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(operands)),
        pa.array(matches.operands, pa.string()).take(pa.array(np.tile(np.arange(operands), count))),
        lists,
    )
    return found.cast(_BINDINGS)
