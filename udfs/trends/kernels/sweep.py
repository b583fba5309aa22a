"""One sweep over a graph against time: what can follow each event, by dynamic programming.

Source: SPEC section 5 (`cet_count` without enumerating). For an event u, over the events v that may directly follow
it:

- completions C(u) = Σ C(v), or 1 where u ends trends;
- their length T(u) = C(u) + Σ T(v), and the longest L(u) = 1 + max L(v); or, of events that have weights w and ranks r
  (`measures`), T(u) = w(u) C(u) + Σ T(v) and L(u) = max(r(u), max L(v)).

Events come latest first, and each is put into a tree of sums over the leaves once its time allows it to follow: a run
of leaves then asks O(log m) sums, so a sweep costs O(n log m), not one step per edge. Only comparisons that no leaf
answers make it look at each pair. An event ends trends where it is of the last term and nothing of that term may
follow it; this comes from all predicates together, where the paper's pre-filter (section 5.4) takes them one by one
and loses trends.

Sums of integers wrap at 2^64 or are taken modulo given numbers, many at once; a float beside them tells their size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, LaneArray, SmallArray
from patternlake.udfs.subkernels import kernel
from patternlake.udfs.trends.kernels.graph import LOOP, Graph
from patternlake.udfs.trends.measures import Measures, product

Sums = tuple[LaneArray, FloatArray, SmallArray]
"""uint64[n, 2p]: C and then T for each modulus (0: wrapping at 2^64); float64[n]: C or log2 C; int32[n]: L, 0 where
nothing can be completed."""


@kernel
def allowed(graph: Graph, step: int, source: int, target: int) -> bool:
    """Whether the times and the comparisons that no leaf answers let one row follow another."""
    gap = graph.time[target] - graph.time[source]
    if gap < graph.least[step] or gap > graph.greatest[step]:
        return False
    for at in range(graph.rest_offsets[step], graph.rest_offsets[step + 1]):
        left, right, operator = graph.rest_left[at, target], graph.rest_right[at, source], graph.rest_operator[at]
        if operator == 1:
            holds = left != right
        elif operator == 2:
            holds = left < right
        elif operator == 3:
            holds = left <= right
        elif operator == 4:
            holds = left > right
        else:
            holds = left >= right
        if not holds:
            return False
    return True


@kernel
def add(into: LaneArray, at: int, other: LaneArray, row: int, moduli: LaneArray) -> None:
    """Add one row of sums to another, each lane by its modulus."""
    p = len(moduli)
    for lane in range(2 * p):
        modulus = moduli[lane] if lane < p else moduli[lane - p]
        total = into[at, lane] + other[row, lane]
        if modulus != 0 and total >= modulus:
            total -= modulus
        into[at, lane] = total


@kernel
def _climb(
    graph: Graph, leaf: int, size: int, sums: LaneArray, approximate: FloatArray, longest: SmallArray,
    moduli: LaneArray, log: bool,
) -> None:  # fmt: skip
    """Renew the nodes above a leaf, as far up as runs of its block can ask them."""
    node, width = leaf + size, 1
    while node > 1:
        node >>= 1
        width <<= 1
        first = node * width - size
        if first < graph.block_from[leaf] or first + width > graph.block_to[leaf]:
            return
        left, right = 2 * node, 2 * node + 1
        for lane in range(sums.shape[1]):
            sums[node, lane] = sums[left, lane]
        add(sums, node, sums, right, moduli)
        if log:
            approximate[node] = np.logaddexp2(approximate[left], approximate[right])
        else:
            approximate[node] = approximate[left] + approximate[right]
        longest[node] = max(longest[left], longest[right])


@njit(cache=True)
def sweep(graph: Graph, order: IntArray, moduli: LaneArray, log: bool, measures: Measures) -> Sums:
    """Sweep over some cells.

    Parameters
    ----------
    graph
        As `graph.graph_of` builds it.
    order
        Rows of whole cells, cell after cell, in each the latest first.
    moduli
        uint64[p], each 0 or below 2^63.
    log
        True: the float is log2 C (-inf for 0), False: C itself.
    measures
        Of the rows; weights by the same moduli.
    """
    n, leaves, lanes = len(graph.time), len(graph.block_from), 2 * len(moduli)
    size = 1
    while size < leaves:
        size *= 2
    zero = -np.inf if log else 0.0
    sums = np.zeros((2 * size, lanes), np.uint64)
    approximate = np.full(2 * size, zero)
    longest = np.zeros(2 * size, np.int32)
    value = np.zeros((n, lanes), np.uint64)
    about = np.full(n, zero)
    length = np.zeros(n, np.int32)
    added = np.zeros(len(graph.least), np.int64)
    removed = np.zeros(len(graph.least), np.int64)
    cell = -1
    for at in range(len(order)):
        u = order[at]
        if graph.cell[u] != cell:
            cell = graph.cell[u]
            added[:] = at
            removed[:] = at
        ends = graph.term[u] == graph.terms - 1
        for slot in range(2):
            step = graph.step[slot, graph.term[u]]
            if step < 0:
                continue
            before = length[u]
            for half in (0, 2):
                low, high = graph.run[slot, u, half], graph.run[slot, u, half + 1]
                if low >= high:
                    continue
                if graph.rest_offsets[step] < graph.rest_offsets[step + 1]:
                    for place in range(graph.member_offsets[low], graph.member_offsets[high]):
                        v = graph.member[place]
                        if length[v] > 0 and allowed(graph, step, u, v):
                            add(value, u, value, v, moduli)
                            about[u] = np.logaddexp2(about[u], about[v]) if log else about[u] + about[v]
                            length[u] = max(length[u], length[v])
                    continue
                target = graph.term[u] + slot
                while added[step] < at:
                    v = order[added[step]]
                    if graph.time[v] < graph.time[u] + graph.least[step]:
                        break
                    added[step] += 1
                    leaf = graph.leaf[slot, v]
                    if graph.term[v] == target and leaf >= 0 and length[v] > 0:
                        node = leaf + size
                        add(sums, node, value, v, moduli)
                        if log:
                            approximate[node] = np.logaddexp2(approximate[node], about[v])
                        else:
                            approximate[node] += about[v]
                        longest[node] = max(longest[node], length[v])
                        _climb(graph, leaf, size, sums, approximate, longest, moduli, log)
                while removed[step] < added[step]:
                    v = order[removed[step]]
                    if graph.time[v] - graph.time[u] <= graph.greatest[step]:
                        break
                    removed[step] += 1
                    leaf = graph.leaf[slot, v]
                    if graph.term[v] == target and leaf >= 0 and length[v] > 0:
                        node = leaf + size
                        sums[node, :] = 0
                        approximate[node] = zero
                        longest[node] = 0
                        _climb(graph, leaf, size, sums, approximate, longest, moduli, log)
                left, right = low + size, high + size
                while left < right:
                    for side in range(2):
                        if side == 0 and left & 1:
                            node = left
                            left += 1
                        elif side == 1 and right & 1:
                            right -= 1
                            node = right
                        else:
                            continue
                        if longest[node] > 0:
                            add(value, u, sums, node, moduli)
                            about[u] = (
                                np.logaddexp2(about[u], approximate[node]) if log else about[u] + approximate[node]
                            )
                            length[u] = max(length[u], longest[node])
                    left >>= 1
                    right >>= 1
            if slot == LOOP and length[u] > before:
                ends = False
        finish(u, ends, value, about, length, moduli, log, measures)
    return value, about, length


@kernel
def finish(
    u: int, ends: bool, value: LaneArray, about: FloatArray, length: SmallArray, moduli: LaneArray, log: bool,
    measures: Measures,
) -> None:  # fmt: skip
    """From the sums over what follows u to those of u itself."""
    p = len(moduli)
    if ends:
        for lane in range(p):
            total = value[u, lane] + np.uint64(1)
            value[u, lane] = np.uint64(0) if moduli[lane] != 0 and total >= moduli[lane] else total
        about[u] = np.logaddexp2(about[u], 0.0) if log else about[u] + 1.0
    if len(measures.ranks) > 0:
        if ends or length[u] > 0:
            length[u] = max(length[u], measures.ranks[u])
    elif ends or length[u] > 0:
        length[u] += 1
    weighted = len(measures.weights) > 0
    for lane in range(p):
        own = value[u, lane]
        if weighted:
            own = product(measures.weights[u, lane], own, moduli[lane])
        total = value[u, p + lane] + own
        if moduli[lane] != 0 and total >= moduli[lane]:
            total -= moduli[lane]
        value[u, p + lane] = total


@njit(cache=True)
def sweep_edges(
    offsets: IntArray, targets: SmallArray, ends: BoolArray, order: IntArray, moduli: LaneArray, log: bool,
    measures: Measures,
) -> Sums:  # fmt: skip
    """As `sweep`, over edges that are listed.

    Parameters
    ----------
    offsets, targets
        int64[n + 1], int32[e]: row u is followed by ``targets[offsets[u]:offsets[u + 1]]``.
    ends
        bool[n]: trends end here (and may also go on).
    order
        Rows, each after all that may follow it.
    moduli, log, measures
        As for `sweep`.
    """
    n = len(offsets) - 1
    value = np.zeros((n, 2 * len(moduli)), np.uint64)
    about = np.full(n, -np.inf if log else 0.0)
    length = np.zeros(n, np.int32)
    for u in order:
        for at in range(offsets[u], offsets[u + 1]):
            v = targets[at]
            if length[v] > 0:
                add(value, u, value, v, moduli)
                about[u] = np.logaddexp2(about[u], about[v]) if log else about[u] + about[v]
                length[u] = max(length[u], length[v])
        finish(u, ends[u], value, about, length, moduli, log, measures)
    return value, about, length
