"""Which rows may follow a row of the graph, in order, for those that walk it."""

from __future__ import annotations

import numpy as np

from patternlake.udfs.arrays import SmallArray
from patternlake.udfs.subkernels import subkernel
from patternlake.udfs.trends.kernels.graph import Graph
from patternlake.udfs.trends.kernels.sweep import allowed

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, np.int32)
_PLACE[[(int(_DE_BRUIJN) << place & (1 << 64) - 1) >> 58 for place in range(64)]] = np.arange(64)
"""The place of a word's only bit, by the six highest bits of its product with the number above."""


@subkernel
def most_followers(graph: Graph, u: int) -> int:
    """An upper bound of how many rows may follow u: the members of its leaves."""
    most = 0
    for slot in range(2):
        if graph.step[slot, graph.term[u]] >= 0:
            for half in (0, 2):
                low, high = graph.run[slot, u, half], graph.run[slot, u, half + 1]
                if low < high:
                    most += graph.member_offsets[high] - graph.member_offsets[low]
    return most


@subkernel
def followers_of(graph: Graph, u: int, length: SmallArray, into: SmallArray, used: int) -> int:
    """Write the rows that may follow u and can be completed, in order; how many there are."""
    found = used
    for slot in range(2):
        step = graph.step[slot, graph.term[u]]
        if step < 0:
            continue
        for half in (0, 2):
            low, high = graph.run[slot, u, half], graph.run[slot, u, half + 1]
            if low < high:
                for place in range(graph.member_offsets[low], graph.member_offsets[high]):
                    v = graph.member[place]
                    if length[v] > 0 and allowed(graph, step, u, v):
                        into[found] = v
                        found += 1
    sort_distinct(into[used:found])
    return found - used


@subkernel
def sort_distinct(rows: SmallArray) -> None:
    """Sort rows of which no two are equal: as bits where they lie close together, which takes one pass over them."""
    if len(rows) < 2:
        return
    least = rows.min()
    words = (rows.max() - least) // 64 + 1
    if words > 4 * len(rows):
        rows.sort()
        return
    bits = np.zeros(words, np.uint64)
    for row in rows:
        at = np.uint64(row - least)
        bits[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))
    written = 0
    for word in range(words):
        left = bits[word]
        while left != 0:
            lowest = left & (~left + np.uint64(1))
            rows[written] = least + 64 * word + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            written += 1
            left ^= lowest
