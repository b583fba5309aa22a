"""What a link makes of an instance and an event: another instance, if window, conditions and joins allow it."""

from __future__ import annotations

from patternlake.udfs.machines.compiling import kernel
from patternlake.udfs.machines.counting import measured
from patternlake.udfs.machines.entries import given_back, has, lives, taken
from patternlake.udfs.machines.room import CLOCK, NONE, TRACING, Room
from patternlake.udfs.machines.stream import Stream
from patternlake.udfs.machines.tables import FOREVER, IntArray, Tables

_FOREVER = int(FOREVER)
USELESS = -2
"""In the place of an entry: what would be made stands already, or something smaller that is the same."""


@kernel
def made_of(
    tables: Tables, room: Room, stream: Stream, event: int, values: IntArray, rank: int,
    link: int, primitive: int, entry: int,
) -> int:  # fmt: skip
    """An entry for what a link makes of an instance, `NONE` where a condition, a join or the window does not hold, or
    `USELESS`.
    """
    time = stream.time[event]
    if entry != 0 and _outside(tables, room, entry, time, rank):
        return NONE
    mask = room.mask[entry]
    for limit in range(tables.limit_at[link], tables.limit_at[link + 1]):
        operand = tables.limit_operand[limit]
        if not has(mask, operand):
            continue
        gap = time - room.time[entry, operand]
        if tables.limit_absolute[limit]:
            gap = abs(gap)
        elif not tables.limit_after[limit]:
            gap = -gap
        if gap < tables.limit_low[limit] or gap > tables.limit_high[limit]:
            return NONE
    if tables.plain[tables.target[link]] and not room.n[TRACING] and _known(tables, room, stream, event, link, entry):
        return USELESS
    made = taken(room)
    for variable in range(room.joins.shape[1]):
        room.joins[made, variable] = room.joins[entry, variable]
    for join in range(tables.join_at[primitive], tables.join_at[primitive + 1]):
        value = stream.values[tables.join_column[join], event]
        known = room.joins[made, tables.join_variable[join]]
        if value == NONE or (known not in (NONE, value)):
            given_back(room, made)
            return NONE
        room.joins[made, tables.join_variable[join]] = value
    operand = tables.operand[link]
    room.state[made] = tables.target[link]
    room.mask[made] = mask | (1 << operand)
    for bound in range(room.time.shape[1]):
        room.time[made, bound], room.position[made, bound] = room.time[entry, bound], room.position[entry, bound]
    room.time[made, operand], room.position[made, operand] = time, stream.position[event]
    room.first_time[made] = time if entry == 0 else room.first_time[entry]
    room.first_rank[made] = rank if entry == 0 else room.first_rank[entry]
    if not tables.final[room.state[made]] and not lives(tables, room, made, values, time, rank):
        given_back(room, made)
        return NONE
    state = room.state[made]
    if tables.by_instance[state]:
        measured(tables, room, made, time, rank)
        # Its moves count from the next event on.
        room.since[made] = room.n[CLOCK]
    else:
        room.age[made] = 0
    if tables.pending[state]:
        # What lasts for one event is a copy of what last waited.
        waits = not tables.pending[room.state[entry]]
        room.source[made] = (entry if entry != 0 else NONE) if waits else room.source[entry]
        room.source_serial[made] = room.serial[entry] if waits else room.source_serial[entry]
    return made


@kernel
def _outside(tables: Tables, room: Room, entry: int, time: int, rank: int) -> bool:
    """Whether an event comes too late for the window of an instance."""
    if tables.window_time < _FOREVER and time - room.first_time[entry] >= tables.window_time:
        return True
    return bool(tables.window_events < _FOREVER and rank - room.first_rank[entry] >= tables.window_events)


@kernel
def _known(tables: Tables, room: Room, stream: Stream, event: int, link: int, entry: int) -> bool:
    """Whether an instance of a plain state makes useless what a link would make, by `entries.makes_useless`."""
    operand = tables.operand[link]
    mask = room.mask[entry] | (1 << operand)
    other = room.head[tables.target[link]]
    if other == NONE or room.mask[other] != mask:
        return False
    for bound in range(room.time.shape[1]):
        if not has(mask, bound):
            continue
        here = bound == operand
        time = stream.time[event] if here else room.time[entry, bound]
        if room.time[other, bound] != time:
            return bool(room.time[other, bound] < time)
        position = stream.position[event] if here else room.position[entry, bound]
        if room.position[other, bound] != position:
            return bool(room.position[other, bound] < position)
    return True
