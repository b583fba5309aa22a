"""Events one after the other: links are followed, instances come, go on, and die, moves are counted.

Source: Muthusamy et al. 2010, section 4.1 (matching), and SPEC section 6. An event follows all links of all primitives
that take it before anything that it makes is added, so one event never fills two operands. States that are followed
by ``,`` last for one event; all others keep their instances until no continuation completes them.
"""

from __future__ import annotations

from numba import njit

from patternlake.udfs.machines.compiling import kernel
from patternlake.udfs.machines.entries import (
    add,
    given_back,
    lives,
    remove,
    row_digest,
    text_order,
    traced,
    wait,
)
from patternlake.udfs.machines.groups import end_of, falls_to, swept
from patternlake.udfs.machines.making import USELESS, made_of
from patternlake.udfs.machines.prefetching import ask, ask_for_ends
from patternlake.udfs.machines.queues import pop
from patternlake.udfs.machines.room import (
    ADVANCED,
    BEGUN,
    BY_SLOT,
    COMPLETED,
    CROWD,
    DISCARDED,
    DONE,
    EDGE,
    ENDED,
    FELL,
    FIRED,
    FOUND,
    FREE,
    FRESH,
    GOES,
    GROUP_FREE,
    GROUP_TOP,
    MORE_ENTRIES,
    MORE_FIRED,
    MORE_FOUND,
    MORE_GROUPS,
    MORE_QUEUE,
    MORE_TRACE,
    NONE,
    PENDING,
    RANKED,
    SERIAL,
    TIMED,
    TOP,
    TRACED,
    TRACING,
    Room,
)
from patternlake.udfs.machines.stream import Stream
from patternlake.udfs.machines.tables import STAY, IntArray, Tables

_UNDECIDED = -2


@njit(cache=True)
def sweep(tables: Tables, room: Room, stream: Stream, first: int, begin: int, end: int, rank: int) -> tuple[int, int]:
    """Let a partition take some events.

    Parameters
    ----------
    tables, room
        The partition's instances are in the room.
    stream
        All events.
    first
        An event of the partition, for its values.
    begin, end
        The events.
    rank
        Rank of event `begin` in its partition, from 0.

    Returns
    -------
    The first event that was not taken, and what there is too little room for, or `DONE`.
    """
    values = stream.values[:, first].copy()
    n = room.n
    for event in range(begin, end):
        idle = stream.taker_at[event] == stream.taker_at[event + 1] and n[PENDING] == 0 and n[CROWD] == 0
        timely = n[TIMED] == 0 or room.timed[0, 0] >= stream.time[event]
        if idle and timely and (n[RANKED] == 0 or room.ranked[0, 0] >= rank + event - begin):
            continue
        traced = room.n[TRACED]
        wanted = _follow(tables, room, stream, event, values, rank + event - begin)
        if wanted != DONE:
            _forget(room)
            room.n[TRACED] = traced
            return event, wanted
        _settle(tables, room, stream, event, values, rank + event - begin)
    return end, DONE


@kernel
def _follow(tables: Tables, room: Room, stream: Stream, event: int, values: IntArray, rank: int) -> int:
    """Find what an event makes; nothing but fresh entries and marks is changed."""
    n = room.n
    n[SERIAL] += 1
    n[FRESH] = n[FIRED] = n[ENDED] = 0
    for at in range(stream.taker_at[event], stream.taker_at[event + 1]):
        primitive = stream.takers[at]
        count = 0
        for link in range(tables.link_at[primitive], tables.link_at[primitive + 1]):
            room.follows[count] = link
            count += room.open[link]
        ask(tables, room, count)
        for number in range(count):
            link = room.follows[number]
            source = tables.source[link]
            entry = 0 if source == 0 else room.head[source]
            while entry != NONE:
                if n[FREE] == 0 and n[TOP] == len(room.state):
                    return MORE_ENTRIES
                made = made_of(tables, room, stream, event, values, rank, link, primitive, entry)
                if made != NONE:
                    if n[FIRED] + tables.move_at[link + 1] - tables.move_at[link] > len(room.fired):
                        if made != USELESS:
                            given_back(room, made)
                        return MORE_FIRED
                    if n[TRACING] and n[TRACED] == len(room.trace):
                        given_back(room, made)
                        return MORE_TRACE
                    _mark(tables, room, link, entry)
                    if made == USELESS:
                        pass
                    elif tables.final[room.state[made]]:
                        _end(room, made, entry, event)
                    else:
                        room.fresh[n[FRESH]], room.parent[made] = made, entry
                        n[FRESH] += 1
                entry = NONE if source == 0 else room.following[entry]
    return _room_left(room)


