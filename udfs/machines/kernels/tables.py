"""A graph and its counted states as arrays, which is what the kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.language.query.tree import Extent
from patternlake.udfs.machines.graph.ages import Ages, ages_of
from patternlake.udfs.machines.graph.counted_states import CountedStates, counted_states_of, onward_of
from patternlake.udfs.machines.graph.lineages import Lineages, lineages_of
from patternlake.udfs.machines.graph.merged import Graph, Link, graph_of
from patternlake.udfs.machines.query import MOST_OPERANDS, Primitive, Subscription

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

FOREVER = np.int64(2**62)
"""Stands for no bound: of windows, of times, of ranks."""
DEAD, ENDS = 0, 1
"""What else becomes of instances in a counted state that does not wait, numbered behind its fallback states: they die;
`ENDS` is how many such ends there are."""


class Tables(NamedTuple):
    """S states, K links, P primitives, L completion paths, Q counted states. ``x_at`` of n + 1 values divides the
    arrays ``x_…`` in n.

    Attributes
    ----------
    pending, final
        bool[S]: the state lasts for one event; it completes a subscription.
    plain
        bool[S]: the state waits, and instances of it that bound the same operands are the same and live for good.
    lasting
        bool[S]: instances of it live for good: they can be completed, and no condition, join or window can prevent it.
    exact, earliest
        int64[S]: operands, as bits, whose times tell instances apart, and those that may be as early as they like.
    ahead_at
        int64[S + 1]: completion paths of each state.
    missing
        int64[L]: operands that a completion path misses, where the window counts events.
    bound_at, bound_one, bound_other, bound_most
        Bounds of each completion path: the time of one is at most so much after that of the other; operands, `NOW`,
        `FIRST`.
    agree_at, agree_variables, agree_columns
        Of each completion path groups of variables and columns of the partition, as bits, that agree.
    link_at
        int64[P + 1]: links of each primitive.
    source, target, operand
        int64[K].
    out_at, out
        Links out of each state.
    limit_at, limit_operand, limit_after, limit_low, limit_high, limit_absolute
        Time conditions of each link: of the time of its event after that of an operand (`limit_after` False: before).
    join_at, join_variable, join_column
        Joins of each primitive.
    move_at, move_role, move_advance_counter
        Of each link what it does to roles of its source.
    role_at, role_counted_state, role_without
        Roles of each state.
    by_instance, timed
        bool[S]: instances of the state count moves of their own; they have ages.
    most, most_events, most_closed
        int64[S]: how much can be left, as `ages.age_of` takes it.
    opens_at, opens_operand, opens_low
        Lower bounds on what comes after operands, of each state.
    falls_at, falls
        Of each state that lasts for one event, and whose instances count moves of their own, the states of that kind
        to which one that is discarded may go, the furthest first.
    boundary_at, boundaries
        Of each state that lasts for one event the last states before it that wait.
    rival
        bool[K]: another link of the same subscription leads out of the source, so that one event may follow both.
    rank
        int64[K]: of two rivals the one with the smaller rank counts as the move.
    waits, fallback_state_at, fallback_states
        Of each counted state.
    advance_counter_state, advance_counter_waits
        The counted state of each advance counter, and whether it waits.
    left_at, fired_at
        For each counted state and for each advance counter where its counts begin of what became of those that don't
        wait: one for each fallback state, and one for `DEAD`.
    window_time, window_events
        One of them `FOREVER` or both.
    """

    pending: BoolArray
    final: BoolArray
    plain: BoolArray
    lasting: BoolArray
    exact: IntArray
    earliest: IntArray
    ahead_at: IntArray
    missing: IntArray
    bound_at: IntArray
    bound_one: IntArray
    bound_other: IntArray
    bound_most: IntArray
    agree_at: IntArray
    agree_variables: IntArray
    agree_columns: IntArray
    link_at: IntArray
    source: IntArray
    target: IntArray
    operand: IntArray
    out_at: IntArray
    out: IntArray
    limit_at: IntArray
    limit_operand: IntArray
    limit_after: BoolArray
    limit_low: IntArray
    limit_high: IntArray
    limit_absolute: BoolArray
    join_at: IntArray
    join_variable: IntArray
    join_column: IntArray
    move_at: IntArray
    move_role: IntArray
    move_advance_counter: IntArray
    role_at: IntArray
    role_counted_state: IntArray
    role_without: IntArray
    by_instance: BoolArray
    timed: BoolArray
    most: IntArray
    most_events: IntArray
    most_closed: IntArray
    opens_at: IntArray
    opens_operand: IntArray
    opens_low: IntArray
    falls_at: IntArray
    falls: IntArray
    boundary_at: IntArray
    boundaries: IntArray
    rival: BoolArray
    rank: IntArray
    waits: BoolArray
    fallback_state_at: IntArray
    fallback_states: IntArray
    advance_counter_state: IntArray
    advance_counter_waits: BoolArray
    left_at: IntArray
    fired_at: IntArray
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
    maker = _Maker(subscriptions, graph, ages, counted_states, variables, columns, dominate)
    link_number = np.argsort(np.array(maker.order, np.int64), kind="stable").tolist()
    return Compiled(
        subscriptions,
        graph,
        ages,
        counted_states,
        maker.tables(),
        tuple(link_number),
        tuple(onward_of(graph)),
        variables,
        columns,
        operands,
    )


class _Maker:
    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        graph: Graph,
        ages: Ages,
        counted_states: CountedStates,
        variables: Sequence[str],
        columns: Sequence[str],
        dominate: bool,
    ) -> None:
        self.subscriptions, self.graph = subscriptions, graph
        self.counted_states, self.dominate = counted_states, dominate
        self.ages = ages
        self.variable = {name: number for number, name in enumerate(variables)}
        self.column = {name: number for number, name in enumerate(columns)}
        # Kernels find the links of a primitive side by side.
        self.order = sorted(range(len(graph.links)), key=lambda number: graph.links[number].primitive)
        self.links = [graph.links[number] for number in self.order]

    def tables(self) -> Tables:
        graph, counted_states = self.graph, self.counted_states
        states = range(len(graph.waits))
        ahead = [sorted(graph.completion_paths[state], key=repr) for state in states]
        completion_paths = [completion_path for some in ahead for completion_path in some]
        bounds = [completion_path.bounds for completion_path in completion_paths]
        agreeing = [
            [
                (
                    _bits(self.variable[name] for name in names),
                    _bits(self.column[name] for name in held if name in self.column),
                )
                for names, held in completion_path.joined
            ]
            for completion_path in completion_paths
        ]
        limits = [
            [
                (bound.earlier, True, bound.low, bound.high, bound.absolute)
                if bound.later == link.operand
                else (bound.later, False, bound.low, bound.high, bound.absolute)
                for bound in link.bounds
            ]
            for link in self.links
        ]
        joins = [
            [(self.variable[variable], self.column[column]) for variable, column in primitive.joins]
            for primitive in graph.primitives
        ]
        moves = [[(move.role, move.advance_counter) for move in counted_states.moves[number]] for number in self.order]
        roles = [[(role.counted_state, role.without) for role in counted_states.roles[state]] for state in states]
        lineages: Lineages = lineages_of(graph, self.subscriptions)
        ages = self.ages
        ends = [[0] * (len(fallback_states) + ENDS) for fallback_states in counted_states.fallback_states]
        out: list[list[int]] = [[] for _ in states]
        for number, link in enumerate(self.links):
            out[link.source].append(number)
        early = graph.earliest if self.dominate else [frozenset[int]() for _ in states]
        within: Extent | None = self.subscriptions[0].within
        lasting = [
            within is None
            and any(not completion_path.bounds and not completion_path.joined for completion_path in ahead[state])
            for state in states
        ]
        plain = [
            lasting[state] and not self.variable and graph.waits[state] and not graph.final[state]
            and not graph.asked[state] and not early[state]
            for state in states
        ]  # fmt: skip
        primitive_of = np.array([link.primitive for link in self.links], np.int64)
        return Tables(
            pending=np.array([not graph.waits[state] and not graph.final[state] for state in states]),
            final=np.array([bool(graph.final[state]) for state in states]),
            plain=np.array(plain, np.bool_),
            lasting=np.array(lasting, np.bool_),
            exact=_integers(_bits(graph.asked[state] - early[state]) for state in states),
            earliest=_integers(_bits(early[state]) for state in states),
            ahead_at=_offsets(ahead),
            missing=_integers(completion_path.missing for completion_path in completion_paths),
            bound_at=_offsets(bounds),
            bound_one=_column(bounds, 0),
            bound_other=_column(bounds, 1),
            bound_most=_column(bounds, 2),
            agree_at=_offsets(agreeing),
            agree_variables=_column(agreeing, 0),
            agree_columns=_column(agreeing, 1),
            link_at=np.searchsorted(primitive_of, np.arange(len(graph.primitives) + 1)).astype(np.int64),
            source=_integers(link.source for link in self.links),
            target=_integers(link.target for link in self.links),
            operand=_integers(link.operand for link in self.links),
            out_at=_offsets(out),
            out=_integers(number for some in out for number in some),
            limit_at=_offsets(limits),
            limit_operand=_column(limits, 0),
            limit_after=_column(limits, 1).astype(np.bool_),
            limit_low=_column(limits, 2),
            limit_high=_column(limits, 3),
            limit_absolute=_column(limits, 4).astype(np.bool_),
            join_at=_offsets(joins),
            join_variable=_column(joins, 0),
            join_column=_column(joins, 1),
            move_at=_offsets(moves),
            move_role=_column(moves, 0),
            move_advance_counter=_column(moves, 1),
            role_at=_offsets(roles),
            role_counted_state=_column(roles, 0),
            role_without=_column(roles, 1),
            by_instance=np.array(graph.by_instance, np.bool_),
            timed=np.array(graph.timed, np.bool_),
            most=_integers(ages.most),
            most_events=_integers(ages.most_events),
            most_closed=_integers(ages.most_closed),
            opens_at=_offsets(graph.opens),
            opens_operand=_column(graph.opens, 0),
            opens_low=_column(graph.opens, 1),
            falls_at=_offsets(lineages.falls),
            falls=_integers(state for some in lineages.falls for state in some),
            boundary_at=_offsets(lineages.boundaries),
            boundaries=_integers(state for some in lineages.boundaries for state in some),
            rival=np.array([lineages.rival[number] for number in self.order], np.bool_),
            rank=_integers(self.rank(link) for link in self.links),
            waits=np.array(counted_states.waits, np.bool_),
            fallback_state_at=_offsets(counted_states.fallback_states),
            fallback_states=_integers(
                counted_state for fallback_states in counted_states.fallback_states for counted_state in fallback_states
            ),
            advance_counter_state=_integers(counted_states.advance_counter_state),
            advance_counter_waits=np.array(
                [counted_states.waits[counted_state] for counted_state in counted_states.advance_counter_state],
                np.bool_,
            ),
            left_at=_offsets(ends),
            fired_at=_offsets([ends[counted_state] for counted_state in counted_states.advance_counter_state]),
            window_time=np.int64(within.amount) if within and not within.counted else FOREVER,
            window_events=np.int64(within.amount) if within and within.counted else FOREVER,
        )

    def rank(self, link: Link) -> int:
        """Of what one event may follow the completing link counts, else the first in text order."""
        return link.operand - (MOST_OPERANDS if self.graph.final[link.target] else 0)


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int64)


def _offsets(parts: Sequence[Sequence[object]]) -> IntArray:
    """Where each part begins in all of them together, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)


def _column(parts: Sequence[Sequence[tuple[int, ...]]], number: int) -> IntArray:
    return _integers(int(row[number]) for part in parts for row in part)
