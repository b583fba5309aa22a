"""Groups of instances that count one move together: those of one counted state with the same join values.

Source: SPEC section 6: per event each occupied state counts exactly one move; states are told apart by partition and
join values.
"""

from __future__ import annotations

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.machines.kernels.hashing import delete, insert, mixed
from patternlake.udfs.machines.kernels.tables import DEAD, Tables
from patternlake.udfs.machines.kernels.workspace import (
    EMPTIED,
    GROUP_FREE,
    GROUP_TOP,
    NONE,
    NONWAITING_GROUPS,
    Workspace,
)
from patternlake.udfs.subkernels import kernel

_ALL = -1
"""All join variables, as bits."""


@kernel
def hold(tables: Tables, workspace: Workspace, instance: int, weight: float) -> None:
    """Let an instance hold the groups of its roles; `weight`: of all events so far, behind which a group is
    occupied.
    """
    state = workspace.instances[instance].state
    first = tables.states[state].role_at
    for role in range(first, tables.states[state + 1].role_at):
        counted_state = tables.roles[role].counted_state
        group = found(workspace, counted_state, workspace.joins, instance, _ALL)
        if group == NONE:
            group = _allocate_group(tables, workspace, counted_state, instance, weight)
        workspace.held_groups[instance, role - first] = group
        workspace.groups[group].held += 1


@kernel
def release(tables: Tables, workspace: Workspace, instance: int) -> None:
    """The opposite of `hold`; groups that nobody holds are put aside until the event is done."""
    n = workspace.n
    state = workspace.instances[instance].state
    first = tables.states[state].role_at
    for role in range(first, tables.states[state + 1].role_at):
        group = workspace.held_groups[instance, role - first]
        workspace.groups[group].held -= 1
        if workspace.groups[group].held == 0:
            workspace.emptied[n[EMPTIED]] = group
            n[EMPTIED] += 1


@kernel
def free_emptied_groups(tables: Tables, workspace: Workspace, weight: float) -> None:
    """Free the groups that nobody holds; `weight`: of all events so far."""
    n = workspace.n
    for at in range(n[EMPTIED]):
        group = workspace.groups[workspace.emptied[at]]
        # It may have been taken up again, or stand here twice.
        if group.held == 0 and group.counted_state != NONE:
            free_group(tables, workspace, workspace.emptied[at], weight)
    n[EMPTIED] = 0


@kernel
def free_group(tables: Tables, workspace: Workspace, group: int, weight: float) -> None:
    """Count how long a group was occupied, and make its number free."""
    n = workspace.n
    this = workspace.groups[group]
    counted_state = this.counted_state
    occupancy = workspace.counted_states[counted_state]
    occupancy.visits += weight - this.since
    if not tables.counted_states[counted_state].waits:
        n[NONWAITING_GROUPS] -= 1
        moved = workspace.nonwaiting_groups[n[NONWAITING_GROUPS]]
        workspace.nonwaiting_groups[this.nonwaiting_at] = moved
        workspace.groups[moved].nonwaiting_at = this.nonwaiting_at
    if occupancy.first == group:
        occupancy.first = NONE
    else:
        occupancy.others -= 1
        delete(workspace.group_table, workspace.groups["digest"], group)
    workspace.occupied[counted_state] = occupancy.first != NONE or occupancy.others > 0
    this.counted_state = NONE
    workspace.group_free[n[GROUP_FREE]] = group
    n[GROUP_FREE] += 1


@kernel
def end_of(tables: Tables, workspace: Workspace, group: int) -> int:
    """Where a discarded copy goes: the number of a fallback state that is held by values among its own, or death."""
    counted_state = workspace.groups[group].counted_state
    first = tables.counted_states[counted_state].fallback_state_at
    last = tables.counted_states[counted_state + 1].fallback_state_at
    for number in range(first, last):
        if _held(workspace, tables.fallback_states[number], group):
            return int(number - first)
    return int(last - first + DEAD)


@kernel
def falls_to(workspace: Workspace, group: int, other: int) -> bool:
    """Whether the values of a group are among those of another one, whose copies it may take in."""
    for variable in range(workspace.group_joins.shape[1]):
        value = workspace.group_joins[other, variable]
        if value not in (NONE, workspace.group_joins[group, variable]):
            return False
    return True


