"""The memory in which the kernels run: instances, groups of them, queues of when they may die, counts, what was found.

Arrays have a capacity; a kernel that finds one too small stops before an event and says which, so that Python makes
larger ones and it goes on from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.machines.layout import side_by_side
from patternlake.udfs.machines.tables import BoolArray, Compiled, IntArray

FloatArray = NDArray[np.float64]

NONE = -1

(TOP, FREE, FRESH, PENDING, GROUP_TOP, GROUP_FREE, CROWD, EMPTIED, TIMED, RANKED, SERIAL, FIRED, ENDED, FOUND, TRACED,
 TRACING, BORN, ROOTS, DISCARDED) = range(19)  # fmt: skip
"""Places in `Room.n`: how many of each array are in use, serial numbers, whether a trace is kept."""

DONE, MORE_ENTRIES, MORE_GROUPS, MORE_FOUND, MORE_FIRED, MORE_TRACE, MORE_QUEUE = range(7)
"""What a kernel says when it stops."""

ADVANCED, BY_SLOT, GOES = range(3)
"""Columns of `Room.group_marks`."""

EDGE, COMPLETED, BEGUN, ENDED_AT, FELL = range(5)
"""Kinds of rows of a trace."""

MOST_SETS = 64
"""Sets of join variables that are remembered of a place; groups of a place with more are looked through one by one."""


class Room(NamedTuple):
    """N entries (instances of states), O operands, V join variables, G groups, Q places.

    Attributes
    ----------
    n
        int64: see above.
    state, mask, first_time, first_rank, due_time, due_rank, serial, digest, previous, following
        int64[N]: state of the graph (`NONE`: not in use); operands that are bound, as bits; time and rank of the first
        event; when a new look at the outlooks is due; number of the entry; hash, or `NONE` of one that came when its
        state had none; neighbours in the state's list.
    joins
        int64[N, V]: codes of values, `NONE` where a variable is not bound.
    time, position
        int64[N, O] of the events that are bound.
    group
        int64[N, R]: the group for each role of the state.
    free, fresh, parent, pending, discarded
        int64[N]: entries not in use; those that the current event made, and what of; those that last for one event;
        those of them that the current event found.
    table, head
        Hash table of entries that have a hash; first entry of each state.
    open
        bool[K]: links whose source holds entries. An event looks at all links of its primitives, which lie side by
        side; their sources don't.
    occupied
        bool[Q]: places with groups, of which discarded copies look at many.
    follows
        int64[K]: open links that an event follows.
    best, ended
        int64[S]: the smallest assignment that completes a final state at this event; such states.
    group_place, group_held, group_instances, group_hash, group_end, group_crowd
        int64[G]: place, how many entries hold it, how many of these as instances, hash, what becomes of discarded
        copies at the current event, and its place among `crowd`.
    group_marks
        int64[G, 3]: the last event at which a group advanced (`ADVANCED`), by which slot (`BY_SLOT`), and at which it
        went on inside of its state (`GOES`).
    group_since
        float64[G]: weight of the events before it was occupied.
    group_joins
        int64[G, V].
    group_free, group_table, crowd, emptied
        Groups not in use; hash table; groups in places that don't wait; groups that nobody holds any more.
    sets, set_count
        int64[Q, ·]: which variables groups of a place bind.
    place_first, place_others
        int64[Q]: the group of a place that came when there was no other, or `NONE`, and how many there are beside it.
        What the empty assignment holds always is the first group of its place.
    timed, ranked
        int64[·, 3]: heaps of (when, entry, serial).
    fired
        int64[·, 2]: (group, slot) of the advances of the current event.
    visits, advanced, left, fired_left
        float64 counts: events at which a place was occupied; advances of each slot; ends of places that don't wait,
        and those of them that a slot's advances are among.
    found, found_time, found_position
        int64[·, 3], int64[·, O], int64[·, O]: (event, state, mask) of matches, with their events.
    trace
        int64[·, 5]: (kind, serial, event, other, state): who descends from whom. An `EDGE` leads to the entry `other`,
        a `COMPLETED` to the end; an entry that is `BEGUN` has as `other` a hash of the row that it belongs to, and one
        that `FELL` a hash of the row that its discarded copy goes on as.
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
    free: IntArray
    fresh: IntArray
    parent: IntArray
    pending: IntArray
    discarded: IntArray
    table: IntArray
    head: IntArray
    open: BoolArray
    occupied: BoolArray
    follows: IntArray
    best: IntArray
    ended: IntArray
    group_place: IntArray
    group_held: IntArray
    group_instances: IntArray
    group_hash: IntArray
    group_marks: IntArray
    group_end: IntArray
    group_crowd: IntArray
    group_since: FloatArray
    group_joins: IntArray
    group_free: IntArray
    group_table: IntArray
    crowd: IntArray
    emptied: IntArray
    sets: IntArray
    set_count: IntArray
    place_first: IntArray
    place_others: IntArray
    timed: IntArray
    ranked: IntArray
    fired: IntArray
    visits: FloatArray
    advanced: FloatArray
    left: FloatArray
    fired_left: FloatArray
    found: IntArray
    found_time: IntArray
    found_position: IntArray
    trace: IntArray


