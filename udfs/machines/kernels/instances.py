"""Instances in memory: which are the same, which live on, and how they come and go.

Two instances of a state are the same if all that follows will be: they bound the same operands, their join variables
have the same values, and the times agree that later conditions and the window ask for. Of those that are the same the
smallest assignment stays (by the events of its operands in text order); so does it of two that differ in a time of
which only the earliest matters.

Source: Muthusamy et al. 2010, section 4.1 (time lists and compatibility sets, which are pruned until nothing changes);
here an instance holds the times that its time list would.
"""

from __future__ import annotations

from patternlake.udfs.machines.graph.liveness import FIRST, NOW
from patternlake.udfs.machines.kernels.compiling import kernel
from patternlake.udfs.machines.kernels.counting import settle_moves
from patternlake.udfs.machines.kernels.expiry_heaps import push
from patternlake.udfs.machines.kernels.groups import hold, release
from patternlake.udfs.machines.kernels.hashing import MOST, delete, insert, mixed
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import FOREVER, IntArray, Tables
from patternlake.udfs.machines.kernels.workspace import (
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
    Workspace,
)

_FOREVER = int(FOREVER)


@kernel
def allocate_instance(workspace: Workspace) -> int:
    """An instance for use; there is one left."""
    n = workspace.n
    if n[FREE] > 0:
        n[FREE] -= 1
        return int(workspace.free[n[FREE]])
    n[TOP] += 1
    return int(n[TOP] - 1)


@kernel
def free_instance(workspace: Workspace, instance: int) -> None:
    """Make an instance, which no list holds, free again."""
    n = workspace.n
    workspace.state[instance] = NONE
    workspace.free[n[FREE]] = instance
    n[FREE] += 1


@kernel
def has(mask: int, operand: int) -> bool:
    """Whether a set of bits has one."""
    return (mask >> operand) & 1 == 1


@kernel
def text_order(workspace: Workspace, one: int, other: int) -> int:
    """-1, 0 or 1: which assignment is the smaller; operands that are not bound come last."""
    for operand in range(workspace.time.shape[1]):
        bound, beside = has(workspace.mask[one], operand), has(workspace.mask[other], operand)
        if bound != beside:
            return -1 if bound else 1
        if not bound:
            continue
        if workspace.time[one, operand] != workspace.time[other, operand]:
            return -1 if workspace.time[one, operand] < workspace.time[other, operand] else 1
        if workspace.position[one, operand] != workspace.position[other, operand]:
            return -1 if workspace.position[one, operand] < workspace.position[other, operand] else 1
    return 0


@kernel
def digest(tables: Tables, workspace: Workspace, instance: int) -> int:
    """A hash, not negative, of what makes instances the same."""
    state, mask = workspace.state[instance], workspace.mask[instance]
    found = mixed(mixed(7, state), mask)
    for variable in range(workspace.joins.shape[1]):
        found = mixed(found, workspace.joins[instance, variable])
    told = tables.exact[state] & mask
    for operand in range(workspace.time.shape[1]):
        if has(told, operand):
            found = mixed(found, workspace.time[instance, operand])
    if tables.window_time < _FOREVER:
        found = mixed(found, workspace.first_time[instance])
    if tables.window_events < _FOREVER:
        found = mixed(found, workspace.first_rank[instance])
    return found & MOST


@kernel
def same(tables: Tables, workspace: Workspace, one: int, other: int) -> bool:
    """Whether two instances are the same, but for times of which the earliest matters."""
    state, mask = workspace.state[one], workspace.mask[one]
    if state != workspace.state[other] or mask != workspace.mask[other]:
        return False
    for variable in range(workspace.joins.shape[1]):
        if workspace.joins[one, variable] != workspace.joins[other, variable]:
            return False
    told = tables.exact[state] & mask
    for operand in range(workspace.time.shape[1]):
        if has(told, operand) and workspace.time[one, operand] != workspace.time[other, operand]:
            return False
    if tables.window_time < _FOREVER and workspace.first_time[one] != workspace.first_time[other]:
        return False
    return bool(tables.window_events >= _FOREVER or workspace.first_rank[one] == workspace.first_rank[other])


@kernel
def dominates(tables: Tables, workspace: Workspace, one: int, other: int) -> bool:
    """Whether of two instances that are the same the first does all that the second does, and is no larger."""
    early = tables.earliest[workspace.state[one]] & workspace.mask[one]
    for operand in range(workspace.time.shape[1]):
        if has(early, operand) and workspace.time[one, operand] > workspace.time[other, operand]:
            return False
    return bool(text_order(workspace, one, other) <= 0)


