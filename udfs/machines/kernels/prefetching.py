"""Memory is asked for before it is needed: what links and states hold lies anywhere, and waiting for it is most of the
time of an event where there are many subscriptions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from patternlake.udfs.machines.kernels.compiling import kernel
from patternlake.udfs.machines.kernels.tables import Tables
from patternlake.udfs.machines.kernels.workspace import FIRED, NONE, Workspace

_LINE = 64


def _typed(typing_context: Any, array: Any, row: Any, offset: Any) -> Any:
    """Ask for the line of memory at so many bytes into a row of an array."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, *numbers = signature.args
        view = context.make_array(kind)(context, builder, arguments[0])
        row, offset = (
            context.cast(builder, value, number, types.int64)
            for value, number in zip(arguments[1:], numbers, strict=True)
        )
        stride = builder.extract_value(view.strides, 0)
        bytes_ = builder.bitcast(view.data, cgutils.voidptr_t)
        address = builder.gep(bytes_, [builder.add(builder.mul(row, stride), offset)])
        integer = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, integer, integer, integer])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], shape)
        builder.call(prefetch, [address, integer(0), integer(3), integer(1)])
        return context.get_dummy_value()

    return types.void(array, row, offset), generated


_prefetch: Any = intrinsic(_typed)


@kernel
def prefetch_links(tables: Tables, workspace: Workspace, count: int) -> None:
    """Ask for what the first links of `Workspace.follows` need; each pass for what the one before it leads to."""
    for at in range(count):
        link = workspace.follows[at]
        _prefetch(workspace.head, tables.source[link], 0)
        _prefetch(tables.pending, tables.target[link], 0)
        _prefetch(tables.move_advance_counter, tables.move_at[link], 0)
        _prefetch(workspace.head, tables.target[link], 0)
    for at in range(count):
        link = workspace.follows[at]
        target, advance_counter = tables.target[link], tables.move_advance_counter[tables.move_at[link]]
        instance = workspace.head[tables.source[link]]
        if instance != NONE:
            _prefetch(workspace.state, instance, 0)
            _prefetch(workspace.state, instance, _LINE)
            _prefetch(workspace.state, instance, 2 * _LINE)
            _prefetch(workspace.state, instance, 3 * _LINE)
        _prefetch(tables.role_counted_state, tables.role_at[target], 0)
        _prefetch(tables.out, tables.out_at[target], 0)
        _prefetch(tables.advance_counter_state, advance_counter, 0)
        _prefetch(workspace.advanced, advance_counter, 0)
    for at in range(count):
        link = workspace.follows[at]
        target, advance_counter = tables.target[link], tables.move_advance_counter[tables.move_at[link]]
        instance = workspace.head[tables.source[link]]
        if instance != NONE:
            _prefetch(
                workspace.group_counted_state, workspace.group[instance, tables.move_role[tables.move_at[link]]], 0
            )
        if not tables.final[target]:
            counted_state = tables.role_counted_state[tables.role_at[target]]
            _prefetch(tables.waits, counted_state, 0)
            _prefetch(workspace.visits, counted_state, 0)
            _prefetch(workspace.open, tables.out[tables.out_at[target]], 0)
        _prefetch(tables.fired_at, advance_counter, 0)


@kernel
def prefetch_ends(tables: Tables, workspace: Workspace, nonwaiting: int) -> None:
    """Ask for what tells where the nonwaiting groups go, and for where they are counted."""
    for at in range(nonwaiting):
        counted_state = workspace.group_counted_state[workspace.nonwaiting_groups[at]]
        _prefetch(tables.fallback_states, tables.fallback_state_at[counted_state], 0)
        _prefetch(workspace.left, tables.left_at[counted_state], 0)
    for at in range(nonwaiting):
        counted_state = _next_occupied(
            tables, workspace, workspace.group_counted_state[workspace.nonwaiting_groups[at]]
        )
        if counted_state != NONE:
            _prefetch(workspace.counted_state_first, counted_state, 0)
    for at in range(workspace.n[FIRED]):
        _prefetch(workspace.fired_left, tables.fired_at[workspace.fired[at, 1]], 0)
    for at in range(nonwaiting):
        counted_state = _next_occupied(
            tables, workspace, workspace.group_counted_state[workspace.nonwaiting_groups[at]]
        )
        if counted_state != NONE and workspace.counted_state_first[counted_state] != NONE:
            _prefetch(workspace.group_counted_state, workspace.counted_state_first[counted_state], 0)


@kernel
def _next_occupied(tables: Tables, workspace: Workspace, counted_state: int) -> int:
    """The first occupied one of a counted state's fallback states, or `NONE`."""
    for at in range(tables.fallback_state_at[counted_state], tables.fallback_state_at[counted_state + 1]):
        if workspace.occupied[tables.fallback_states[at]]:
            return int(tables.fallback_states[at])
    return NONE
