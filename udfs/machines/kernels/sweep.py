"""Events one after the other: links are followed, instances come, go on, and die, moves are counted.

Source: Muthusamy et al. 2010, section 4.1 (matching), and SPEC section 6. An event follows all links of all primitives
that take it before anything that it makes is added, so one event never fills two operands. States that are followed
by ``,`` last for one event; all others keep their instances until no continuation completes them.
"""

from __future__ import annotations

from numba import njit

from patternlake.udfs.machines.kernels.compiling import kernel
from patternlake.udfs.machines.kernels.counting import (
    GONE,
    age_at,
    free_rows,
    rows_due,
    settle_all_moves,
    settle_moves,
    tally,
)
from patternlake.udfs.machines.kernels.expiry_heaps import pop
from patternlake.udfs.machines.kernels.groups import end_of, falls_to, free_emptied_groups
from patternlake.udfs.machines.kernels.instances import (
    add,
    append_age_trace,
    append_trace,
    free_instance,
    is_completable,
    remove,
    row_digest,
    schedule_expiry,
    text_order,
)
from patternlake.udfs.machines.kernels.prefetching import prefetch_ends, prefetch_links
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import IntArray, Tables
from patternlake.udfs.machines.kernels.transition import DOMINATED, take_transition
from patternlake.udfs.machines.kernels.workspace import (
    ADVANCED,
    BEGUN,
    BY_COUNTER,
    CLOCK,
    COMPLETED,
    DISCARDED,
    DONE,
    EDGE,
    ENDED,
    FELL,
    FIRED,
    FOUND,
    FREE,
    FRESH,
    GROUP_FREE,
    GROUP_TOP,
    LIVE,
    LOOKED_AT,
    MORE_EXPIRY_HEAPS,
    MORE_FIRED,
    MORE_FOUND,
    MORE_GROUPS,
    MORE_INSTANCES,
    MORE_TALLY,
    MORE_TRACE,
    MOVED,
    NONE,
    NONWAITING_GROUPS,
    OFFSET,
    PENDING,
    RANKED,
    SERIAL,
    TIMED,
    TOP,
    TRACED,
    TRACING,
    Workspace,
)


@njit(cache=True)
def sweep(
    tables: Tables, workspace: Workspace, stream: Stream, first: int, begin: int, end: int, rank: int
) -> tuple[int, int]:
    """Let a partition take some events.

    Parameters
    ----------
    tables, workspace
        The partition's instances are in the workspace.
    stream
        All events.
    first
        An event of the partition, for its values.
    begin, end
        The events.
    rank
        Rank of event `begin` in its partition, from 0.

    Returns
    -------
    The first event that was not taken, and what there is too little room for, or `DONE`.
    """
    values = stream.values[:, first].copy()
    n = workspace.n
    n[OFFSET] = rank - begin
    for event in range(begin, end):
        idle = (
            stream.matching_primitive_at[event] == stream.matching_primitive_at[event + 1]
            and n[PENDING] == 0
            and n[NONWAITING_GROUPS] == 0
        )
        timely = n[TIMED] == 0 or workspace.timed[0, 0] >= stream.time[event]
        if idle and timely and (n[RANKED] == 0 or workspace.ranked[0, 0] >= rank + event - begin):
            continue
        rows = workspace.n[TRACED]
        wanted = _follow(tables, workspace, stream, event, values, rank + event - begin)
        if wanted != DONE:
            _forget(workspace)
            workspace.n[TRACED] = rows
            return event, wanted
        _settle(tables, workspace, stream, event, values, rank + event - begin)
    return end, DONE


