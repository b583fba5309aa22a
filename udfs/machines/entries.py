"""Instances in memory: which are the same, which live on, and how they come and go.

Two instances of a state are the same if all that follows will be: they bound the same operands, their join variables
have the same values, and the times agree that later conditions and the window ask for. Of those that are the same the
smallest assignment stays (by the events of its operands in text order); so does it of two that differ in a time of
which only the earliest matters.

Source: Muthusamy et al. 2010, section 4.1 (time lists and compatibility sets, which are pruned until nothing changes);
here an instance holds the times that its time list would.
"""

from __future__ import annotations

from patternlake.udfs.machines.compiling import kernel
from patternlake.udfs.machines.counting import settled
from patternlake.udfs.machines.groups import held_no_more, hold
from patternlake.udfs.machines.hashing import MOST, entered, mixed, removed
from patternlake.udfs.machines.liveness import FIRST, NOW
from patternlake.udfs.machines.queues import push
from patternlake.udfs.machines.room import (
    BORN,
    CLOCK,
    ENDED_AT,
    FREE,
    LIVE,
    NONE,
    PENDING,
    RANKED,
    SINCE,
    TIMED,
    TOP,
    TRACED,
    TRACING,
    Room,
)
from patternlake.udfs.machines.stream import Stream
from patternlake.udfs.machines.tables import FOREVER, IntArray, Tables

_FOREVER = int(FOREVER)


@kernel
def taken(room: Room) -> int:
    """An entry for use; there is one left."""
    n = room.n
    if n[FREE] > 0:
        n[FREE] -= 1
        return int(room.free[n[FREE]])
    n[TOP] += 1
    return int(n[TOP] - 1)


@kernel
def given_back(room: Room, entry: int) -> None:
    """Make an entry, which no list holds, free again."""
    n = room.n
    room.state[entry] = NONE
    room.free[n[FREE]] = entry
    n[FREE] += 1


@kernel
def has(mask: int, operand: int) -> bool:
    """Whether a set of bits has one."""
    return (mask >> operand) & 1 == 1


@kernel
def text_order(room: Room, one: int, other: int) -> int:
    """-1, 0 or 1: which assignment is the smaller; operands that are not bound come last."""
    for operand in range(room.time.shape[1]):
        bound, beside = has(room.mask[one], operand), has(room.mask[other], operand)
        if bound != beside:
            return -1 if bound else 1
        if not bound:
            continue
        if room.time[one, operand] != room.time[other, operand]:
            return -1 if room.time[one, operand] < room.time[other, operand] else 1
        if room.position[one, operand] != room.position[other, operand]:
            return -1 if room.position[one, operand] < room.position[other, operand] else 1
    return 0


@kernel
def digest(tables: Tables, room: Room, entry: int) -> int:
    """A hash, not negative, of what makes instances the same."""
    state, mask = room.state[entry], room.mask[entry]
    found = mixed(mixed(7, state), mask)
    for variable in range(room.joins.shape[1]):
        found = mixed(found, room.joins[entry, variable])
    told = tables.exact[state] & mask
    for operand in range(room.time.shape[1]):
        if has(told, operand):
            found = mixed(found, room.time[entry, operand])
    if tables.window_time < _FOREVER:
        found = mixed(found, room.first_time[entry])
    if tables.window_events < _FOREVER:
        found = mixed(found, room.first_rank[entry])
    return found & MOST


@kernel
def same(tables: Tables, room: Room, one: int, other: int) -> bool:
    """Whether two instances are the same, but for times of which the earliest matters."""
    state, mask = room.state[one], room.mask[one]
    if state != room.state[other] or mask != room.mask[other]:
        return False
    for variable in range(room.joins.shape[1]):
        if room.joins[one, variable] != room.joins[other, variable]:
            return False
    told = tables.exact[state] & mask
    for operand in range(room.time.shape[1]):
        if has(told, operand) and room.time[one, operand] != room.time[other, operand]:
            return False
    if tables.window_time < _FOREVER and room.first_time[one] != room.first_time[other]:
        return False
    return bool(tables.window_events >= _FOREVER or room.first_rank[one] == room.first_rank[other])


@kernel
def makes_useless(tables: Tables, room: Room, one: int, other: int) -> bool:
    """Whether of two instances that are the same the first does all that the second does, and is no larger."""
    early = tables.earliest[room.state[one]] & room.mask[one]
    for operand in range(room.time.shape[1]):
        if has(early, operand) and room.time[one, operand] > room.time[other, operand]:
            return False
    return bool(text_order(room, one, other) <= 0)


