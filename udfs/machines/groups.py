"""Groups of instances that count one move together: those of one place with the same join values.

Source: SPEC section 6: per event each occupied state counts exactly one move; states are told apart by partition and
join values.
"""

from __future__ import annotations

import numpy as np

from patternlake.udfs.machines.compiling import kernel
from patternlake.udfs.machines.hashing import entered, mixed, removed
from patternlake.udfs.machines.places import NOTHING
from patternlake.udfs.machines.room import EMPTIED, GROUP_FREE, GROUP_TOP, NONE, NONWAITING_GROUPS, Room
from patternlake.udfs.machines.tables import DEAD, IntArray, Tables

_ALL = np.int64(-1)


@kernel
def hold(tables: Tables, room: Room, entry: int, weight: float) -> None:
    """Let an entry hold the groups of its roles; `weight`: of all events so far, behind which a group is occupied."""
    first = tables.role_at[room.state[entry]]
    for role in range(first, tables.role_at[room.state[entry] + 1]):
        place = tables.role_place[role]
        variables = _variables(tables, role)
        group = found(room, place, room.joins, entry, variables)
        if group == NONE:
            group = _made(tables, room, place, entry, variables, weight)
        room.group[entry, role - first] = group
        room.group_held[group] += 1


@kernel
def held_no_more(tables: Tables, room: Room, entry: int) -> None:
    """The opposite of `hold`; groups that nobody holds are put aside until the event is done."""
    n = room.n
    first = tables.role_at[room.state[entry]]
    for role in range(first, tables.role_at[room.state[entry] + 1]):
        group = room.group[entry, role - first]
        room.group_held[group] -= 1
        if room.group_held[group] == 0:
            room.emptied[n[EMPTIED]] = group
            n[EMPTIED] += 1


@kernel
def swept(tables: Tables, room: Room, weight: float) -> None:
    """Give up the groups that nobody holds; `weight`: of all events so far."""
    n = room.n
    for at in range(n[EMPTIED]):
        group = room.emptied[at]
        # It may have been taken up again, or stand here twice.
        if room.group_held[group] > 0 or room.group_place[group] == NONE:
            continue
        given_up(tables, room, group, weight)
    n[EMPTIED] = 0


@kernel
def given_up(tables: Tables, room: Room, group: int, weight: float) -> None:
    """Count how long a group was occupied, and make its number free."""
    n = room.n
    place = room.group_place[group]
    room.visits[place] += weight - room.group_since[group]
    if not tables.waits[place]:
        n[NONWAITING_GROUPS] -= 1
        moved = room.nonwaiting_groups[n[NONWAITING_GROUPS]]
        room.nonwaiting_groups[room.group_nonwaiting_at[group]] = moved
        room.group_nonwaiting_at[moved] = room.group_nonwaiting_at[group]
    if room.place_first[place] == group:
        room.place_first[place] = NONE
    else:
        room.place_others[place] -= 1
        removed(room.group_table, room.group_hash, group)
    room.occupied[place] = room.place_first[place] != NONE or room.place_others[place] > 0
    room.group_place[group] = NONE
    room.group_free[n[GROUP_FREE]] = group
    n[GROUP_FREE] += 1


@kernel
def end_of(tables: Tables, room: Room, group: int) -> int:
    """Where a discarded copy goes: the number of a fallback state that is held by values among its own, or death."""
    place = room.group_place[group]
    first, last = tables.fallback_state_at[place], tables.fallback_state_at[place + 1]
    for number in range(first, last):
        if _held(room, tables.fallback_states[number], group):
            return int(number - first)
    return int(last - first + DEAD)


@kernel
def falls_to(room: Room, group: int, other: int) -> bool:
    """Whether the values of a group are among those of another one, whose copies it may take in."""
    for variable in range(room.group_joins.shape[1]):
        value = room.group_joins[other, variable]
        if value not in (NONE, room.group_joins[group, variable]):
            return False
    return True