@kernel
def _room_left(room: Room) -> int:
    """Whether there is room for what was found."""
    n = room.n
    if len(room.group_place) - n[GROUP_TOP] + n[GROUP_FREE] < n[FRESH] * room.group.shape[1]:
        return MORE_GROUPS
    if 2 * (n[TIMED] + n[RANKED]) + n[FRESH] >= len(room.timed):
        return MORE_QUEUE
    if n[FOUND] + n[ENDED] > len(room.found):
        return MORE_FOUND
    if n[TRACING] and n[TRACED] + 2 * n[FRESH] + 2 * n[TOP] > len(room.trace):
        return MORE_TRACE
    return DONE


@kernel
def _forget(room: Room) -> None:
    """Give back what an event made that cannot be taken yet."""
    n = room.n
    for at in range(n[FRESH]):
        given_back(room, room.fresh[at])
    for at in range(n[ENDED]):
        state = room.ended[at]
        given_back(room, room.best[state])
        room.best[state] = NONE
    n[FRESH] = n[FIRED] = n[ENDED] = 0


@kernel
def _mark(tables: Tables, room: Room, link: int, entry: int) -> None:
    """Note which groups of an instance advance by a link, and which go on inside of their state."""
    n = room.n
    for move in range(tables.move_at[link], tables.move_at[link + 1]):
        group = room.group[entry, tables.move_role[move]] if entry != 0 else tables.move_role[move]
        slot = tables.move_slot[move]
        if not tables.move_advances[move]:
            room.group_marks[group, GOES] = n[SERIAL]
        elif room.group_marks[group, ADVANCED] != n[SERIAL] or room.group_marks[group, BY_SLOT] != slot:
            room.group_marks[group, ADVANCED], room.group_marks[group, BY_SLOT] = n[SERIAL], slot
            room.fired[n[FIRED], 0], room.fired[n[FIRED], 1] = group, slot
            n[FIRED] += 1


@kernel
def _end(room: Room, made: int, parent: int, event: int) -> None:
    """Of the entries that complete a subscription keep the smallest."""
    n = room.n
    if n[TRACING]:
        traced(room, COMPLETED, room.serial[parent], event, NONE, NONE)
    state = room.state[made]
    best = room.best[state]
    if best == NONE:
        room.ended[n[ENDED]] = state
        room.best[state] = made
        n[ENDED] += 1
    elif text_order(room, made, best) < 0:
        given_back(room, best)
        room.best[state] = made
    else:
        given_back(room, made)


