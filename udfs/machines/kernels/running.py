"""Partitions one after the other: what is remembered of each is read, its new events are taken, it is written back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.machines.forecasts.totals import Totals
from patternlake.udfs.machines.kernels.counting import find_boundaries, measure_age, settle_all_moves
from patternlake.udfs.machines.kernels.groups import free_emptied_groups
from patternlake.udfs.machines.kernels.instances import add, allocate_instance, free_instance, is_completable, remove
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.sweep import sweep
from patternlake.udfs.machines.kernels.tables import Compiled, Tables
from patternlake.udfs.machines.kernels.workspace import (
    BORN,
    CLOCK,
    DONE,
    FOUND,
    FREE,
    GROUP_FREE,
    GROUP_TOP,
    MORE_EXPIRY_HEAPS,
    MORE_GROUPS,
    MORE_INSTANCES,
    MORE_TALLY,
    MORE_TRACE,
    NONE,
    NONWAITING_GROUPS,
    PENDING,
    RANKED,
    ROOTS,
    TIMED,
    TOP,
    TRACED,
    TRACING,
    Workspace,
    enlarged,
    new_workspace,
)
from patternlake.udfs.subkernels import entry, kernel

MORE_KEPT = 100
"""What the kernel says where there is no room to write instances back."""
_NOT_READ = -1


class Held(NamedTuple):
    """What is remembered of p partitions.

    Attributes
    ----------
    taken, last, began
        int64[p]: events that each has taken; time of the last of them, and of the first.
    at
        int64[p + 1]: where the instances of each begin.
    state, mask, first_time, first_rank, joins, time, position, age
        Of instances, as in `Workspace`; `age` is told, and not read back.
    """

    taken: IntArray
    last: IntArray
    began: IntArray
    at: IntArray
    state: IntArray
    mask: IntArray
    first_time: IntArray
    first_rank: IntArray
    joins: IntArray
    time: IntArray
    position: IntArray
    age: IntArray


@dataclass(frozen=True)
class Found:
    """Matches, in the order of events by partition.

    Attributes
    ----------
    event
        int64[m]: number of the completing event.
    state
        int64[m]: final state of the graph.
    mask
        int64[m]: operands that are bound, as bits.
    time, position
        int64[m, O] of their events.
    """

    event: IntArray
    state: IntArray
    mask: IntArray
    time: IntArray
    position: IntArray


def nothing_held(compiled: Compiled, partitions: int) -> Held:
    """What is remembered of partitions that have not begun."""
    variables, operands = max(1, len(compiled.variables)), compiled.operands
    widths = {"joins": variables, "time": operands, "position": operands}
    return Held(
        taken=np.zeros(partitions, np.int64),
        last=np.zeros(partitions, np.int64),
        began=np.zeros(partitions, np.int64),
        at=np.zeros(partitions + 1, np.int64),
        **{name: np.zeros((0, widths[name]) if name in widths else 0, np.int64) for name in Held._fields[4:]},
    )


class Machines:
    """The machines of subscriptions, running.

    Parameters
    ----------
    compiled
        The subscriptions.
    tracing
        Keep who descends from whom.
    """

    def __init__(self, compiled: Compiled, *, tracing: bool = False) -> None:
        self.compiled, self.tables = compiled, compiled.tables
        self.workspace = new_workspace(compiled, tracing=tracing)

    def take(self, held: Held, event_at: IntArray, stream: Stream) -> tuple[Found, Held]:
        """Let partitions take new events.

        Parameters
        ----------
        held
            What is remembered of p partitions.
        event_at
            int64[p + 1]: where the events of each begin; each has one at least.
        stream
            The events.

        Returns
        -------
        The matches, and what is to be remembered.
        """
        tables = self.tables
        most = int(np.diff(held.at).max(initial=0))
        self._ensure_capacity(most)
        kept = _capacity(held, max(256, 2 * len(held.state)))
        progress = np.array([0, _NOT_READ, 0], np.int64)
        self.workspace.n[FOUND] = self.workspace.n[TRACED] = self.workspace.n[BORN] = 0
        while True:
            wanted = _run(tables, self.workspace, stream, event_at, held, kept, progress)
            if wanted == DONE:
                break
            if wanted == MORE_KEPT:
                kept = _capacity(kept, 2 * len(kept.state) + int(self.workspace.n[TOP]))
            else:
                self.workspace = enlarged(self.workspace, wanted)
        # The empty assignment holds its counted states all the time.
        roots = int(self.workspace.n[ROOTS])
        always = tables.roles["counted_state"][:roots]
        self.workspace.counted_states["visits"][always] += stream.weight[-1] - stream.weight[0]
        workspace, found, count = self.workspace, int(self.workspace.n[FOUND]), int(progress[2])
        return (
            Found(
                event=workspace.found["event"][:found].copy(),
                state=workspace.found["state"][:found].copy(),
                mask=workspace.found["mask"][:found].copy(),
                time=workspace.found_time[:found].copy(),
                position=workspace.found_position[:found].copy(),
            ),
            kept._replace(**{name: getattr(kept, name)[:count].copy() for name in Held._fields[4:]}),
        )

    def _ensure_capacity(self, instances: int) -> None:
        """For what is remembered of one partition."""
        for wanted, size in (
            (MORE_INSTANCES, instances + 2),
            (MORE_GROUPS, int(self.workspace.n[ROOTS]) + instances * self.workspace.held_groups.shape[1] + 1),
            (MORE_EXPIRY_HEAPS, 2 * instances + 2),
        ):
            held = {
                MORE_INSTANCES: self.workspace.instances,
                MORE_GROUPS: self.workspace.groups,
                MORE_EXPIRY_HEAPS: self.workspace.timed,
            }
            if len(held[wanted]) < size:
                self.workspace = enlarged(self.workspace, wanted, size)

    @property
    def trace(self) -> IntArray:
        """int64[·, 5]: `Workspace.trace` of the last events that were taken."""
        return self.workspace.trace[: self.workspace.n[TRACED]]

    @property
    def totals(self) -> Totals:
        """All counts."""
        workspace = self.workspace
        used = np.flatnonzero(workspace.tally_keys[:, 0] != NONE)
        return Totals(
            np.concatenate(
                [workspace.counted_states["visits"], workspace.advanced, workspace.left, workspace.fired_left]
            ),
            workspace.tally_keys[used],
            workspace.tally_weight[used],
        )


def _capacity(held: Held, size: int) -> Held:
    """The same with room for so many instances."""
    made = {name: getattr(held, name).copy() for name in Held._fields}
    for name in Held._fields[4:]:
        larger = np.zeros((size, *made[name].shape[1:]), np.int64)
        larger[: len(made[name])] = made[name]
        made[name] = larger
    return Held(**made)


@entry
def _run(
    tables: Tables, workspace: Workspace, stream: Stream, event_at: IntArray, held: Held, kept: Held, progress: IntArray
) -> int:
    """Go on from (partition, event, instances written back) until all is done or there is too little room."""
    while progress[0] < len(event_at) - 1:
        part = progress[0]
        begin, end = event_at[part], event_at[part + 1]
        if progress[1] == _NOT_READ:
            _read(tables, workspace, stream, begin, held, part)
            progress[1] = begin
        rank = held.taken[part] + progress[1] - begin
        progress[1], wanted = sweep(tables, workspace, stream, progress[1], end, rank)
        if wanted == DONE and not settle_all_moves(tables, workspace, stream, end):
            wanted = MORE_TALLY
        if wanted != DONE:
            return wanted
        if progress[2] + workspace.n[TOP] > len(kept.state):
            return MORE_KEPT
        if workspace.n[TRACING] and workspace.n[TRACED] + workspace.n[TOP] > len(workspace.trace):
            return MORE_TRACE
        progress[2] = _write(tables, workspace, kept, progress[2], end, stream.weight[end])
        kept.taken[part] = held.taken[part] + end - begin
        kept.last[part] = stream.time[end - 1]
        kept.began[part] = stream.time[begin] if held.taken[part] == 0 else held.began[part]
        kept.at[part + 1] = progress[2]
        progress[0], progress[1] = part + 1, _NOT_READ
    return DONE


@kernel
def _read(tables: Tables, workspace: Workspace, stream: Stream, begin: int, held: Held, part: int) -> None:
    """Put what is remembered of a partition into the workspace."""
    n = workspace.n
    n[CLOCK] = begin
    for column in range(len(workspace.values)):
        workspace.values[column] = stream.values[column, begin]
    for row in range(held.at[part], held.at[part + 1]):
        instance = allocate_instance(workspace)
        this = workspace.instances[instance]
        this.state, this.mask = held.state[row], held.mask[row]
        this.first_time, this.first_rank = held.first_time[row], held.first_rank[row]
        _copy_bindings(
            held.joins, held.time, held.position, row, workspace.joins, workspace.time, workspace.position, instance
        )
        if is_completable(tables, workspace, instance, held.last[part], held.taken[part] - 1):
            if tables.states[this.state].by_instance:
                measure_age(tables, workspace, instance, held.last[part], held.taken[part] - 1)
            add(tables, workspace, stream, instance, stream.weight[begin])
        else:
            free_instance(workspace, instance)
    find_boundaries(tables, workspace, workspace.pending, n[PENDING])


@kernel
def _write(tables: Tables, workspace: Workspace, kept: Held, row: int, end: int, weight: float) -> int:
    """Write a partition's instances back and empty the workspace; returns the next row."""
    n = workspace.n
    for instance in range(1, n[TOP]):
        this = workspace.instances[instance]
        if this.state < 0:
            continue
        kept.state[row], kept.mask[row] = this.state, this.mask
        kept.first_time[row], kept.first_rank[row] = this.first_time, this.first_rank
        _copy_bindings(
            workspace.joins, workspace.time, workspace.position, instance, kept.joins, kept.time, kept.position, row
        )
        kept.age[row] = workspace.movers[instance].age if tables.states[this.state].by_instance else 0
        row += 1
        remove(tables, workspace, instance, end)
    free_emptied_groups(tables, workspace, weight)
    n[TOP], n[FREE], n[PENDING], n[TIMED], n[RANKED], n[NONWAITING_GROUPS] = 1, 0, 0, 0, 0, 0
    n[GROUP_TOP], n[GROUP_FREE] = n[ROOTS], 0
    return row


@kernel
def _copy_bindings(
    joins: IntArray, time: IntArray, position: IntArray, row: int, to_joins: IntArray, to_time: IntArray,
    to_position: IntArray, at: int,
) -> None:  # fmt: skip
    """Copy what an instance bound."""
    for variable in range(joins.shape[1]):
        to_joins[at, variable] = joins[row, variable]
    for operand in range(time.shape[1]):
        to_time[at, operand], to_position[at, operand] = time[row, operand], position[row, operand]
