"""Which partial matches no event can complete any more, as time passes without one.

Source: SPEC section 6; the bounds are those of `liveness`. The kernels judge partial matches at the events of their
partition, and a quiet one has none. But no event below the watermark is to come, in any partition: what had to be
completed before it never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.language.predicate.columns import typed_column
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.graph.liveness import FIRST, NOW, CompletionPath
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.request import attribute_types, group_of
from patternlake.udfs.partitions import number_partitions

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

COLUMNS = ("part", "state_id", "operands", "times", "joins")
LAST_TIME = "last_time"
"""Read as well of a lookahead in time: of the root's rows, too."""
RANK_COLUMNS = ("first_rank", "taken")
"""Read as well where a group is `ranked`: of the root's rows, too, which say how many events a partition has taken."""

_MISSING = np.iinfo(np.int64).max
"""Stands for the time of an operand that is not bound."""
_NULL = -1


def rows_read(text: str, *, timed: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """More columns, and ids of more states, than rows of an answer are made of, whose rows `completable_rows` takes.

    Parameters
    ----------
    text
        Of the question, as `request.check_request` gives it.
    timed
        It looks ahead in time.
    """
    group = group_of(text)
    columns = (*(RANK_COLUMNS if ranked(group) else ()), *((LAST_TIME,) if timed else ()))
    return columns, (group.compiled.graph.ids[0],) if columns else ()


def completable_rows(text: str, instances: Mapping[str, pa.Array], now: int | None) -> dict[str, pa.Array]:
    """The rows of `completable` instances; None: of all.

    Parameters
    ----------
    text
        Of the question, as `request.check_request` gives it.
    instances, now
        As of `completable`.
    """
    if now is None:
        return dict(instances)
    kept = pa.array(completable(group_of(text), attribute_types(text), instances, now))
    return {name: column.filter(kept) for name, column in instances.items()}


def bounded_by_now(group: Group) -> bool:
    """Whether time alone can end partial matches of a group's subscription, its only one."""
    return any(map(_has_now, group.compiled.graph.completion_paths))


def ranked(group: Group) -> bool:
    """Whether the ranks of events must be known to judge that."""
    within = group.compiled.subscriptions[0].within
    return within is not None and within.counted and bounded_by_now(group)


def completable(group: Group, types: Mapping[str, str], instances: Mapping[str, pa.Array], now: int) -> BoolArray:
    """bool[n]: the instances that events from a moment on can complete; True of rows that are no instances.

    Parameters
    ----------
    group
        Of the one subscription.
    types
        Spark type of each of the stream's attributes.
    instances
        `COLUMNS` of n rows, all of a partition; where the group is `ranked`, `RANK_COLUMNS` and the root's rows.
    now
        Microseconds since the epoch; no event that was taken is later.
    """
    found = np.ones(len(instances["state_id"]), np.bool_)
    if not len(found) or not bounded_by_now(group):
        return found
    graph = group.compiled.graph
    times = _times(instances, len(group.compiled.subscriptions[0].primitives), now)
    values = _joined_values(group, types, instances)
    left = _events_left(group, instances) if ranked(group) else None
    paths_of = dict(zip(graph.ids, graph.completion_paths, strict=True))
    states = instances["state_id"].dictionary_encode()
    state = states.indices.to_numpy(zero_copy_only=False)
    for number, state_id in enumerate(states.dictionary.to_pylist()):
        paths = paths_of.get(state_id, ())
        if not _has_now(paths):
            continue
        mine = np.flatnonzero(state == number)
        alive = np.zeros(len(mine), np.bool_)
        for path in paths:
            holds = _in_time(path, {one: each[mine] for one, each in times.items()})
            holds &= _agreeing(path, {one: each[mine] for one, each in values.items()}, len(mine))
            if left is not None:
                holds &= left[mine] >= path.missing
            alive |= holds
        found[mine] = alive
    return found


def _has_now(paths: Iterable[CompletionPath]) -> bool:
    return any(one == NOW for path in paths for one, _, _ in path.bounds)


def _times(instances: Mapping[str, pa.Array], width: int, now: int) -> dict[int, IntArray]:
    """int64[n] by operand, `FIRST` and `NOW`: their times, `_MISSING` where an operand is not bound."""
    count = len(instances["state_id"])
    sizes = pc.list_value_length(instances["operands"]).to_numpy(zero_copy_only=False).astype(np.int64)
    row = np.repeat(np.arange(count), sizes)
    operand = pc.list_flatten(instances["operands"]).to_numpy(zero_copy_only=False)
    time = np.full((count, width), _MISSING, np.int64)
    # A root's row has no operands; those of other subscriptions may have more.
    own = operand < width
    flat = pc.list_flatten(instances["times"]).cast(pa.int64()).to_numpy(zero_copy_only=False)
    time[row[own], operand[own]] = flat[own]
    found = {number: time[:, number] for number in range(width)}
    return {**found, FIRST: time.min(axis=1), NOW: np.full(count, now, np.int64)}


def _in_time(path: CompletionPath, times: Mapping[int, IntArray]) -> BoolArray:
    """Whether times allow a completion path; a bound of an operand that is not bound does not apply."""
    found = np.ones(len(times[NOW]), np.bool_)
    for one, other, most in path.bounds:
        later, earlier = times[one], times[other]
        applies = (later != _MISSING) & (earlier != _MISSING)
        found &= ~applies | (np.where(applies, later, 0) - np.where(applies, earlier, 0) <= most)
    return found


def _joined_values(
    group: Group, types: Mapping[str, str], instances: Mapping[str, pa.Array]
) -> dict[tuple[str, str], IntArray]:
    """int64[n] by (``variable`` or ``column``, name): equal numbers for equal values, `_NULL` where there is none."""
    codes, count = Codes(), len(instances["state_id"])
    found = {}
    sizes = pc.list_value_length(instances["joins"]).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.cumsum(sizes) - sizes
    flat = pc.list_flatten(instances["joins"])
    for place, variable in enumerate(group.compiled.variables):
        texts = flat.take(pa.array(begins + place, mask=place >= sizes))
        found["variable", variable] = codes.of(typed_column(texts, "string"))
    parts = pc.list_flatten(instances["part"])
    for place, column in enumerate(group.partition):
        texts = parts.take(pa.array(np.arange(count) * len(group.partition) + place))
        found["column", column] = codes.of(typed_column(texts, {**BUILT_IN, **types}.get(column, "string")))
    return found


def _agreeing(path: CompletionPath, values: Mapping[tuple[str, str], IntArray], count: int) -> BoolArray:
    """Whether join variables that are bound agree with each other and with columns of the partition, where asked."""
    found = np.ones(count, np.bool_)
    for variables, columns in path.joined:
        known = np.full(count, _NULL, np.int64)
        for kind, names in (("column", columns), ("variable", variables)):
            for name in names:
                value = values[kind, name]
                if kind == "column":
                    found &= value != _NULL
                found &= (known == _NULL) | (value == _NULL) | (known == value)
                known = np.where(known == _NULL, value, known)
    return found


def _events_left(group: Group, instances: Mapping[str, pa.Array]) -> IntArray:
    """int64[n]: how many events can still come inside the window, counting from the next one of the partition."""
    within = group.compiled.subscriptions[0].within
    assert within is not None
    part, shown = number_partitions(instances["part"], len(group.partition))
    taken = np.zeros(len(shown), np.int64)
    root = pc.is_valid(instances["taken"]).to_numpy(zero_copy_only=False)
    taken[part[root]] = instances["taken"].filter(pa.array(root)).to_numpy(zero_copy_only=False)
    first = instances["first_rank"].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    last = first + within.amount - 1
    return np.asarray(last - (taken[part] - 1), np.int64)
