"""The attribute-based-indexing graph of many cells, as the kernels read it.

Source: Mei et al. 2021, sections 4.3 and 4.4. For each step the later events are sorted by their left value; an
earlier event's relevant values are at most two runs of them, found by binary search; the ends of all runs cut the line
into **leaves**, the attribute vertices. A from-edge is the leaf of a later event, a to-edge a run of leaves: O(n log
m).

Departures from the paper, all after SPEC section 5:

- a leaf is cut by ranks, just before or just after a value, without a precision δ;
- leaves that no event points to are left out, because nothing passes through them;
- several predicates at once: equalities and ``[attr]`` cut the events into blocks, in each of which the comparison
  with the fewest pairs orders the leaves; what is left is judged for each pair (`edges.allowed`);
- gaps between times are no values: they bound which events are in the index when an event asks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import IntArray, SmallArray
from patternlake.udfs.sort_keys import order_keys, paired
from patternlake.udfs.trends.kernels.cells import Cells
from patternlake.udfs.trends.kernels.leaves import EVERY, OPERATORS, by_block, cut, reachable, runs
from patternlake.udfs.trends.query import FARTHEST, Step, TrendQuery

LOOP, NEXT = 0, 1
"""Slots: of an earlier event its step to its own term and to the next; of a later one from its own and the last."""


class Graph(NamedTuple):
    """The graph, for numba. Rows are those of `Cells`, n of them; K steps; m leaves of all steps together.

    Attributes
    ----------
    cell, time, term
        int64[n].
    terms
        Number of terms.
    step
        int64[2, terms]: for each slot and term of an earlier event the step, -1: none.
    least, greatest
        int64[K]: bounds of the time between neighbours.
    leaf
        int32[2, n]: for each slot of a later event its leaf (the from-edge); -1: none.
    run
        int32[2, n, 4]: for each slot of an earlier event two runs of leaves (the to-edge), each from and
        to (exclusive).
    member, member_offsets
        int32[…], int64[m + 1]: leaf i holds the rows ``member[member_offsets[i]:member_offsets[i + 1]]``.
    block_from, block_to
        int32[m]: the leaves among which all runs that hold a leaf lie.
    rest_offsets, rest_operator
        int64[K + 1], int64[R]: the comparisons that are judged pair by pair, of each step.
    rest_left, rest_right
        int64[R, n]: their values, as keys.
    """

    cell: IntArray
    time: IntArray
    term: IntArray
    terms: int
    step: IntArray
    least: IntArray
    greatest: IntArray
    leaf: SmallArray
    run: SmallArray
    member: SmallArray
    member_offsets: IntArray
    block_from: SmallArray
    block_to: SmallArray
    rest_offsets: IntArray
    rest_operator: IntArray
    rest_left: IntArray
    rest_right: IntArray


@dataclass(frozen=True)
class _Candidate:
    """One way to order the leaves of a step: by comparison `number`, -1 for none; of the rows `targets`."""

    number: int
    targets: IntArray
    order: IntArray
    offsets: IntArray
    runs: IntArray

    @property
    def pairs(self) -> int:
        return int((self.runs[:, 1] - self.runs[:, 0] + self.runs[:, 3] - self.runs[:, 2]).sum())


def graph_of(query: TrendQuery, cells: Cells) -> Graph:
    """Build the graph.

    Parameters
    ----------
    query
        The compiled query.
    cells
        Vertices of whole windows.

    Notes
    -----
    Sorting and binary search: O(n log n) for n rows, whatever the number of edges.
    """
    n, terms = len(cells), len(query.terms)
    leaf = np.full((2, n), -1, np.int32)
    run = np.zeros((2, n, 4), np.int32)
    steps = np.full((2, terms), -1, np.int64)
    parts: list[tuple[SmallArray, IntArray, SmallArray, SmallArray]] = []
    rest: list[tuple[int, IntArray, IntArray]] = []
    rest_offsets = [0]
    leaves = 0
    for number, step in enumerate(query.steps):
        slot = LOOP if step.source == step.target else NEXT
        steps[slot, step.source] = number
        sources, best, left_over = _indexed(query, step, cells)
        single = step.greatest < FARTHEST
        parts.append(cut(best.order, best.offsets, best.runs, single, best.targets, leaves, leaf[slot]))
        run[slot, sources] = best.runs
        leaves += len(parts[-1][1])
        for comparison in left_over:
            operator = OPERATORS.index(query.comparisons[comparison].operator)
            rest.append((operator, *_keys(cells, comparison)))
        rest_offsets.append(len(rest))
    member, sizes, block_from, block_to = (
        np.concatenate([part[at] for part in parts] or [np.zeros(0, np.int32)]) for at in range(4)
    )
    return Graph(
        cell=cells.cell,
        time=cells.time,
        term=cells.term,
        terms=terms,
        step=steps,
        least=np.array([step.least for step in query.steps], np.int64),
        greatest=np.array([step.greatest for step in query.steps], np.int64),
        leaf=leaf,
        run=run,
        member=member,
        member_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        block_from=block_from,
        block_to=block_to,
        rest_offsets=np.array(rest_offsets, np.int64),
        rest_operator=np.array([operator for operator, _, _ in rest], np.int64),
        rest_left=np.array([left for _, left, _ in rest], np.int64).reshape(len(rest), n),
        rest_right=np.array([right for _, _, right in rest], np.int64).reshape(len(rest), n),
    )


def _keys(cells: Cells, comparison: int, *, ordered: bool = True) -> tuple[IntArray, IntArray]:
    """Keys of the left and right values of all rows."""
    left, right = order_keys(cells.vertices.left[comparison], cells.vertices.right[comparison], ordered=ordered)
    return left[cells.row], right[cells.row]


def _indexed(query: TrendQuery, step: Step, cells: Cells) -> tuple[IntArray, _Candidate, list[int]]:
    """Earlier rows of a step, its best order of leaves, and the comparisons that this leaves over."""
    vertices = cells.vertices
    earlier = (cells.term == step.source) & (cells.group >= 0)
    later = (cells.term == step.target) & (cells.group >= 0)
    for number in step.comparisons:
        earlier &= vertices.right[number].known[cells.row]
        later &= vertices.left[number].known[cells.row]
    sources, targets = np.flatnonzero(earlier), np.flatnonzero(later)
    block_s, block_t = cells.group[sources], cells.group[targets]
    ranged = []
    for number in step.comparisons:
        if query.comparisons[number].operator == "=":
            left, right = _keys(cells, number, ordered=False)
            block_t, block_s = paired((block_t, left[targets]), (block_s, right[sources]), gaps=True)
        else:
            ranged.append(number)
    blocks = max(int(block_t.max(initial=-1)), int(block_s.max(initial=-1))) + 1
    candidates = []
    for number in ranged or [-1]:
        if number < 0:
            operator, left, right = EVERY, block_t, block_s
        else:
            operator = OPERATORS.index(query.comparisons[number].operator)
            left, right = _keys(cells, number)
            left, right = left[targets], right[sources]
        kept = np.flatnonzero(reachable(blocks, block_t, left, block_s, right, operator))
        left = left[kept]
        order, offsets = by_block(block_t[kept], blocks, left, number >= 0)
        found = runs(offsets, left[order], block_s, right, operator)
        candidates.append(_Candidate(number, targets[kept], order, offsets, found))
    best = min(candidates, key=lambda candidate: candidate.pairs) if len(candidates) > 1 else candidates[0]
    return sources, best, [number for number in ranged if number != best.number]