@kernel
def _follow(tables: Tables, workspace: Workspace, stream: Stream, event: int, values: IntArray, rank: int) -> int:
    """Find what an event makes; nothing but fresh instances and marks is changed."""
    n = workspace.n
    n[SERIAL] += 1
    n[CLOCK] = event + 1
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    for at in range(stream.matching_primitive_at[event], stream.matching_primitive_at[event + 1]):
        primitive = stream.matching_primitives[at]
        count = 0
        for link in range(tables.link_at[primitive], tables.link_at[primitive + 1]):
            workspace.follows[count] = link
            count += workspace.open[link]
        prefetch_links(tables, workspace, count)
        for number in range(count):
            link = workspace.follows[number]
            source = tables.source[link]
            instance = 0 if source == 0 else workspace.head[source]
            while instance != NONE:
                if n[FREE] == 0 and n[TOP] == len(workspace.state):
                    return MORE_INSTANCES
                made = take_transition(tables, workspace, stream, event, values, rank, link, primitive, instance)
                if made != NONE:
                    if n[FIRED] + tables.move_at[link + 1] - tables.move_at[link] > len(workspace.fired) or n[
                        MOVED
                    ] == len(workspace.moved):
                        if made != DOMINATED:
                            free_instance(workspace, made)
                        return MORE_FIRED
                    if n[TRACING] and n[TRACED] == len(workspace.trace):
                        free_instance(workspace, made)
                        return MORE_TRACE
                    _mark(tables, workspace, link, instance)
                    if tables.by_instance[source]:
                        _note_move(tables, workspace, link, instance, 0 if made == DOMINATED else workspace.age[made])
                    if made == DOMINATED:
                        pass
                    elif tables.final[workspace.state[made]]:
                        _end(workspace, made, instance, event)
                    else:
                        workspace.fresh[n[FRESH]], workspace.parent[made] = made, instance
                        n[FRESH] += 1
                instance = NONE if source == 0 else workspace.following[instance]
    wanted = _capacity_left(workspace)
    if wanted != DONE:
        return wanted
    return tally_left(tables, workspace, stream, event, n[LIVE] + 3 * n[MOVED])


@kernel
def tally_left(tables: Tables, workspace: Workspace, stream: Stream, event: int, more: int) -> int:
    """Whether the tally has room for all moves up to an event, itself included, and for some more rows."""
    if rows_due(workspace, event + 1) + more <= free_rows(workspace):
        return DONE
    if not settle_all_moves(tables, workspace, stream, event) or rows_due(workspace, event + 1) + more > free_rows(
        workspace
    ):
        return MORE_TALLY
    return DONE


@kernel
def _capacity_left(workspace: Workspace) -> int:
    """Whether there is room for what was found."""
    n = workspace.n
    if len(workspace.group_counted_state) - n[GROUP_TOP] + n[GROUP_FREE] < n[FRESH] * workspace.group.shape[1]:
        return MORE_GROUPS
    if 2 * (n[TIMED] + n[RANKED]) + n[FRESH] >= len(workspace.timed):
        return MORE_EXPIRY_HEAPS
    if n[FOUND] + n[ENDED] > len(workspace.found):
        return MORE_FOUND
    if n[TRACING] and n[TRACED] + 2 * n[FRESH] + 4 * n[TOP] > len(workspace.trace):
        return MORE_TRACE
    return DONE


@kernel
def _forget(workspace: Workspace) -> None:
    """Free what an event made that cannot be taken yet."""
    n = workspace.n
    for at in range(n[FRESH]):
        free_instance(workspace, workspace.fresh[at])
    for at in range(n[ENDED]):
        state = workspace.ended[at]
        free_instance(workspace, workspace.best[state])
        workspace.best[state] = NONE
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0


@kernel
def _note_move(tables: Tables, workspace: Workspace, link: int, instance: int, age: int) -> None:
    """Note an advance of an instance that counts moves of its own; of several by rival links the first in rank."""
    n = workspace.n
    row = n[MOVED]
    if tables.rival[link] and workspace.moved_serial[instance] == n[SERIAL]:
        row = workspace.moved_row[instance]
        if tables.rank[workspace.moved[row, 1]] <= tables.rank[link]:
            return
    else:
        n[MOVED] += 1
    if tables.rival[link]:
        workspace.moved_serial[instance], workspace.moved_row[instance] = n[SERIAL], row
    workspace.moved[row, 0], workspace.moved[row, 1], workspace.moved[row, 2] = instance, link, age


@kernel
def _mark(tables: Tables, workspace: Workspace, link: int, instance: int) -> None:
    """Note which groups of an instance advance by a link."""
    n = workspace.n
    for move in range(tables.move_at[link], tables.move_at[link + 1]):
        group = workspace.group[instance, tables.move_role[move]] if instance != 0 else tables.move_role[move]
        advance_counter = tables.move_advance_counter[move]
        first = workspace.group_marks[group, ADVANCED] != n[SERIAL]
        if not first and workspace.group_marks[group, BY_COUNTER] == advance_counter:
            continue
        row = n[FIRED]
        if tables.rival[link] and instance == 0 and not first:
            row = 0
            while workspace.fired[row, 0] != group:
                row += 1
            if tables.rank[workspace.fired[row, 2]] <= tables.rank[link]:
                continue
        else:
            n[FIRED] += 1
        workspace.group_marks[group, ADVANCED], workspace.group_marks[group, BY_COUNTER] = n[SERIAL], advance_counter
        workspace.fired[row, 0], workspace.fired[row, 1], workspace.fired[row, 2] = group, advance_counter, link


