"""Moves that instances count one by one: those that have ages, and those of subscriptions with alternatives.

Source: SPEC section 6 (training). Per event, each instance counts one move, from its state, with the age that it has at
the time of the event, to those that it has after it: it waits, goes back where the event discards it, or is dead; and
of each link that the event follows from it, it advances instead. What waits is not looked at event by event, but when
something happens to it: its ages since then follow from the times of the events. How it grew so old, waits between
events tell (`waiting_times`).

A row of the tally is (kind and age at the event, state and age after, weight). Its kind is the state that was left, or,
behind all states, a link that an event followed, or, behind all links, the same link for what the instance would have
counted otherwise.
"""

from __future__ import annotations

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.machines.graph.ages import NEVER, age_of
from patternlake.udfs.machines.kernels.hashing import MOST, mixed
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import FOREVER, Tables
from patternlake.udfs.machines.kernels.workspace import LIVE, NONE, OFFSET, SINCE, TALLIED, TOP, Workspace
from patternlake.udfs.machines.row_types import Rows
from patternlake.udfs.subkernels import kernel, uncounted

_FOREVER = int(FOREVER)
AGES = 1 << 32
"""What kinds and states are multiplied by to make room for ages."""
GONE = -1
"""Stands for the state of what is dead."""


@kernel
def age_at(tables: Tables, workspace: Workspace, instance: int, time: int, rank: int) -> int:
    """The age of an instance at an event of its partition, by its time and rank."""
    return age_in(tables, workspace, workspace.instances[instance].state, instance, time, rank)


@kernel
def age_in(tables: Tables, workspace: Workspace, state: int, instance: int, time: int, rank: int) -> int:
    """The same of one that was in a state, and may be gone."""
    deadline, mover = tables.deadlines[state], workspace.movers[instance]
    if not deadline.timed:
        return 0
    return _age(
        mover.ends_time, mover.ends_rank, mover.opens, deadline.most, deadline.most_events, deadline.most_closed,
        time, rank,
    )  # fmt: skip


@uncounted
def _age(
    ends_time: int, ends_rank: int, opens: int, most: int, most_events: int, most_closed: int, time: int, rank: int
) -> int:
    left = NEVER if ends_time >= _FOREVER else max(0, ends_time - time)
    # The event after the last one that it may wait through can still complete it.
    events = NEVER if ends_rank >= _FOREVER else max(0, ends_rank + 1 - rank)
    return age_of(left, most, events, most_events, opens - time, most_closed)


@kernel
def measure_age(tables: Tables, workspace: Workspace, instance: int, time: int, rank: int) -> None:
    """Find when the lower bounds on an instance are reached, and its age."""
    this = workspace.instances[instance]
    opens = time
    for at in range(tables.deadlines[this.state].opens_at, tables.deadlines[this.state + 1].opens_at):
        operand = tables.opens[at].operand
        if (this.mask >> operand) & 1 == 1:
            opens = max(opens, workspace.time[instance, operand] + tables.opens[at].low)
    workspace.movers[instance].opens = opens
    workspace.movers[instance].age = age_at(tables, workspace, instance, time, rank)


@kernel
def tally(workspace: Workspace, kind: int, age: int, state: int, after: int, weight: float) -> bool:
    """Add to a row of the tally; False if there is no room for a new one."""
    return _tally(workspace.n, workspace.tally_keys, workspace.tally_weight, kind, age, state, after, weight)


@uncounted
def _tally(
    n: IntArray, keys: IntArray, weights: FloatArray, kind: int, age: int, state: int, after: int, weight: float
) -> bool:
    before, behind = int(kind) * AGES + int(age), int(state) * AGES + int(after)
    last = len(weights) - 1
    at = (mixed(mixed(17, before), behind) & MOST) & last
    while keys[at, 0] != NONE:
        if keys[at, 0] == before and keys[at, 1] == behind:
            weights[at] += weight
            return True
        at = (at + 1) & last
    if 2 * n[TALLIED] >= len(weights):
        return False
    n[TALLIED] += 1
    keys[at, 0], keys[at, 1] = before, behind
    weights[at] = weight
    return True


@kernel
def free_rows(workspace: Workspace) -> int:
    """How many new rows the tally has room for."""
    return len(workspace.tally_weight) // 2 - int(workspace.n[TALLIED])


@kernel
def rows_due(workspace: Workspace, event: int) -> int:
    """How many new rows at most there are to be when all instances have counted their moves before an event."""
    return int(workspace.n[LIVE] * event - workspace.n[SINCE])


