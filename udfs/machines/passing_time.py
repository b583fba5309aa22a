"""What is left of the deadlines of partial matches at the watermark, and which of them nothing can complete any more.

Source: SPEC section 6; the bounds are those of `liveness`. The kernels judge partial matches at the events of their
partition, and a quiet one has none. But no event below the watermark is to come, in any partition: what had to be
completed before it never is, and what is left has grown less by the quiet time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.language.predicate.columns import typed_column
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.machines.forecasts.waiting_times import pace_of
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.graph.ages import NEVER
from patternlake.udfs.machines.graph.liveness import FIRST, NOW, CompletionPath
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.request import Question
from patternlake.udfs.partitions import number_partitions

COLUMNS = ("part", "state_id", "operands", "times", "joins")
RANK_COLUMNS = ("first_rank", "taken")
"""Read as well where a window of events bounds it: of the root's rows, too, which say how many events a partition has
taken."""
PARTITION_COLUMNS = (*RANK_COLUMNS, "last_time", "first_time")
"""Read as well where deadlines or waits matter to forecasts: of the root's rows, too."""
STANDING = ("left", "events", "closed", "quiet", "pace")
"""What `standing` says of instances."""

_MISSING = np.iinfo(np.int64).max
"""Stands for the time of an operand that is not bound."""
_FAR = _MISSING // 2
_LONG_AGO = -_FAR
"""Before any moment, those before 1970 among them."""
_NULL = -1