@kernel
def lives(tables: Tables, room: Room, entry: int, values: IntArray, now: int, rank: int) -> bool:
    """Whether some continuation completes an instance; notes when to look again.

    `values` are codes of the partition's values of joined columns; `now` and `rank` those of the last event that the
    partition took.
    """
    state, mask = room.state[entry], room.mask[entry]
    found = False
    room.due_time[entry] = room.due_rank[entry] = _FOREVER
    if tables.by_instance[state]:
        room.ends_time[entry] = room.ends_rank[entry] = _FOREVER if tables.lasting[state] else -_FOREVER
    if tables.lasting[state]:
        return True
    for completion_path in range(tables.ahead_at[state], tables.ahead_at[state + 1]):
        until = _FOREVER
        last = _FOREVER
        if tables.window_events < _FOREVER:
            last = room.first_rank[entry] + tables.window_events - 1 - tables.missing[completion_path]
        possible = rank <= last and agrees(tables, room, entry, completion_path, values)
        for bound in range(tables.bound_at[completion_path], tables.bound_at[completion_path + 1]):
            if not possible:
                break
            one, other, most = tables.bound_one[bound], tables.bound_other[bound], tables.bound_most[bound]
            if (one >= 0 and not has(mask, one)) or (other >= 0 and not has(mask, other)):
                continue
            later = now if one == NOW else room.first_time[entry] if one == FIRST else room.time[entry, one]
            earlier = room.first_time[entry] if other == FIRST else room.time[entry, other]
            possible = later - earlier <= most
            if one == NOW:
                until = min(until, earlier + most)
        if possible:
            found = True
            room.due_time[entry] = min(room.due_time[entry], until)
            room.due_rank[entry] = min(room.due_rank[entry], last)
            if tables.by_instance[state]:
                room.ends_time[entry] = max(room.ends_time[entry], until)
                room.ends_rank[entry] = max(room.ends_rank[entry], last)
    return found


@kernel
def agrees(tables: Tables, room: Room, entry: int, completion_path: int, values: IntArray) -> bool:
    """Whether join variables and columns of the partition agree where a completion path asks for it."""
    for row in range(tables.agree_at[completion_path], tables.agree_at[completion_path + 1]):
        known = NONE
        for column in range(len(values)):
            if has(tables.agree_columns[row], column):
                if values[column] == NONE or (known not in (NONE, values[column])):
                    return False
                known = values[column]
        for variable in range(room.joins.shape[1]):
            value = room.joins[entry, variable]
            if value != NONE and has(tables.agree_variables[row], variable):
                if known not in (NONE, value):
                    return False
                known = value
    return True


@kernel
def add(tables: Tables, room: Room, stream: Stream, entry: int, weight: float) -> int:
    """Take a living entry in, unless one makes it useless; returns the entry that stands for it.

    `weight` is that of all events so far.
    """
    n = room.n
    state = room.state[entry]
    first = room.head[state]
    room.digest[entry] = NONE
    if first != NONE:
        other = _standing(tables, room, stream, entry, first)
        if other != NONE:
            given_back(room, entry)
            return other
        entered(room.table, room.digest[entry], entry)
    room.serial[entry] = n[BORN]
    n[BORN] += 1
    if first == NONE:
        room.head[state] = entry
        room.previous[entry] = room.following[entry] = NONE
        opened(tables, room, state, True)
    else:
        after = room.following[first]
        room.previous[entry], room.following[entry] = first, after
        room.following[first] = entry
        if after != NONE:
            room.previous[after] = entry
    hold(tables, room, entry, weight)
    if tables.by_instance[state]:
        room.since[entry], room.moved_serial[entry] = n[CLOCK], NONE
        n[LIVE] += 1
        n[SINCE] += n[CLOCK]
    if tables.pending[state]:
        room.pending[n[PENDING]] = entry
        n[PENDING] += 1
    else:
        wait(room, entry, _FOREVER, _FOREVER)
    return entry


@kernel
def _standing(tables: Tables, room: Room, stream: Stream, entry: int, first: int) -> int:
    """The entry that stands for another one, or `NONE`; `first`: of the state.

    An entry that came when its state had none stays the first one, and out of the hash table: most states hold one
    entry at a time, of which no hash is needed.
    """
    if room.digest[first] == NONE and _stands(tables, room, stream, first, entry):
        return first
    room.digest[entry] = digest(tables, room, entry)
    last = len(room.table) - 1
    at = room.digest[entry] & last
    while room.table[at] != NONE:
        other = int(room.table[at])
        if room.digest[other] == room.digest[entry] and _stands(tables, room, stream, other, entry):
            return other
        at = (at + 1) & last
    return NONE