@kernel
def settle_moves(tables: Tables, workspace: Workspace, stream: Stream, instance: int, event: int) -> bool:
    """Count the moves of what waits at the events before one; False if there is too little room; it may go on then."""
    state = workspace.instances[instance].state
    deadline, mover = tables.deadlines[state], workspace.movers[instance]
    return _settle_moves(
        workspace.n, workspace.tally_keys, workspace.tally_weight, stream.time, stream.weight, workspace.movers,
        instance, event, state, deadline.timed, mover.ends_time, mover.ends_rank, mover.opens,
        deadline.most, deadline.most_events, deadline.most_closed,
    )  # fmt: skip


@uncounted
def _settle_moves(
    n: IntArray,
    keys: IntArray,
    weights: FloatArray,
    times: IntArray,
    weight: FloatArray,
    movers: Rows,
    instance: int,
    event: int,
    state: int,
    timed: bool,
    ends_time: int,
    ends_rank: int,
    opens: int,
    most: int,
    most_events: int,
    most_closed: int,
) -> bool:
    mover = movers[instance]
    begun = at = mover.since
    enough = True
    while at < event:
        # Events at which it has the same age count together.
        first, age = at, mover.age
        if timed:
            age = _age(ends_time, ends_rank, opens, most, most_events, most_closed, times[at], at + n[OFFSET])
        at = event if not timed else at + 1
        while at < event and age == _age(
            ends_time, ends_rank, opens, most, most_events, most_closed, times[at], at + n[OFFSET]
        ):
            at += 1
        if not _tally(n, keys, weights, state, age, state, age, weight[at] - weight[first]):
            at = first
            enough = False
            break
        mover.age = age
    mover.since = at
    n[SINCE] += at - begun
    return enough


@kernel
def settle_all_moves(tables: Tables, workspace: Workspace, stream: Stream, event: int) -> bool:
    """The same of all instances."""
    for instance in range(1, workspace.n[TOP]):
        state = workspace.instances[instance].state
        counts = state > 0 and tables.states[state].by_instance and workspace.movers[instance].since < event
        if counts and not settle_moves(tables, workspace, stream, instance, event):
            return False
    return True


@kernel
def kin(tables: Tables, workspace: Workspace, instance: int, boundary: int) -> bool:
    """Whether an instance that lasts for one event can be a copy of one that waits."""
    this, that = workspace.instances[instance], workspace.instances[boundary]
    mask = that.mask
    if mask & ~this.mask != 0:
        return False
    among = False
    for at in range(tables.deadlines[this.state].boundary_at, tables.deadlines[this.state + 1].boundary_at):
        among = among or tables.boundaries[at] == that.state
    if not among:
        return False
    told = (tables.states[that.state].exact | tables.states[that.state].earliest) & mask
    for operand in range(workspace.time.shape[1]):
        # It bound what came first, and the copy what came then.
        for later in range(workspace.time.shape[1]):
            if (mask >> operand) & 1 == 1 and ((this.mask & ~mask) >> later) & 1 == 1:
                time, beside = workspace.time[instance, later], workspace.time[instance, operand]
                if time < beside:
                    return False
                if time == beside and workspace.position[instance, later] < workspace.position[instance, operand]:
                    return False
        if (told >> operand) & 1 == 1 and workspace.time[instance, operand] != workspace.time[boundary, operand]:
            return False
    for variable in range(workspace.joins.shape[1]):
        value = workspace.joins[boundary, variable]
        if value not in (NONE, workspace.joins[instance, variable]):
            return False
    first = tables.window_time >= _FOREVER or this.first_time == that.first_time
    return bool(first and (tables.window_events >= _FOREVER or this.first_rank == that.first_rank))


@kernel
def bits(mask: int) -> int:
    """How many bits are set."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@kernel
def find_boundaries(tables: Tables, workspace: Workspace, pending: IntArray, count: int) -> None:
    """Find of which waiting instances those that last for one event are copies, which nobody wrote down."""
    for at in range(count):
        instance, most = pending[at], -1
        mover = workspace.movers[instance]
        mover.source = NONE
        for other in range(1, workspace.n[TOP]):
            that = workspace.instances[other]
            if that.state <= 0 or tables.states[that.state].pending:
                continue
            bound = bits(that.mask)
            if bound > most and kin(tables, workspace, instance, other):
                mover.source, mover.source_serial, most = other, that.serial, bound
