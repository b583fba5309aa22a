"""The memory in which the kernels run: instances, groups of them, heaps of when they may die, counts, what was found.

Arrays have a capacity; a kernel that finds one too small stops before an event and says which, so that Python makes
larger ones and it goes on from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.machines.kernels.hashing import MOST, mixed
from patternlake.udfs.machines.kernels.layout import side_by_side
from patternlake.udfs.machines.kernels.tables import BoolArray, Compiled, IntArray

FloatArray = NDArray[np.float64]

NONE = -1

(TOP, FREE, FRESH, PENDING, GROUP_TOP, GROUP_FREE, NONWAITING_GROUPS, EMPTIED, TIMED, RANKED, SERIAL, FIRED, ENDED,
 FOUND, TRACED, TRACING, BORN, ROOTS, DISCARDED, MOVED, TALLIED, LIVE, SINCE, OFFSET, CLOCK) = range(25)  # fmt: skip
"""Indices into `Workspace.n`: how many of each array are in use, serial numbers, whether a trace is kept; of instances
that count moves of their own how many there are, and the sum of `since`; rank less number of an event; the event from
which on new instances count."""

DONE, MORE_INSTANCES, MORE_GROUPS, MORE_FOUND, MORE_FIRED, MORE_TRACE, MORE_EXPIRY_HEAPS, MORE_TALLY = range(8)
"""What a kernel says when it stops."""

ADVANCED, BY_COUNTER = range(2)
"""Columns of `Workspace.group_marks`."""

EDGE, COMPLETED, BEGUN, ENDED_AT, FELL, LOOKED_AT = range(6)
"""Kinds of rows of a trace."""

TALLY = 1 << 10
"""Capacity of the tally to begin with."""
MOST_SETS = 64
"""Sets of join variables that are remembered of a counted state; groups of a counted state with more are looked through
one by one.
"""


class Workspace(NamedTuple):
    """N instances of states, O operands, V join variables, G groups, Q counted states.

    Attributes
    ----------
    n
        int64: see above.
    state, mask, first_time, first_rank, due_time, due_rank, serial, digest, previous, following
        int64[N]: state of the graph (`NONE`: not in use); operands that are bound, as bits; time and rank of the first
        event; when a new look at the completion paths is due; number of the instance; hash, or `NONE` of one that came
        when its state had none; neighbours in the state's list.
    joins
        int64[N, V]: codes of values, `NONE` where a variable is not bound.
    time, position
        int64[N, O] of the events that are bound.
    group
        int64[N, R]: the group for each role of the state.
    free, fresh, kept, parent, pending, discarded
        int64[N]: instances not in use; those that the current event made, what stands for them, and what of they are
        made; those that last for one event;
        those of them that the current event found.
    discarded_state
        int64[N]: their states.
    ends_time, ends_rank
        int64[N]: when no completion path is left.
    opens, age, since
        int64[N]: when lower bounds are reached, the age after the events before `since`, up to which moves are counted.
    source, source_serial
        int64[N]: of what lasts for one event the waiting instance that it is a copy of, and its serial.
    moved_serial, moved_row
        int64[N]: the last event that followed a rival link, and its row of `moved`.
    fell_state, fell_age
        int64[N]: of what was discarded what it went back to.
    table, head
        Hash table of instances that have a hash; first instance of each state.
    open
        bool[K]: links whose source holds instances. An event looks at all links of its primitives, which lie side by
        side; their sources don't.
    occupied
        bool[Q]: counted states with groups, of which discarded copies look at many.
    follows
        int64[K]: open links that an event follows.
    best, ended
        int64[S]: the smallest assignment that completes a final state at this event; such states.
    group_counted_state, group_held, group_hash, group_end, group_nonwaiting_at
        int64[G]: counted state, how many instances hold it, hash, what becomes of discarded copies at the current
        event, and its index in `nonwaiting_groups`.
    group_marks
        int64[G, 2]: the last event at which a group advanced (`ADVANCED`), and by which advance counter (`BY_COUNTER`).
    group_since
        float64[G]: weight of the events before it was occupied.
    group_joins
        int64[G, V].
    group_free, group_table, nonwaiting_groups, emptied
        Groups not in use; hash table; groups in counted states that don't wait; groups that nobody holds any more.
    sets, set_count
        int64[Q, ·]: which variables groups of a counted state bind.
    counted_state_first, counted_state_others
        int64[Q]: the group of a counted state that came when there was no other, or `NONE`, and how many there are
        beside it. What the empty assignment holds always is the first group of its counted state.
    timed, ranked
        int64[·, 3]: heaps of (when, instance, serial).
    fired
        int64[·, 3]: (group, advance counter, link) of the advances of the current event.
    moved
        int64[·, 4]: (instance, link, age that what comes of it has, age of the instance before) of those that count
        moves of their own.
    tally_keys, tally_weight
        int64[·, 2], float64[·]: hash table of the moves that instances counted, see `counting`.
    visits, advanced, left, fired_left
        float64 counts: events at which a counted state was occupied; advances of each advance counter; ends of counted
        states that don't wait, and those of them that an advance counter's advances are among.
    found, found_time, found_position
        int64[·, 3], int64[·, O], int64[·, O]: (event, state, mask) of matches, with their events.
    trace
        int64[·, 8]: (kind, serial, event, other, state): who descends from whom. An `EDGE` leads to the instance
        `other`, a `COMPLETED` to the end; an instance that is `BEGUN` has as `other` a hash of the row that it belongs
        to, and one that `FELL` a hash of the row that its discarded copy goes on as. One that ended, and one of which
        new deadlines were found (`LOOKED_AT`), has `ends_time`, `ends_rank` and `opens` as they were before the event.
    """

    n: IntArray
    state: IntArray
    mask: IntArray
    first_time: IntArray
    first_rank: IntArray
    due_time: IntArray
    due_rank: IntArray
    serial: IntArray
    digest: IntArray
    previous: IntArray
    following: IntArray
    joins: IntArray
    time: IntArray
    position: IntArray
    group: IntArray
    ends_time: IntArray
    ends_rank: IntArray
    opens: IntArray
    age: IntArray
    since: IntArray
    source: IntArray
    source_serial: IntArray
    moved_serial: IntArray
    moved_row: IntArray
    fell_state: IntArray
    fell_age: IntArray
    free: IntArray
    fresh: IntArray
    kept: IntArray
    parent: IntArray
    pending: IntArray
    discarded: IntArray
    discarded_state: IntArray
    table: IntArray
    head: IntArray
    open: BoolArray
    occupied: BoolArray
    follows: IntArray
    best: IntArray
    ended: IntArray
    group_counted_state: IntArray
    group_held: IntArray
    group_hash: IntArray
    group_marks: IntArray
    group_end: IntArray
    group_nonwaiting_at: IntArray
    group_since: FloatArray
    group_joins: IntArray
    group_free: IntArray
    group_table: IntArray
    nonwaiting_groups: IntArray
    emptied: IntArray
    sets: IntArray
    set_count: IntArray
    counted_state_first: IntArray
    counted_state_others: IntArray
    timed: IntArray
    ranked: IntArray
    fired: IntArray
    moved: IntArray
    tally_keys: IntArray
    tally_weight: FloatArray
    visits: FloatArray
    advanced: FloatArray
    left: FloatArray
    fired_left: FloatArray
    found: IntArray
    found_time: IntArray
    found_position: IntArray
    trace: IntArray


_INSTANCES = (
    "state", "mask", "previous", "following", "parent", "serial", "digest", "first_time", "first_rank", "due_time",
    "due_rank", "joins", "group", "time", "position",
)  # fmt: skip
_COUNTED = (
    "ends_time", "ends_rank", "opens", "age", "since", "source", "source_serial", "moved_serial", "moved_row",
    "fell_state", "fell_age",
)  # fmt: skip
_GROUPS = (
    "group_counted_state", "group_held", "group_hash", "group_marks", "group_end", "group_nonwaiting_at",
    "group_since", "group_joins",
)  # fmt: skip
"""What lies side by side of each instance and of each group, as kernels touch it together; `_COUNTED` of those
instances that count moves of their own."""
_LISTS = {
    MORE_INSTANCES: ("free", "fresh", "kept", "pending", "discarded", "discarded_state"),
    MORE_GROUPS: ("group_free", "nonwaiting_groups", "emptied"),
    MORE_FOUND: ("found", "found_time", "found_position"),
    MORE_FIRED: ("fired", "moved"),
    MORE_TALLY: (),
    MORE_TRACE: ("trace",),
    MORE_EXPIRY_HEAPS: ("timed", "ranked"),
}


def new_workspace(compiled: Compiled, *, tracing: bool = False, size: int = 256) -> Workspace:
    """A workspace for subscriptions, with the empty assignment in it.

    Parameters
    ----------
    compiled
        The subscriptions.
    tracing
        Keep a trace.
    size
        Capacities to begin with, a power of two.
    """
    tables = compiled.tables
    states, counted_states = len(tables.pending), len(tables.waits)
    variables, operands = max(1, len(compiled.variables)), compiled.operands
    roles = max(1, int(np.diff(tables.role_at)[1:].max(initial=0)))
    roots = int(tables.role_at[1])
    groups = size + roots

    def whole(*shape: int) -> IntArray:
        return np.full(shape, NONE, np.int64)

    # The empty assignment is instance 0; its groups are those of the same numbers as its roles.
    counted_state_first = whole(counted_states)
    counted_state_first[tables.role_counted_state[:roots]] = np.arange(roots)
    n = np.zeros(CLOCK + 1, np.int64)
    n[TOP], n[GROUP_TOP], n[ROOTS], n[TRACING] = 1, roots, roots, tracing
    widths = {
        "joins": (variables,), "group": (roles,), "time": (operands,), "position": (operands,),
        "group_marks": (2,), "group_joins": (variables,),
    }  # fmt: skip
    instance_arrays = {name: whole(size, *widths.get(name, ())) for name in _INSTANCES}
    counted = {name: whole(size) for name in _COUNTED}
    group_arrays = {name: whole(groups, *widths.get(name, ())) for name in _GROUPS}
    counted_state_arrays = {
        "visits": np.zeros(counted_states),
        "counted_state_first": counted_state_first,
        "counted_state_others": np.zeros(counted_states, np.int64),
        "set_count": np.zeros(counted_states, np.int64),
        "sets": np.zeros((counted_states, min(MOST_SETS, 1 << min(variables, 6))), np.int64),
    }
    lists: dict[str, Any] = {name: whole(size) for name in _LISTS[MORE_INSTANCES]}
    lists |= {name: whole(groups) for name in _LISTS[MORE_GROUPS]}
    workspace = Workspace(
        n=n,
        **side_by_side(instance_arrays),
        **side_by_side(counted),
        **side_by_side({**group_arrays, "group_since": np.zeros(groups)}),
        **side_by_side(counted_state_arrays),
        **side_by_side({"head": whole(states), "best": whole(states)}),
        **lists,
        table=whole(4 * size),
        open=tables.source == 0,
        occupied=counted_state_first != NONE,
        follows=whole(len(tables.source)),
        ended=whole(states),
        group_table=whole(4 * size),
        timed=whole(size, 3),
        ranked=whole(size, 3),
        fired=whole(size, 3),
        moved=whole(size, 4),
        tally_keys=whole(TALLY, 2),
        tally_weight=np.zeros(TALLY),
        advanced=np.zeros(len(tables.advance_counter_state)),
        left=np.zeros(int(tables.left_at[-1])),
        fired_left=np.zeros(int(tables.fired_at[-1])),
        found=whole(size, 3),
        found_time=whole(size, operands),
        found_position=whole(size, operands),
        trace=whole(size if tracing else 1, 8),
    )
    workspace.state[0], workspace.mask[0] = 0, 0
    workspace.group_counted_state[:roots] = tables.role_counted_state[:roots]
    workspace.group_held[:roots] = 1
    return workspace


def enlarged(workspace: Workspace, wanted: int, least: int = 0) -> Workspace:
    """Twice the capacity for what a kernel asked for, or `least` if that is more."""
    if wanted == MORE_TALLY:
        return _more_tally(workspace)
    blocks: tuple[tuple[str, ...], ...] = {
        MORE_INSTANCES: (_INSTANCES, _COUNTED), MORE_GROUPS: (_GROUPS,)
    }.get(wanted, ())  # fmt: skip
    larger = {}
    for name in (*(name for block in blocks for name in block), *_LISTS[wanted]):
        old = getattr(workspace, name)
        size = max(2 * len(old), least)
        larger[name] = np.full((size, *old.shape[1:]), NONE, old.dtype)
        larger[name][: len(old)] = old
    workspace = workspace._replace(**larger)
    for block in blocks:
        workspace = workspace._replace(**side_by_side({name: larger[name] for name in block}))
    if wanted == MORE_INSTANCES:
        top = int(workspace.n[TOP])
        used = np.flatnonzero((workspace.state[:top] > 0) & (workspace.digest[:top] != NONE))
        return workspace._replace(table=_hashed(workspace.digest, used, len(workspace.state)))
    if wanted == MORE_GROUPS:
        counted_state = workspace.group_counted_state[: workspace.n[GROUP_TOP]]
        used = np.flatnonzero(
            (counted_state >= 0) & (workspace.counted_state_first[counted_state] != np.arange(len(counted_state)))
        )
        return workspace._replace(group_table=_hashed(workspace.group_hash, used, len(workspace.group_counted_state)))
    return workspace


def _more_tally(workspace: Workspace) -> Workspace:
    """A workspace with twice the rows of the tally."""
    used = np.flatnonzero(workspace.tally_keys[:, 0] != NONE)
    keys, weight = (
        np.full((2 * len(workspace.tally_keys), 2), NONE, np.int64),
        np.zeros(2 * len(workspace.tally_weight)),
    )
    larger = workspace._replace(tally_keys=keys, tally_weight=weight)
    rehash(workspace.tally_keys[used], workspace.tally_weight[used], larger.tally_keys, larger.tally_weight)
    return larger


@njit(cache=True)
def rehash(keys: IntArray, weights: FloatArray, into: IntArray, into_weights: FloatArray) -> None:
    """Enter rows into an empty hash table of a tally."""
    last = len(into_weights) - 1
    for row in range(len(keys)):
        at = (mixed(mixed(17, keys[row, 0]), keys[row, 1]) & MOST) & last
        while into[at, 0] != NONE:
            at = (at + 1) & last
        into[at] = keys[row]
        into_weights[at] = weights[row]


def _hashed(hashes: IntArray, used: IntArray, size: int) -> IntArray:
    """A hash table of more than twice the size, a power of two, with linear probing."""
    table = np.full(1 << (2 * size - 1).bit_length(), NONE, np.int64)
    last = len(table) - 1
    for number in used.tolist():
        at = int(hashes[number]) & last
        while table[at] != NONE:
            at = (at + 1) & last
        table[at] = number
    return table