_ENTRIES = (
    "state", "mask", "previous", "following", "parent", "serial", "digest", "first_time", "first_rank", "due_time",
    "due_rank", "joins", "group", "time", "position",
)  # fmt: skip
_GROUPS = (
    "group_place", "group_held", "group_instances", "group_hash", "group_marks", "group_end", "group_crowd",
    "group_since", "group_joins",
)  # fmt: skip
"""What lies side by side of each entry and of each group, as kernels touch it together."""
_LISTS = {
    MORE_ENTRIES: ("free", "fresh", "pending", "discarded"),
    MORE_GROUPS: ("group_free", "crowd", "emptied"),
    MORE_FOUND: ("found", "found_time", "found_position"),
    MORE_FIRED: ("fired",),
    MORE_TRACE: ("trace",),
    MORE_QUEUE: ("timed", "ranked"),
}


def new_room(compiled: Compiled, *, tracing: bool = False, size: int = 256) -> Room:
    """Room for subscriptions, with the empty assignment in it.

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
    states, places = len(tables.pending), len(tables.waits)
    variables, operands = max(1, len(compiled.variables)), compiled.operands
    roles = max(1, int(np.diff(tables.role_at)[1:].max(initial=0)))
    roots = int(tables.role_at[1])
    groups = size + roots

    def whole(*shape: int) -> IntArray:
        return np.full(shape, NONE, np.int64)

    # The empty assignment is entry 0; its groups are those of the same numbers as its roles.
    place_first = whole(places)
    place_first[tables.role_place[:roots]] = np.arange(roots)
    n = np.zeros(DISCARDED + 1, np.int64)
    n[TOP], n[GROUP_TOP], n[ROOTS], n[TRACING] = 1, roots, roots, tracing
    widths = {
        "joins": (variables,), "group": (roles,), "time": (operands,), "position": (operands,),
        "group_marks": (3,), "group_joins": (variables,),
    }  # fmt: skip
    by_entry = {name: whole(size, *widths.get(name, ())) for name in _ENTRIES}
    by_group = {name: whole(groups, *widths.get(name, ())) for name in _GROUPS}
    by_place = {
        "visits": np.zeros(places),
        "place_first": place_first,
        "place_others": np.zeros(places, np.int64),
        "set_count": np.zeros(places, np.int64),
        "sets": np.zeros((places, min(MOST_SETS, 1 << min(variables, 6))), np.int64),
    }
    lists: dict[str, Any] = {name: whole(size) for name in _LISTS[MORE_ENTRIES]}
    lists |= {name: whole(groups) for name in _LISTS[MORE_GROUPS]}
    room = Room(
        n=n,
        **side_by_side(by_entry),
        **side_by_side({**by_group, "group_since": np.zeros(groups)}),
        **side_by_side(by_place),
        **side_by_side({"head": whole(states), "best": whole(states)}),
        **lists,
        table=whole(4 * size),
        open=tables.source == 0,
        occupied=place_first != NONE,
        follows=whole(len(tables.source)),
        ended=whole(states),
        group_table=whole(4 * size),
        timed=whole(size, 3),
        ranked=whole(size, 3),
        fired=whole(size, 2),
        advanced=np.zeros(len(tables.slot_place)),
        left=np.zeros(int(tables.left_at[-1])),
        fired_left=np.zeros(int(tables.fired_at[-1])),
        found=whole(size, 3),
        found_time=whole(size, operands),
        found_position=whole(size, operands),
        trace=whole(size if tracing else 1, 5),
    )
    room.state[0], room.mask[0] = 0, 0
    room.group_place[:roots] = tables.role_place[:roots]
    room.group_held[:roots] = 1
    room.group_instances[:roots] = tables.role_instance[:roots]
    return room


def enlarged(room: Room, wanted: int, least: int = 0) -> Room:
    """Twice the room for what a kernel asked for, or `least` if that is more."""
    blocks = {MORE_ENTRIES: _ENTRIES, MORE_GROUPS: _GROUPS}.get(wanted, ())
    larger = {}
    for name in (*blocks, *_LISTS[wanted]):
        old = getattr(room, name)
        size = max(2 * len(old), least)
        larger[name] = np.full((size, *old.shape[1:]), NONE, old.dtype)
        larger[name][: len(old)] = old
    room = room._replace(**larger)
    if blocks:
        room = room._replace(**side_by_side({name: larger[name] for name in blocks}))
    if wanted == MORE_ENTRIES:
        top = int(room.n[TOP])
        used = np.flatnonzero((room.state[:top] > 0) & (room.digest[:top] != NONE))
        return room._replace(table=_hashed(room.digest, used, len(room.state)))
    if wanted == MORE_GROUPS:
        place = room.group_place[: room.n[GROUP_TOP]]
        used = np.flatnonzero((place >= 0) & (room.place_first[place] != np.arange(len(place))))
        return room._replace(group_table=_hashed(room.group_hash, used, len(room.group_place)))
    return room


def _hashed(hashes: IntArray, used: IntArray, size: int) -> IntArray:
    """A hash table of more than twice the size, a power of two, with linear probing."""
    table = np.full(1 << (2 * size - 1).bit_length(), NONE, np.int64)
    last = len(table) - 1
    for entry in used.tolist():
        at = int(hashes[entry]) & last
        while table[at] != NONE:
            at = (at + 1) & last
        table[at] = entry
    return table
