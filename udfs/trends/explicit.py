"""Edges listed one by one, for the two cases that sums over leaves cannot answer.

- A step has a remainder: a predicate that no comparison of two values says. It is evaluated, exactly as printed, for
  each pair that the rest of the step lets through.
- One event may be taken by a ``+`` term and by the term after it, so that different paths may be the same sequence of
  events. SPEC section 5 counts sequences, so the paths are walked as an automaton: a **state** is an event with the
  set of terms that some path of the same events may have reached. Each sequence is then exactly one path of states.

Source: SPEC section 5 (trends are distinct event sequences); the automaton is the subset construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, types
from numba.typed import Dict
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.columns import Column
from patternlake.udfs.language.predicates import Reference, evaluate
from patternlake.udfs.trends.cells import Cells
from patternlake.udfs.trends.graph import Graph
from patternlake.udfs.trends.question import Step, TrendQuestion
from patternlake.udfs.trends.sweep import allowed

IntArray = NDArray[np.int64]
SmallArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

MOST_TERMS = 60
"""A set of terms is one integer."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Edges:
    """A listed graph. Its rows are vertices, or states.

    Attributes
    ----------
    row
        int64[s]: the row of `Cells` of each; in their order.
    offsets, targets
        int64[s + 1], int32[e]: what may follow each, in order.
    starts, ends
        bool[s]: trends start, and end, here.
    """

    row: IntArray
    offsets: IntArray
    targets: SmallArray
    starts: BoolArray
    ends: BoolArray


def listed(question: TrendQuestion, cells: Cells, graph: Graph) -> Edges:
    """All edges between vertices, remainders judged."""
    n = len(cells)
    sources, targets = [], []
    begin = 0
    while begin < n:
        end, u, v, slot = _pairs(graph, begin, _CHUNK)
        kept = np.ones(len(u), np.bool_)
        for number, step in enumerate(question.steps):
            if step.remainder is not None:
                of_step = np.flatnonzero(graph.step[slot, cells.term[u]] == number)
                kept[of_step] = _remain(question, step, cells, u[of_step], v[of_step])
        sources.append(u[kept])
        targets.append(v[kept])
        begin = end
    u = np.concatenate([np.zeros(0, np.int64), *sources])
    v = np.concatenate([np.zeros(0, np.int32), *targets]).astype(np.int32)
    order = np.lexsort((v, u))
    u, v = u[order], v[order]
    loops = cells.term[u] == cells.term[v]
    starts = cells.term == 0
    starts[v[loops]] = False
    ends = cells.term == graph.terms - 1
    ends[u[loops]] = False
    return Edges(
        row=np.arange(n, dtype=np.int64),
        offsets=np.searchsorted(u, np.arange(n + 1)).astype(np.int64),
        targets=v,
        starts=starts,
        ends=ends,
    )


@njit(cache=True)
def _pairs(graph: Graph, begin: int, enough: int) -> tuple[int, IntArray, SmallArray, IntArray]:
    """Pairs that the leaves, times and comparisons let through, from row `begin` on until there are enough."""
    capacity = 1024
    u, v, slots = np.empty(capacity, np.int64), np.empty(capacity, np.int32), np.empty(capacity, np.int64)
    found, row = 0, begin
    while row < len(graph.time) and found < enough:
        for slot in range(2):
            step = graph.step[slot, graph.term[row]]
            if step < 0:
                continue
            for half in (0, 2):
                low, high = graph.run[slot, row, half], graph.run[slot, row, half + 1]
                for place in range(graph.member_offsets[low], graph.member_offsets[high] if low < high else 0):
                    target = graph.member[place]
                    if allowed(graph, step, row, target):
                        if found == capacity:
                            capacity *= 2
                            u = np.concatenate((u, np.empty(found, np.int64)))
                            v = np.concatenate((v, np.empty(found, np.int32)))
                            slots = np.concatenate((slots, np.empty(found, np.int64)))
                        u[found], v[found], slots[found] = row, target, slot
                        found += 1
        row += 1
    return row, u[:found].copy(), v[:found].copy(), slots[:found].copy()


def _remain(question: TrendQuestion, step: Step, cells: Cells, u: IntArray, v: SmallArray) -> BoolArray:
    """Truth of a step's remainder for pairs: bool[pairs]."""
    vertices = cells.vertices
    earlier_operand = question.terms[step.source].operand

    def resolve(reference: Reference) -> Column:
        if step.source == step.target:
            is_earlier = reference.index == "i-1"
        else:
            is_earlier = reference.operand == earlier_operand
        rows = cells.row[u if is_earlier else v]
        if reference.column == "position":
            return Column(vertices.position[rows], np.ones(len(rows), np.bool_), "bigint")
        if reference.column == "time":
            return Column(vertices.time[rows], np.ones(len(rows), np.bool_), "timestamp")
        column = vertices.carried[question.carried.index(reference.column)]
        return Column(column.values[rows], column.known[rows], column.type)

    assert step.remainder is not None
    return np.broadcast_to(evaluate(step.remainder, resolve).true, u.shape)


