"""Which positions must be read back so that the answer on events is exact.

Source: SPEC section 2 (verify). A node is a candidate if an event of it can take part in a chain through the whole
pattern: operands before it can lie in it or in earlier nodes, operands behind it in it or in later nodes (several
operands may share a node: pairs inside one leaf are included), and the least span of such a chain is inside the window.
For a ``,`` run, and under ``strict``, the chain moves from a node only to itself or to an adjacent one. Nodes with
negated names are candidates wherever such a chain can pass over them.

Why the events of these nodes suffice: every event of a true match lies in one. What is left out cannot make a false
match: where a full scan takes an event that is left out, nothing behind it completes the pattern in time, so whatever
the search takes instead, which lies behind that event, doesn't complete it either. Times that run backwards are
covered by using the least time from a node on, and the greatest up to it.

Of a pattern that another engine matches, a node is a candidate if, for each kind of event that every match has, one
may lie as near to it in time as the window reaches. So near lies whatever is in a match, ends what it collects, or
denies it. And whatever would change a match that is found lies as near to all of its events, and is read with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.policies import check_arguments
from patternlake.udfs.sketch.kernels.hits import Hits
from patternlake.udfs.sketch.kernels.search import blocks_of_states, least_after
from patternlake.udfs.sketch.lent import LentPattern
from patternlake.udfs.sketch.query import Alternative, Layout, SketchPattern, Slot
from patternlake.udfs.sketch.windows import Window
from patternlake.udfs.subkernels import subkernel


@dataclass(frozen=True)
class Candidates:
    """What to read back.

    Attributes
    ----------
    ranges
        int64[r, 2]: position ranges, ends inclusive, ascending, apart from each other; None: the whole stream.
    every_event
        True: all events of the ranges (of a partition or key: all of its events) are needed; False: those suffice that
        have one of ``SketchPattern.names`` among their tokens.
    """

    ranges: IntArray | None
    every_event: bool


def needs_every_event(pattern: SketchPattern, policy: str, *, partitioned: bool) -> bool:
    """True where events other than those of the pattern's names must be read as well.

    In one stream positions tell which events are neighbours and how far apart they are. In a partition only its own
    events can tell. A primitive that any event may be needs them all.
    """
    if pattern.lent is not None:
        # In the order of time positions tell no neighbours.
        return pattern.lent.ranked or policy == "strict" or _any_event(pattern, pattern.slots[0])
    alternatives = [c for slot in pattern.slots for c in slot.alternatives] + [c for gap in pattern.gaps for c in gap]
    if any(pattern.names_of(choice) is None for choice in alternatives):
        return True
    return partitioned and (pattern.contiguous(policy) or pattern.counted)


def candidate_ranges(
    pattern: SketchPattern,
    hits: Hits,
    *,
    policy: str = "skip_till_next",
    partitioned: bool = False,
    window: Window | None = None,
) -> Candidates:
    """Position ranges whose events give the same answer as all events do.

    Parameters
    ----------
    pattern
        Compiled with verify.
    hits
        Nodes of the stream, or of the key that is asked for, sorted by position.
    policy
        As for `exact.match_events`.
    partitioned
        True where the events are matched per partition: a question with ``key`` or PARTITION BY.
    window
        Bounds of the question; ranges are cut to its positions.

    Returns
    -------
    Candidates
        ``ranges`` is None where a primitive may hold for any event and stands first or last, or no filter was asked.
    """
    check_arguments(policy, "next", 1)
    every = needs_every_event(pattern, policy, partitioned=partitioned)
    if window is not None:
        if window.empty:
            return Candidates(np.empty((0, 2), np.int64), every)
        hits = hits.take(window.of_intervals(hits.pos_lo, hits.pos_hi, hits.time_lo, hits.time_hi))
    if pattern.lent is not None:
        return Candidates(None if every else _clipped(_near_every_kind(pattern, pattern.lent, hits), window), every)
    first, last = pattern.slots[: pattern.blocks[1]], pattern.slots[pattern.blocks[-2] : pattern.blocks[-1]]
    if any(_any_event(pattern, slot) for slot in (*first, *last)):
        return Candidates(None if window is None else _whole(window), True)
    # With events that no filter knows of in between, or neighbours that are not the stream's, nodes tell only order.
    layout = pattern.layout(policy if not every else "skip_till_any")
    slots = np.stack([_held(pattern, hits, slot.alternatives) for slot in pattern.slots], axis=1)
    gaps = np.zeros((len(hits), max(1, len(layout.term) - 2)), np.bool_)
    if policy != "strict":
        for place, gap in enumerate(pattern.gaps):
            gaps[:, place] = _held(pattern, hits, gap)
    within = np.int64(-1)
    if pattern.within is not None and not (partitioned and pattern.counted):
        within = np.int64(pattern.within.amount)
    lo, hi = (hits.pos_lo, hits.pos_hi) if pattern.counted else _monotone(hits)
    linked = not every
    kept, until = _kept(
        layout,
        np.ascontiguousarray(slots),
        np.ascontiguousarray(gaps),
        np.ascontiguousarray(hits.pos_lo, np.int64),
        np.ascontiguousarray(hits.pos_hi, np.int64),
        np.ascontiguousarray(lo, np.int64),
        np.ascontiguousarray(hi, np.int64),
        within,
        linked,
    )
    nodes = np.flatnonzero(kept)
    if every:
        starts = np.flatnonzero(until >= 0)
        ranges = _merged(hits.pos_lo[starts], hits.pos_hi[until[starts]])
    else:
        ranges = _merged(hits.pos_lo[nodes], hits.pos_hi[nodes])
    return Candidates(_clipped(ranges, window), every)


def _any_event(pattern: SketchPattern, slot: Slot) -> bool:
    """Whether any event may fill a slot."""
    return any(pattern.names_of(choice) is None for choice in slot.alternatives)


def _near_every_kind(pattern: SketchPattern, lent: LentPattern, hits: Hits) -> IntArray:
    """int64[r, 2]: the positions of the nodes near which each kind of event that every match has may lie."""
    kinds = [_held(pattern, hits, slot.alternatives) for slot in pattern.slots[1:]]
    near = np.full(len(hits), all(kind.any() for kind in kinds))
    reach = lent.reach
    for kind in kinds if near.any() else ():
        if reach is None:
            break
        order = np.argsort(hits.time_lo[kind], kind="stable")
        begins, ends = hits.time_lo[kind][order], np.maximum.accumulate(hits.time_hi[kind][order])
        # Of the nodes of the kind that begin in reach, the one that ends last.
        before = np.searchsorted(begins, hits.time_hi + reach, "right")
        near &= (before > 0) & (ends[before - 1] >= hits.time_lo - reach)
    return _merged(hits.pos_lo[near], hits.pos_hi[near])


def _held(pattern: SketchPattern, hits: Hits, choices: tuple[Alternative, ...]) -> BoolArray:
    """The nodes that may hold an event of one of the alternatives; all of them for one that any event may be."""
    result = np.zeros(len(hits), np.bool_)
    for choice in choices:
        names = pattern.names_of(choice)
        if names is None:
            result[:] = True
            continue
        for name in names:
            result |= hits.present[:, pattern.names.index(name)]
    return result


def _monotone(hits: Hits) -> tuple[IntArray, IntArray]:
    """The least time from each node on, and the greatest up to it."""
    if not len(hits):
        return hits.time_lo, hits.time_hi
    offsets = np.array([0, len(hits)], np.int64)
    return least_after(np.ascontiguousarray(hits.time_lo, np.int64), offsets), np.maximum.accumulate(hits.time_hi)


@njit(cache=True)
def _kept(
    layout: Layout,
    slots: BoolArray,
    gaps: BoolArray,
    pos_lo: IntArray,
    pos_hi: IntArray,
    span_lo: IntArray,
    span_hi: IntArray,
    within: np.int64,
    linked: bool,
) -> tuple[BoolArray, IntArray]:
    """Nodes on a chain inside the window; and for those that may start one, the last node that it may need (else -1).

    A chain is described by states (see `Layout`). For each node and state: the latest node at which a chain can have
    started that is in that state by then, and the earliest node at which one can end that is in that state from there.
    ``at`` means with its last event in the node itself, otherwise at or before (behind) it.
    """
    n, states = len(pos_lo), layout.state[-1]
    block_of = blocks_of_states(layout)
    adjacent = np.zeros(states + 1, np.bool_)
    gap_of = np.full(states + 1, -1, np.int64)
    for term in range(len(layout.term) - 1):
        block, after = layout.term[term], layout.term[term + 1]
        if linked and layout.run[term]:
            adjacent[layout.state[block] + 1 : layout.state[after]] = True
        if term:
            gap_of[layout.state[block]] = term - 1
    started_at = np.full((n, states + 1), -1, np.int64)
    started = np.full((n, states + 1), -1, np.int64)
    for node in range(n):
        for state in range(states):
            if state == 0:
                source = node
            elif adjacent[state]:
                source = started_at[node, state]
                if node and pos_hi[node - 1] + 1 == pos_lo[node]:
                    source = max(source, started_at[node - 1, state])
            else:
                source = max(started_at[node, state], started[node - 1, state] if node else -1)
                started[node, state] = source
            if source < 0:
                continue
            base = layout.block[block_of[state]]
            mask = state - layout.state[block_of[state]]
            for slot in range(base, layout.block[block_of[state] + 1]):
                bit = 1 << (slot - base)
                if not mask & bit and slots[node, slot]:
                    started_at[node, state + bit] = max(started_at[node, state + bit], source)
    # ends[node, state]: the earliest end from `state`, when its last event lies in `node`.
    ends = np.full((n, states + 1), n, np.int64)
    # onward[node, state]: the same when the next event is taken in `node` or (states that may skip) behind it.
    onward = np.full((n, states + 1), n, np.int64)
    kept = np.zeros(n, np.bool_)
    until = np.full(n, -1, np.int64)
    for node in range(n - 1, -1, -1):
        ends[node, states] = node
        for state in range(states - 1, -1, -1):
            base = layout.block[block_of[state]]
            mask = state - layout.state[block_of[state]]
            here = n
            for slot in range(base, layout.block[block_of[state] + 1]):
                bit = 1 << (slot - base)
                if not mask & bit and slots[node, slot]:
                    here = min(here, ends[node, state + bit])
            if not adjacent[state] and node + 1 < n:
                here = min(here, onward[node + 1, state])
            onward[node, state] = here
            later = here
            if adjacent[state] and node + 1 < n and pos_hi[node] + 1 == pos_lo[node + 1]:
                later = min(later, onward[node + 1, state])
            ends[node, state] = later
    last_kept = -1
    for node in range(n):
        for state in range(states):
            if state == 0:
                source = node
            elif adjacent[state]:
                source = started_at[node, state]
                if node and pos_hi[node - 1] + 1 == pos_lo[node]:
                    source = max(source, started_at[node - 1, state])
            else:
                source = started[node, state]
            if source < 0:
                continue
            base = layout.block[block_of[state]]
            mask = state - layout.state[block_of[state]]
            for slot in range(base, layout.block[block_of[state] + 1]):
                bit = 1 << (slot - base)
                if not mask & bit and slots[node, slot]:
                    kept[node] |= _inside(source, ends[node, state + bit], n, span_lo, span_hi, within)
            column = gap_of[state]
            if column >= 0 and gaps[node, column]:
                kept[node] |= _inside(source, onward[node, state], n, span_lo, span_hi, within)
        if kept[node]:
            last_kept = node
    stop = 0
    for node in range(last_kept + 1):
        stop = max(stop, node)
        while stop < last_kept and (within < 0 or span_lo[stop + 1] - span_hi[node] < within):
            stop += 1
        for slot in range(layout.block[1]):
            if slots[node, slot] and _inside(node, ends[node, 1 << slot], n, span_lo, span_hi, within):
                until[node] = stop
    return kept, until


@subkernel
def _inside(first: int, last: int, n: int, span_lo: IntArray, span_hi: IntArray, within: np.int64) -> bool:
    """True where there is a chain, and its least span is inside the window."""
    return bool(last < n and (within < 0 or span_lo[last] - span_hi[first] < within))


def _merged(low: IntArray, high: IntArray) -> IntArray:
    """Ranges in ascending order of their starts, joined where they touch: int64[r, 2]."""
    if not len(low):
        return np.empty((0, 2), np.int64)
    reach = np.maximum.accumulate(high)
    begins = np.concatenate([[True], low[1:] > reach[:-1] + 1])
    last = np.concatenate([np.flatnonzero(begins)[1:] - 1, [len(low) - 1]])
    return np.stack([low[begins], reach[last]], axis=1).astype(np.int64)


def _clipped(ranges: IntArray, window: Window | None) -> IntArray:
    """Ranges cut to the positions of a window."""
    if window is None:
        return ranges
    cut = ranges.copy()
    if window.from_position is not None:
        cut[:, 0] = np.maximum(cut[:, 0], window.from_position)
    if window.to_position is not None:
        cut[:, 1] = np.minimum(cut[:, 1], window.to_position)
    return cut[cut[:, 0] <= cut[:, 1]]


def _whole(window: Window) -> IntArray | None:
    """The positions of a window, where it has both bounds."""
    if window.from_position is None or window.to_position is None:
        return None
    return np.array([[window.from_position, window.to_position]], np.int64)
