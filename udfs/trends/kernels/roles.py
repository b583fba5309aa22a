"""Sequences of events that several paths of terms stand for, each taken once and judged as a whole (SPEC section 5).

Where an event fits two neighbouring terms, one sequence of events may match under several assignments of its events to
the terms, and a longer sequence may match under an assignment that the shorter one does not have. So paths of vertices
are neither counted nor judged; an automaton reads the events instead. Its **state** is an event with two sets of terms:

- the **roles**: those that the event can have at the end of the sequence read so far, under any assignment;
- the **grown** roles: the same, had one more event been put before the first.

From a state to a later event the sets follow at once, each role to those that an edge leads it to, so each sequence of
events is exactly one path of states. It starts at an event that the first term takes and that no event of the first
term precedes in that term. It is complete where the last term is among the roles and not among the grown ones, and
where no edge leads from one of the roles to an event of the last term.

Source: SPEC section 5; the subset construction. States are listed, at most `MOST_STATES` of them; edges are not: what
may follow an event is worked out whenever it is asked, so memory grows with the states, and time with the pairs of
events that the graph lets follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.subkernels import resized, subkernel
from patternlake.udfs.trends.kernels.cells import Cells
from patternlake.udfs.trends.kernels.explicit import Edges
from patternlake.udfs.trends.kernels.graph import LOOP, Graph
from patternlake.udfs.trends.kernels.leaves import latest_first
from patternlake.udfs.trends.kernels.sweep import allowed
from patternlake.udfs.trends.query import TrendQuery

MOST_TERMS = 62
"""A set of terms is one integer."""

MOST_SETS = 4096
"""States of one event. One that fits d terms has 4^d - 3^d at most: the bound is past six terms."""

MOST_STATES = 1 << 24
"""States of all events of one part of an answer."""


class Automaton(NamedTuple):
    """The automaton, for numba, over e events with n rows of `Cells`; s states; all empty where none is needed.

    Attributes
    ----------
    begins, event
        int64[e + 1], int64[n]: event i has the rows ``begins[i]:begins[i + 1]``; the event of each row.
    offsets, targets
        int64[n + 1], int32[…]: row u is followed by ``targets[offsets[u]:offsets[u + 1]]``; empty: the graph is asked.
    first, of
        int64[e + 1], int64[s]: event i has the states ``first[i]:first[i + 1]``; the event of each state.
    roles, grown
        int64[s]: sets of terms, term t as bit t; the states of one event are in their order.
    loop, onward, touched
        int64[e] each: room for `relate`; the first two hold zeros between calls.
    """

    begins: IntArray
    event: IntArray
    offsets: IntArray
    targets: SmallArray
    first: IntArray
    of: IntArray
    roles: IntArray
    grown: IntArray
    loop: IntArray
    onward: IntArray
    touched: IntArray


@dataclass(frozen=True)
class States:
    """The automaton and where trends start and end in it.

    Attributes
    ----------
    row
        int64[s]: the first row of `Cells` of each state's event, ascending.
    order
        int64[s]: states, cell after cell, those of one event together, each after all that may follow it.
    starts, ends
        bool[s].
    """

    automaton: Automaton
    row: IntArray
    order: IntArray
    starts: BoolArray
    ends: BoolArray


def no_automaton() -> Automaton:
    """Stands for one that is not needed."""
    none = np.zeros(0, np.int64)
    return Automaton(none, none, none, np.zeros(0, np.int32), none, none, none, none, none, none, none)


def needed(query: TrendQuery, cells: Cells) -> bool:
    """Whether some event fits two neighbouring terms of which one is a ``+``; else each sequence is one path.

    Two assignments of one sequence, or of it and of a longer one, differ first, or last, where one of them stays at a
    ``+`` term and the other goes on to the next term or comes from the one before, by the same event.
    """
    plus = np.array([term.plus for term in query.terms], np.bool_)
    either = plus[:-1] | plus[1:]
    same = (cells.position[1:] == cells.position[:-1]) & (cells.cell[1:] == cells.cell[:-1])
    same &= cells.term[1:] == cells.term[:-1] + 1
    return bool(either[cells.term[:-1][same]].any())


def states_of(query: TrendQuery, cells: Cells, graph: Graph, edges: Edges | None) -> States:
    """Build the automaton.

    Parameters
    ----------
    query
        The compiled query.
    cells
        Vertices of whole windows.
    graph
        Their graph.
    edges
        Its edges, where they must be listed.

    Raises
    ------
    ArgumentError
        The pattern has more than `MOST_TERMS` terms, or there are more than `MOST_SETS` states of one event or
        `MOST_STATES` of all.

    Notes
    -----
    O(n log n + p r) in time for p pairs of events and r states of one event.
    """
    terms = len(query.terms)
    if terms > MOST_TERMS:
        raise ArgumentError(
            f"a pattern whose events may be of several terms takes at most {MOST_TERMS} terms, not {terms}"
        )
    new = np.ones(len(cells), np.bool_)
    new[1:] = (cells.position[1:] != cells.position[:-1]) | (cells.cell[1:] != cells.cell[:-1])
    begins = np.flatnonzero(new)
    size = len(begins)
    latest = latest_first(cells.time[begins], np.searchsorted(begins, cells.offsets))
    none = np.zeros(0, np.int64)
    automaton = Automaton(
        begins=np.append(begins, len(cells)),
        event=np.cumsum(new) - 1,
        offsets=none if edges is None else edges.offsets,
        targets=np.zeros(0, np.int32) if edges is None else edges.targets,
        first=none,
        of=none,
        roles=none,
        grown=none,
        loop=np.zeros(size, np.int64),
        onward=np.zeros(size, np.int64),
        touched=np.zeros(size, np.int64),
    )
    of, roles, grown, starts, ends, full = _discover(graph, automaton, latest[::-1].copy(), MOST_SETS, MOST_STATES)
    if full >= 0:
        _refuse(cells, begins, full, of)
    by_event = np.lexsort((grown, roles, of))
    of = of[by_event]
    place = np.empty(size, np.int64)
    place[latest] = np.arange(size)
    return States(
        automaton._replace(
            first=np.searchsorted(of, np.arange(size + 1)), of=of, roles=roles[by_event], grown=grown[by_event]
        ),
        row=begins[of],
        order=np.argsort(place[of], kind="stable"),
        starts=starts[by_event],
        ends=ends[by_event],
    )


def _refuse(cells: Cells, begins: IntArray, event: int, of: IntArray) -> None:
    position = int(cells.position[begins[event]])
    fits = int(np.append(begins, len(cells))[event + 1] - begins[event])
    if len(of) >= MOST_STATES:
        what = f"the events of one part of the answer have more than {MOST_STATES:,} sets of terms"
    else:
        what = f"the event at position {position}, which fits {fits} terms, has more than {MOST_SETS:,} sets of terms"
    raise ArgumentError(
        f"{what} that sequences of events can end in; write conditions that let an event fit fewer neighbouring terms, "
        "or narrow the window"
    )


@subkernel
def relate(graph: Graph, automaton: Automaton, event: int, wanted: np.int64) -> int:
    """Work out which events may follow one that has one of the wanted roles.

    Returns
    -------
    int
        How many they are: the first ones of ``automaton.touched``. For each of these, ``loop`` has the roles from which
        it follows in the same term, and ``onward`` those from which it does in the next one. `forget` clears them.
    """
    # Arrays by themselves: handing the tuples on for each pair would take most of the time.
    of_row, loop, onward, touched = automaton.event, automaton.loop, automaton.onward, automaton.touched
    listed = len(automaton.offsets) > 0
    count = 0
    for u in range(automaton.begins[event], automaton.begins[event + 1]):
        bit = np.int64(1) << graph.term[u]
        if wanted & bit == 0:
            continue
        for slot in range(2):
            step = graph.step[slot, graph.term[u]]
            if step < 0:
                continue
            for half in (0, 2):
                if listed:
                    low, high = automaton.offsets[u], automaton.offsets[u + 1] if half == 0 else automaton.offsets[u]
                else:
                    low, high = graph.run[slot, u, half], graph.run[slot, u, half + 1]
                    low, high = graph.member_offsets[low], graph.member_offsets[high] if low < high else 0
                for place in range(low, high):
                    if listed:
                        v = automaton.targets[place]
                        if graph.term[v] != graph.term[u] + slot:
                            continue
                    else:
                        v = graph.member[place]
                        if not allowed(graph, step, u, v):
                            continue
                    later = of_row[v]
                    if loop[later] == 0 and onward[later] == 0:
                        touched[count] = later
                        count += 1
                    if slot == LOOP:
                        loop[later] |= bit
                    else:
                        onward[later] |= bit
    return count


@subkernel
def forget(automaton: Automaton, count: int) -> None:
    """Clear what `relate` has worked out."""
    for at in range(count):
        automaton.loop[automaton.touched[at]] = 0
        automaton.onward[automaton.touched[at]] = 0


@subkernel
def led_to(loop: int, onward: int, roles: int) -> int:
    """The roles that an event can have after another with some roles."""
    return (roles & loop) | ((roles & onward) << 1)


@njit(cache=True)
def _discover(
    graph: Graph, automaton: Automaton, by_time: IntArray, most_sets: int, most_states: int
) -> tuple[IntArray, IntArray, IntArray, BoolArray, BoolArray, int]:
    """States as they are met: event, roles, grown, starts, ends; and the event at which there are too many, or -1."""
    events = len(by_time)
    last = np.int64(1) << (graph.terms - 1)
    # For each event, a chain of its states: the last one met, and the one met before each.
    newest, held = np.full(events, -1, np.int64), np.zeros(events, np.int32)
    # The roles 0 and 1 in which an event of the first term may precede an event.
    entered = np.zeros(events, np.int64)
    room, count = 1024, 0
    of, roles, grown, older = (
        np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64),
    )  # fmt: skip
    starts, ends = np.zeros(room, np.bool_), np.zeros(room, np.bool_)
    full = -1
    for event in by_time:
        first = graph.term[automaton.begins[event]] == 0
        if count == room:
            room *= 2
            of, roles, grown = resized(of, room), resized(roles, room), resized(grown, room)
            older, starts, ends = resized(older, room), resized(starts, room), resized(ends, room)
        if first and entered[event] & 1 == 0:
            of[count], roles[count], grown[count], older[count] = event, 1, entered[event], newest[event]
            starts[count], ends[count] = True, False
            newest[event] = count
            count += 1
        wanted = np.int64(first)
        state = newest[event]
        while state >= 0:
            wanted |= roles[state] | grown[state]
            state = older[state]
        if wanted == 0:
            continue
        followers = relate(graph, automaton, event, wanted)
        beyond = np.int64(0)
        for at in range(followers):
            later = automaton.touched[at]
            entered[later] |= (automaton.loop[later] & 1) | ((automaton.onward[later] & 1) << 1)
            beyond |= (automaton.loop[later] & last) | (automaton.onward[later] & (last >> 1))
        state = newest[event]
        while state >= 0:
            ends[state] = roles[state] & last != 0 and grown[state] & last == 0 and roles[state] & beyond == 0
            if count + followers > room:
                room = 2 * (count + followers)
                of, roles, grown = resized(of, room), resized(roles, room), resized(grown, room)
                older, starts, ends = resized(older, room), resized(starts, room), resized(ends, room)
            for at in range(followers):
                later = automaton.touched[at]
                to = led_to(automaton.loop[later], automaton.onward[later], roles[state])
                to_grown = led_to(automaton.loop[later], automaton.onward[later], grown[state])
                # With an event before it, such a sequence matches wherever it does without: none is complete.
                if to & ~to_grown == 0:
                    continue
                found = newest[later]
                while found >= 0 and (roles[found] != to or grown[found] != to_grown):
                    found = older[found]
                if found < 0:
                    of[count], roles[count], grown[count], older[count] = later, to, to_grown, newest[later]
                    starts[count], ends[count] = False, False
                    newest[later] = count
                    held[later] += 1
                    count += 1
                    if held[later] > most_sets or count >= most_states:
                        full = later
                        break
            if full >= 0:
                break
            state = older[state]
        forget(automaton, followers)
        if full >= 0:
            break
    return (
        of[:count].copy(), roles[:count].copy(), grown[:count].copy(), starts[:count].copy(), ends[:count].copy(), full,
    )  # fmt: skip