def rows_read(question: Question, *, timed: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """More columns, and ids of more states, than rows of an answer are made of, whose rows `standing_rows` takes.

    Parameters
    ----------
    question
        What is asked.
    timed
        It looks ahead in time.
    """
    graph = question.group.compiled.graph
    asked = timed or any(graph.timed)
    return (PARTITION_COLUMNS, (graph.ids[0],)) if asked else ((), ())


def standing_rows(question: Question, instances: Mapping[str, pa.Array], now: int | None) -> dict[str, pa.Array]:
    """The rows of `completable` instances, with the columns `STANDING` where `rows_read` has more columns.

    Parameters
    ----------
    question
        What is asked.
    instances
        As of `completable`, with the columns of `rows_read`.
    now
        The watermark; None: there was none, so that all are there as the last event of their partition left them.
    """
    group, types = question.group, question.types
    found = dict(instances)
    if "first_time" in instances:
        found |= standing(group, types, instances, now)
    if now is None:
        return found
    kept = pa.array(completable(group, types, instances, now))
    return {name: column.filter(kept) for name, column in found.items()}


def standing(
    group: Group, types: Mapping[str, str], instances: Mapping[str, pa.Array], now: int | None
) -> dict[str, pa.Array]:
    """What was left of deadlines after the last event of partitions, and how long these have been quiet at a moment.

    Parameters
    ----------
    group, types, instances, now
        As of `standing_rows`; the instances have `PARTITION_COLUMNS`.

    Returns
    -------
    `STANDING`, int64[n] each: microseconds and events until nothing completes an instance any more (`NEVER`: there is
    no such deadline), microseconds until the last lower bound is reached, and since the last event of the partition;
    the pace of that.
    """
    part, shown = number_partitions(instances["part"])
    root = pc.is_valid(instances["taken"])
    of_root = part[root.to_numpy(zero_copy_only=False)]
    last, began, taken = (np.zeros(len(shown), np.int64) for _ in range(3))
    for name, values in (("last_time", last), ("first_time", began), ("taken", taken)):
        # NULL where an older PatternLake wrote the row.
        known = instances[name].filter(root).cast(pa.int64()).fill_null(0)
        values[of_root] = known.to_numpy(zero_copy_only=False)
    at = last[part] if now is None else np.full(len(part), now, np.int64)
    _, ends, events = _paths(group, types, instances, at)
    # What is left is told as it was after the last event: there the slots of grids begin.
    since = last[part]
    left = np.where(ends == _MISSING, NEVER, np.maximum(0, ends - since))
    found = {
        "left": left,
        "events": np.where(events == _MISSING, NEVER, np.maximum(0, events + 1)),
        "closed": np.maximum(0, _opens(group, instances) - since),
        "quiet": np.maximum(0, at - since),
        "pace": pace_of(last - began, taken)[part],
    }
    return {name: pa.array(values) for name, values in found.items()}


def bounded_by_now(group: Group) -> bool:
    """Whether time alone can end partial matches of a group's subscription, its only one."""
    return any(map(_has_now, group.compiled.graph.completion_paths))


def completable(group: Group, types: Mapping[str, str], instances: Mapping[str, pa.Array], now: int) -> BoolArray:
    """bool[n]: the instances that events from a moment on can complete; True of rows that are no instances.

    Parameters
    ----------
    group
        Of the one subscription.
    types
        Spark type of each of the stream's attributes.
    instances
        `COLUMNS` of n rows, all of a partition; of a window of events, `RANK_COLUMNS` and the root's rows as well.
    now
        Microseconds since the epoch; no event that was taken is later.
    """
    count = len(instances["state_id"])
    if not count or not bounded_by_now(group):
        return np.ones(count, np.bool_)
    return _paths(group, types, instances, np.full(count, now, np.int64))[0]


def _paths(
    group: Group, types: Mapping[str, str], instances: Mapping[str, pa.Array], at: IntArray
) -> tuple[BoolArray, IntArray, IntArray]:
    """By instance: whether a completion path holds at its moment, and until when and for how many events one does.

    `_MISSING` stands for ever; so it does of rows that are no instances, and of events where they are not read.
    """
    count = len(instances["state_id"])
    found = np.ones(count, np.bool_)
    ends, events = (np.full(count, _MISSING, np.int64) for _ in range(2))
    graph, within = group.compiled.graph, group.compiled.subscriptions[0].within
    times = _times(instances, len(group.compiled.subscriptions[0].primitives), at)
    values = _joined_values(group, types, instances)
    counted = within is not None and within.counted and "taken" in instances
    left = _events_left(group, instances) if counted else None
    paths_of = dict(zip(graph.ids, graph.completion_paths, strict=True))
    states = instances["state_id"].dictionary_encode()
    state = states.indices.to_numpy(zero_copy_only=False)
    for number, state_id in enumerate(states.dictionary.to_pylist()):
        paths = paths_of.get(state_id, ())
        if state_id == graph.ids[0] or (left is None and not _has_now(paths)):
            continue
        mine = np.flatnonzero(state == number)
        alive = np.zeros(len(mine), np.bool_)
        until, more = np.full(len(mine), _LONG_AGO), np.full(len(mine), -1, np.int64)
        for path in paths:
            holds = _in_time(path, {one: each[mine] for one, each in times.items()})
            holds &= _agreeing(path, {one: each[mine] for one, each in values.items()}, len(mine))
            events_left = np.full(len(mine), _MISSING) if left is None else left[mine] - path.missing
            holds &= events_left >= 0
            alive |= holds
            last = np.full(len(mine), _MISSING)
            for one, other, most in path.bounds:
                if one == NOW:
                    earlier = times[other][mine]
                    last = np.where(earlier == _MISSING, last, np.minimum(last, np.minimum(earlier, _FAR) + most))
            until = np.where(holds, np.maximum(until, last), until)
            more = np.where(holds, np.maximum(more, events_left), more)
        found[mine], ends[mine], events[mine] = alive, until, more
    return found, ends, events


def _opens(group: Group, instances: Mapping[str, pa.Array]) -> IntArray:
    """int64[n]: when the last lower bound on what comes after operands of an instance is reached; long ago: there is
    none.
    """
    graph = group.compiled.graph
    count = len(instances["state_id"])
    times = _times(instances, len(group.compiled.subscriptions[0].primitives), np.zeros(count, np.int64))
    found = np.full(count, _LONG_AGO)
    opens_of = dict(zip(graph.ids, graph.opens, strict=True))
    states = instances["state_id"].dictionary_encode()
    state = states.indices.to_numpy(zero_copy_only=False)
    for number, state_id in enumerate(states.dictionary.to_pylist()):
        mine = np.flatnonzero(state == number)
        for operand, low in opens_of.get(state_id, ()):
            time = times[operand][mine]
            found[mine] = np.where(time == _MISSING, found[mine], np.maximum(found[mine], np.minimum(time, _FAR) + low))
    return found


def _has_now(paths: Iterable[CompletionPath]) -> bool:
    return any(one == NOW for path in paths for one, _, _ in path.bounds)


def _times(instances: Mapping[str, pa.Array], width: int, at: IntArray) -> dict[int, IntArray]:
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
    return {**found, FIRST: time.min(axis=1), NOW: at}


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
        if column not in group.compiled.columns:  # Predicates may not know its type.
            continue
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
    part, shown = number_partitions(instances["part"])
    taken = np.zeros(len(shown), np.int64)
    root = pc.is_valid(instances["taken"]).to_numpy(zero_copy_only=False)
    taken[part[root]] = instances["taken"].filter(pa.array(root)).to_numpy(zero_copy_only=False)
    first = instances["first_rank"].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    last = first + within.amount - 1
    return np.asarray(last - (taken[part] - 1), np.int64)