def completable(edges: Edges, length: SmallArray) -> tuple[IntArray, SmallArray]:
    """Offsets and targets of the edges that trends may take: to what can be completed (`length` above 0)."""
    kept = length[edges.targets] > 0
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return before[edges.offsets], edges.targets[kept]


def overlapping(question: TrendQuestion, cells: Cells) -> bool:
    """Whether some event is taken by a ``+`` term and by the term after it, so that a sequence may be two paths."""
    plus = np.array([term.plus for term in question.terms], np.bool_)
    same = (cells.position[1:] == cells.position[:-1]) & (cells.cell[1:] == cells.cell[:-1])
    return bool((same & (cells.term[1:] == cells.term[:-1] + 1) & plus[cells.term[:-1]]).any())


def states(cells: Cells, edges: Edges, terms: int) -> Edges:
    """The automaton over the events of listed vertices.

    Raises
    ------
    ArgumentError
        The pattern has more terms than a set can hold.
    """
    if terms > MOST_TERMS:
        raise ArgumentError(
            f"a pattern whose events may be of several terms takes at most {MOST_TERMS} terms, not {terms}"
        )
    first = np.ones(len(cells), np.bool_)
    first[1:] = (cells.position[1:] != cells.position[:-1]) | (cells.cell[1:] != cells.cell[:-1])
    begins = np.flatnonzero(first)
    event = np.cumsum(first) - 1
    by_time = np.lexsort((cells.time[begins], cells.cell[begins]))
    at, owner, target, started, ended = _states(
        event, begins, by_time, cells.term, edges.offsets, edges.targets, edges.starts, edges.ends
    )
    # States come as they were met; their place in the answer is that of their event.
    order = np.lexsort((np.arange(len(at)), begins[at]))
    place = np.empty(len(at), np.int64)
    place[order] = np.arange(len(at))
    owner, target = place[owner], place[target]
    by_owner = np.lexsort((target, owner))
    return Edges(
        row=begins[at][order],
        offsets=np.searchsorted(owner[by_owner], np.arange(len(at) + 1)).astype(np.int64),
        targets=target[by_owner].astype(np.int32),
        starts=started[order],
        ends=ended[order],
    )


@njit(cache=True)
def _states(
    event: IntArray, begins: IntArray, by_time: IntArray, term: IntArray, offsets: IntArray, targets: SmallArray,
    starts: BoolArray, ends: BoolArray,
) -> tuple[IntArray, IntArray, IntArray, BoolArray, BoolArray]:  # fmt: skip
    """States and their edges: event of each state, source and target of each edge, starts, ends."""
    events = len(begins)
    # For each event, a chain of its states: the last one met, and the one met before each.
    newest = np.full(events, -1, np.int64)
    at, terms, older = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)]
    started, ended = [False for _ in range(0)], [False for _ in range(0)]
    owner, target = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)]
    for event_number in by_time:
        row = begins[event_number]
        if starts[row]:
            state = newest[event_number]
            while state >= 0 and terms[state] != 1:
                state = older[state]
            if state < 0:
                state = np.int64(len(at))
                at.append(np.int64(event_number))
                terms.append(np.int64(1))
                older.append(newest[event_number])
                started.append(False)
                ended.append(False)
                newest[event_number] = state
            started[state] = True
        after = begins[event_number + 1] if event_number + 1 < events else len(event)
        state = newest[event_number]
        while state >= 0:
            reached = Dict.empty(types.int64, types.int64)
            for vertex in range(begins[event_number], after):
                if (terms[state] >> term[vertex]) & 1 == 0:
                    continue
                if ends[vertex]:
                    ended[state] = True
                for place in range(offsets[vertex], offsets[vertex + 1]):
                    v = targets[place]
                    bits = np.int64(1) << term[v]
                    key = event[v]
                    reached[key] = (reached[key] | bits) if key in reached else bits
            for key in reached:
                bits = reached[key]
                found = newest[key]
                while found >= 0 and terms[found] != bits:
                    found = older[found]
                if found < 0:
                    found = np.int64(len(at))
                    at.append(key)
                    terms.append(bits)
                    older.append(newest[key])
                    started.append(False)
                    ended.append(False)
                    newest[key] = found
                owner.append(state)
                target.append(found)
            state = older[state]
    return (np.array(at), np.array(owner), np.array(target), np.array(started), np.array(ended))
