"""Edges listed one by one, where a step has a remainder: a predicate that no comparison of two values says.

It is evaluated, exactly as printed, for each pair that the rest of the step lets through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Reference, evaluate
from patternlake.udfs.trends.kernels.cells import Cells
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.sweep import allowed
from patternlake.udfs.trends.query import Step, TrendQuery

MOST_EDGES = 1 << 26
"""Edges of one part of an answer."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Edges:
    """A listed graph, over the n rows of `Cells`.

    Attributes
    ----------
    offsets, targets
        int64[n + 1], int32[e]: what may follow each, in order.
    starts, ends
        bool[n]: trends start, and end, here, where each sequence of events is one path.
    """

    offsets: IntArray
    targets: SmallArray
    starts: BoolArray
    ends: BoolArray


def listed(query: TrendQuery, cells: Cells, graph: Graph) -> Edges:
    """All edges between vertices, remainders judged.

    Raises
    ------
    ArgumentError
        There are more than `MOST_EDGES`.
    """
    n = len(cells)
    sources, targets = [], []
    begin = found = 0
    while begin < n:
        end, u, v, slot = _pairs(graph, begin, _CHUNK)
        kept = np.ones(len(u), np.bool_)
        for number, step in enumerate(query.steps):
            if step.remainder is not None:
                of_step = np.flatnonzero(graph.step[slot, cells.term[u]] == number)
                kept[of_step] = _remain(query, step, cells, u[of_step], v[of_step])
        sources.append(u[kept])
        targets.append(v[kept])
        found += int(kept.sum())
        if found > MOST_EDGES:
            raise ArgumentError(
                f"more than {MOST_EDGES:,} pairs of events of one part of the answer may follow one another, by a "
                "condition that is judged for each pair; add a comparison of the two, [attr] or a greatest gap between "
                "their times beside it, or narrow the window"
            )
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


def _remain(query: TrendQuery, step: Step, cells: Cells, u: IntArray, v: SmallArray) -> BoolArray:
    """Truth of a step's remainder for pairs: bool[pairs]."""
    vertices = cells.vertices
    earlier_operand = query.terms[step.source].operand

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
        column = vertices.carried[query.carried.index(reference.column)]
        return Column(column.values[rows], column.known[rows], column.type)

    assert step.remainder is not None
    return np.broadcast_to(evaluate(step.remainder, resolve).true, u.shape)


def completable(edges: Edges, length: SmallArray) -> tuple[IntArray, SmallArray]:
    """Offsets and targets of the edges that trends may take: to what can be completed (`length` above 0)."""
    kept = length[edges.targets] > 0
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return before[edges.offsets], edges.targets[kept]
