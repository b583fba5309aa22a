"""Events one after the other: links are followed, instances come, go on, and die, moves are counted.

Source: Muthusamy et al. 2010, section 4.1 (matching), and SPEC section 6. An event follows all links of all primitives
that take it before anything that it makes is added, so one event never fills two operands. States that are followed
by ``,`` last for one event; all others keep their instances until no continuation completes them.
"""

from __future__ import annotations

from numba import njit

from patternlake.udfs.machines.compiling import kernel
from patternlake.udfs.machines.counting import (
    GONE,
    age_at,
    all_settled,
    free_rows,
    rows_due,
    settled,
    tally,
)
from patternlake.udfs.machines.entries import (
    add,
    given_back,
    lives,
    remove,
    row_digest,
    text_order,
    traced,
    traced_ages,
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
    CLOCK,
    COMPLETED,
    DISCARDED,
    DONE,
    EDGE,
    ENDED,
    FELL,
    FIRED,
    FOUND,
    FREE,
    FRESH,
    GROUP_FREE,
    GROUP_TOP,
    LIVE,
    LOOKED_AT,
    MORE_ENTRIES,
    MORE_FIRED,
    MORE_FOUND,
    MORE_GROUPS,
    MORE_QUEUE,
    MORE_TALLY,
    MORE_TRACE,
    MOVED,
    NONE,
    NONWAITING_GROUPS,
    OFFSET,
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
from patternlake.udfs.machines.tables import IntArray, Tables


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
    n[OFFSET] = rank - begin
    for event in range(begin, end):
        idle = (
            stream.matching_primitive_at[event] == stream.matching_primitive_at[event + 1]
            and n[PENDING] == 0
            and n[NONWAITING_GROUPS] == 0
        )
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
    n[CLOCK] = event + 1
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    for at in range(stream.matching_primitive_at[event], stream.matching_primitive_at[event + 1]):
        primitive = stream.matching_primitives[at]
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
                    if n[FIRED] + tables.move_at[link + 1] - tables.move_at[link] > len(room.fired) or n[MOVED] == len(
                        room.moved
                    ):
                        if made != USELESS:
                            given_back(room, made)
                        return MORE_FIRED
                    if n[TRACING] and n[TRACED] == len(room.trace):
                        given_back(room, made)
                        return MORE_TRACE
                    _mark(tables, room, link, entry)
                    if tables.by_instance[source]:
                        _moved(tables, room, link, entry, 0 if made == USELESS else room.age[made])
                    if made == USELESS:
                        pass
                    elif tables.final[room.state[made]]:
                        _end(room, made, entry, event)
                    else:
                        room.fresh[n[FRESH]], room.parent[made] = made, entry
                        n[FRESH] += 1
                entry = NONE if source == 0 else room.following[entry]
    wanted = _room_left(room)
    if wanted != DONE:
        return wanted
    return tally_left(tables, room, stream, event, n[LIVE] + 3 * n[MOVED])


@kernel
def tally_left(tables: Tables, room: Room, stream: Stream, event: int, more: int) -> int:
    """Whether the tally has room for all moves up to an event, itself included, and for some more rows."""
    if rows_due(room, event + 1) + more <= free_rows(room):
        return DONE
    if not all_settled(tables, room, stream, event) or rows_due(room, event + 1) + more > free_rows(room):
        return MORE_TALLY
    return DONE


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
    if n[TRACING] and n[TRACED] + 2 * n[FRESH] + 4 * n[TOP] > len(room.trace):
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
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0


@kernel
def _moved(tables: Tables, room: Room, link: int, entry: int, age: int) -> None:
    """Note an advance of an instance that counts moves of its own; of several by rival links the first in rank."""
    n = room.n
    row = n[MOVED]
    if tables.rival[link] and room.moved_serial[entry] == n[SERIAL]:
        row = room.moved_row[entry]
        if tables.rank[room.moved[row, 1]] <= tables.rank[link]:
            return
    else:
        n[MOVED] += 1
    if tables.rival[link]:
        room.moved_serial[entry], room.moved_row[entry] = n[SERIAL], row
    room.moved[row, 0], room.moved[row, 1], room.moved[row, 2] = entry, link, age


@kernel
def _mark(tables: Tables, room: Room, link: int, entry: int) -> None:
    """Note which groups of an instance advance by a link."""
    n = room.n
    for move in range(tables.move_at[link], tables.move_at[link + 1]):
        group = room.group[entry, tables.move_role[move]] if entry != 0 else tables.move_role[move]
        slot = tables.move_slot[move]
        first = room.group_marks[group, ADVANCED] != n[SERIAL]
        if not first and room.group_marks[group, BY_SLOT] == slot:
            continue
        row = n[FIRED]
        if tables.rival[link] and entry == 0 and not first:
            row = 0
            while room.fired[row, 0] != group:
                row += 1
            if tables.rank[room.fired[row, 2]] <= tables.rank[link]:
                continue
        else:
            n[FIRED] += 1
        room.group_marks[group, ADVANCED], room.group_marks[group, BY_SLOT] = n[SERIAL], slot
        room.fired[row, 0], room.fired[row, 1], room.fired[row, 2] = group, slot, link


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
    _advanced(tables, room, stream, event, now)
    nonwaiting = n[NONWAITING_GROUPS]
    ask_for_ends(tables, room, nonwaiting)
    n[DISCARDED] = n[PENDING]
    for at in range(n[PENDING]):
        room.discarded[at], room.discarded_state[at] = room.pending[at], room.state[room.pending[at]]
        remove(tables, room, room.pending[at], event)
    n[PENDING] = 0
    time = stream.time[event]
    _bury(tables, room, stream, room.timed, TIMED, time, event, time, rank, values)
    _bury(tables, room, stream, room.ranked, RANKED, rank, event, time, rank, values)
    for at in range(n[FRESH]):
        made, parent = room.fresh[at], room.parent[room.fresh[at]]
        kept = add(tables, room, stream, made, weight)
        room.kept[at] = kept
        if n[TRACING]:
            if kept == made:
                traced(room, BEGUN, room.serial[made], event, row_digest(room, made), room.state[made])
            traced(room, EDGE, room.serial[parent], event, room.serial[kept], NONE)
    for at in range(nonwaiting):
        group = room.nonwaiting_groups[at]
        place = room.group_place[group]
        fallbacks = tables.fallback_state_at[place + 1] - tables.fallback_state_at[place]
        end = end_of(tables, room, group)
        room.group_end[group] = end
        room.left[tables.left_at[place] + end] += now
        if n[TRACING] and end < fallbacks and room.group_marks[group, ADVANCED] != n[SERIAL]:
            _fell(tables, room, event, group, tables.fallback_states[tables.fallback_state_at[place] + end])
    for at in range(n[FIRED]):
        group, slot = room.fired[at, 0], room.fired[at, 1]
        room.advanced[slot] += now
        if not tables.slot_waits[slot]:
            room.fired_left[tables.fired_at[slot] + room.group_end[group]] += now
    _went_back(tables, room, event, time, rank, now)
    _otherwise(tables, room, stream, event, now)
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    swept(tables, room, weight)


@kernel
def _advanced(tables: Tables, room: Room, stream: Stream, event: int, weight: float) -> None:
    """Count the advances of instances that count moves of their own."""
    for row in range(room.n[MOVED]):
        entry, link = room.moved[row, 0], room.moved[row, 1]
        settled(tables, room, stream, entry, event)
        room.moved[row, 3] = room.age[entry]
        kind = len(tables.pending) + link
        tally(room, kind, room.moved[row, 3], tables.target[link], room.moved[row, 2], weight)


@kernel
def _went_back(tables: Tables, room: Room, event: int, time: int, rank: int, weight: float) -> None:
    """Count where those of them went back that last for one event."""
    n = room.n
    for at in range(n[DISCARDED]):
        entry, state = room.discarded[at], room.discarded_state[at]
        if not tables.by_instance[state]:
            continue
        source = room.source[entry]
        found = NONE
        if source != NONE and room.state[source] > 0 and room.serial[source] == room.source_serial[entry]:
            found = source
            for fall in range(tables.falls_at[state], tables.falls_at[state + 1]):
                for fresh in range(n[FRESH]):
                    # One that others stand for has its own source all the same.
                    made, kept = room.fresh[fresh], room.kept[fresh]
                    if found == source and room.state[kept] == tables.falls[fall] and room.source[made] == source:
                        found = kept
        room.fell_state[entry] = GONE if found == NONE else room.state[found]
        room.fell_age[entry] = 0
        if found != NONE:
            room.fell_age[entry] = age_at(tables, room, found, time, rank)
        tally(room, state, room.age[entry], room.fell_state[entry], room.fell_age[entry], weight)
        if n[TRACING] and found != NONE:
            advances = False
            for row in range(n[MOVED]):
                advances = advances or room.moved[row, 0] == entry
            if not advances:
                traced(room, EDGE, room.serial[entry], event, room.serial[found], NONE)


@kernel
def _otherwise(tables: Tables, room: Room, stream: Stream, event: int, weight: float) -> None:
    """Count of each advance what the instance counted beside it."""
    for row in range(room.n[MOVED]):
        entry, link = room.moved[row, 0], room.moved[row, 1]
        state, age = tables.source[link], 0
        if tables.pending[state]:
            state, age = room.fell_state[entry], room.fell_age[entry]
        elif room.state[entry] == NONE:
            state = GONE
        else:
            settled(tables, room, stream, entry, event + 1)
            age = room.age[entry]
        kind = len(tables.pending) + len(tables.rival) + link
        tally(room, kind, room.moved[row, 3], state, age, weight)


@kernel
def _fell(tables: Tables, room: Room, event: int, group: int, place: int) -> None:
    """Trace which row the discarded copies of a group go on as: one of an instance that holds the fallback state."""
    n = room.n
    row = NONE
    for entry in range(1, n[TOP]):
        if room.state[entry] <= 0 or row != NONE:
            continue
        first = tables.role_at[room.state[entry]]
        for role in range(first, tables.role_at[room.state[entry] + 1]):
            holds = tables.role_place[role] == place
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
    tables: Tables, room: Room, stream: Stream, queue: IntArray, column: int, now: int, event: int, time: int,
    rank: int, values: IntArray,
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
        counted = tables.by_instance[room.state[entry]]
        if counted:
            settled(tables, room, stream, entry, event)
        if n[TRACING]:
            traced_ages(room, LOOKED_AT, entry, event)
        if lives(tables, room, entry, values, time, rank):
            wait(room, entry, due_time, due_rank)
        else:
            if counted:
                weight = stream.weight[event + 1] - stream.weight[event]
                tally(room, room.state[entry], room.age[entry], GONE, 0, weight)
            remove(tables, room, entry, event)
