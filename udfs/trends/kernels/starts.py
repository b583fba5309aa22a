"""Where trends start: the events of the first term that nothing of it may precede.

Source: Mei et al. 2021, section 5.4 (fast pre-filter), and SPEC section 5. The paper keeps for each attribute vertex
the earliest event that points to it; here it is the number of events that do so while their time allows it, so that
greatest gaps count as well. All predicates are judged together: one event may be preceded by two others on one
predicate each, and by none on both.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.subkernels import subkernel
from patternlake.udfs.trends.kernels.graph import LOOP, Graph
from patternlake.udfs.trends.kernels.sweep import allowed


@njit(cache=True)
def preceded(graph: Graph, order: IntArray) -> BoolArray:
    """The rows of the first term that another event of it may precede: bool[n]; trends start at the others.

    Parameters
    ----------
    graph
        As `graph.graph_of` builds it.
    order
        As for `sweep.sweep`; taken from its end, so each cell goes from its earliest to its latest row.

    Notes
    -----
    O(n log m); where comparisons are left that no leaf answers, each pair is looked at.
    """
    n, leaves = len(graph.time), len(graph.block_from)
    found = np.zeros(n, np.bool_)
    step = graph.step[LOOP, 0]
    if step < 0:
        return found
    if graph.rest_offsets[step] < graph.rest_offsets[step + 1]:
        for u in order:
            if graph.term[u] != 0:
                continue
            for half in (0, 2):
                low, high = graph.run[LOOP, u, half], graph.run[LOOP, u, half + 1]
                for place in range(graph.member_offsets[low], graph.member_offsets[high] if low < high else 0):
                    v = graph.member[place]
                    if not found[v] and allowed(graph, step, u, v):
                        found[v] = True
        return found
    size = 1
    while size < leaves:
        size *= 2
    pointing = np.zeros(2 * size, np.int32)
    added = removed = len(order) - 1
    cell = -1
    for at in range(len(order) - 1, -1, -1):
        v = order[at]
        if graph.cell[v] != cell:
            cell = graph.cell[v]
            added = removed = at
        leaf = graph.leaf[LOOP, v]
        if graph.term[v] != 0 or leaf < 0:
            continue
        while added > at and graph.time[v] - graph.time[order[added]] >= graph.least[step]:
            _point(graph, order[added], size, pointing, 1)
            added -= 1
        while removed > added and graph.time[v] - graph.time[order[removed]] > graph.greatest[step]:
            _point(graph, order[removed], size, pointing, -1)
            removed -= 1
        node, width = leaf + size, 1
        while node >= 1:
            first = node * width - size
            if first < graph.block_from[leaf] or first + width > graph.block_to[leaf]:
                break
            if pointing[node] > 0:
                found[v] = True
                break
            node >>= 1
            width <<= 1
    return found


@subkernel
def _point(graph: Graph, u: int, size: int, pointing: SmallArray, by: int) -> None:
    """Add `by` to the nodes that make up the runs of a row of the first term."""
    if graph.term[u] != 0:
        return
    for half in (0, 2):
        left, right = graph.run[LOOP, u, half] + size, graph.run[LOOP, u, half + 1] + size
        while left < right:
            if left & 1:
                pointing[left] += by
                left += 1
            if right & 1:
                right -= 1
                pointing[right] += by
            left >>= 1
            right >>= 1