@kernel
def is_completable(tables: Tables, workspace: Workspace, instance: int, values: IntArray, now: int, rank: int) -> bool:
    """Whether some continuation completes an instance; notes when to look again.

    `values` are codes of the partition's values of joined columns; `now` and `rank` those of the last event that the
    partition took.
    """
    state, mask = workspace.state[instance], workspace.mask[instance]
    found = False
    workspace.due_time[instance] = workspace.due_rank[instance] = _FOREVER
    if tables.by_instance[state]:
        workspace.ends_time[instance] = workspace.ends_rank[instance] = _FOREVER if tables.lasting[state] else -_FOREVER
    if tables.lasting[state]:
        return True
    for completion_path in range(tables.ahead_at[state], tables.ahead_at[state + 1]):
        until = _FOREVER
        last = _FOREVER
        if tables.window_events < _FOREVER:
            last = workspace.first_rank[instance] + tables.window_events - 1 - tables.missing[completion_path]
        possible = rank <= last and agrees(tables, workspace, instance, completion_path, values)
        for bound in range(tables.bound_at[completion_path], tables.bound_at[completion_path + 1]):
            if not possible:
                break
            one, other, most = tables.bound_one[bound], tables.bound_other[bound], tables.bound_most[bound]
            if (one >= 0 and not has(mask, one)) or (other >= 0 and not has(mask, other)):
                continue
            later = (
                now if one == NOW else workspace.first_time[instance] if one == FIRST else workspace.time[instance, one]
            )
            earlier = workspace.first_time[instance] if other == FIRST else workspace.time[instance, other]
            possible = later - earlier <= most
            if one == NOW:
                until = min(until, earlier + most)
        if possible:
            found = True
            workspace.due_time[instance] = min(workspace.due_time[instance], until)
            workspace.due_rank[instance] = min(workspace.due_rank[instance], last)
            if tables.by_instance[state]:
                workspace.ends_time[instance] = max(workspace.ends_time[instance], until)
                workspace.ends_rank[instance] = max(workspace.ends_rank[instance], last)
    return found


@kernel
def agrees(tables: Tables, workspace: Workspace, instance: int, completion_path: int, values: IntArray) -> bool:
    """Whether join variables and columns of the partition agree where a completion path asks for it."""
    for row in range(tables.agree_at[completion_path], tables.agree_at[completion_path + 1]):
        known = NONE
        for column in range(len(values)):
            if has(tables.agree_columns[row], column):
                if values[column] == NONE or (known not in (NONE, values[column])):
                    return False
                known = values[column]
        for variable in range(workspace.joins.shape[1]):
            value = workspace.joins[instance, variable]
            if value != NONE and has(tables.agree_variables[row], variable):
                if known not in (NONE, value):
                    return False
                known = value
    return True


@kernel
def add(tables: Tables, workspace: Workspace, stream: Stream, instance: int, weight: float) -> int:
    """Take a living instance in, unless one dominates it; returns the instance that represents it.

    `weight` is that of all events so far.
    """
    n = workspace.n
    state = workspace.state[instance]
    first = workspace.head[state]
    workspace.digest[instance] = NONE
    if first != NONE:
        other = _representative(tables, workspace, stream, instance, first)
        if other != NONE:
            free_instance(workspace, instance)
            return other
        insert(workspace.table, workspace.digest[instance], instance)
    workspace.serial[instance] = n[BORN]
    n[BORN] += 1
    if first == NONE:
        workspace.head[state] = instance
        workspace.previous[instance] = workspace.following[instance] = NONE
        mark_open(tables, workspace, state, True)
    else:
        after = workspace.following[first]
        workspace.previous[instance], workspace.following[instance] = first, after
        workspace.following[first] = instance
        if after != NONE:
            workspace.previous[after] = instance
    hold(tables, workspace, instance, weight)
    if tables.by_instance[state]:
        workspace.since[instance], workspace.moved_serial[instance] = n[CLOCK], NONE
        n[LIVE] += 1
        n[SINCE] += n[CLOCK]
    if tables.pending[state]:
        workspace.pending[n[PENDING]] = instance
        n[PENDING] += 1
    else:
        schedule_expiry(workspace, instance, _FOREVER, _FOREVER)
    return instance


@kernel
def _representative(tables: Tables, workspace: Workspace, stream: Stream, instance: int, first: int) -> int:
    """The instance that represents another one, or `NONE`; `first`: of the state.

    An instance that came when its state had none stays the first one, and out of the hash table: most states hold one
    instance at a time, of which no hash is needed.
    """
    if workspace.digest[first] == NONE and _represents(tables, workspace, stream, first, instance):
        return first
    workspace.digest[instance] = digest(tables, workspace, instance)
    last = len(workspace.table) - 1
    at = workspace.digest[instance] & last
    while workspace.table[at] != NONE:
        other = int(workspace.table[at])
        if workspace.digest[other] == workspace.digest[instance] and _represents(
            tables, workspace, stream, other, instance
        ):
            return other
        at = (at + 1) & last
    return NONE


