"""Rows of `predict_match`: what live partial matches stand for, and how likely each is to be completed.

A row stands for the instances of one partition, join values and set of bound operands in one state (SPEC section 6). It
is shown by the smallest of them: operands in text order by (time, position), those that are not bound last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.machines.forecasts.waiting_times import Steps
from patternlake.udfs.machines.kernels.smallest import smallest_of_groups
from patternlake.udfs.machines.request import row_forecast, row_within
from patternlake.udfs.partitions import number_partitions

IntArray = NDArray[np.int64]

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
INSTANCE_COLUMNS = ("part", "state_id", "operands", "positions", "times", "joins", "age")

_MOST_QUIETS, _TOGETHER = 4_096, 4_096
"""How long partitions have been quiet is rounded where there are more different times; so many rows are worked on at
once."""


@dataclass(frozen=True)
class Ahead:
    """A lookahead in time.

    Attributes
    ----------
    steps
        How many events it brings.
    now
        Microseconds: the watermark, from which it is counted.
    """

    steps: Steps
    now: int


_NONE = np.iinfo(np.int64).max
"""Stands for the time and the position of an operand that is not bound."""


def live_rows(
    instances: Mapping[str, pa.Array],
    forecasts: Sequence[Mapping[str, Any]],
    operands: Sequence[str],
    threshold: float,
    carried: Sequence[str] = (),
    ahead: Ahead | None = None,
) -> pa.Table:
    """The rows of some partitions, best first in each.

    Parameters
    ----------
    instances
        `INSTANCE_COLUMNS` of n instances; all of a partition.
    forecasts
        Of the subscription's states, as `request.forecast` gives them; instances of other states are left out.
    operands
        Names of the operands, in text order.
    threshold
        Only rows with a greater probability.
    carried
        Columns of the instances that all instances of a row agree in.
    ahead
        Of a lookahead in time: how many events it brings. Then the instances have ``last_time``, which rows of the
        root tell of partitions, and alpha is NULL.

    Returns
    -------
    Rows of `ROWS`, and the columns `carried` behind them.
    """
    number = {one["state_id"]: at for at, one in enumerate(forecasts)}
    known = pc.index_in(instances["state_id"], pa.array(list(number), pa.string()))
    kept = pa.array(np.flatnonzero(known.is_valid().to_numpy(zero_copy_only=False)))
    state = known.take(kept).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = {name: column.take(kept) for name, column in instances.items()}
    width = len(operands)
    part, shown = number_partitions(rows["part"], _width(rows["part"]))
    values = _as_long(rows["joins"])
    joins, _ = number_partitions(values, _width(values))
    time, position = _places(rows, width)
    group = _combined(part, state, joins, _bound(position))
    first = smallest_of_groups(group, time, position, int(group.max(initial=-1)) + 1)
    place = [column for operand in range(width) for column in (time[:, operand], position[:, operand])]
    ages = pc.fill_null(rows["age"], 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if ahead is None:
        alpha, probability = _forecast(forecasts, state[first], group, ages)
    else:
        quiet = _quiet(instances, ahead.now)[kept.to_numpy()][first]
        alpha, probability = None, _in_time(forecasts, state[first], group, ages, quiet, ahead.steps)
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


def _width(lists: pa.ListArray) -> int:
    return len(lists[0]) if len(lists) else 0


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


def _combined(*codes: IntArray) -> IntArray:
    """int64[n]: a number for each combination, from 0 in their order."""
    found, most = np.zeros(len(codes[0]), np.int64), 1
    for code in codes:
        values = int(code.max(initial=0)) + 1
        if most * values >= 2**62:
            _, found = np.unique(found, return_inverse=True)
            found, most = found.astype(np.int64), int(found.max(initial=0)) + 1
        found, most = found * values + code, most * values
    _, found = np.unique(found, return_inverse=True)
    return found.astype(np.int64)


def _forecast(
    forecasts: Sequence[Mapping[str, Any]], state: IntArray, group: IntArray, ages: IntArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[groups] each, α and β: most groups share their state and ages with others."""
    of, kinds = _kinds(state, group, ages)
    rows = [row_forecast(told, forecasts[one]["ages"], forecasts[one]["hazards"]) for one, told in kinds]
    alpha = np.array([row["alpha"] for row in rows], np.float64)
    return alpha[of], np.array([row["probability"] for row in rows], np.float64)[of]


def _in_time(
    forecasts: Sequence[Mapping[str, Any]], state: IntArray, group: IntArray, ages: IntArray, quiet: IntArray,
    steps: Steps,
) -> NDArray[np.float64]:  # fmt: skip
    """float64[groups]: matched within a time, of groups whose partitions have been quiet for so many microseconds."""
    of, kinds = _kinds(state, group, ages)
    within = [row_within(told, forecasts[one]["ages"], forecasts[one]["hazards"]) for one, told in kinds]
    alpha = np.diff(np.array(within, np.float64).reshape(len(kinds), -1), axis=1)
    found = np.zeros(len(of))
    if len(np.unique(quiet)) > _MOST_QUIETS:
        quiet = (np.round(quiet / steps.slot) * steps.slot).astype(np.int64)
    order = np.argsort(quiet, kind="stable")
    for begin in range(0, len(order), _TOGETHER):
        some = order[begin : begin + _TOGETHER]
        values, place = np.unique(quiet[some], return_inverse=True)
        found[some] = (alpha[of[some]] * steps.reached(values)[place]).sum(axis=1)
    return np.clip(found, 0.0, 1.0)


def _quiet(instances: Mapping[str, pa.Array], now: int) -> IntArray:
    """int64[n]: for how many microseconds the partition of each instance has had no event."""
    part, shown = number_partitions(instances["part"], _width(instances["part"]))
    root = pc.is_valid(instances["last_time"])
    last = np.full(len(shown), now, np.int64)
    times = instances["last_time"].filter(root).cast(pa.int64()).to_numpy(zero_copy_only=False)
    last[part[root.to_numpy(zero_copy_only=False)]] = times
    return np.maximum(now - last, 0)[part]


def _kinds(state: IntArray, group: IntArray, ages: IntArray) -> tuple[IntArray, list[tuple[int, list[int]]]]:
    """int64[groups]: which of some (state, ages of its instances) each group is; and those."""
    width = int(ages.max(initial=0)) + 1
    pairs = np.sort(group * width + ages)
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    offsets = np.searchsorted(pairs, np.arange(len(state) + 1) * width)
    told = pairs % width
    found, kinds = np.zeros(len(state), np.int64), list[tuple[int, list[int]]]()

    def fill(groups: IntArray, codes: IntArray) -> None:
        """Groups whose `codes` are equal have the same state and ages."""
        _, first, of = np.unique(codes, return_index=True, return_inverse=True)
        found[groups] = len(kinds) + of
        kinds.extend((int(state[at]), told[offsets[at] : offsets[at + 1]].tolist()) for at in groups[first].tolist())

    sizes = np.diff(offsets)
    single, several = np.flatnonzero(sizes == 1), np.flatnonzero(sizes > 1)
    fill(single, state[single] * width + told[offsets[single]])
    texts = [(int(state[at]), told[offsets[at] : offsets[at + 1]].tobytes()) for at in several.tolist()]
    number = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    fill(several, np.array([number[text] for text in texts], np.int64))
    return found, kinds


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