@kernel
def _end(workspace: Workspace, made: int, parent: int, event: int) -> None:
    """Of the instances that complete a subscription keep the smallest."""
    n = workspace.n
    if n[TRACING]:
        append_trace(workspace, COMPLETED, workspace.serial[parent], event, NONE, NONE)
    state = workspace.state[made]
    best = workspace.best[state]
    if best == NONE:
        workspace.ended[n[ENDED]] = state
        workspace.best[state] = made
        n[ENDED] += 1
    elif text_order(workspace, made, best) < 0:
        free_instance(workspace, best)
        workspace.best[state] = made
    else:
        free_instance(workspace, made)


@kernel
def _settle(tables: Tables, workspace: Workspace, stream: Stream, event: int, values: IntArray, rank: int) -> None:
    """Change what an event changes."""
    n = workspace.n
    now, weight = stream.weight[event + 1] - stream.weight[event], stream.weight[event + 1]
    _emit_matches(workspace, event)
    _count_advances(tables, workspace, stream, event, now)
    nonwaiting = n[NONWAITING_GROUPS]
    prefetch_ends(tables, workspace, nonwaiting)
    n[DISCARDED] = n[PENDING]
    for at in range(n[PENDING]):
        workspace.discarded[at], workspace.discarded_state[at] = (
            workspace.pending[at],
            workspace.state[workspace.pending[at]],
        )
        remove(tables, workspace, workspace.pending[at], event)
    n[PENDING] = 0
    time = stream.time[event]
    _expire(tables, workspace, stream, workspace.timed, TIMED, time, event, time, rank, values)
    _expire(tables, workspace, stream, workspace.ranked, RANKED, rank, event, time, rank, values)
    for at in range(n[FRESH]):
        made, parent = workspace.fresh[at], workspace.parent[workspace.fresh[at]]
        kept = add(tables, workspace, stream, made, weight)
        workspace.kept[at] = kept
        if n[TRACING]:
            if kept == made:
                append_trace(
                    workspace, BEGUN, workspace.serial[made], event, row_digest(workspace, made), workspace.state[made]
                )
            append_trace(workspace, EDGE, workspace.serial[parent], event, workspace.serial[kept], NONE)
    for at in range(nonwaiting):
        group = workspace.nonwaiting_groups[at]
        counted_state = workspace.group_counted_state[group]
        fallbacks = tables.fallback_state_at[counted_state + 1] - tables.fallback_state_at[counted_state]
        end = end_of(tables, workspace, group)
        workspace.group_end[group] = end
        workspace.left[tables.left_at[counted_state] + end] += now
        if n[TRACING] and end < fallbacks and workspace.group_marks[group, ADVANCED] != n[SERIAL]:
            _trace_fallback(
                tables, workspace, event, group, tables.fallback_states[tables.fallback_state_at[counted_state] + end]
            )
    for at in range(n[FIRED]):
        group, advance_counter = workspace.fired[at, 0], workspace.fired[at, 1]
        workspace.advanced[advance_counter] += now
        if not tables.advance_counter_waits[advance_counter]:
            workspace.fired_left[tables.fired_at[advance_counter] + workspace.group_end[group]] += now
    _count_fallbacks(tables, workspace, event, time, rank, now)
    _count_stays(tables, workspace, stream, event, now)
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    free_emptied_groups(tables, workspace, weight)


@kernel
def _count_advances(tables: Tables, workspace: Workspace, stream: Stream, event: int, weight: float) -> None:
    """Count the advances of instances that count moves of their own."""
    for row in range(workspace.n[MOVED]):
        instance, link = workspace.moved[row, 0], workspace.moved[row, 1]
        settle_moves(tables, workspace, stream, instance, event)
        workspace.moved[row, 3] = workspace.age[instance]
        kind = len(tables.pending) + link
        tally(workspace, kind, workspace.moved[row, 3], tables.target[link], workspace.moved[row, 2], weight)


