"""Which term each event of a trend has, where events fit several of them (`roles`).

Source: SPEC section 5; a sequence of events is a trend once, under whatever assignments of its events to the terms.
Where there are several, an earlier term takes as many events as it can.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.subkernels import subkernel
from patternlake.udfs.trends.kernels.graph import LOOP, NEXT, Graph
from patternlake.udfs.trends.kernels.roles import Automaton
from patternlake.udfs.trends.kernels.sweep import allowed


@njit(cache=True)
def assign_terms(graph: Graph, automaton: Automaton, offsets: IntArray, rows: IntArray) -> IntArray:
    """Find a row for each event of some trends, so that their terms lead from the first to the last.

    Parameters
    ----------
    graph, automaton
        Of the trends.
    offsets
        int64[t + 1]: where trends begin.
    rows
        int64[e]: some row of each of their events.

    Returns
    -------
    int64[e]
    """
    found = rows.copy()
    # By event the terms that it can have at the end of what comes before it, as bits.
    reached = np.zeros(len(rows), np.int64)
    for trend in range(len(offsets) - 1):
        begin, end = offsets[trend], offsets[trend + 1]
        reached[begin] = 1
        for at in range(begin + 1, end):
            for term in range(graph.terms):
                row = _row_of(graph, automaton, rows[at], term)
                if row >= 0 and _before(graph, automaton, rows[at - 1], reached[at - 1], row, term) >= 0:
                    reached[at] |= np.int64(1) << term
        term = graph.terms - 1
        for at in range(end - 1, begin - 1, -1):
            found[at] = _row_of(graph, automaton, rows[at], term)
            if at > begin:
                term = _before(graph, automaton, rows[at - 1], reached[at - 1], found[at], term)
    return found


@subkernel
def _row_of(graph: Graph, automaton: Automaton, row: int, term: int) -> int:
    """The row of an event in a term, -1 where it does not fit; `row`: any row of the event."""
    event = automaton.event[row]
    for other in range(automaton.begins[event], automaton.begins[event + 1]):
        if graph.term[other] == term:
            return int(other)
    return -1


@subkernel
def _before(graph: Graph, automaton: Automaton, row: int, reached: int, later: int, term: int) -> int:
    """The least of the reached terms of an event in which a row of a term may follow it; -1 for none."""
    for slot in (NEXT, LOOP):
        source = term - slot
        if source >= 0 and reached & (np.int64(1) << source) != 0:
            earlier = _row_of(graph, automaton, row, source)
            if earlier >= 0 and _follows(graph, automaton, earlier, later, slot):
                return int(source)
    return -1


@subkernel
def _follows(graph: Graph, automaton: Automaton, earlier: int, later: int, slot: int) -> bool:
    """Whether there is an edge between two rows."""
    step = graph.step[slot, graph.term[earlier]]
    if step < 0:
        return False
    if len(automaton.offsets) > 0:
        for place in range(automaton.offsets[earlier], automaton.offsets[earlier + 1]):
            if automaton.targets[place] == later:
                return True
        return False
    leaf = graph.leaf[slot, later]
    if leaf < 0 or not allowed(graph, step, earlier, later):
        return False
    first, second = graph.run[slot, earlier, :2], graph.run[slot, earlier, 2:]
    return bool(first[0] <= leaf < first[1] or second[0] <= leaf < second[1])
