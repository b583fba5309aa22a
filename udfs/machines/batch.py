"""New events of some partitions as a batch of the job `predict`: matches, live partial matches, counts of moves.

Rows come in order, so that a partition may be as long as it likes: what was read is forgotten but for its instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import read_events
from patternlake.udfs.machines.events import stream_of
from patternlake.udfs.machines.forecasts.waiting_times import Waits, together
from patternlake.udfs.machines.forecasts.waiting_times import counted as counted_waits
from patternlake.udfs.machines.from_config import Group, columns_read
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.kernels.running import Held, Machines
from patternlake.udfs.machines.state import INSTANCE_COLUMNS, InstanceRows, counts_row, instances, matches, waits_row
from patternlake.udfs.partitions import first_rows
from patternlake.udfs.record_batches import columns_of, tables


class Batches:
    """The subscriptions of some groups with one PARTITION BY, batch by batch.

    Parameters
    ----------
    groups
        The groups.
    types
        Spark type of each of the stream's attributes.
    now
        Microseconds: the watermark, against which the age of counts and open waits are measured.
    known
        Ids of states whose instances are not wanted: others keep them.
    """

    def __init__(
        self, groups: Sequence[Group], types: Mapping[str, str], now: int, known: frozenset[str] = frozenset()
    ) -> None:
        self.groups, self.types, self.now, self.known = groups, types, now, known
        self.runs = [Machines(group.compiled) for group in groups]
        self.codes = [Codes() for _ in groups]
        self.rows_of = [InstanceRows(group.compiled, codes) for group, codes in zip(groups, self.codes, strict=True)]
        self.wanted = columns_read(groups)
        self.waits: Waits = {}

    def rows(self, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What new events amount to.

        Parameters
        ----------
        given
            ``part``, `INSTANCE_COLUMNS`, `EVENT_COLUMNS` and the attributes that are read, in the order of (part,
            time, position): of each partition, first rows of its live instances, if it has any, then its new events,
            whose ``state_id`` is NULL.

        Yields
        ------
        pyarrow.RecordBatch
            In `state.BATCH_SCHEMA`.
        """
        rest: pa.Table | None = None
        last: Any = None
        carried: list[Held] = []
        for table in tables(given):
            whole = table if rest is None else pa.concat_tables([rest, table]).combine_chunks()
            first = first_rows(whole["part"].combine_chunks())
            is_event = pc.is_null(whole["state_id"]).to_numpy().astype(np.bool_)
            # Instances of a partition whose events are yet to come wait for them.
            whole_rows = len(is_event) if is_event[first[-1] :].any() else int(first[-1])
            rest = whole.slice(whole_rows) if whole_rows < len(is_event) else None
            if not whole_rows:
                continue
            taken = whole.slice(0, whole_rows).combine_chunks()
            first = first[first < whole_rows]
            parts = taken["part"].combine_chunks().take(pa.array(first))
            goes_on = carried and parts[0].as_py() == last
            found, kept = self._taken(taken, first, is_event[:whole_rows], carried if goes_on else [], parts)
            if carried and not goes_on:
                yield from self._remembered(carried, pa.array([last], pa.list_(pa.string())))
            yield from found
            if len(parts) > 1:
                done = [_some(held, 0, len(parts) - 1) for held in kept]
                yield from self._remembered(done, parts.slice(0, len(parts) - 1))
            carried = [_some(held, len(parts) - 1, len(parts)) for held in kept]
            last = parts[-1].as_py()
        if carried:
            yield from self._remembered(carried, pa.array([last], pa.list_(pa.string())))
            yield from (counts_row(number, run.totals) for number, run in enumerate(self.runs))
            yield waits_row(self.waits)

    def _taken(
        self, rows: pa.Table, first: IntArray, is_event: BoolArray, carried: Sequence[Held], parts: pa.Array
    ) -> tuple[list[pa.RecordBatch], list[Held]]:
        """Let all groups take the events of some rows."""
        part = np.searchsorted(first, np.arange(len(is_event)), side="right") - 1
        columns = columns_of(rows)
        events = {name: columns[name].filter(pa.array(is_event)) for name in columns if name not in INSTANCE_COLUMNS}
        stream = read_events(events, self.wanted, self.types)
        held_rows = {name: columns[name].filter(pa.array(~is_event)) for name in INSTANCE_COLUMNS}
        event_at = np.searchsorted(part[is_event], np.arange(len(first) + 1)).astype(np.int64)
        found, kept = [], []
        for number, (group, run) in enumerate(zip(self.groups, self.runs, strict=True)):
            held = self.rows_of[number].held(held_rows, part[~is_event], len(first))
            if carried:
                held = _begun_by(carried[number], held)
            if number == 0:
                # All groups have taken, and take, the same events.
                waits = counted_waits(stream.times, event_at, held.last, held.taken, held.began, self.now)
                self.waits = together([self.waits, waits], self.now)
            taken, after = run.take(held, event_at, stream_of(stream, group, self.codes[number], self.now))
            kept.append(after)
            if len(taken.event):
                found.append(
                    matches(group, taken, stream.times, stream.positions, parts.take(pa.array(part[is_event])))
                )
        return found, kept

    def _remembered(self, held: Sequence[Held], parts: pa.Array) -> Iterator[pa.RecordBatch]:
        """The rows of instances."""
        for number, group in enumerate(self.groups):
            batch = instances(group, number, held[number], parts, self.codes[number], self.known)
            if batch.num_rows:
                yield batch


def _some(held: Held, low: int, high: int) -> Held:
    """What is remembered of some partitions."""
    begin, end = held.at[low], held.at[high]
    rows = {name: getattr(held, name)[begin:end] for name in Held._fields[4:]}
    return Held(
        held.taken[low:high], held.last[low:high], held.began[low:high], held.at[low : high + 1] - begin, **rows
    )


def _begun_by(before: Held, held: Held) -> Held:
    """The same with the first partition as one part of it left it; its rows came with that part."""
    after = _some(held, 1, len(held.taken))
    names = [name for name in Held._fields if name != "at"]
    joined = {name: np.concatenate([getattr(before, name), getattr(after, name)]) for name in names}
    return Held(at=np.concatenate([before.at, after.at[1:] + before.at[-1]]), **joined)
