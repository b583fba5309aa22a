"""Rows of the answers of `match_funnel` and `match_funnel_rows`, from the chains of partitions.

A portion knows its own partitions alone. What it adds to a funnel is counts, which add up, and the times between steps
as they are: percentiles are exact, so all of them come together before one is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.funnels.events import FunnelEvents
from patternlake.udfs.funnels.kernels.chains import Chains
from patternlake.udfs.funnels.request import FunnelRequest
from patternlake.udfs.partitions import number_values
from patternlake.udfs.slots import lists_by_slot, numbers_with_slots, percentiles

_MOMENT = pa.timestamp("us", "UTC")
_SECOND = 1_000_000
NEXT_EVENTS = pa.list_(pa.struct([("name", pa.string()), ("partitions", pa.int64())]))

ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("reached", pa.int32()),
        ("positions", pa.list_(pa.int64())),
        ("first_time", _MOMENT),
        ("last_time", _MOMENT),
        ("waited_seconds", pa.float64()),
        ("next_position", pa.int64()),
        ("next_name", pa.string()),
        ("final", pa.bool_()),
    ]
)
"""One row for each partition, by what is shown of it."""

PARTS = pa.schema(
    [
        ("group", pa.string()),
        ("step", pa.int32()),
        ("reached", pa.int64()),
        ("gaps", pa.list_(pa.int64())),
        ("next_names", pa.list_(pa.string())),
        ("next_counts", pa.list_(pa.int64())),
    ]
)
"""What a portion adds: for each group and step that was reached the microseconds from the step before, and of those who
got no further, which names came next how often."""

FUNNEL = pa.schema(
    [
        ("group", pa.string()),
        ("step", pa.int32()),
        ("operand", pa.string()),
        ("reached", pa.int64()),
        ("share_of_first", pa.float64()),
        ("share_of_previous", pa.float64()),
        ("dropped", pa.int64()),
        ("seconds_p50", pa.float64()),
        ("seconds_p90", pa.float64()),
        ("next_events", NEXT_EVENTS),
    ]
)
"""One row for each group and step, NULL first; without groups, one for each step."""


def answer_rows(request: FunnelRequest, events: FunnelEvents, chains: Chains) -> pa.Table:
    """Chains as rows of `ROWS`.

    Parameters
    ----------
    request
        The request.
    events, chains
        Events of p partitions, and the chain of each.
    """
    reached, entered = chains.reached, chains.reached > 0
    first, last = _ends(chains)
    complete = entered & (reached == len(request.query.steps))
    closing, closes = _closing(request, events, first, entered)
    ends, waits = closing, closes
    if request.until is not None:
        ends = np.where(closes, np.minimum(closing, request.until), request.until)
        waits = entered
    waited = np.maximum(ends - events.times(last), 0) / _SECOND if len(events) else np.zeros(len(reached))
    final = np.zeros(len(reached), np.bool_)
    if request.watermark is not None and len(events):
        settled = events.times(last) <= request.watermark
        final = np.where(complete, settled, closes & (closing <= request.watermark))
    names, followed = _next_names(events, last, entered)
    columns = [
        pa.array(events.shown, pa.string()),
        pa.array(reached.astype(np.int32)),
        pa.ListArray.from_arrays(pa.array(chains.offsets.astype(np.int32)), pa.array(events.positions(chains.rows))),
        _take(events.times, first, entered).cast(_MOMENT),
        _take(events.times, last, entered).cast(_MOMENT),
        pa.array(waited, mask=~waits | complete),
        _take(events.positions, last + 1, followed),
        pa.array(events.vocabulary, pa.string()).take(pa.array(names, mask=names < 0)),
        pa.array(final),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _ends(chains: Chains) -> tuple[IntArray, IntArray]:
    """int64[p] twice: the first and the last event of each chain; of none, the event 0."""
    if not len(chains.rows):
        return np.zeros(len(chains.reached), np.int64), np.zeros(len(chains.reached), np.int64)
    entered = chains.reached > 0
    first = np.where(entered, chains.offsets[:-1], 0)
    last = np.where(entered, chains.offsets[1:] - 1, 0)
    return chains.rows[first], chains.rows[last]


def _closing(
    request: FunnelRequest, events: FunnelEvents, first: IntArray, entered: BoolArray
) -> tuple[IntArray, BoolArray]:
    """The moment from which each chain takes no more events, and whether there is one."""
    within = request.query.within
    if within is None or not len(events):
        return np.zeros(len(first), np.int64), np.zeros(len(first), np.bool_)
    if not within.counted:
        return events.times(first) + within.amount, entered
    # The last event of the window, where it has come.
    behind = first + within.amount
    closes = entered & (behind <= events.offsets[1:])
    return events.times(np.where(closes, behind - 1, 0)), closes


def _next_names(events: FunnelEvents, last: IntArray, entered: BoolArray) -> tuple[IntArray, BoolArray]:
    """Code of the name of the event behind each chain, -1 where there is none, and whether there is one."""
    followed = entered & (last + 1 < events.offsets[1:])
    names = np.full(len(last), -1, np.int64)
    names[followed] = events.names(last[followed] + 1)
    return names, followed


def _take(of: Callable[[IntArray], IntArray], events: IntArray, known: BoolArray) -> pa.Array:
    """What is told of some events; NULL where none is known."""
    found = np.zeros(len(events), np.int64)
    found[known] = of(events[known])
    return pa.array(found, mask=~known)


def parts_of(request: FunnelRequest, events: FunnelEvents, chains: Chains, groups: pa.Array) -> pa.Table:
    """What chains add to a funnel, as rows of `PARTS`.

    Parameters
    ----------
    request, events, chains
        As of `answer_rows`.
    groups
        string[p]: the group of each partition that entered.
    """
    steps = len(request.query.steps)
    group, shown = number_values(groups)
    slots = len(shown) * steps  # one for each group and step
    owner = np.repeat(np.arange(len(chains.reached)), chains.reached)
    step = np.arange(len(chains.rows)) - chains.offsets[owner]
    slot = group[owner] * steps + step
    reached = np.bincount(slot, minlength=slots)
    later = np.flatnonzero(step > 0)
    gaps = events.times(chains.rows[later]) - events.times(chains.rows[later - 1])
    _, last = _ends(chains)
    entered = chains.reached > 0
    names, _ = _next_names(events, last, entered)
    dropped = entered & (chains.reached < steps)
    words = len(events.vocabulary) + 1
    pairs, times = np.unique(
        (group[dropped] * steps + chains.reached[dropped] - 1) * words + names[dropped] + 1, return_counts=True
    )
    name = pairs % words - 1
    kept = pa.array(np.flatnonzero(reached))
    columns = [
        pa.array(shown, pa.string()).take(pa.array(np.repeat(np.arange(len(shown)), steps))),
        pa.array(np.tile(np.arange(1, steps + 1, dtype=np.int32), len(shown))),
        pa.array(reached.astype(np.int64)),
        lists_by_slot(slot[later], slots, pa.array(gaps)),
        lists_by_slot(
            pairs // words, slots, pa.array(events.vocabulary, pa.string()).take(pa.array(name, mask=name < 0))
        ),
        lists_by_slot(pairs // words, slots, pa.array(times.astype(np.int64))),
    ]
    return pa.Table.from_arrays([column.take(kept) for column in columns], schema=PARTS)


def merge(request: FunnelRequest, parts: pa.Table) -> pa.Table:
    """The funnel of all portions.

    Parameters
    ----------
    request
        The request.
    parts
        Rows of `PARTS`, of any number of portions and in any order.

    Returns
    -------
    Rows of `FUNNEL`.
    """
    steps = len(request.query.steps)
    groups = parts["group"].combine_chunks()
    group, shown = number_values(groups)
    if request.by is None:
        group, shown = np.zeros(parts.num_rows, np.int64), [None]
    count = len(shown) * steps
    slot = group * steps + parts["step"].to_numpy() - 1
    reached = np.zeros(count, np.int64)
    np.add.at(reached, slot, parts["reached"].to_numpy())
    by_step = reached.reshape(len(shown), steps)
    first = np.repeat(by_step[:, :1], steps, axis=1).ravel()
    before, behind = np.zeros_like(by_step), np.zeros_like(by_step)
    before[:, 1:], behind[:, :-1] = by_step[:, :-1], by_step[:, 1:]
    # Whoever reaches the last step has dropped out nowhere.
    dropped = by_step - behind
    dropped[:, -1] = 0
    gaps, owner = numbers_with_slots(parts["gaps"].combine_chunks(), slot)
    columns = [
        pa.array(shown, pa.string()).take(pa.array(np.repeat(np.arange(len(shown)), steps))),
        pa.array(np.tile(np.arange(1, steps + 1, dtype=np.int32), len(shown))),
        pa.array([step.operand for step in request.query.steps] * len(shown), pa.string()),
        pa.array(reached),
        _shares(reached, first),
        _shares(reached, before.ravel()),
        pa.array(dropped.ravel()),
        *percentiles(gaps, owner, count, 5, 9),
        _next_events(request, parts, slot, count),
    ]
    return pa.Table.from_arrays(columns, schema=FUNNEL)


def _shares(part: IntArray, whole: IntArray) -> pa.Array:
    """Parts of wholes; NULL of nothing."""
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _next_events(request: FunnelRequest, parts: pa.Table, slot: IntArray, count: int) -> pa.ListArray:
    """The names that came next, the most frequent first, those of equal counts by name, NULL behind."""
    counts, owner = numbers_with_slots(parts["next_counts"].combine_chunks(), slot)
    code, words = number_values(parts["next_names"].combine_chunks().flatten())
    pairs, at = np.unique(owner * max(len(words), 1) + code, return_inverse=True)
    partitions = np.zeros(len(pairs), np.int64)
    np.add.at(partitions, at, counts)
    owner, code = np.divmod(pairs, max(len(words), 1))
    # Numbers of names ascend with the names, but for NULL, which is the first of them.
    rank = np.where(code == 0, len(words), code) if words[:1] == [None] else code
    order = np.lexsort((rank, -partitions, owner))
    owner, code, partitions = owner[order], code[order], partitions[order]
    begins = np.searchsorted(owner, np.arange(count))
    kept = np.flatnonzero(np.arange(len(owner)) - begins[owner] < request.next_events)
    ends = np.cumsum(np.bincount(owner[kept], minlength=count))
    structs = pa.StructArray.from_arrays(
        [pa.array(words, pa.string()).take(pa.array(code[kept])), pa.array(partitions[kept])],
        fields=list(NEXT_EVENTS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(np.append(0, ends).astype(np.int32)), structs, type=NEXT_EVENTS)