@kernel
def _held(room: Room, place: int, group: int) -> bool:
    """Whether an instance holds a place whose values are among those of a group."""
    if not room.occupied[place]:
        return False
    width = room.group_joins.shape[1]
    most = room.sets.shape[1]
    if room.set_count[place] > most:
        for other in range(room.n[GROUP_TOP]):
            held = room.group_place[other] == place and room.group_held[other] > 0
            if held and falls_to(room, group, other):
                return True
        return False
    for number in range(room.set_count[place]):
        wanted = room.sets[place, number]
        all_bound = True
        for variable in range(width):
            all_bound = all_bound and ((wanted >> variable) & 1 == 0 or room.group_joins[group, variable] != NONE)
        if all_bound:
            other = found(room, place, room.group_joins, group, wanted)
            if other != NONE and room.group_held[other] > 0:
                return True
    return False


@kernel
def found(room: Room, place: int, joins: IntArray, row: int, variables: int) -> int:
    """The group of a place with the values of these variables in a row, or `NONE`."""
    first = room.place_first[place]
    if first != NONE and _agree(room, first, joins, row, variables):
        return int(first)
    if room.place_others[place] == 0:
        return NONE
    digest = _digest(place, joins, row, variables)
    last = len(room.group_table) - 1
    at = digest & last
    while room.group_table[at] != NONE:
        group = room.group_table[at]
        equal = room.group_hash[group] == digest and room.group_place[group] == place
        if equal and _agree(room, group, joins, row, variables):
            return int(group)
        at = (at + 1) & last
    return NONE


@kernel
def _agree(room: Room, group: int, joins: IntArray, row: int, variables: int) -> bool:
    """Whether a group has the values of these variables in a row."""
    for variable in range(joins.shape[1]):
        if room.group_joins[group, variable] != _value(joins, row, variables, variable):
            return False
    return True


@kernel
def _made(tables: Tables, room: Room, place: int, entry: int, variables: int, weight: float) -> int:
    """A new group for an entry; there is room for one."""
    n = room.n
    if n[GROUP_FREE] > 0:
        n[GROUP_FREE] -= 1
        group = room.group_free[n[GROUP_FREE]]
    else:
        group = n[GROUP_TOP]
        n[GROUP_TOP] += 1
    for variable in range(room.joins.shape[1]):
        room.group_joins[group, variable] = _value(room.joins, entry, variables, variable)
    room.group_place[group] = place
    room.group_held[group] = 0
    room.group_since[group] = weight
    for mark in range(room.group_marks.shape[1]):
        room.group_marks[group, mark] = NONE
    room.occupied[place] = True
    if room.place_first[place] == NONE:
        room.place_first[place] = group
    else:
        room.place_others[place] += 1
        room.group_hash[group] = _digest(place, room.joins, entry, variables)
        entered(room.group_table, room.group_hash[group], group)
    if not tables.waits[place]:
        room.nonwaiting_groups[n[NONWAITING_GROUPS]] = group
        room.group_nonwaiting_at[group] = n[NONWAITING_GROUPS]
        n[NONWAITING_GROUPS] += 1
    _noted(room, place, _bound(room.joins, entry, variables))
    return int(group)


@kernel
def _noted(room: Room, place: int, bound: int) -> None:
    """Remember which variables a group of a place binds; of more than there is room for, only that there are more."""
    count, most = room.set_count[place], room.sets.shape[1]
    for number in range(min(count, most)):
        if room.sets[place, number] == bound:
            return
    if count < most:
        room.sets[place, count] = bound
    if count <= most:
        room.set_count[place] += 1


@kernel
def _variables(tables: Tables, role: int) -> int:
    """Which join variables tell groups of a role apart, as bits."""
    return 0 if tables.role_without[role] == NOTHING else int(_ALL)


@kernel
def _value(joins: IntArray, row: int, variables: int, variable: int) -> int:
    return int(joins[row, variable]) if (variables >> variable) & 1 == 1 else NONE


@kernel
def _bound(joins: IntArray, row: int, variables: int) -> int:
    """Those of the variables that have a value in a row."""
    bound = 0
    for variable in range(joins.shape[1]):
        if (variables >> variable) & 1 == 1 and joins[row, variable] != NONE:
            bound |= 1 << variable
    return bound


@kernel
def _digest(place: int, joins: IntArray, row: int, variables: int) -> int:
    digest = mixed(11, place)
    for variable in range(joins.shape[1]):
        digest = mixed(digest, _value(joins, row, variables, variable))
    return digest
