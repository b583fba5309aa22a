"""Rows of `predict_match`: what live partial matches stand for, and how likely each is to be completed.

A row stands for the instances of one partition, join values and set of bound operands in one state (SPEC section 6). It
is shown by the smallest of them: operands in text order by (time, position), those that are not bound last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.machines.forecasts.passage import any_of, telling
from patternlake.udfs.machines.forecasts.waiting_times import ANY_PACE, round_times
from patternlake.udfs.machines.graph.ages import NEVER
from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.kernels.smallest import smallest_of_groups
from patternlake.udfs.machines.passing_time import STANDING
from patternlake.udfs.machines.request import Told
from patternlake.udfs.partitions import number_partitions

ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("state", pa.string()),
        ("bindings", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("alpha", pa.float64()),
        ("probability", pa.float64()),
        ("trained_on", pa.int64()),
        ("is_best", pa.bool_()),
    ]
)
INSTANCE_COLUMNS = ("part", "state_id", "operands", "positions", "times", "joins")

_NONE = np.iinfo(np.int64).max
"""Stands for the time and the position of an operand that is not bound."""
_TOGETHER = 1_024
"""So many rows of several instances are forecast at once."""


def live_rows(
    instances: Mapping[str, pa.Array],
    told: Told,
    operands: Sequence[str],
    threshold: float,
    carried: Sequence[str] = (),
) -> pa.Table:
    """The rows of some partitions, best first in each.

    Parameters
    ----------
    instances
        `INSTANCE_COLUMNS` of n instances, all of a partition, with `passing_time.STANDING` where that was asked for.
    told
        What the subscription's states forecast; instances of other states are left out. Of a lookahead in time, alpha
        is NULL.
    operands
        Names of the operands, in text order.
    threshold
        Only rows with a greater probability.
    carried
        Columns of the instances that all instances of a row agree in.

    Returns
    -------
    Rows of `ROWS`, and the columns `carried` behind them.
    """
    forecasts = told.states
    number = {one["state_id"]: at for at, one in enumerate(forecasts)}
    known = pc.index_in(instances["state_id"], pa.array(list(number), pa.string()))
    kept = pa.array(np.flatnonzero(known.is_valid().to_numpy(zero_copy_only=False)))
    state = known.take(kept).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = {name: column.take(kept) for name, column in instances.items()}
    width = len(operands)
    part, shown = number_partitions(rows["part"])
    values = _as_long(rows["joins"])
    joins, _ = number_partitions(values)
    time, position = _places(rows, width)
    group = _combine(part, state, joins, _bound(position))
    first = smallest_of_groups(group, time, position, int(group.max(initial=-1)) + 1)
    place = [column for operand in range(width) for column in (time[:, operand], position[:, operand])]
    alpha, probability = _forecast(told, state, group, first, rows)
    ranked = np.lexsort([*(column[first] for column in reversed(place)), -probability, part[first]])
    first, probability = first[ranked], probability[ranked]
    alpha = None if alpha is None else alpha[ranked]
    best = np.diff(part[first], prepend=-1) != 0
    chosen = probability > threshold
    found = _table(
        first[chosen],
        part,
        shown,
        state,
        position,
        (None if alpha is None else alpha[chosen], probability[chosen], best[chosen]),
        forecasts,
        operands,
    )
    for name in carried:
        found = found.append_column(name, rows[name].take(pa.array(first[chosen])))
    return found


def _as_long(lists: pa.ListArray) -> pa.ListArray:
    """Lists as long as the longest of them, NULL behind the values of shorter ones: a row has as many values as there
    were join variables when it was written, and what its state binds is among the first of them.
    """
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    width = int(sizes.max(initial=0))
    if (sizes == width).all():
        return lists
    place = np.arange(width)
    row = (np.cumsum(sizes) - sizes)[:, None] + place
    flat = pc.list_flatten(lists).take(pa.array(row.ravel(), mask=(place >= sizes[:, None]).ravel()))
    return pa.ListArray.from_arrays(pa.array(np.arange(len(sizes) + 1, dtype=np.int32) * np.int32(width)), flat)


def _places(rows: Mapping[str, pa.Array], width: int) -> tuple[IntArray, IntArray]:
    """int64[n, operands] each: times and positions of bound operands, `_NONE` elsewhere."""
    count = len(rows["operands"])
    sizes = pc.list_value_length(rows["operands"]).to_numpy(zero_copy_only=False).astype(np.int64)
    row = np.repeat(np.arange(count), sizes)
    operand = pc.list_flatten(rows["operands"]).to_numpy(zero_copy_only=False)
    time, position = (np.full((count, width), _NONE, np.int64) for _ in range(2))
    time[row, operand] = pc.list_flatten(rows["times"]).cast(pa.int64()).to_numpy(zero_copy_only=False)
    position[row, operand] = pc.list_flatten(rows["positions"]).to_numpy(zero_copy_only=False)
    return time, position


def _bound(position: IntArray) -> IntArray:
    """int64[n]: a number for each set of bound operands, as bits."""
    return (position != _NONE) @ (np.int64(1) << np.arange(position.shape[1], dtype=np.int64))


def _combine(*codes: IntArray) -> IntArray:
    """int64[n]: a number for each combination, from 0 in their order."""
    found, most = np.zeros(len(codes[0]), np.int64), 1
    for code in codes:
        values = int(code.max(initial=0)) + 1
        if most * values >= 2**62:
            # Either may be large by itself: sets of operands have up to 62 bits.
            found, code = _renumber(found), _renumber(code)
            most, values = (int(each.max(initial=0)) + 1 for each in (found, code))
        found, most = found * values + code, most * values
    return _renumber(found)


def _renumber(code: IntArray) -> IntArray:
    """int64[n]: a number for each value, from 0 in their order."""
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _forecast(
    told: Told, state: IntArray, group: IntArray, first: IntArray, rows: Mapping[str, pa.Array]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """float64[groups] each, α and β: most groups share what they forecast with others."""
    passage = told.passage
    at = {name: rows[name].to_numpy(zero_copy_only=False) for name in STANDING if name in rows}
    spots, quiet, pace = (np.zeros(len(state), np.int64) for _ in range(3))
    for number, one in enumerate(told.states):
        mine = np.flatnonzero(state == number)
        if at and len(mine):
            left, events, closed = (at[name][mine] for name in STANDING[:3])
            spots[mine] = passage.grids.spots(one["composite_state"], left, events, closed)
    if at and not passage.untimed:
        quiet, pace = at["quiet"], at["pace"]
        pace = np.where(np.isin(pace, sorted(passage.paces)), pace, ANY_PACE)
    # What is left of the only instance of a group is judged to the microsecond.
    left = np.full(len(first), NEVER) if not at else at["left"][first]
    left[np.bincount(group, minlength=len(first)) > 1] = NEVER
    quiet = np.where(left == NEVER, round_times(quiet[first]), quiet[first])
    last = np.zeros((len(first), 2))
    several = np.zeros(len(first), np.bool_)
    spots_of = _spots_of(group, spots, len(first))
    for groups, composite_state, how_fast in _alike(told, state[first], pace[first]):
        several[groups] = [len(spots_of[one]) > 1 for one in groups.tolist()]
        alone = groups[~several[groups]]
        places = np.array([spots_of[one][0] for one in alone.tolist()], np.int64)
        last[alone] = passage.within(composite_state, places, quiet[alone], how_fast, left=left[alone], last=2)
        for begin in range(0, int(several[groups].sum()), _TOGETHER):
            some = groups[several[groups]][begin : begin + _TOGETHER]
            counts = [len(spots_of[one]) for one in some.tolist()]
            places = np.array([spot for one in some.tolist() for spot in spots_of[one]], np.int64)
            within = passage.within(composite_state, places, np.repeat(quiet[some], counts), how_fast)
            last[some] = [any_of(each)[-2:] for each in np.split(within, np.cumsum(counts)[:-1])]
    alpha, probability = last[:, 1] - last[:, 0], last[:, 1]
    return (alpha if passage.ahead is None else None), np.clip(probability, 0.0, 1.0)


def _alike(told: Told, state: IntArray, pace: IntArray) -> Iterator[tuple[IntArray, CompositeState, int]]:
    """The groups of each state and pace."""
    kinds, of = np.unique(np.stack([state, pace]), axis=1, return_inverse=True)
    for number, (which, how_fast) in enumerate(kinds.T.tolist()):
        yield np.flatnonzero(of.ravel() == number), told.states[which]["composite_state"], how_fast


def _spots_of(group: IntArray, spots: IntArray, count: int) -> list[list[int]]:
    """The spots of the instances of each group, of those that tell."""
    order = np.lexsort([spots, group])
    kept = np.ones(len(order), np.bool_)
    kept[1:] = (np.diff(group[order]) != 0) | (np.diff(spots[order]) != 0)
    values = spots[order][kept].tolist()
    offsets = np.searchsorted(group[order][kept], np.arange(count + 1)).tolist()
    return [values[begin:end] if end - begin == 1 else telling(values[begin:end]) for begin, end in pairwise(offsets)]


def _table(
    instance: IntArray,
    part: IntArray,
    shown: Sequence[str | None],
    state: IntArray,
    position: IntArray,
    figures: tuple[NDArray[np.float64] | None, NDArray[np.float64], NDArray[np.bool_]],
    forecasts: Sequence[Mapping[str, Any]],
    operands: Sequence[str],
) -> pa.Table:
    count, width = len(instance), len(operands)
    mine = position[instance].ravel()
    there = mine != _NONE
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], np.cumsum(there)]).astype(np.int32)), pa.array(mine[there], pa.int64())
    )
    bindings = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width)),
        pa.array(list(operands) * count, pa.string()),
        lists,
    )
    number = pa.array(state[instance])
    alpha, probability, best = figures
    columns = [
        pa.array(shown, pa.string()).take(pa.array(part[instance])),
        pa.array([one["state"] for one in forecasts], pa.string()).take(number),
        bindings,
        pa.nulls(count, pa.float64()) if alpha is None else pa.array(alpha),
        pa.array(probability),
        pa.array([one["trained_on"] for one in forecasts], pa.int64()).take(number),
        pa.array(best),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)
