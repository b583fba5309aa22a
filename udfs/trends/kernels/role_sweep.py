"""Sums over the states of an automaton, and what may follow a state, by which trends are counted and listed.

Both work out anew, event by event, which events may follow (`roles.relate`): one pass over the pairs of events.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, LaneArray, SmallArray
from patternlake.udfs.subkernels import subkernel
from patternlake.udfs.trends.kernels.followers import most_followers, sort_distinct
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.roles import Automaton, forget, led_to, relate
from patternlake.udfs.trends.kernels.sweep import Sums, add, finish
from patternlake.udfs.trends.measures import Measures


@subkernel
def _state(first: IntArray, roles: IntArray, grown: IntArray, event: int, to: int, to_grown: int) -> int:
    """The state of an event with these sets; -1: there is none, because none of its sequences is complete."""
    low, end = first[event], first[event + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if roles[middle] < to or (roles[middle] == to and grown[middle] < to_grown):
            low = middle + 1
        else:
            high = middle
    return low if low < end and roles[low] == to and grown[low] == to_grown else -1


@subkernel
def most_following(graph: Graph, automaton: Automaton, state: int) -> int:
    """An upper bound of how many states may follow one."""
    most, event = 0, automaton.of[state]
    for u in range(automaton.begins[event], automaton.begins[event + 1]):
        if (automaton.roles[state] >> graph.term[u]) & 1 == 0:
            continue
        if len(automaton.offsets):
            most += automaton.offsets[u + 1] - automaton.offsets[u]
        else:
            most += most_followers(graph, u)
    return most


@subkernel
def following(graph: Graph, automaton: Automaton, state: int, length: SmallArray, into: SmallArray, used: int) -> int:
    """Write the states that may follow one and can be completed, in order; how many there are."""
    found = used
    count = relate(graph, automaton, automaton.of[state], automaton.roles[state] | automaton.grown[state])
    first, roles, grown = automaton.first, automaton.roles, automaton.grown
    for at in range(count):
        later = automaton.touched[at]
        to = led_to(automaton.loop[later], automaton.onward[later], roles[state])
        if to == 0:
            continue
        to_grown = led_to(automaton.loop[later], automaton.onward[later], grown[state])
        after = _state(first, roles, grown, later, to, to_grown)
        if after >= 0 and length[after] > 0:
            into[found] = after
            found += 1
    forget(automaton, count)
    sort_distinct(into[used:found])
    return found - used


@njit(cache=True)
def sweep_states(
    graph: Graph, automaton: Automaton, ends: BoolArray, order: IntArray, moduli: LaneArray, log: bool,
    measures: Measures,
) -> Sums:  # fmt: skip
    """As `sweep.sweep`, over states.

    Parameters
    ----------
    graph, automaton
        As `states_of` takes and builds them.
    ends
        bool[s]: trends end here (and may also go on).
    order
        States, each after all that may follow it, those of one event together.
    moduli, log
        As for `sweep.sweep`.
    measures
        Of the states.
    """
    n = len(automaton.of)
    value = np.zeros((n, 2 * len(moduli)), np.uint64)
    about = np.full(n, -np.inf if log else 0.0)
    length = np.zeros(n, np.int32)
    first, roles, grown = automaton.first, automaton.roles, automaton.grown
    event, count = -1, 0
    for state in order:
        if automaton.of[state] != event:
            forget(automaton, count)
            event, wanted = automaton.of[state], np.int64(0)
            for other in range(first[event], first[event + 1]):
                wanted |= roles[other] | grown[other]
            count = relate(graph, automaton, event, wanted)
        for at in range(count):
            later = automaton.touched[at]
            to = led_to(automaton.loop[later], automaton.onward[later], roles[state])
            if to == 0:
                continue
            to_grown = led_to(automaton.loop[later], automaton.onward[later], grown[state])
            after = _state(first, roles, grown, later, to, to_grown)
            if after >= 0 and length[after] > 0:
                add(value, state, value, after, moduli)
                about[state] = np.logaddexp2(about[state], about[after]) if log else about[state] + about[after]
                length[state] = max(length[state], length[after])
        finish(state, ends[state], value, about, length, moduli, log, measures)
    forget(automaton, count)
    return value, about, length
