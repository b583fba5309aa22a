"""What a link makes of an instance and an event: another instance, if window, conditions and joins allow it."""

from __future__ import annotations

from patternlake.udfs.machines.kernels.counting import measure_age
from patternlake.udfs.machines.kernels.instances import allocate_instance, free_instance, has, is_completable
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import FOREVER, Tables
from patternlake.udfs.machines.kernels.workspace import CLOCK, NONE, TRACING, Workspace
from patternlake.udfs.machines.row_types import OF_EVENT
from patternlake.udfs.subkernels import kernel

_FOREVER = int(FOREVER)
DOMINATED = -2
"""In the place of an instance: what would be made stands already, or something smaller that is the same."""


@kernel
def take_transition(
    tables: Tables, workspace: Workspace, stream: Stream, event: int, rank: int, link: int, primitive: int,
    instance: int,
) -> int:  # fmt: skip
    """An instance for what a link makes of an instance, `NONE` where a condition, a join or the window does not hold,
    or `DOMINATED`.
    """
    time = stream.time[event]
    if instance != 0 and _outside(tables, workspace, instance, time, rank):
        return NONE
    edge, parent = tables.links[link], workspace.instances[instance]
    number = edge.limit_at
    while number < tables.links[link + 1].limit_at:
        limit = tables.limits[number]
        if not has(parent.mask, limit.operand):
            number += limit.beyond
            continue
        gap = (time if limit.other == OF_EVENT else workspace.time[instance, limit.other]) - workspace.time[
            instance, limit.operand
        ]
        if limit.absolute:
            gap = abs(gap)
        elif not limit.after:
            gap = -gap
        if limit.low <= gap <= limit.high:
            number += limit.onward
        elif limit.otherwise > 0:
            number += limit.otherwise
        else:
            return NONE
    if (
        tables.states[edge.target].plain
        and not workspace.n[TRACING]
        and _is_dominated(tables, workspace, stream, event, link, instance)
    ):
        return DOMINATED
    made = allocate_instance(workspace)
    for variable in range(workspace.joins.shape[1]):
        workspace.joins[made, variable] = workspace.joins[instance, variable]
    for number in range(tables.primitives[primitive].join_at, tables.primitives[primitive + 1].join_at):
        join = tables.joins[number]
        value, known = stream.values[join.column, event], workspace.joins[made, join.variable]
        if value == NONE or (known not in (NONE, value)):
            free_instance(workspace, made)
            return NONE
        workspace.joins[made, join.variable] = value
    this, mover, state = workspace.instances[made], workspace.movers[made], tables.states[edge.target]
    this.state, this.mask = edge.target, parent.mask | (1 << edge.operand)
    for bound in range(workspace.time.shape[1]):
        workspace.time[made, bound] = workspace.time[instance, bound]
        workspace.position[made, bound] = workspace.position[instance, bound]
    workspace.time[made, edge.operand], workspace.position[made, edge.operand] = time, stream.position[event]
    this.first_time = time if instance == 0 else parent.first_time
    this.first_rank = rank if instance == 0 else parent.first_rank
    if not state.final and not is_completable(tables, workspace, made, time, rank):
        free_instance(workspace, made)
        return NONE
    if state.by_instance:
        measure_age(tables, workspace, made, time, rank)
        # Its moves count from the next event on.
        mover.since = workspace.n[CLOCK]
    else:
        mover.age = 0
    if state.pending:
        # What lasts for one event is a copy of what last waited.
        waits = not tables.states[parent.state].pending
        above = workspace.movers[instance]
        mover.source = (instance if instance != 0 else NONE) if waits else above.source
        mover.source_serial = parent.serial if waits else above.source_serial
    return made


@kernel
def _outside(tables: Tables, workspace: Workspace, instance: int, time: int, rank: int) -> bool:
    """Whether an event comes too late for the window of an instance."""
    if tables.window_time < _FOREVER and time - workspace.instances[instance].first_time >= tables.window_time:
        return True
    return bool(
        tables.window_events < _FOREVER and rank - workspace.instances[instance].first_rank >= tables.window_events
    )


@kernel
def _is_dominated(tables: Tables, workspace: Workspace, stream: Stream, event: int, link: int, instance: int) -> bool:
    """Whether an instance of a plain state dominates what a link would make, by `instances.dominates`."""
    edge = tables.links[link]
    mask = workspace.instances[instance].mask | (1 << edge.operand)
    other = workspace.states[edge.target].head
    if other == NONE or workspace.instances[other].mask != mask:
        return False
    for bound in range(workspace.time.shape[1]):
        if not has(mask, bound):
            continue
        here = bound == edge.operand
        time = stream.time[event] if here else workspace.time[instance, bound]
        if workspace.time[other, bound] != time:
            return bool(workspace.time[other, bound] < time)
        position = stream.position[event] if here else workspace.position[instance, bound]
        if workspace.position[other, bound] != position:
            return bool(workspace.position[other, bound] < position)
    return True