@kernel
def _represents(tables: Tables, workspace: Workspace, stream: Stream, one: int, other: int) -> bool:
    """Whether the first of two instances can represent both; it takes over a smaller assignment that is the same."""
    if not same(tables, workspace, one, other):
        return False
    if dominates(tables, workspace, one, other):
        return True
    if dominates(tables, workspace, other, one):
        # What holds the larger one goes on, and may live for other times.
        if tables.by_instance[workspace.state[one]]:
            settle_moves(tables, workspace, stream, one, workspace.n[CLOCK])
        replace(tables, workspace, one, other)
        return True
    return False


@kernel
def mark_open(tables: Tables, workspace: Workspace, state: int, whether: bool) -> None:
    """Note of the links out of a state whether it holds instances."""
    for at in range(tables.out_at[state], tables.out_at[state + 1]):
        workspace.open[tables.out[at]] = whether


@kernel
def replace(tables: Tables, workspace: Workspace, old: int, new: int) -> None:
    """Let an instance hold another assignment that is the same."""
    due_time, due_rank = workspace.due_time[old], workspace.due_rank[old]
    for operand in range(workspace.time.shape[1]):
        workspace.time[old, operand], workspace.position[old, operand] = (
            workspace.time[new, operand],
            workspace.position[new, operand],
        )
    workspace.first_time[old], workspace.first_rank[old] = workspace.first_time[new], workspace.first_rank[new]
    workspace.due_time[old], workspace.due_rank[old] = workspace.due_time[new], workspace.due_rank[new]
    if tables.by_instance[workspace.state[old]]:
        workspace.ends_time[old], workspace.ends_rank[old] = workspace.ends_time[new], workspace.ends_rank[new]
        workspace.opens[old] = workspace.opens[new]
        workspace.age[old] = workspace.age[new]
    if tables.pending[workspace.state[old]]:
        # What stands for both is a copy of what the smaller one is; the other one still tells of the kin of its own.
        workspace.source[old], workspace.source[new] = workspace.source[new], workspace.source[old]
        workspace.source_serial[old], workspace.source_serial[new] = (
            workspace.source_serial[new],
            workspace.source_serial[old],
        )
    else:
        schedule_expiry(workspace, old, due_time, due_rank)


@kernel
def schedule_expiry(workspace: Workspace, instance: int, due_time: int, due_rank: int) -> None:
    """Enter an instance into the heaps of when to look again, where it does not stand yet with these."""
    n = workspace.n
    if workspace.due_time[instance] not in (_FOREVER, due_time):
        n[TIMED] = push(workspace.timed, n[TIMED], workspace.due_time[instance], instance, workspace.serial[instance])
    if workspace.due_rank[instance] not in (_FOREVER, due_rank):
        n[RANKED] = push(
            workspace.ranked, n[RANKED], workspace.due_rank[instance], instance, workspace.serial[instance]
        )


@kernel
def remove(tables: Tables, workspace: Workspace, instance: int, event: int) -> None:
    """Take an instance out of everything."""
    state = workspace.state[instance]
    before, after = workspace.previous[instance], workspace.following[instance]
    if before == NONE:
        workspace.head[state] = after
    else:
        workspace.following[before] = after
    if after != NONE:
        workspace.previous[after] = before
    elif before == NONE:
        mark_open(tables, workspace, state, False)
    if workspace.digest[instance] != NONE:
        delete(workspace.table, workspace.digest, instance)
    release(tables, workspace, instance)
    n = workspace.n
    if tables.by_instance[state]:
        n[LIVE] -= 1
        n[SINCE] -= workspace.since[instance]
    if n[TRACING]:
        append_age_trace(workspace, ENDED_AT, instance, event)
    free_instance(workspace, instance)


@kernel
def row_digest(workspace: Workspace, instance: int) -> int:
    """A hash of what makes instances one row of an answer: state, bound operands, join values."""
    found = mixed(mixed(3, workspace.state[instance]), workspace.mask[instance])
    for variable in range(workspace.joins.shape[1]):
        found = mixed(found, workspace.joins[instance, variable])
    return found


@kernel
def append_trace(workspace: Workspace, kind: int, serial: int, event: int, other: int, state: int) -> None:
    """Add a row to the trace."""
    row = workspace.n[TRACED]
    workspace.trace[row, 0], workspace.trace[row, 1], workspace.trace[row, 2] = kind, serial, event
    workspace.trace[row, 3], workspace.trace[row, 4] = other, state
    workspace.n[TRACED] += 1


@kernel
def append_age_trace(workspace: Workspace, kind: int, instance: int, event: int) -> None:
    """Add a row to the trace that tells what the ages of an instance were made of before an event."""
    row = workspace.n[TRACED]
    append_trace(workspace, kind, workspace.serial[instance], event, NONE, workspace.state[instance])
    workspace.trace[row, 5], workspace.trace[row, 6] = workspace.ends_time[instance], workspace.ends_rank[instance]
    workspace.trace[row, 7] = workspace.opens[instance]
