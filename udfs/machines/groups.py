"""Groups of instances that count one move together: those of one place with the same join values.

Source: SPEC section 6: per event each occupied state counts exactly one move; states are told apart by partition and
join values.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.machines.hashing import entered, mixed, removed
from patternlake.udfs.machines.places import EVERYTHING, NOTHING
from patternlake.udfs.machines.room import CROWD, EMPTIED, GROUP_FREE, GROUP_TOP, MOST_SETS, NONE, Room
from patternlake.udfs.machines.tables import DEAD, IntArray, Tables

_ALL = np.int64(-1)


@njit(cache=True)
def hold(tables: Tables, room: Room, entry: int, weight: float) -> None:
    """Let an entry hold the groups of its roles; `weight`: of all events so far, behind which a group is occupied."""
    first = tables.role_at[room.state[entry]]
    for role in range(first, tables.role_at[room.state[entry] + 1]):
        place = tables.role_place[role]
        group = found(room, place, room.joins[entry], _variables(tables, room, role, entry))
        if group == NONE:
            group = _made(tables, room, place, room.joins[entry], _variables(tables, room, role, entry), weight)
        room.group[entry, role - first] = group
        room.group_held[group] += 1
        room.group_instances[group] += tables.role_instance[role]


@njit(cache=True)
def held_no_more(tables: Tables, room: Room, entry: int) -> None:
    """The opposite of `hold`; groups that nobody holds are put aside until the event is done."""
    n = room.n
    first = tables.role_at[room.state[entry]]
    for role in range(first, tables.role_at[room.state[entry] + 1]):
        group = room.group[entry, role - first]
        room.group_held[group] -= 1
        room.group_instances[group] -= tables.role_instance[role]
        if room.group_held[group] == 0:
            room.emptied[n[EMPTIED]] = group
            n[EMPTIED] += 1


@njit(cache=True)
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


@njit(cache=True)
def given_up(tables: Tables, room: Room, group: int, weight: float) -> None:
    """Count how long a group was occupied, and make its number free."""
    n = room.n
    place = room.group_place[group]
    room.visits[place] += weight - room.group_since[group]
    if not tables.waits[place]:
        n[CROWD] -= 1
        moved = room.crowd[n[CROWD]]
        room.crowd[room.group_crowd[group]] = moved
        room.group_crowd[moved] = room.group_crowd[group]
    removed(room.group_table, room.group_hash, group)
    room.group_place[group] = NONE
    room.group_free[n[GROUP_FREE]] = group
    n[GROUP_FREE] += 1


@njit(cache=True)
def end_of(tables: Tables, room: Room, group: int) -> int:
    """Where a discarded copy goes: the number of a place behind that is held by values among its own, or death."""
    place = room.group_place[group]
    first, last = tables.behind_at[place], tables.behind_at[place + 1]
    for number in range(first, last):
        if _held(room, tables.behind[number], room.group_joins[group]):
            return int(number - first)
    return int(last - first + DEAD)


@njit(cache=True)
def _held(room: Room, place: int, joins: IntArray) -> bool:
    """Whether an instance holds a place whose values are among these."""
    if room.set_count[place] > MOST_SETS:
        for group in range(room.n[GROUP_TOP]):
            if room.group_place[group] == place and room.group_instances[group] > 0:
                among = True
                for variable in range(len(joins)):
                    value = room.group_joins[group, variable]
                    among = among and (value in (NONE, joins[variable]))
                if among:
                    return True
        return False
    for number in range(room.set_count[place]):
        wanted = room.sets[place, number]
        all_bound = True
        for variable in range(len(joins)):
            all_bound = all_bound and ((wanted >> variable) & 1 == 0 or joins[variable] != NONE)
        if all_bound:
            group = found(room, place, joins, wanted)
            if group != NONE and room.group_instances[group] > 0:
                return True
    return False


@njit(cache=True)
def found(room: Room, place: int, joins: IntArray, variables: int) -> int:
    """The group of a place with these values of these variables, or `NONE`."""
    digest = _digest(place, joins, variables)
    last = len(room.group_table) - 1
    at = digest & last
    while room.group_table[at] != NONE:
        group = room.group_table[at]
        if room.group_hash[group] == digest and room.group_place[group] == place:
            equal = True
            for variable in range(len(joins)):
                equal = equal and room.group_joins[group, variable] == _value(joins, variables, variable)
            if equal:
                return int(group)
        at = (at + 1) & last
    root = room.root_group[place]
    if root != NONE and _bound(joins, variables) == 0:
        return int(root)
    return NONE


@njit(cache=True)
def _made(tables: Tables, room: Room, place: int, joins: IntArray, variables: int, weight: float) -> int:
    """A new group; there is room for one."""
    n = room.n
    if n[GROUP_FREE] > 0:
        n[GROUP_FREE] -= 1
        group = room.group_free[n[GROUP_FREE]]
    else:
        group = n[GROUP_TOP]
        n[GROUP_TOP] += 1
    for variable in range(len(joins)):
        room.group_joins[group, variable] = _value(joins, variables, variable)
    room.group_place[group] = place
    room.group_held[group] = room.group_instances[group] = 0
    room.group_since[group] = weight
    room.group_advanced[group] = room.group_goes[group] = room.group_slot[group] = NONE
    room.group_hash[group] = _digest(place, joins, variables)
    entered(room.group_table, room.group_hash[group], group)
    if not tables.waits[place]:
        room.crowd[n[CROWD]] = group
        room.group_crowd[group] = n[CROWD]
        n[CROWD] += 1
    _noted(room, place, _bound(joins, variables))
    return int(group)


@njit(cache=True)
def _noted(room: Room, place: int, bound: int) -> None:
    """Remember which variables a group of a place binds; beyond `MOST_SETS` of them, only that there are more."""
    count = room.set_count[place]
    for number in range(min(count, MOST_SETS)):
        if room.sets[place, number] == bound:
            return
    if count < MOST_SETS:
        room.sets[place, count] = bound
    if count <= MOST_SETS:
        room.set_count[place] += 1


@njit(cache=True)
def _variables(tables: Tables, room: Room, role: int, entry: int) -> int:
    """Which join variables tell groups of a role apart, as bits."""
    without = tables.role_without[role]
    if without == EVERYTHING:
        return int(_ALL)
    if without == NOTHING:
        return 0
    variables, row = 0, tables.role_operands[role]
    bound = room.mask[entry] & ~without
    for operand in range(room.time.shape[1]):
        if (bound >> operand) & 1 == 1:
            variables |= tables.variables[row, operand]
    return variables


@njit(cache=True)
def _value(joins: IntArray, variables: int, variable: int) -> int:
    return int(joins[variable]) if (variables >> variable) & 1 == 1 else NONE


@njit(cache=True)
def _bound(joins: IntArray, variables: int) -> int:
    """Those of the variables that have a value."""
    bound = 0
    for variable in range(len(joins)):
        if (variables >> variable) & 1 == 1 and joins[variable] != NONE:
            bound |= 1 << variable
    return bound


@njit(cache=True)
def _digest(place: int, joins: IntArray, variables: int) -> int:
    digest = mixed(11, place)
    for variable in range(len(joins)):
        digest = mixed(digest, _value(joins, variables, variable))
    return digest
