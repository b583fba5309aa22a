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
from patternlake.udfs.machines.kernels.counting import settle_moves
from patternlake.udfs.machines.kernels.expiry_heaps import push
from patternlake.udfs.machines.kernels.groups import hold, release
from patternlake.udfs.machines.kernels.hashing import MOST, delete, insert, mixed
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import FOREVER, Tables
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
from patternlake.udfs.subkernels import kernel

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
    workspace.instances[instance].state = NONE
    workspace.free[n[FREE]] = instance
    n[FREE] += 1


@kernel
def has(mask: int, operand: int) -> bool:
    """Whether a set of bits has one."""
    return (mask >> operand) & 1 == 1


@kernel
def text_order(workspace: Workspace, one: int, other: int) -> int:
    """-1, 0 or 1: which assignment is the smaller; operands that are not bound come last."""
    mask, mask_beside = workspace.instances[one].mask, workspace.instances[other].mask
    for operand in range(workspace.time.shape[1]):
        bound, beside = has(mask, operand), has(mask_beside, operand)
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
    this = workspace.instances[instance]
    found = mixed(mixed(7, this.state), this.mask)
    for variable in range(workspace.joins.shape[1]):
        found = mixed(found, workspace.joins[instance, variable])
    told = tables.states[this.state].exact & this.mask
    for operand in range(workspace.time.shape[1]):
        if has(told, operand):
            found = mixed(found, workspace.time[instance, operand])
    if tables.window_time < _FOREVER:
        found = mixed(found, this.first_time)
    if tables.window_events < _FOREVER:
        found = mixed(found, this.first_rank)
    return found & MOST


@kernel
def same(tables: Tables, workspace: Workspace, one: int, other: int) -> bool:
    """Whether two instances are the same, but for times of which the earliest matters."""
    this, that = workspace.instances[one], workspace.instances[other]
    if this.state != that.state or this.mask != that.mask:
        return False
    for variable in range(workspace.joins.shape[1]):
        if workspace.joins[one, variable] != workspace.joins[other, variable]:
            return False
    told = tables.states[this.state].exact & this.mask
    for operand in range(workspace.time.shape[1]):
        if has(told, operand) and workspace.time[one, operand] != workspace.time[other, operand]:
            return False
    if tables.window_time < _FOREVER and this.first_time != that.first_time:
        return False
    return bool(tables.window_events >= _FOREVER or this.first_rank == that.first_rank)


@kernel
def dominates(tables: Tables, workspace: Workspace, one: int, other: int) -> bool:
    """Whether of two instances that are the same the first does all that the second does, and is no larger."""
    this = workspace.instances[one]
    early = tables.states[this.state].earliest & this.mask
    for operand in range(workspace.time.shape[1]):
        if has(early, operand) and workspace.time[one, operand] > workspace.time[other, operand]:
            return False
    return bool(text_order(workspace, one, other) <= 0)


@kernel
def is_completable(tables: Tables, workspace: Workspace, instance: int, now: int, rank: int) -> bool:
    """Whether some continuation completes an instance; notes when to look again.

    `now` and `rank` are those of the last event that the partition took.
    """
    this = workspace.instances[instance]
    mover = workspace.movers[instance]
    state, mask = tables.states[this.state], this.mask
    found = False
    this.due_time = this.due_rank = _FOREVER
    if state.by_instance:
        mover.ends_time = mover.ends_rank = _FOREVER if state.lasting else -_FOREVER
    if state.lasting:
        return True
    for path in range(state.ahead_at, tables.states[this.state + 1].ahead_at):
        until = _FOREVER
        last = _FOREVER
        if tables.window_events < _FOREVER:
            last = this.first_rank + tables.window_events - 1 - tables.completion_paths[path].missing
        possible = rank <= last and agrees(tables, workspace, instance, path)
        for number in range(tables.completion_paths[path].bound_at, tables.completion_paths[path + 1].bound_at):
            if not possible:
                break
            bound = tables.bounds[number]
            one, other = bound.one, bound.other
            if (one >= 0 and not has(mask, one)) or (other >= 0 and not has(mask, other)):
                continue
            later = now if one == NOW else this.first_time if one == FIRST else workspace.time[instance, one]
            earlier = this.first_time if other == FIRST else workspace.time[instance, other]
            possible = later - earlier <= bound.most
            if one == NOW:
                until = min(until, earlier + bound.most)
        if possible:
            found = True
            this.due_time = min(this.due_time, until)
            this.due_rank = min(this.due_rank, last)
            if state.by_instance:
                mover.ends_time = max(mover.ends_time, until)
                mover.ends_rank = max(mover.ends_rank, last)
    return found


