"""New events of some partitions as a batch of the job `groups`: closed groups, open ones, and what is remembered.

Rows come in order, so that a partition may be as long as it likes: what was read is forgotten but for its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.groups.events import read_group_events
from patternlake.udfs.groups.kernels.groups import GroupRows, Groups
from patternlake.udfs.groups.state import (
    FIXED,
    GROUPS,
    KNOWN,
    LAST,
    LIVE,
    WAITING,
    WAITING_STEP,
    GroupState,
    from_bytes,
)
from patternlake.udfs.partitions import number_partitions
from patternlake.udfs.record_batches import columns_of, filled, tables

PART = pa.list_(pa.string())
STATE = "state"
CLOSED, OPEN, REMEMBERED = "closed", "open", "remembered"
BATCH_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("part", PART),
        ("t_start", pa.int64()),
        ("t_first", pa.int64()),
        ("t_end", pa.int64()),
        ("probability", pa.float64()),
        ("final", pa.bool_()),
        ("closed", pa.bool_()),
        ("last_step", pa.int64()),
        ("live_starts", pa.int64()),
        ("open_groups", pa.int64()),
        (STATE, pa.binary()),
    ]
)
"""Rows of both tables: groups that are closed or open, and what is remembered of a partition."""


@dataclass(frozen=True)
class Batches:
    """The groups of one query, batch by batch.

    Attributes
    ----------
    groups
        The engine for the query.
    types
        Spark type of each of the stream's attributes.
    """

    groups: Groups
    types: Mapping[str, str]

    def rows(self, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What new events amount to.

        Parameters
        ----------
        given
            ``part``, ``state``, `EVENT_COLUMNS` and the attributes that are read, in the order of (part, step): of
            each partition, first a row with what was remembered of it, if anything was, then its new events, whose
            state is NULL.

        Yields
        ------
        pyarrow.RecordBatch
            In `BATCH_SCHEMA`; of every partition one row of what is remembered.
        """
        held: pa.Table | None = None
        for table in tables(given):
            whole = table if held is None else pa.concat_tables([held, table])
            found, held = self._advanced(whole)
            yield from found
        if held is not None:
            yield from self._ended(held)

    def _advanced(self, rows: pa.Table) -> tuple[list[pa.RecordBatch], pa.Table]:
        """Closed groups, all that partitions before the last one amount to, and the state row of the last one."""
        columns = columns_of(rows)
        keys, _ = number_partitions(columns["part"])
        is_state = pc.is_valid(columns[STATE]).to_numpy(zero_copy_only=False)
        state = from_bytes(keys[is_state], columns[STATE].filter(pa.array(is_state)).to_pylist())
        events = pa.array(~is_state)
        new = read_group_events(
            self.groups.query, self.types, {name: columns[name].filter(events) for name in columns if name != STATE}
        )
        state, closed = self.groups.advance(state, keys[~is_state], new.steps, new.classes, new.probabilities)
        _, first = np.unique(keys, return_index=True)
        parts = columns["part"].take(pa.array(first))
        found = [_groups(CLOSED, parts, closed)]
        last = int(keys[-1])
        remembered = _states(parts, state)
        done = pa.array(np.arange(len(parts)) != last)
        found.append(remembered.filter(done))
        open_groups = self.groups.tail(state)
        found.append(_groups(OPEN, parts, open_groups).filter(pa.array(open_groups.key != last)))
        return [batch for batch in found if batch.num_rows], _state_row(
            rows.schema, parts[last], remembered[STATE][last]
        )

    def _ended(self, held: pa.Table) -> list[pa.RecordBatch]:
        parts = held["part"].combine_chunks()
        state = from_bytes(np.zeros(1, np.int64), held[STATE].to_pylist())
        found = [_states(parts, state), _groups(OPEN, parts, self.groups.tail(state))]
        return [batch for batch in found if batch.num_rows]


def _groups(kind: str, parts: pa.ListArray, found: GroupRows) -> pa.RecordBatch:
    told = {name: pa.array(getattr(found, name)) for name in ("t_start", "t_first", "t_end", "probability", "final")}
    closed = pa.repeat(kind == CLOSED, len(found.key))
    return _batch(kind, parts.take(pa.array(found.key)), {**told, "closed": closed})


def _states(parts: pa.ListArray, state: GroupState) -> pa.RecordBatch:
    fixed = state.integers[state.integer_offset[:-1, None] + np.arange(FIXED)]
    seen = np.where(fixed[:, KNOWN] != 0, fixed[:, LAST], np.iinfo(np.int64).min)
    newest = np.where(fixed[:, WAITING] != 0, np.maximum(seen, fixed[:, WAITING_STEP]), seen)
    return _batch(
        REMEMBERED,
        parts.take(pa.array(state.keys)),
        {
            "last_step": pa.array(newest),
            "live_starts": pa.array(fixed[:, LIVE]),
            "open_groups": pa.array(fixed[:, GROUPS]),
            STATE: pa.array(state.to_bytes(), pa.binary()),
        },
    )


def _batch(kind: str, parts: pa.ListArray, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    count = len(parts)
    given = {"kind": pa.array([kind] * count, pa.string()), "part": parts, **columns}
    return pa.RecordBatch.from_arrays(filled(given, BATCH_SCHEMA, count), schema=BATCH_SCHEMA)


def _state_row(schema: pa.Schema, part: pa.Scalar, state: pa.Scalar) -> pa.Table:
    given = {"part": pa.array([part.as_py()], PART), STATE: pa.array([state.as_py()], pa.binary())}
    return pa.Table.from_arrays(filled(given, schema, 1), schema=schema)