@kernel
def _settle(tables: Tables, room: Room, stream: Stream, event: int, values: IntArray, rank: int) -> None:
    """Change what an event changes."""
    n = room.n
    now, weight = stream.weight[event + 1] - stream.weight[event], stream.weight[event + 1]
    _tell(room, event)
    crowd = n[CROWD]
    ask_for_ends(tables, room, crowd)
    n[DISCARDED] = n[PENDING]
    for at in range(n[PENDING]):
        room.discarded[at] = room.pending[at]
        remove(tables, room, room.pending[at], event)
    n[PENDING] = 0
    time = stream.time[event]
    _bury(tables, room, room.timed, TIMED, time, event, time, rank, values)
    _bury(tables, room, room.ranked, RANKED, rank, event, time, rank, values)
    for at in range(crowd):
        group = room.crowd[at]
        goes = room.group_instances[group] > 0 or room.group_marks[group, GOES] == n[SERIAL]
        room.group_end[group] = STAY if goes else _UNDECIDED
    for at in range(n[FRESH]):
        made, parent = room.fresh[at], room.parent[room.fresh[at]]
        kept = add(tables, room, made, weight)
        if n[TRACING]:
            if kept == made:
                traced(room, BEGUN, room.serial[made], event, row_digest(room, made), room.state[made])
            traced(room, EDGE, room.serial[parent], event, room.serial[kept], NONE)
    for at in range(crowd):
        group = room.crowd[at]
        place = room.group_place[group]
        behind = tables.behind_at[place + 1] - tables.behind_at[place]
        end = behind + STAY if room.group_end[group] == STAY else end_of(tables, room, group)
        room.group_end[group] = end
        room.left[tables.left_at[place] + end] += now
        if n[TRACING] and end < behind and room.group_marks[group, ADVANCED] != n[SERIAL]:
            _fell(tables, room, event, group, tables.behind[tables.behind_at[place] + end])
    for at in range(n[FIRED]):
        group, slot = room.fired[at, 0], room.fired[at, 1]
        room.advanced[slot] += now
        if not tables.slot_waits[slot]:
            room.fired_left[tables.fired_at[slot] + room.group_end[group]] += now
    n[FRESH] = n[FIRED] = n[ENDED] = 0
    swept(tables, room, weight)


@kernel
def _fell(tables: Tables, room: Room, event: int, group: int, place: int) -> None:
    """Trace which row the discarded copies of a group go on as: one of an instance that holds the place behind."""
    n = room.n
    row = NONE
    for entry in range(1, n[TOP]):
        if room.state[entry] <= 0 or row != NONE:
            continue
        first = tables.role_at[room.state[entry]]
        for role in range(first, tables.role_at[room.state[entry] + 1]):
            holds = tables.role_place[role] == place and tables.role_instance[role]
            if holds and falls_to(room, group, room.group[entry, role - first]):
                row = row_digest(room, entry)
    for at in range(n[DISCARDED]):
        entry = room.discarded[at]
        for role in range(room.group.shape[1]):
            if room.group[entry, role] == group:
                traced(room, FELL, room.serial[entry], event, row, NONE)
                break


@kernel
def _tell(room: Room, event: int) -> None:
    """Write the matches that an event completes."""
    n = room.n
    for at in range(n[ENDED]):
        state = room.ended[at]
        best = room.best[state]
        row = n[FOUND]
        room.found[row, 0], room.found[row, 1], room.found[row, 2] = event, state, room.mask[best]
        for operand in range(room.time.shape[1]):
            room.found_time[row, operand] = room.time[best, operand]
            room.found_position[row, operand] = room.position[best, operand]
        n[FOUND] += 1
        room.best[state] = NONE
        given_back(room, best)


@kernel
def _bury(
    tables: Tables, room: Room, queue: IntArray, column: int, now: int, event: int, time: int, rank: int,
    values: IntArray,
) -> None:  # fmt: skip
    """Remove instances that are due in a queue and that no continuation completes any more."""
    n = room.n
    while n[column] > 0 and queue[0, 0] < now:
        when, entry, serial = queue[0, 0], queue[0, 1], queue[0, 2]
        n[column] = pop(queue, n[column])
        due_time, due_rank = room.due_time[entry], room.due_rank[entry]
        # Rows of the queue may be of entries that are gone, or older than the entry's assignment.
        if room.state[entry] <= 0 or room.serial[entry] != serial:
            continue
        if when != (due_time if column == TIMED else due_rank):
            continue
        if lives(tables, room, entry, values, time, rank):
            wait(room, entry, due_time, due_rank)
        else:
            remove(tables, room, entry, event)
