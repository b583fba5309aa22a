"""A graph and its counted states as arrays, which is what the kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.query.tree import Extent
from patternlake.udfs.machines.graph.ages import Ages, ages_of
from patternlake.udfs.machines.graph.counted_states import CountedStates, counted_states_of, onward_of
from patternlake.udfs.machines.graph.lineages import Lineages, lineages_of
from patternlake.udfs.machines.graph.merged import Graph, graph_of
from patternlake.udfs.machines.query import MOST_OPERANDS, Primitive, Subscription
from patternlake.udfs.machines.row_types import (
    ADVANCE_COUNTER,
    AGREEMENT,
    BOUND,
    COMPLETION_PATH,
    COUNTED_STATE,
    DEADLINE,
    JOIN,
    LIMIT,
    LINK,
    MOVE,
    OF_EVENT,
    OPEN,
    PRIMITIVE,
    ROLE,
    STATE,
    Rows,
)
from patternlake.udfs.machines.time_conditions import TimeCondition

FOREVER = np.int64(2**62)
"""Stands for no bound: of windows, of times, of ranks."""
DEAD, ENDS = 0, 1
"""What else becomes of instances in a counted state that does not wait, numbered behind its fallback states: they die;
`ENDS` is how many such ends there are."""


class Tables(NamedTuple):
    """S states, K links, P primitives, L completion paths, Q counted states. ``x_at`` of one row and of the next one
    tell where in another array what belongs to the row begins and ends; for that each has one row more than there are.

    Attributes
    ----------
    states, deadlines
        [S + 1] of `STATE` and of `DEADLINE`.
    links
        [K + 1] of `LINK`; those of one primitive lie side by side.
    primitives
        [P + 1] of `PRIMITIVE`.
    completion_paths, bounds, agreements
        [L + 1] of `COMPLETION_PATH`, and what they ask for, of `BOUND` and `AGREEMENT`.
    limits
        Time conditions of each link, of `LIMIT`.
    joins
        Of each primitive, of `JOIN`.
    moves
        What each link does to roles of its source, of `MOVE`.
    roles
        Of each state, of `ROLE`.
    opens
        Lower bounds on what comes after operands, of each state, of `OPEN`.
    counted_states, advance_counters
        [Q + 1] of `COUNTED_STATE`, and of `ADVANCE_COUNTER`.
    out
        int32: links out of each state.
    falls
        int32: of each state that lasts for one event, and whose instances count moves of their own, the states of that
        kind to which one that is discarded may go, the furthest first.
    boundaries
        int32: of each state that lasts for one event the last states before it that wait.
    fallback_states
        int32: of each counted state.
    window_time, window_events
        One of them `FOREVER` or both.
    """

    states: Rows
    deadlines: Rows
    links: Rows
    primitives: Rows
    completion_paths: Rows
    bounds: Rows
    agreements: Rows
    limits: Rows
    joins: Rows
    moves: Rows
    roles: Rows
    opens: Rows
    counted_states: Rows
    advance_counters: Rows
    out: NDArray[np.int32]
    falls: NDArray[np.int32]
    boundaries: NDArray[np.int32]
    fallback_states: NDArray[np.int32]
    window_time: np.int64
    window_events: np.int64


@dataclass(frozen=True)
class Compiled:
    """Subscriptions of one partition, window and decay, ready to run.

    Attributes
    ----------
    subscriptions, graph, ages, counted_states, tables
        In all their forms.
    link_number
        For each link of the graph its number in `tables`.
    onward
        For each state the links out of it in the graph, by the state that each leads to and its operand.
    variables, columns
        Numbers of join variables, and names of joined columns, by number.
    operands
        Greatest number of operands of a subscription.
    """

    subscriptions: tuple[Subscription, ...]
    graph: Graph
    ages: Ages
    counted_states: CountedStates
    tables: Tables
    link_number: tuple[int, ...]
    onward: tuple[Mapping[tuple[int, int], int], ...]
    variables: tuple[str, ...]
    columns: tuple[str, ...]
    operands: int

    @property
    def primitives(self) -> Sequence[Primitive]:
        """What events are taken for, by number."""
        return self.graph.primitives


def compiled(
    subscriptions: Sequence[Subscription], *, root: str = "0", merge: bool = True, dominate: bool = True
) -> Compiled:
    """Make the arrays of subscriptions.

    Parameters
    ----------
    subscriptions
        One at least, of one partition and one window.
    root
        Id of the initial state.
    merge
        False: share no states, for comparison.
    dominate
        False: keep instances apart that differ in times of which only the earliest matters, so that descendants can be
        told.
    """
    subscriptions = tuple(subscription.numbered() for subscription in subscriptions)
    graph = graph_of(subscriptions, root=root, merge=merge)
    ages = ages_of(graph, subscriptions)
    counted_states = counted_states_of(graph, subscriptions)
    joins = [join for primitive in graph.primitives for join in primitive.joins]
    variables = tuple(sorted({variable for variable, _ in joins}, key=int))
    columns = tuple(dict.fromkeys(column for _, column in joins))
    operands = max(len(subscription.primitives) for subscription in subscriptions)
    # Kernels find the links of a primitive side by side.
    order = sorted(range(len(graph.links)), key=lambda number: graph.links[number].primitive)
    link_number = np.argsort(np.array(order, np.int64), kind="stable").tolist()
    return Compiled(
        subscriptions,
        graph,
        ages,
        counted_states,
        _tables(subscriptions, graph, ages, counted_states, variables, columns, order, dominate),
        tuple(link_number),
        tuple(onward_of(graph)),
        variables,
        columns,
        operands,
    )


def _tables(
    subscriptions: Sequence[Subscription],
    graph: Graph,
    ages: Ages,
    counted_states: CountedStates,
    variables: Sequence[str],
    columns: Sequence[str],
    order: Sequence[int],
    dominate: bool,
) -> Tables:
    """The arrays of subscriptions; `order`: of the graph's links, so that those of a primitive lie side by side."""
    variable_of = {name: number for number, name in enumerate(variables)}
    column_of = {name: number for number, name in enumerate(columns)}
    links = [graph.links[number] for number in order]
    states = range(len(graph.waits))
    ahead = [sorted(graph.completion_paths[state], key=repr) for state in states]
    completion_paths = [completion_path for some in ahead for completion_path in some]
    bounds = [completion_path.bounds for completion_path in completion_paths]
    agreeing = [
        [
            (
                _bits(variable_of[name] for name in names),
                _bits(column_of[name] for name in held if name in column_of),
            )
            for names, held in completion_path.joined
        ]
        for completion_path in completion_paths
    ]
    limits = [[row for one in link.bounds for row in _limits(one, link.operand)] for link in links]
    joins = [
        [(variable_of[variable], column_of[column]) for variable, column in primitive.joins]
        for primitive in graph.primitives
    ]
    moves = [[(move.role, move.advance_counter) for move in counted_states.moves[number]] for number in order]
    roles = [[(counted_state,) for counted_state in some] for some in counted_states.roles]
    lineages: Lineages = lineages_of(graph, subscriptions)
    ends = [[0] * (len(fallback_states) + ENDS) for fallback_states in counted_states.fallback_states]
    out: list[list[int]] = [[] for _ in states]
    for number, link in enumerate(links):
        out[link.source].append(number)
    early = graph.earliest if dominate else [frozenset[int]() for _ in states]
    within: Extent | None = subscriptions[0].within
    lasting = [
        within is None
        and any(not completion_path.bounds and not completion_path.joined for completion_path in ahead[state])
        for state in states
    ]
    plain = [
        lasting[state] and not variables and graph.waits[state] and not graph.final[state]
        and not graph.asked[state] and not early[state]
        for state in states
    ]  # fmt: skip
    primitive_of = np.array([link.primitive for link in links], np.int64)
    counters = counted_states.advance_counter_state
    return Tables(
        states=_rows(
            STATE,
            len(states),
            pending=[not graph.waits[state] and not graph.final[state] for state in states],
            final=[bool(graph.final[state]) for state in states],
            plain=plain,
            lasting=lasting,
            by_instance=graph.by_instance,
            exact=[_bits(graph.asked[state] - early[state]) for state in states],
            earliest=[_bits(early[state]) for state in states],
            ahead_at=_offsets(ahead),
            out_at=_offsets(out),
            role_at=_offsets(roles),
        ),
        deadlines=_rows(
            DEADLINE,
            len(states),
            timed=graph.timed,
            most=ages.most,
            most_events=ages.most_events,
            most_closed=ages.most_closed,
            opens_at=_offsets(graph.opens),
            falls_at=_offsets(lineages.falls),
            boundary_at=_offsets(lineages.boundaries),
        ),
        links=_rows(
            LINK,
            len(links),
            source=[link.source for link in links],
            target=[link.target for link in links],
            operand=[link.operand for link in links],
            rival=[lineages.rival[number] for number in order],
            # Of what one event may follow the completing link counts, else the first in text order.
            rank=[link.operand - (MOST_OPERANDS if graph.final[link.target] else 0) for link in links],
            limit_at=_offsets(limits),
            move_at=_offsets(moves),
        ),
        primitives=_rows(
            PRIMITIVE,
            len(graph.primitives),
            link_at=np.searchsorted(primitive_of, np.arange(len(graph.primitives) + 1)),
            join_at=_offsets(joins),
        ),
        completion_paths=_rows(
            COMPLETION_PATH,
            len(completion_paths),
            missing=[completion_path.missing for completion_path in completion_paths],
            bound_at=_offsets(bounds),
            agree_at=_offsets(agreeing),
        ),
        bounds=_flat(BOUND, ("one", "other", "most"), bounds),
        agreements=_flat(AGREEMENT, ("variables", "columns"), agreeing),
        limits=_flat(LIMIT, LIMIT.names or (), limits),
        joins=_flat(JOIN, ("variable", "column"), joins),
        moves=_flat(MOVE, ("role", "advance_counter"), moves),
        roles=_flat(ROLE, ("counted_state",), roles),
        opens=_flat(OPEN, ("operand", "low"), graph.opens),
        counted_states=_rows(
            COUNTED_STATE,
            len(counted_states.waits),
            waits=counted_states.waits,
            fallback_state_at=_offsets(counted_states.fallback_states),
            left_at=_offsets(ends),
        ),
        advance_counters=_rows(
            ADVANCE_COUNTER,
            len(counters),
            state=counters,
            waits=[counted_states.waits[counted_state] for counted_state in counters],
            fired_at=_offsets([ends[counted_state] for counted_state in counters]),
        ),
        out=_numbers(out),
        falls=_numbers(lineages.falls),
        boundaries=_numbers(lineages.boundaries),
        fallback_states=_numbers(counted_states.fallback_states),
        window_time=np.int64(within.amount) if within and not within.counted else FOREVER,
        window_events=np.int64(within.amount) if within and within.counted else FOREVER,
    )


