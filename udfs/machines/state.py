"""Rows that a batch of the job `predict` writes, and the rows of instances that it reads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import integers, micros
from patternlake.udfs.machines.forecasts.totals import Totals
from patternlake.udfs.machines.forecasts.waiting_times import Waits, as_document
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.kernels.running import Found, Held
from patternlake.udfs.machines.kernels.tables import Compiled
from patternlake.udfs.machines.kernels.workspace import NONE
from patternlake.udfs.record_batches import filled

PART = pa.list_(pa.string())
_MOMENT = pa.timestamp("us", "UTC")
_BINDINGS = pa.map_(pa.string(), pa.list_(pa.int64()))
MATCH, INSTANCE, COUNTS, WAITS = "match", "instance", "counts", "waits"
BATCH_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("part", PART),
        ("subscription", pa.string()),
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("first_time", _MOMENT),
        ("last_time", _MOMENT),
        ("bindings", _BINDINGS),
        ("state_id", pa.string()),
        ("operands", pa.list_(pa.int32())),
        ("positions", pa.list_(pa.int64())),
        ("times", pa.list_(_MOMENT)),
        ("joins", PART),
        ("first_rank", pa.int64()),
        ("taken", pa.int64()),
        ("group", pa.int32()),
        ("age", pa.int32()),
        ("totals", pa.list_(pa.float64())),
        ("keys", pa.list_(pa.int64())),
        ("weights", pa.list_(pa.float64())),
    ]
)
"""Matches, instances, for each task and group `Machines.totals`, and for each task how long its partitions waited."""
TOTALS_COLUMNS = ("totals", "keys", "weights")
"""Columns in which `Totals` stand."""

INSTANCE_COLUMNS = (
    "state_id", "operands", "positions", "times", "joins", "first_rank", "taken", "last_time", "first_time",
)  # fmt: skip
"""Columns of `machine_instances` that are read back."""


class InstanceRows:
    """Reads rows of instances.

    Parameters
    ----------
    compiled
        The subscriptions; rows of states that they don't have are left out.
    codes
        Takes the values of join variables.
    """

    def __init__(self, compiled: Compiled, codes: Codes) -> None:
        self.compiled, self.codes = compiled, codes
        self.state_of = {state_id: state for state, state_id in enumerate(compiled.graph.ids)}

    def held(self, rows: Mapping[str, pa.Array], part: IntArray, parts: int) -> Held:
        """What rows remember.

        Parameters
        ----------
        rows
            `INSTANCE_COLUMNS`.
        part
            int64: number of each row's partition, ascending.
        parts
            How many partitions there are.
        """
        state = np.array([self.state_of.get(one, NONE) for one in rows["state_id"].to_pylist()], np.int64)
        taken, last, began = (np.zeros(parts, np.int64) for _ in range(3))
        root = state == 0
        taken[part[root]] = integers(rows["taken"].filter(pa.array(root)))
        for name, times in (("last_time", last), ("first_time", began)):
            times[part[root]] = micros(rows[name].filter(pa.array(root)))
        mine = state > 0
        wanted = {name: array.filter(pa.array(mine)) for name, array in rows.items()}
        count = int(mine.sum())
        mask, first_rank, age = (np.zeros(count, np.int64) for _ in range(3))
        first_time = np.full(count, np.iinfo(np.int64).max)
        joins = np.full((count, max(1, len(self.compiled.variables))), NONE, np.int64)
        time, position = (np.full((count, self.compiled.operands), NONE, np.int64) for _ in range(2))
        often = pc.list_value_length(wanted["operands"]).to_numpy(zero_copy_only=False).astype(np.int64)
        row = np.repeat(np.arange(count), often)
        operand = integers(pc.list_flatten(wanted["operands"]))
        np.bitwise_or.at(mask, row, np.left_shift(np.int64(1), operand))
        time[row, operand] = micros(pc.list_flatten(wanted["times"]))
        position[row, operand] = integers(pc.list_flatten(wanted["positions"]))
        np.minimum.at(first_time, row, time[row, operand])
        first_rank[:] = integers(wanted["first_rank"])
        texts = pc.list_flatten(wanted["joins"]).to_pylist()
        codes = [NONE if text is None else self.codes.number(text) for text in texts]
        # A row is as long as its batch had variables; what a state binds is among those that there are now.
        lengths = pc.list_value_length(wanted["joins"]).to_numpy(zero_copy_only=False).astype(np.int64)
        variable = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        kept = variable < joins.shape[1]
        joins[np.repeat(np.arange(count), lengths)[kept], variable[kept]] = np.array(codes, np.int64)[kept]
        at = np.searchsorted(part[mine], np.arange(parts + 1)).astype(np.int64)
        return Held(
            taken, last, began, at, state[mine], mask, first_time, first_rank, joins, time, position, age
        )  # fmt: skip


def instances(
    group: Group, number: int, held: Held, parts: pa.Array, codes: Codes, known: frozenset[str]
) -> pa.RecordBatch:
    """Rows of instances, and of how far partitions have come.

    Parameters
    ----------
    group, number
        Whose, and its number.
    held
        What is remembered of p partitions.
    parts
        Their values.
    codes
        Of the values of join variables.
    known
        Ids of states that are left out.
    """
    ids = group.compiled.graph.ids
    left_out = np.array([state_id in known for state_id in ids], np.bool_)
    wanted = ~left_out[held.state]
    state, mask = held.state[wanted], held.mask[wanted]
    part = np.repeat(np.arange(len(held.taken)), np.diff(held.at))[wanted]
    bound = (mask[:, None] >> np.arange(held.time.shape[1]) & 1).astype(np.bool_)
    at = np.concatenate([[0], np.cumsum(bound.sum(axis=1))]).astype(np.int32)
    variables = len(group.compiled.variables)
    joins = held.joins[wanted][:, :variables].ravel()
    texts = pa.array([*codes.texts, None], pa.string()).take(pa.array(np.where(joins < 0, len(codes.texts), joins)))
    rows = _batch(
        INSTANCE,
        len(state),
        {
            "part": parts.take(pa.array(part)),
            "state_id": pa.array(ids, pa.string()).take(pa.array(state)),
            "operands": pa.ListArray.from_arrays(pa.array(at), pa.array(np.nonzero(bound)[1].astype(np.int32))),
            "positions": pa.ListArray.from_arrays(pa.array(at), pa.array(held.position[wanted][bound])),
            "times": pa.ListArray.from_arrays(pa.array(at), pa.array(held.time[wanted][bound]).cast(_MOMENT)),
            "joins": pa.ListArray.from_arrays(pa.array(np.arange(len(state) + 1, dtype=np.int32) * variables), texts),
            "first_rank": pa.array(held.first_rank[wanted]),
            "age": pa.array(held.age[wanted]),
            "group": pa.array(np.full(len(state), number, np.int32)),
        },
    )
    if left_out[0]:
        return rows
    count = len(held.taken)
    roots = _batch(
        INSTANCE,
        count,
        {
            "part": parts,
            "state_id": pa.array([ids[0]] * count, pa.string()),
            "operands": pa.array([[]] * count, pa.list_(pa.int32())),
            "positions": pa.array([[]] * count, pa.list_(pa.int64())),
            "times": pa.array([[]] * count, pa.list_(_MOMENT)),
            "joins": pa.array([[None] * variables] * count, PART),
            "taken": pa.array(held.taken),
            "last_time": pa.array(held.last).cast(_MOMENT),
            "first_time": pa.array(held.began).cast(_MOMENT),
            "group": pa.array(np.full(count, number, np.int32)),
        },
    )
    return pa.Table.from_batches([rows, roots]).combine_chunks().to_batches()[0]


def matches(group: Group, found: Found, times: IntArray, positions: IntArray, parts: pa.Array) -> pa.RecordBatch:
    """Rows of matches, one for each subscription.

    Parameters
    ----------
    group
        Whose.
    found
        The matches.
    times, positions
        int64[n] of all events.
    parts
        Of n events.
    """
    final = group.compiled.graph.final
    often = np.array([len(some) for some in final], np.int64)
    begin = np.cumsum(often) - often
    row = np.repeat(np.arange(len(found.event)), often[found.state])
    within = np.arange(len(row)) - np.repeat(np.cumsum(often[found.state]) - often[found.state], often[found.state])
    flat = np.array([number for some in final for number in some], np.int64)
    subscription = flat[begin[found.state[row]] + within]
    bound = (found.mask[:, None] >> np.arange(found.time.shape[1]) & 1).astype(np.bool_)
    latest = np.iinfo(np.int64).max
    first_time = np.where(bound, found.time, latest).min(axis=1)
    first = np.where(bound & (found.time == first_time[:, None]), found.position, latest).min(axis=1)
    event = found.event[row]
    return _batch(
        MATCH,
        len(row),
        {
            "part": parts.take(pa.array(event)),
            "subscription": pa.array(group.names, pa.string()).take(pa.array(subscription)),
            "first_position": pa.array(first[row]),
            "last_position": pa.array(positions[event]),
            "first_time": pa.array(first_time[row]).cast(_MOMENT),
            "last_time": pa.array(times[event]).cast(_MOMENT),
            "bindings": _bindings(group.compiled, subscription, bound[row], found.position[row]),
        },
    )


def _bindings(compiled: Compiled, subscription: IntArray, bound: BoolArray, position: IntArray) -> pa.MapArray:
    """Operand to its position, or to nothing where an alternative was not taken."""
    names = [[primitive.name for primitive in one.primitives] for one in compiled.subscriptions]
    size = np.array([len(some) for some in names], np.int64)
    begin = np.cumsum(size) - size
    often = size[subscription]
    at = np.concatenate([[0], np.cumsum(often)])
    row = np.repeat(np.arange(len(subscription)), often)
    operand = np.arange(len(row)) - np.repeat(at[:-1], often)
    words = pa.array([name for some in names for name in some], pa.string())
    keys = words.take(pa.array(begin[subscription[row]] + operand))
    has = bound[row, operand]
    ends = np.concatenate([[0], np.cumsum(has)]).astype(np.int32)
    items = pa.ListArray.from_arrays(pa.array(ends), pa.array(position[row, operand][has]))
    return pa.MapArray.from_arrays(pa.array(at.astype(np.int32)), keys, items)


def counts_row(number: int, totals: Totals) -> pa.RecordBatch:
    """The row of a group's counts."""
    return _batch(COUNTS, 1, {"group": pa.array([number], pa.int32()), **totals_columns(totals)})


def waits_row(waits: Waits) -> pa.RecordBatch:
    """The row of the times between events of the partitions of all groups."""
    flat = [number for row in as_document(waits) for number in row]
    return _batch(WAITS, 1, {"group": pa.array([0], pa.int32()), "keys": pa.array([flat], pa.list_(pa.int64()))})


def totals_columns(totals: Totals) -> dict[str, pa.Array]:
    """Counts as a row of `TOTALS_COLUMNS`."""
    return {
        "totals": pa.array([totals.counted.tolist()], pa.list_(pa.float64())),
        "keys": pa.array([totals.keys.ravel().tolist()], pa.list_(pa.int64())),
        "weights": pa.array([totals.weights.tolist()], pa.list_(pa.float64())),
    }


def totals_of(row: Mapping[str, Any]) -> Totals:
    """The counts of a row."""
    keys = np.array(row["keys"], np.int64).reshape(-1, 2)
    return Totals(np.array(row["totals"], np.float64), keys, np.array(row["weights"], np.float64))


def _batch(kind: str, count: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    given = {"kind": pa.array([kind] * count, pa.string()), **columns}
    return pa.RecordBatch.from_arrays(filled(given, BATCH_SCHEMA, count), schema=BATCH_SCHEMA)