@kernel
def _held(workspace: Workspace, counted_state: int, group: int) -> bool:
    """Whether an instance holds a counted state whose values are among those of a group."""
    if not workspace.occupied[counted_state]:
        return False
    width = workspace.group_joins.shape[1]
    sets = workspace.counted_states[counted_state].sets
    if sets > workspace.sets.shape[1]:
        for other in range(workspace.n[GROUP_TOP]):
            held = workspace.groups[other].counted_state == counted_state and workspace.groups[other].held > 0
            if held and falls_to(workspace, group, other):
                return True
        return False
    for number in range(sets):
        wanted = workspace.sets[counted_state, number]
        all_bound = True
        for variable in range(width):
            all_bound = all_bound and ((wanted >> variable) & 1 == 0 or workspace.group_joins[group, variable] != NONE)
        if all_bound:
            other = found(workspace, counted_state, workspace.group_joins, group, wanted)
            if other != NONE and workspace.groups[other].held > 0:
                return True
    return False


@kernel
def found(workspace: Workspace, counted_state: int, joins: IntArray, row: int, variables: int) -> int:
    """The group of a counted state with the values of these variables in a row, or `NONE`."""
    first = workspace.counted_states[counted_state].first
    if first != NONE and _agree(workspace, first, joins, row, variables):
        return int(first)
    if workspace.counted_states[counted_state].others == 0:
        return NONE
    digest = _digest(counted_state, joins, row, variables)
    last = len(workspace.group_table) - 1
    at = digest & last
    while workspace.group_table[at] != NONE:
        group = workspace.group_table[at]
        this = workspace.groups[group]
        equal = this.digest == digest and this.counted_state == counted_state
        if equal and _agree(workspace, group, joins, row, variables):
            return int(group)
        at = (at + 1) & last
    return NONE


@kernel
def _agree(workspace: Workspace, group: int, joins: IntArray, row: int, variables: int) -> bool:
    """Whether a group has the values of these variables in a row."""
    for variable in range(joins.shape[1]):
        if workspace.group_joins[group, variable] != _value(joins, row, variables, variable):
            return False
    return True


@kernel
def _allocate_group(tables: Tables, workspace: Workspace, counted_state: int, instance: int, weight: float) -> int:
    """A new group for an instance; there is room for one."""
    n = workspace.n
    if n[GROUP_FREE] > 0:
        n[GROUP_FREE] -= 1
        group = workspace.group_free[n[GROUP_FREE]]
    else:
        group = n[GROUP_TOP]
        n[GROUP_TOP] += 1
    for variable in range(workspace.joins.shape[1]):
        workspace.group_joins[group, variable] = workspace.joins[instance, variable]
    this, occupancy = workspace.groups[group], workspace.counted_states[counted_state]
    this.counted_state, this.held, this.since = counted_state, 0, weight
    this.advanced = this.by_counter = NONE
    workspace.occupied[counted_state] = True
    if occupancy.first == NONE:
        occupancy.first = group
    else:
        occupancy.others += 1
        this.digest = _digest(counted_state, workspace.joins, instance, _ALL)
        insert(workspace.group_table, this.digest, group)
    if not tables.counted_states[counted_state].waits:
        workspace.nonwaiting_groups[n[NONWAITING_GROUPS]] = group
        this.nonwaiting_at = n[NONWAITING_GROUPS]
        n[NONWAITING_GROUPS] += 1
    _note_variables(workspace, counted_state, _bound(workspace.joins, instance))
    return int(group)


@kernel
def _note_variables(workspace: Workspace, counted_state: int, bound: int) -> None:
    """Remember which variables a group of a counted state binds; of more than there is room for, only that there are
    more.
    """
    occupancy, most = workspace.counted_states[counted_state], workspace.sets.shape[1]
    for number in range(min(occupancy.sets, most)):
        if workspace.sets[counted_state, number] == bound:
            return
    if occupancy.sets < most:
        workspace.sets[counted_state, occupancy.sets] = bound
    if occupancy.sets <= most:
        occupancy.sets += 1


@kernel
def _value(joins: IntArray, row: int, variables: int, variable: int) -> int:
    return int(joins[row, variable]) if (variables >> variable) & 1 == 1 else NONE


@kernel
def _bound(joins: IntArray, row: int) -> int:
    """The variables that have a value in a row, as bits."""
    bound = 0
    for variable in range(joins.shape[1]):
        if joins[row, variable] != NONE:
            bound |= 1 << variable
    return bound


@kernel
def _digest(counted_state: int, joins: IntArray, row: int, variables: int) -> int:
    digest = mixed(11, counted_state)
    for variable in range(joins.shape[1]):
        digest = mixed(digest, _value(joins, row, variables, variable))
    return digest