def _limits(condition: TimeCondition, event: int) -> list[tuple[int, ...]]:
    """Rows of `LIMIT` of a condition on a link's event: those of its choices, one after the other."""
    found: list[tuple[int, ...]] = []
    size = sum(map(len, condition.choices))
    for choice in condition.choices:
        for at, bound in enumerate(choice):
            after = bound.earlier != event
            operand, other = (bound.earlier, bound.later) if after else (bound.later, bound.earlier)
            rest, last = size - len(found), at == len(choice) - 1
            behind = len(choice) - at
            values = {
                "after": after,
                "absolute": bound.absolute,
                "operand": operand,
                "other": OF_EVENT if other == event else other,
                "onward": rest if last else 1,
                "otherwise": behind if behind < rest else 0,
                "beyond": rest,
                "low": bound.low,
                "high": bound.high,
            }
            found.append(tuple(values[name] for name in LIMIT.names or ()))
    return found


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _offsets(parts: Sequence[Sequence[object]]) -> IntArray:
    """Where each part begins in all of them together, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)


def _rows(kind: np.dtype[np.void], count: int, **fields: Sequence[int] | IntArray) -> Rows:
    """A structured array of so many rows, and one more."""
    made = np.zeros(count + 1, kind)
    for name, values in fields.items():
        made[name][: len(values)] = values
    return made


def _flat(kind: np.dtype[np.void], names: Sequence[str], parts: Sequence[Sequence[tuple[int, ...]]]) -> Rows:
    """The rows of all parts, which have values of fields of these names, and one more."""
    rows = [row for part in parts for row in part]
    return _rows(kind, len(rows), **{name: [row[at] for row in rows] for at, name in enumerate(names)})


def _numbers(parts: Iterable[Iterable[int]]) -> NDArray[np.int32]:
    """All parts together, and one more."""
    return np.array([*(number for part in parts for number in part), 0], np.int32)