@kernel
def agrees(tables: Tables, workspace: Workspace, instance: int, path: int) -> bool:
    """Whether join variables and columns of the partition agree where a completion path asks for it."""
    for row in range(tables.completion_paths[path].agree_at, tables.completion_paths[path + 1].agree_at):
        wanted = tables.agreements[row]
        known = NONE
        for column in range(len(workspace.values)):
            value = workspace.values[column]
            if has(wanted.columns, column):
                if value == NONE or (known not in (NONE, value)):
                    return False
                known = value
        for variable in range(workspace.joins.shape[1]):
            value = workspace.joins[instance, variable]
            if value != NONE and has(wanted.variables, variable):
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
    this = workspace.instances[instance]
    state = tables.states[this.state]
    first = workspace.states[this.state].head
    this.digest = NONE
    if first != NONE:
        other = _representative(tables, workspace, stream, instance, first)
        if other != NONE:
            free_instance(workspace, instance)
            return other
        insert(workspace.table, this.digest, instance)
    this.serial = n[BORN]
    n[BORN] += 1
    if first == NONE:
        workspace.states[this.state].head = instance
        this.previous = this.following = NONE
        mark_open(tables, workspace, this.state, True)
    else:
        after = workspace.instances[first].following
        this.previous, this.following = first, after
        workspace.instances[first].following = instance
        if after != NONE:
            workspace.instances[after].previous = instance
    hold(tables, workspace, instance, weight)
    if state.by_instance:
        workspace.movers[instance].since, workspace.movers[instance].moved_serial = n[CLOCK], NONE
        n[LIVE] += 1
        n[SINCE] += n[CLOCK]
    if state.pending:
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
    if workspace.instances[first].digest == NONE and _represents(tables, workspace, stream, first, instance):
        return first
    wanted = digest(tables, workspace, instance)
    workspace.instances[instance].digest = wanted
    last = len(workspace.table) - 1
    at = wanted & last
    while workspace.table[at] != NONE:
        other = int(workspace.table[at])
        equal = workspace.instances[other].digest == wanted
        if equal and _represents(tables, workspace, stream, other, instance):
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
        if tables.states[workspace.instances[one].state].by_instance:
            settle_moves(tables, workspace, stream, one, workspace.n[CLOCK])
        replace(tables, workspace, one, other)
        return True
    return False


@kernel
def mark_open(tables: Tables, workspace: Workspace, state: int, whether: bool) -> None:
    """Note of the links out of a state whether it holds instances."""
    for at in range(tables.states[state].out_at, tables.states[state + 1].out_at):
        workspace.open[tables.out[at]] = whether


@kernel
def replace(tables: Tables, workspace: Workspace, old: int, new: int) -> None:
    """Let an instance hold another assignment that is the same."""
    this, that = workspace.instances[old], workspace.instances[new]
    mover, beside = workspace.movers[old], workspace.movers[new]
    due_time, due_rank = this.due_time, this.due_rank
    for operand in range(workspace.time.shape[1]):
        workspace.time[old, operand] = workspace.time[new, operand]
        workspace.position[old, operand] = workspace.position[new, operand]
    this.first_time, this.first_rank = that.first_time, that.first_rank
    this.due_time, this.due_rank = that.due_time, that.due_rank
    if tables.states[this.state].by_instance:
        mover.ends_time, mover.ends_rank = beside.ends_time, beside.ends_rank
        mover.opens, mover.age = beside.opens, beside.age
    if tables.states[this.state].pending:
        # What stands for both is a copy of what the smaller one is; the other one still tells of the kin of its own.
        mover.source, beside.source = beside.source, mover.source
        mover.source_serial, beside.source_serial = beside.source_serial, mover.source_serial
    else:
        schedule_expiry(workspace, old, due_time, due_rank)


@kernel
def schedule_expiry(workspace: Workspace, instance: int, due_time: int, due_rank: int) -> None:
    """Enter an instance into the heaps of when to look again, where it does not stand yet with these."""
    n = workspace.n
    this = workspace.instances[instance]
    if this.due_time not in (_FOREVER, due_time):
        n[TIMED] = push(workspace.timed, n[TIMED], this.due_time, instance, this.serial)
    if this.due_rank not in (_FOREVER, due_rank):
        n[RANKED] = push(workspace.ranked, n[RANKED], this.due_rank, instance, this.serial)


@kernel
def remove(tables: Tables, workspace: Workspace, instance: int, event: int) -> None:
    """Take an instance out of everything."""
    this = workspace.instances[instance]
    before, after = this.previous, this.following
    if before == NONE:
        workspace.states[this.state].head = after
    else:
        workspace.instances[before].following = after
    if after != NONE:
        workspace.instances[after].previous = before
    elif before == NONE:
        mark_open(tables, workspace, this.state, False)
    if this.digest != NONE:
        delete(workspace.table, workspace.instances["digest"], instance)
    release(tables, workspace, instance)
    n = workspace.n
    if tables.states[this.state].by_instance:
        n[LIVE] -= 1
        n[SINCE] -= workspace.movers[instance].since
    if n[TRACING]:
        append_age_trace(workspace, ENDED_AT, instance, event)
    free_instance(workspace, instance)


@kernel
def row_digest(workspace: Workspace, instance: int) -> int:
    """A hash of what makes instances one row of an answer: state, bound operands, join values."""
    found = mixed(mixed(3, workspace.instances[instance].state), workspace.instances[instance].mask)
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
    this, mover = workspace.instances[instance], workspace.movers[instance]
    append_trace(workspace, kind, this.serial, event, NONE, this.state)
    workspace.trace[row, 5], workspace.trace[row, 6] = mover.ends_time, mover.ends_rank
    workspace.trace[row, 7] = mover.opens
