"""Events one after the other: links are followed, instances come, go on, and die, moves are counted.

Source: Muthusamy et al. 2010, section 4.1 (matching), and SPEC section 6. An event follows all links of all primitives
that take it before anything that it makes is added, so one event never fills two operands. States that are followed
by ``,`` last for one event; all others keep their instances until no continuation completes them.
"""

from __future__ import annotations

from patternlake.udfs.machines.kernels.counting import (
    GONE,
    age_at,
    age_in,
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
from patternlake.udfs.machines.kernels.tables import Tables
from patternlake.udfs.machines.kernels.transition import DOMINATED, take_transition
from patternlake.udfs.machines.kernels.workspace import (
    BEGUN,
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
from patternlake.udfs.subkernels import kernel


@kernel
def sweep(tables: Tables, workspace: Workspace, stream: Stream, begin: int, end: int, rank: int) -> tuple[int, int]:
    """Let a partition take some events.

    Parameters
    ----------
    tables, workspace
        The partition's instances are in the workspace.
    stream
        All events.
    begin, end
        The events.
    rank
        Rank of event `begin` in its partition, from 0.

    Returns
    -------
    The first event that was not taken, and what there is too little room for, or `DONE`.
    """
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
        wanted = _follow(tables, workspace, stream, event, rank + event - begin)
        if wanted != DONE:
            _forget(workspace)
            workspace.n[TRACED] = rows
            return event, wanted
        _settle(tables, workspace, stream, event, rank + event - begin)
    return end, DONE


@kernel
def _follow(tables: Tables, workspace: Workspace, stream: Stream, event: int, rank: int) -> int:
    """Find what an event makes; nothing but fresh instances and marks is changed."""
    n = workspace.n
    n[SERIAL] += 1
    n[CLOCK] = event + 1
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    for at in range(stream.matching_primitive_at[event], stream.matching_primitive_at[event + 1]):
        primitive = stream.matching_primitives[at]
        count = 0
        for link in range(tables.primitives[primitive].link_at, tables.primitives[primitive + 1].link_at):
            workspace.follows[count] = link
            count += workspace.open[link]
        prefetch_links(tables, workspace, count)
        for number in range(count):
            link = workspace.follows[number]
            source, moves = tables.links[link].source, tables.links[link + 1].move_at - tables.links[link].move_at
            instance = 0 if source == 0 else workspace.states[source].head
            while instance != NONE:
                if n[FREE] == 0 and n[TOP] == len(workspace.instances):
                    return MORE_INSTANCES
                made = take_transition(tables, workspace, stream, event, rank, link, primitive, instance)
                if made != NONE:
                    if n[FIRED] + moves > len(workspace.fired) or n[MOVED] == len(workspace.moved):
                        if made != DOMINATED:
                            free_instance(workspace, made)
                        return MORE_FIRED
                    if n[TRACING] and n[TRACED] == len(workspace.trace):
                        free_instance(workspace, made)
                        return MORE_TRACE
                    _mark(tables, workspace, link, instance)
                    if tables.states[source].by_instance:
                        age = 0 if made == DOMINATED else workspace.movers[made].age
                        _note_move(tables, workspace, link, instance, age)
                    if made == DOMINATED:
                        pass
                    elif tables.states[workspace.instances[made].state].final:
                        _end(workspace, made, instance, event)
                    else:
                        workspace.fresh[n[FRESH]].instance, workspace.instances[made].parent = made, instance
                        n[FRESH] += 1
                instance = NONE if source == 0 else workspace.instances[instance].following
    wanted = _capacity_left(workspace)
    if wanted != DONE:
        return wanted
    return tally_left(tables, workspace, stream, event, n[LIVE] + 3 * n[MOVED])


@kernel
def tally_left(tables: Tables, workspace: Workspace, stream: Stream, event: int, more: int) -> int:
    """Whether the tally has room for all moves up to an event, itself included, and for some more rows."""
    if rows_due(workspace, event + 1) + more <= free_rows(workspace):
        return DONE
    settled = settle_all_moves(tables, workspace, stream, event)
    return DONE if settled and rows_due(workspace, event + 1) + more <= free_rows(workspace) else MORE_TALLY


@kernel
def _capacity_left(workspace: Workspace) -> int:
    """Whether there is room for what was found."""
    n = workspace.n
    if len(workspace.groups) - n[GROUP_TOP] + n[GROUP_FREE] < n[FRESH] * workspace.held_groups.shape[1]:
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
        free_instance(workspace, workspace.fresh[at].instance)
    for at in range(n[ENDED]):
        state = workspace.ended[at]
        free_instance(workspace, workspace.states[state].best)
        workspace.states[state].best = NONE
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0


@kernel
def _note_move(tables: Tables, workspace: Workspace, link: int, instance: int, age: int) -> None:
    """Note an advance of an instance that counts moves of its own; of several by rival links the first in rank."""
    n = workspace.n
    edge, mover = tables.links[link], workspace.movers[instance]
    row = n[MOVED]
    if edge.rival and mover.moved_serial == n[SERIAL]:
        row = mover.moved_row
        if tables.links[workspace.moved[row].link].rank <= edge.rank:
            return
    else:
        n[MOVED] += 1
    if edge.rival:
        mover.moved_serial, mover.moved_row = n[SERIAL], row
    move = workspace.moved[row]
    move.instance, move.link, move.age = instance, link, age


@kernel
def _mark(tables: Tables, workspace: Workspace, link: int, instance: int) -> None:
    """Note which groups of an instance advance by a link."""
    n = workspace.n
    edge = tables.links[link]
    for at in range(edge.move_at, tables.links[link + 1].move_at):
        move = tables.moves[at]
        number = workspace.held_groups[instance, move.role] if instance != 0 else move.role
        group = workspace.groups[number]
        first = group.advanced != n[SERIAL]
        if not first and group.by_counter == move.advance_counter:
            continue
        row = n[FIRED]
        if edge.rival and instance == 0 and not first:
            row = 0
            while workspace.fired[row].group != number:
                row += 1
            if tables.links[workspace.fired[row].link].rank <= edge.rank:
                continue
        else:
            n[FIRED] += 1
        group.advanced, group.by_counter = n[SERIAL], move.advance_counter
        firing = workspace.fired[row]
        firing.group, firing.advance_counter, firing.link = number, move.advance_counter, link


@kernel
def _end(workspace: Workspace, made: int, parent: int, event: int) -> None:
    """Of the instances that complete a subscription keep the smallest."""
    n = workspace.n
    if n[TRACING]:
        append_trace(workspace, COMPLETED, workspace.instances[parent].serial, event, NONE, NONE)
    state = workspace.instances[made].state
    best = workspace.states[state].best
    if best == NONE:
        workspace.ended[n[ENDED]] = state
        workspace.states[state].best = made
        n[ENDED] += 1
    elif text_order(workspace, made, best) < 0:
        free_instance(workspace, best)
        workspace.states[state].best = made
    else:
        free_instance(workspace, made)


@kernel
def _settle(tables: Tables, workspace: Workspace, stream: Stream, event: int, rank: int) -> None:
    """Change what an event changes."""
    n = workspace.n
    now, weight = stream.weight[event + 1] - stream.weight[event], stream.weight[event + 1]
    _emit_matches(workspace, event)
    _settle_advancing(tables, workspace, stream, event)
    nonwaiting = n[NONWAITING_GROUPS]
    prefetch_ends(tables, workspace, nonwaiting)
    n[DISCARDED] = n[PENDING]
    for at in range(n[PENDING]):
        instance, discard = workspace.pending[at], workspace.discarded[at]
        discard.instance, discard.state = instance, workspace.instances[instance].state
        remove(tables, workspace, instance, event)
    n[PENDING] = 0
    time = stream.time[event]
    _expire(tables, workspace, stream, event, time, rank)
    for at in range(n[FRESH]):
        made = workspace.fresh[at].instance
        kept = add(tables, workspace, stream, made, weight)
        workspace.fresh[at].kept = kept
        if n[TRACING]:
            this = workspace.instances[made]
            if kept == made:
                append_trace(workspace, BEGUN, this.serial, event, row_digest(workspace, made), this.state)
            parent = workspace.instances[this.parent]
            append_trace(workspace, EDGE, parent.serial, event, workspace.instances[kept].serial, NONE)
    for at in range(nonwaiting):
        number = workspace.nonwaiting_groups[at]
        group = workspace.groups[number]
        counted_state = tables.counted_states[group.counted_state]
        fallbacks = tables.counted_states[group.counted_state + 1].fallback_state_at - counted_state.fallback_state_at
        end = end_of(tables, workspace, number)
        group.end = end
        workspace.left[counted_state.left_at + end] += now
        if n[TRACING] and end < fallbacks and group.advanced != n[SERIAL]:
            fallback_state = tables.fallback_states[counted_state.fallback_state_at + end]
            _trace_fallback(tables, workspace, event, number, fallback_state)
    for at in range(n[FIRED]):
        firing = workspace.fired[at]
        counter = tables.advance_counters[firing.advance_counter]
        workspace.advanced[firing.advance_counter] += now
        if not counter.waits:
            workspace.fired_left[counter.fired_at + workspace.groups[firing.group].end] += now
    _count_fallbacks(tables, workspace, event, time, rank, now)
    _count_advances(tables, workspace, stream, event, time, rank, now)
    n[FRESH] = n[FIRED] = n[MOVED] = n[ENDED] = 0
    free_emptied_groups(tables, workspace, weight)


@kernel
def _settle_advancing(tables: Tables, workspace: Workspace, stream: Stream, event: int) -> None:
    """Count what instances that advance have waited for so far, as long as they are there."""
    for row in range(workspace.n[MOVED]):
        settle_moves(tables, workspace, stream, workspace.moved[row].instance, event)


@kernel
def _count_fallbacks(tables: Tables, workspace: Workspace, event: int, time: int, rank: int, weight: float) -> None:
    """Count where those of them went back that last for one event."""
    n = workspace.n
    for at in range(n[DISCARDED]):
        instance, state = workspace.discarded[at].instance, workspace.discarded[at].state
        if not tables.states[state].by_instance:
            continue
        mover = workspace.movers[instance]
        source = mover.source
        found = NONE
        if (
            source != NONE
            and workspace.instances[source].state > 0
            and workspace.instances[source].serial == mover.source_serial
        ):
            found = source
            for fall in range(tables.deadlines[state].falls_at, tables.deadlines[state + 1].falls_at):
                for number in range(n[FRESH]):
                    # One that others stand for has its own source all the same.
                    made, kept = workspace.fresh[number].instance, workspace.fresh[number].kept
                    if (
                        found == source
                        and workspace.instances[kept].state == tables.falls[fall]
                        and workspace.movers[made].source == source
                    ):
                        found = kept
        mover.fell_state, mover.fell_age = GONE, 0
        if found != NONE:
            mover.fell_state = workspace.instances[found].state
            mover.fell_age = age_at(tables, workspace, found, time, rank)
        age = age_in(tables, workspace, state, instance, time, rank)
        tally(workspace, state, age, mover.fell_state, mover.fell_age, weight)
        if n[TRACING] and found != NONE:
            advances = False
            for row in range(n[MOVED]):
                advances = advances or workspace.moved[row].instance == instance
            if not advances:
                serial = workspace.instances[instance].serial
                append_trace(workspace, EDGE, serial, event, workspace.instances[found].serial, NONE)


@kernel
def _count_advances(
    tables: Tables, workspace: Workspace, stream: Stream, event: int, time: int, rank: int, weight: float
) -> None:
    """Count the advances of instances that count moves of their own, and of each what it counted beside it."""
    for row in range(workspace.n[MOVED]):
        move = workspace.moved[row]
        mover = workspace.movers[move.instance]
        source = state = tables.links[move.link].source
        age = 0
        if tables.states[source].pending:
            then = age_in(tables, workspace, source, move.instance, time, rank)
            state, age = mover.fell_state, mover.fell_age
        elif workspace.instances[move.instance].state == NONE:
            then, state = mover.age, GONE
        else:
            settle_moves(tables, workspace, stream, move.instance, event + 1)
            then = age = mover.age
        kind = len(tables.states) - 1 + move.link
        tally(workspace, kind, then, tables.links[move.link].target, move.age, weight)
        tally(workspace, kind + len(tables.links) - 1, then, state, age, weight)


@kernel
def _trace_fallback(tables: Tables, workspace: Workspace, event: int, group: int, counted_state: int) -> None:
    """Trace which row the discarded copies of a group go on as: one of an instance that holds the fallback state."""
    n = workspace.n
    row = NONE
    for instance in range(1, n[TOP]):
        state = workspace.instances[instance].state
        if state <= 0 or row != NONE:
            continue
        first = tables.states[state].role_at
        for role in range(first, tables.states[state + 1].role_at):
            holds = tables.roles[role].counted_state == counted_state
            if holds and falls_to(workspace, group, workspace.held_groups[instance, role - first]):
                row = row_digest(workspace, instance)
    for at in range(n[DISCARDED]):
        instance = workspace.discarded[at].instance
        for role in range(workspace.held_groups.shape[1]):
            if workspace.held_groups[instance, role] == group:
                append_trace(workspace, FELL, workspace.instances[instance].serial, event, row, NONE)
                break


@kernel
def _emit_matches(workspace: Workspace, event: int) -> None:
    """Write the matches that an event completes."""
    n = workspace.n
    for at in range(n[ENDED]):
        state = workspace.ended[at]
        best = workspace.states[state].best
        row = n[FOUND]
        match_ = workspace.found[row]
        match_.event, match_.state, match_.mask = event, state, workspace.instances[best].mask
        for operand in range(workspace.time.shape[1]):
            workspace.found_time[row, operand] = workspace.time[best, operand]
            workspace.found_position[row, operand] = workspace.position[best, operand]
        n[FOUND] += 1
        workspace.states[state].best = NONE
        free_instance(workspace, best)


@kernel
def _expire(tables: Tables, workspace: Workspace, stream: Stream, event: int, time: int, rank: int) -> None:
    """Remove instances that are due and that no continuation completes any more."""
    n = workspace.n
    # One loop, not two calls: what they call goes into each of them.
    for column in range(TIMED, RANKED + 1):
        heap, now = (workspace.timed, time) if column == TIMED else (workspace.ranked, rank)
        while n[column] > 0 and heap[0, 0] < now:
            when, instance, serial = heap[0, 0], heap[0, 1], heap[0, 2]
            n[column] = pop(heap, n[column])
            this = workspace.instances[instance]
            due_time, due_rank = this.due_time, this.due_rank
            # Rows of the heap may be of instances that are gone, or older than the instance's assignment.
            if this.state <= 0 or this.serial != serial or when != (due_time if column == TIMED else due_rank):
                continue
            counted = tables.states[this.state].by_instance
            if counted:
                settle_moves(tables, workspace, stream, instance, event)
                workspace.movers[instance].age = age_at(tables, workspace, instance, time, rank)
            if n[TRACING]:
                append_age_trace(workspace, LOOKED_AT, instance, event)
            if is_completable(tables, workspace, instance, time, rank):
                schedule_expiry(workspace, instance, due_time, due_rank)
                continue
            if counted:
                weight = stream.weight[event + 1] - stream.weight[event]
                tally(workspace, this.state, workspace.movers[instance].age, GONE, 0, weight)
            remove(tables, workspace, instance, event)