@kernel
def _stands(tables: Tables, room: Room, stream: Stream, one: int, other: int) -> bool:
    """Whether the first of two entries can stand for both; it takes over a smaller assignment that is the same."""
    if not same(tables, room, one, other):
        return False
    if makes_useless(tables, room, one, other):
        return True
    if makes_useless(tables, room, other, one):
        # What holds the larger one goes on, and may live for other times.
        if tables.by_instance[room.state[one]]:
            settled(tables, room, stream, one, room.n[CLOCK])
        replace(tables, room, one, other)
        return True
    return False


@kernel
def opened(tables: Tables, room: Room, state: int, whether: bool) -> None:
    """Note of the links out of a state whether it holds entries."""
    for at in range(tables.out_at[state], tables.out_at[state + 1]):
        room.open[tables.out[at]] = whether


@kernel
def replace(tables: Tables, room: Room, old: int, new: int) -> None:
    """Let an entry hold another assignment that is the same."""
    due_time, due_rank = room.due_time[old], room.due_rank[old]
    for operand in range(room.time.shape[1]):
        room.time[old, operand], room.position[old, operand] = room.time[new, operand], room.position[new, operand]
    room.first_time[old], room.first_rank[old] = room.first_time[new], room.first_rank[new]
    room.due_time[old], room.due_rank[old] = room.due_time[new], room.due_rank[new]
    if tables.by_instance[room.state[old]]:
        room.ends_time[old], room.ends_rank[old] = room.ends_time[new], room.ends_rank[new]
        room.opens[old] = room.opens[new]
        room.age[old] = room.age[new]
    if tables.pending[room.state[old]]:
        # What stands for both is a copy of what the smaller one is; the other one still tells of the kin of its own.
        room.source[old], room.source[new] = room.source[new], room.source[old]
        room.source_serial[old], room.source_serial[new] = room.source_serial[new], room.source_serial[old]
    else:
        wait(room, old, due_time, due_rank)


@kernel
def wait(room: Room, entry: int, due_time: int, due_rank: int) -> None:
    """Enter an entry into the queues of when to look again, where it does not stand yet with these."""
    n = room.n
    if room.due_time[entry] not in (_FOREVER, due_time):
        n[TIMED] = push(room.timed, n[TIMED], room.due_time[entry], entry, room.serial[entry])
    if room.due_rank[entry] not in (_FOREVER, due_rank):
        n[RANKED] = push(room.ranked, n[RANKED], room.due_rank[entry], entry, room.serial[entry])


@kernel
def remove(tables: Tables, room: Room, entry: int, event: int) -> None:
    """Take an entry out of everything."""
    state = room.state[entry]
    before, after = room.previous[entry], room.following[entry]
    if before == NONE:
        room.head[state] = after
    else:
        room.following[before] = after
    if after != NONE:
        room.previous[after] = before
    elif before == NONE:
        opened(tables, room, state, False)
    if room.digest[entry] != NONE:
        removed(room.table, room.digest, entry)
    held_no_more(tables, room, entry)
    n = room.n
    if tables.by_instance[state]:
        n[LIVE] -= 1
        n[SINCE] -= room.since[entry]
    if n[TRACING]:
        traced_ages(room, ENDED_AT, entry, event)
    given_back(room, entry)


@kernel
def row_digest(room: Room, entry: int) -> int:
    """A hash of what makes instances one row of an answer: state, bound operands, join values."""
    found = mixed(mixed(3, room.state[entry]), room.mask[entry])
    for variable in range(room.joins.shape[1]):
        found = mixed(found, room.joins[entry, variable])
    return found


@kernel
def traced(room: Room, kind: int, serial: int, event: int, other: int, state: int) -> None:
    """Add a row to the trace."""
    row = room.n[TRACED]
    room.trace[row, 0], room.trace[row, 1], room.trace[row, 2] = kind, serial, event
    room.trace[row, 3], room.trace[row, 4] = other, state
    room.n[TRACED] += 1


@kernel
def traced_ages(room: Room, kind: int, entry: int, event: int) -> None:
    """Add a row to the trace that tells what the ages of an entry were made of before an event."""
    row = room.n[TRACED]
    traced(room, kind, room.serial[entry], event, NONE, room.state[entry])
    room.trace[row, 5], room.trace[row, 6] = room.ends_time[entry], room.ends_rank[entry]
    room.trace[row, 7] = room.opens[entry]
