"""The memory in which the kernels run: instances, groups of them, heaps of when they may die, counts, what was found.

Arrays have a capacity; a kernel that finds one too small stops before an event and says which, so that Python makes
larger ones and it goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.machines.kernels.hashing import MOST, mixed
from patternlake.udfs.machines.kernels.tables import Compiled
from patternlake.udfs.machines.row_types import (
    DISCARD,
    FIRING,
    GROUP,
    INSTANCE,
    MADE,
    MATCH,
    MOVEMENT,
    MOVER,
    OCCUPANCY,
    STATE_LIST,
    Rows,
)

NONE = -1
_INTEGER = np.dtype(np.int64)

(TOP, FREE, FRESH, PENDING, GROUP_TOP, GROUP_FREE, NONWAITING_GROUPS, EMPTIED, TIMED, RANKED, SERIAL, FIRED, ENDED,
 FOUND, TRACED, TRACING, BORN, ROOTS, DISCARDED, MOVED, TALLIED, LIVE, SINCE, OFFSET, CLOCK) = range(25)  # fmt: skip
"""Indices into `Workspace.n`: how many of each array are in use, serial numbers, whether a trace is kept; of instances
that count moves of their own how many there are, and the sum of `since`; rank less number of an event; the event from
which on new instances count."""

DONE, MORE_INSTANCES, MORE_GROUPS, MORE_FOUND, MORE_FIRED, MORE_TRACE, MORE_EXPIRY_HEAPS, MORE_TALLY = range(8)
"""What a kernel says when it stops."""

EDGE, COMPLETED, BEGUN, ENDED_AT, FELL, LOOKED_AT = range(6)
"""Kinds of rows of a trace."""

TALLY = 1 << 10
"""Capacity of the tally to begin with."""
MOST_SETS = 64
"""Sets of join variables that are remembered of a counted state; groups of a counted state with more are looked through
one by one.
"""


class Workspace(NamedTuple):
    """N instances of states, O operands, V join variables, G groups, Q counted states; R is the most roles of a state.

    Attributes
    ----------
    n
        int64: see above.
    instances, movers
        [N] of `INSTANCE` and of `MOVER`.
    joins
        int64[N, V]: codes of values, `NONE` where a variable is not bound.
    held_groups
        int64[N, R]: the group for each role of the state.
    time, position
        int64[N, O] of the events that are bound.
    values
        int64[C]: codes of the partition's values of joined columns.
    free
        int64[N]: instances not in use.
    fresh, discarded
        [N] of `MADE` and of `DISCARD`: what the current event made, and found to last for one event.
    pending
        int64[N]: those that last for one event.
    table
        Hash table of instances that have a hash.
    states
        [S] of `STATE_LIST`.
    open
        bool[K]: links whose source holds instances. An event looks at all links of its primitives, which lie side by
        side; their sources don't.
    follows
        int64[K]: open links that an event follows.
    ended
        int64[S]: final states that this event completes.
    groups
        [G] of `GROUP`.
    group_joins
        int64[G, V].
    group_free, group_table, nonwaiting_groups, emptied
        Groups not in use; hash table; groups in counted states that don't wait; groups that nobody holds any more.
    counted_states
        [Q] of `OCCUPANCY`.
    occupied
        bool[Q]: counted states with groups, of which discarded copies look at many.
    sets
        int64[Q, ·]: which variables groups of a counted state bind.
    timed, ranked
        int64[·, 3]: heaps of (when, instance, serial).
    fired, moved
        Of `FIRING`: the advances of the current event; of `MOVEMENT`: those that instances count of their own.
    tally_keys, tally_weight
        int64[·, 2], float64[·]: hash table of the moves that instances counted, see `counting`.
    advanced, left, fired_left
        float64 counts: advances of each advance counter; ends of counted states that don't wait, and those of them
        that an advance counter's advances are among.
    found, found_time, found_position
        Of `MATCH`, int64[·, O], int64[·, O]: matches, with their events.
    trace
        int64[·, 8]: (kind, serial, event, other, state): who descends from whom. An `EDGE` leads to the instance
        `other`, a `COMPLETED` to the end; an instance that is `BEGUN` has as `other` a hash of the row that it belongs
        to, and one that `FELL` a hash of the row that its discarded copy goes on as. One that ended, and one of which
        new deadlines were found (`LOOKED_AT`), has `ends_time`, `ends_rank` and `opens` as they were before the event.
    """

    n: IntArray
    instances: Rows
    movers: Rows
    joins: IntArray
    held_groups: IntArray
    time: IntArray
    position: IntArray
    values: IntArray
    free: IntArray
    fresh: Rows
    discarded: Rows
    pending: IntArray
    table: IntArray
    states: Rows
    open: BoolArray
    follows: IntArray
    ended: IntArray
    groups: Rows
    group_joins: IntArray
    group_free: IntArray
    group_table: IntArray
    nonwaiting_groups: IntArray
    emptied: IntArray
    counted_states: Rows
    occupied: BoolArray
    sets: IntArray
    timed: IntArray
    ranked: IntArray
    fired: Rows
    moved: Rows
    tally_keys: IntArray
    tally_weight: FloatArray
    advanced: FloatArray
    left: FloatArray
    fired_left: FloatArray
    found: Rows
    found_time: IntArray
    found_position: IntArray
    trace: IntArray


_BINDINGS = ("joins", "held_groups", "time", "position")
"""Lie in one row of memory with each instance, as kernels touch them together."""
_GROWING: dict[int, tuple[str, ...]] = {
    MORE_INSTANCES: ("movers", "free", "fresh", "discarded", "pending"),
    MORE_GROUPS: ("groups", "group_joins", "group_free", "nonwaiting_groups", "emptied"),
    MORE_FOUND: ("found", "found_time", "found_position"),
    MORE_FIRED: ("fired", "moved"),
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
    states, counted_states = len(tables.states) - 1, len(tables.counted_states) - 1
    variables, operands = max(1, len(compiled.variables)), compiled.operands
    roles = max(1, int(np.diff(tables.states["role_at"])[1:].max(initial=0)))
    roots = int(tables.states[1]["role_at"])
    groups = size + roots
    # The empty assignment is instance 0; its groups are those of the same numbers as its roles.
    occupancies = _unset(counted_states, OCCUPANCY)
    occupancies["others"] = occupancies["sets"] = 0
    occupancies["first"][tables.roles["counted_state"][:roots]] = np.arange(roots)
    n = np.zeros(CLOCK + 1, np.int64)
    n[TOP], n[GROUP_TOP], n[ROOTS], n[TRACING] = 1, roots, roots, tracing
    workspace = Workspace(
        n=n,
        **_instances(size, (variables, roles, operands, operands)),
        movers=_unset(size, MOVER),
        values=_unset(len(compiled.columns)),
        free=_unset(size),
        fresh=_unset(size, MADE),
        discarded=_unset(size, DISCARD),
        pending=_unset(size),
        table=_unset(4 * size),
        states=_unset(states, STATE_LIST),
        open=tables.links["source"][:-1] == 0,
        follows=_unset(len(tables.links)),
        ended=_unset(states),
        groups=_unset(groups, GROUP),
        group_joins=_unset((groups, variables)),
        group_free=_unset(groups),
        group_table=_unset(4 * size),
        nonwaiting_groups=_unset(groups),
        emptied=_unset(groups),
        counted_states=occupancies,
        occupied=occupancies["first"] != NONE,
        sets=np.zeros((counted_states, min(MOST_SETS, 1 << min(variables, 6))), np.int64),
        timed=_unset((size, 3)),
        ranked=_unset((size, 3)),
        fired=_unset(size, FIRING),
        moved=_unset(size, MOVEMENT),
        tally_keys=_unset((TALLY, 2)),
        tally_weight=np.zeros(TALLY),
        advanced=np.zeros(len(tables.advance_counters) - 1),
        left=np.zeros(int(tables.counted_states[-1]["left_at"])),
        fired_left=np.zeros(int(tables.advance_counters[-1]["fired_at"])),
        found=_unset(size, MATCH),
        found_time=_unset((size, operands)),
        found_position=_unset((size, operands)),
        trace=_unset((size if tracing else 1, 8)),
    )
    workspace.instances[0]["state"] = workspace.instances[0]["mask"] = 0
    workspace.groups["counted_state"][:roots] = tables.roles["counted_state"][:roots]
    workspace.groups["held"][:roots] = 1
    return workspace


def _unset(shape: int | tuple[int, int], kind: np.dtype[Any] = _INTEGER) -> NDArray[Any]:
    """Rows whose whole numbers are `NONE` and whose weights are 0."""
    made = np.zeros(shape, kind)
    if kind.names is None:
        made[...] = NONE
    for name in kind.names or ():
        if kind[name] == _INTEGER:
            made[name] = NONE
    return made


def _instances(size: int, widths: Sequence[int]) -> dict[str, NDArray[Any]]:
    """So many instances and `_BINDINGS`, in one block."""
    columns = INSTANCE.itemsize // _INTEGER.itemsize, *widths
    rows, *bindings = np.split(_unset((size, sum(columns))), np.cumsum(columns)[:-1], axis=1)
    return {"instances": rows.view(INSTANCE)[:, 0], **dict(zip(_BINDINGS, bindings, strict=True))}


def enlarged(workspace: Workspace, wanted: int, least: int = 0) -> Workspace:
    """Twice the capacity for what a kernel asked for, or `least` if that is more."""
    if wanted == MORE_TALLY:
        return _more_tally(workspace)
    larger: dict[str, NDArray[Any]] = {}
    for name in _GROWING[wanted]:
        old = getattr(workspace, name)
        larger[name] = _unset((max(2 * len(old), least), *old.shape[1:]), old.dtype)
    if wanted == MORE_INSTANCES:
        larger |= _instances(len(larger["movers"]), [getattr(workspace, name).shape[1] for name in _BINDINGS])
    for name, array in larger.items():
        array[: len(getattr(workspace, name))] = getattr(workspace, name)
    workspace = workspace._replace(**larger)
    if wanted == MORE_INSTANCES:
        instances = workspace.instances[: workspace.n[TOP]]
        used = np.flatnonzero((instances["state"] > 0) & (instances["digest"] != NONE))
        return workspace._replace(table=_hashed(instances["digest"], used, len(workspace.instances)))
    if wanted == MORE_GROUPS:
        groups = workspace.groups[: workspace.n[GROUP_TOP]]
        counted_state = groups["counted_state"]
        first = workspace.counted_states["first"][counted_state]
        used = np.flatnonzero((counted_state >= 0) & (first != np.arange(len(groups))))
        return workspace._replace(group_table=_hashed(groups["digest"], used, len(workspace.groups)))
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
