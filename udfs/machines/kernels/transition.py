"""What a link makes of an instance and an event: another instance, if window, conditions and joins allow it."""

from __future__ import annotations

from patternlake.udfs.machines.kernels.compiling import kernel
from patternlake.udfs.machines.kernels.counting import measure_age
from patternlake.udfs.machines.kernels.instances import allocate_instance, free_instance, has, is_completable
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import FOREVER, IntArray, Tables
from patternlake.udfs.machines.kernels.workspace import CLOCK, NONE, TRACING, Workspace

_FOREVER = int(FOREVER)
DOMINATED = -2
"""In the place of an instance: what would be made stands already, or something smaller that is the same."""


@kernel
def take_transition(
    tables: Tables, workspace: Workspace, stream: Stream, event: int, values: IntArray, rank: int,
    link: int, primitive: int, instance: int,
) -> int:  # fmt: skip
    """An instance for what a link makes of an instance, `NONE` where a condition, a join or the window does not hold,
    or `DOMINATED`.
    """
    time = stream.time[event]
    if instance != 0 and _outside(tables, workspace, instance, time, rank):
        return NONE
    mask = workspace.mask[instance]
    for limit in range(tables.limit_at[link], tables.limit_at[link + 1]):
        operand = tables.limit_operand[limit]
        if not has(mask, operand):
            continue
        gap = time - workspace.time[instance, operand]
        if tables.limit_absolute[limit]:
            gap = abs(gap)
        elif not tables.limit_after[limit]:
            gap = -gap
        if gap < tables.limit_low[limit] or gap > tables.limit_high[limit]:
            return NONE
    if (
        tables.plain[tables.target[link]]
        and not workspace.n[TRACING]
        and _is_dominated(tables, workspace, stream, event, link, instance)
    ):
        return DOMINATED
    made = allocate_instance(workspace)
    for variable in range(workspace.joins.shape[1]):
        workspace.joins[made, variable] = workspace.joins[instance, variable]
    for join in range(tables.join_at[primitive], tables.join_at[primitive + 1]):
        value = stream.values[tables.join_column[join], event]
        known = workspace.joins[made, tables.join_variable[join]]
        if value == NONE or (known not in (NONE, value)):
            free_instance(workspace, made)
            return NONE
        workspace.joins[made, tables.join_variable[join]] = value
    operand = tables.operand[link]
    workspace.state[made] = tables.target[link]
    workspace.mask[made] = mask | (1 << operand)
    for bound in range(workspace.time.shape[1]):
        workspace.time[made, bound], workspace.position[made, bound] = (
            workspace.time[instance, bound],
            workspace.position[instance, bound],
        )
    workspace.time[made, operand], workspace.position[made, operand] = time, stream.position[event]
    workspace.first_time[made] = time if instance == 0 else workspace.first_time[instance]
    workspace.first_rank[made] = rank if instance == 0 else workspace.first_rank[instance]
    if not tables.final[workspace.state[made]] and not is_completable(tables, workspace, made, values, time, rank):
        free_instance(workspace, made)
        return NONE
    state = workspace.state[made]
    if tables.by_instance[state]:
        measure_age(tables, workspace, made, time, rank)
        # Its moves count from the next event on.
        workspace.since[made] = workspace.n[CLOCK]
    else:
        workspace.age[made] = 0
    if tables.pending[state]:
        # What lasts for one event is a copy of what last waited.
        waits = not tables.pending[workspace.state[instance]]
        workspace.source[made] = (instance if instance != 0 else NONE) if waits else workspace.source[instance]
        workspace.source_serial[made] = workspace.serial[instance] if waits else workspace.source_serial[instance]
    return made


@kernel
def _outside(tables: Tables, workspace: Workspace, instance: int, time: int, rank: int) -> bool:
    """Whether an event comes too late for the window of an instance."""
    if tables.window_time < _FOREVER and time - workspace.first_time[instance] >= tables.window_time:
        return True
    return bool(tables.window_events < _FOREVER and rank - workspace.first_rank[instance] >= tables.window_events)


@kernel
def _is_dominated(tables: Tables, workspace: Workspace, stream: Stream, event: int, link: int, instance: int) -> bool:
    """Whether an instance of a plain state dominates what a link would make, by `instances.dominates`."""
    operand = tables.operand[link]
    mask = workspace.mask[instance] | (1 << operand)
    other = workspace.head[tables.target[link]]
    if other == NONE or workspace.mask[other] != mask:
        return False
    for bound in range(workspace.time.shape[1]):
        if not has(mask, bound):
            continue
        here = bound == operand
        time = stream.time[event] if here else workspace.time[instance, bound]
        if workspace.time[other, bound] != time:
            return bool(workspace.time[other, bound] < time)
        position = stream.position[event] if here else workspace.position[instance, bound]
        if workspace.position[other, bound] != position:
            return bool(workspace.position[other, bound] < position)
    return True