@kernel
def _count_fallbacks(tables: Tables, workspace: Workspace, event: int, time: int, rank: int, weight: float) -> None:
    """Count where those of them went back that last for one event."""
    n = workspace.n
    for at in range(n[DISCARDED]):
        instance, state = workspace.discarded[at], workspace.discarded_state[at]
        if not tables.by_instance[state]:
            continue
        source = workspace.source[instance]
        found = NONE
        if (
            source != NONE
            and workspace.state[source] > 0
            and workspace.serial[source] == workspace.source_serial[instance]
        ):
            found = source
            for fall in range(tables.falls_at[state], tables.falls_at[state + 1]):
                for fresh in range(n[FRESH]):
                    # One that others stand for has its own source all the same.
                    made, kept = workspace.fresh[fresh], workspace.kept[fresh]
                    if (
                        found == source
                        and workspace.state[kept] == tables.falls[fall]
                        and workspace.source[made] == source
                    ):
                        found = kept
        workspace.fell_state[instance] = GONE if found == NONE else workspace.state[found]
        workspace.fell_age[instance] = 0
        if found != NONE:
            workspace.fell_age[instance] = age_at(tables, workspace, found, time, rank)
        tally(
            workspace,
            state,
            workspace.age[instance],
            workspace.fell_state[instance],
            workspace.fell_age[instance],
            weight,
        )
        if n[TRACING] and found != NONE:
            advances = False
            for row in range(n[MOVED]):
                advances = advances or workspace.moved[row, 0] == instance
            if not advances:
                append_trace(workspace, EDGE, workspace.serial[instance], event, workspace.serial[found], NONE)


@kernel
def _count_stays(tables: Tables, workspace: Workspace, stream: Stream, event: int, weight: float) -> None:
    """Count of each advance what the instance counted beside it."""
    for row in range(workspace.n[MOVED]):
        instance, link = workspace.moved[row, 0], workspace.moved[row, 1]
        state, age = tables.source[link], 0
        if tables.pending[state]:
            state, age = workspace.fell_state[instance], workspace.fell_age[instance]
        elif workspace.state[instance] == NONE:
            state = GONE
        else:
            settle_moves(tables, workspace, stream, instance, event + 1)
            age = workspace.age[instance]
        kind = len(tables.pending) + len(tables.rival) + link
        tally(workspace, kind, workspace.moved[row, 3], state, age, weight)


@kernel
def _trace_fallback(tables: Tables, workspace: Workspace, event: int, group: int, counted_state: int) -> None:
    """Trace which row the discarded copies of a group go on as: one of an instance that holds the fallback state."""
    n = workspace.n
    row = NONE
    for instance in range(1, n[TOP]):
        if workspace.state[instance] <= 0 or row != NONE:
            continue
        first = tables.role_at[workspace.state[instance]]
        for role in range(first, tables.role_at[workspace.state[instance] + 1]):
            holds = tables.role_counted_state[role] == counted_state
            if holds and falls_to(workspace, group, workspace.group[instance, role - first]):
                row = row_digest(workspace, instance)
    for at in range(n[DISCARDED]):
        instance = workspace.discarded[at]
        for role in range(workspace.group.shape[1]):
            if workspace.group[instance, role] == group:
                append_trace(workspace, FELL, workspace.serial[instance], event, row, NONE)
                break


@kernel
def _emit_matches(workspace: Workspace, event: int) -> None:
    """Write the matches that an event completes."""
    n = workspace.n
    for at in range(n[ENDED]):
        state = workspace.ended[at]
        best = workspace.best[state]
        row = n[FOUND]
        workspace.found[row, 0], workspace.found[row, 1], workspace.found[row, 2] = event, state, workspace.mask[best]
        for operand in range(workspace.time.shape[1]):
            workspace.found_time[row, operand] = workspace.time[best, operand]
            workspace.found_position[row, operand] = workspace.position[best, operand]
        n[FOUND] += 1
        workspace.best[state] = NONE
        free_instance(workspace, best)


@kernel
def _expire(
    tables: Tables, workspace: Workspace, stream: Stream, heap: IntArray, column: int, now: int, event: int, time: int,
    rank: int, values: IntArray,
) -> None:  # fmt: skip
    """Remove instances that are due in a heap and that no continuation completes any more."""
    n = workspace.n
    while n[column] > 0 and heap[0, 0] < now:
        when, instance, serial = heap[0, 0], heap[0, 1], heap[0, 2]
        n[column] = pop(heap, n[column])
        due_time, due_rank = workspace.due_time[instance], workspace.due_rank[instance]
        # Rows of the heap may be of instances that are gone, or older than the instance's assignment.
        if workspace.state[instance] <= 0 or workspace.serial[instance] != serial:
            continue
        if when != (due_time if column == TIMED else due_rank):
            continue
        counted = tables.by_instance[workspace.state[instance]]
        if counted:
            settle_moves(tables, workspace, stream, instance, event)
        if n[TRACING]:
            append_age_trace(workspace, LOOKED_AT, instance, event)
        if is_completable(tables, workspace, instance, values, time, rank):
            schedule_expiry(workspace, instance, due_time, due_rank)
        else:
            if counted:
                weight = stream.weight[event + 1] - stream.weight[event]
                tally(workspace, workspace.state[instance], workspace.age[instance], GONE, 0, weight)
            remove(tables, workspace, instance, event)
