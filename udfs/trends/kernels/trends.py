"""Trends of a set of vertices: how many there are in each cell, and which.

The steps, in order: deal the vertices out to cells, build the graph, list its edges where sums cannot answer, build an
automaton where a sequence of events may be several paths, mark where trends start and end, sweep, and from there count
or extract.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.trends.kernels.assigning import assign_terms
from patternlake.udfs.trends.kernels.cells import Blocks, Cells, cells_of
from patternlake.udfs.trends.kernels.counting import (
    CAP,
    WRAPPING,
    Counts,
    Sweeper,
    by_remainders,
    counts,
    first_sweep,
    greatest_by_cell,
    row_numbers,
    sums_by_cell,
)
from patternlake.udfs.trends.kernels.explicit import completable, listed
from patternlake.udfs.trends.kernels.extraction import MEMORY, Batch, Followers, extract
from patternlake.udfs.trends.kernels.graph import graph_of
from patternlake.udfs.trends.kernels.leaves import latest_first
from patternlake.udfs.trends.kernels.role_sweep import sweep_states
from patternlake.udfs.trends.kernels.roles import needed, no_automaton, states_of
from patternlake.udfs.trends.kernels.starts import preceded
from patternlake.udfs.trends.kernels.sweep import sweep, sweep_edges
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.measures import LENGTHS
from patternlake.udfs.trends.picking import pick
from patternlake.udfs.trends.query import TrendQuery
from patternlake.udfs.trends.remainders import BITS, limbs_of
from patternlake.udfs.trends.weights import Weights


class Trends:
    """The trends of a set of vertices.

    Parameters
    ----------
    query
        The compiled query.
    vertices
        Of whole windows: all panes of each window that is answered.
    blocks
        Which windows to answer for which code of a partition; None: all that hold a vertex.

    Attributes
    ----------
    cells
        The partitions and windows; answers are by their number.

    Notes
    -----
    O(n log n) in time and O(n) in memory for n vertices. Where an event fits two neighbouring terms (`roles`), time
    grows with the pairs of events; where edges must be listed (`explicit`), memory does as well.
    """

    def __init__(self, query: TrendQuery, vertices: Vertices, blocks: Blocks | None = None) -> None:
        self.cells: Cells = cells_of(query, vertices, blocks)
        self.graph = graph_of(query, self.cells)
        edges = None
        if any(step.remainder is not None for step in query.steps):
            edges = listed(query, self.cells, self.graph)
        self._counts: Counts | None = None
        self._sweeper: Sweeper
        unlisted = (np.zeros(0, np.int64), np.zeros(0, np.int32))
        if needed(query, self.cells):
            states = states_of(query, self.cells, self.graph, edges)
            self._row, self._order = states.row, states.order
            self._starts, self._ends = states.starts, states.ends
            self._sweeper = partial(sweep_states, self.graph, states.automaton, states.ends)
            self._swept = first_sweep(self._sweeper, self._order)
            self._followers = Followers(self.graph, states.automaton, *unlisted)
        else:
            self._row = np.arange(len(self.cells), dtype=np.int64)
            self._order = latest_first(self.cells.time, self.cells.offsets)
            if edges is None:
                self._sweeper = partial(sweep, self.graph)
                self._swept = first_sweep(self._sweeper, self._order)
                self._starts = (self.cells.term == 0) & ~preceded(self.graph, self._order)
                self._ends = self._last_of_last_term()
                self._followers = Followers(self.graph, no_automaton(), *unlisted)
            else:
                self._sweeper = partial(sweep_edges, edges.offsets, edges.targets, edges.ends)
                self._swept = first_sweep(self._sweeper, self._order)
                self._starts, self._ends = edges.starts, edges.ends
                self._followers = Followers(self.graph, no_automaton(), *completable(edges, self._swept.length))
        self._cell = self.cells.cell[self._row]

    def _last_of_last_term(self) -> NDArray[np.bool_]:
        """Where trends end: rows of the last term that only they themselves complete."""
        last = self.cells.term == self.graph.terms - 1
        return np.asarray(last & (self._swept.length == 1))

    def counts(self) -> Counts:
        """Number, longest and total length of the trends of each cell, exact."""
        if self._counts is None:
            self._counts = counts(
                self._sweeper, self._order, self._swept, self._starts, self._cell, len(self.cells.key)
            )
        return self._counts

    def totals(self, weights: Weights) -> list[int]:
        """The sum over all trends of each cell of their events' weights, exact.

        Parameters
        ----------
        weights
            Of the vertices that the trends were made of.
        """
        cells = len(self.cells.key)
        of_rows = weights.take(self.cells.row[self._row])
        rows = np.flatnonzero(self._starts & (self._swept.length > 0))
        bounds = [length * weights.greatest for length in self.counts().total_length]
        big = np.array([cell for cell, bound in enumerate(bounds) if bound >= CAP], np.int64)
        found = [0] * cells
        if len(big) < cells:
            measures = LENGTHS._replace(weights=of_rows.remainders((0,)))
            value, _, _ = self._sweeper(self._order, WRAPPING, False, measures)
            sums = sums_by_cell(value, rows, self._cell, cells, WRAPPING)[:, 1]
            found = np.ascontiguousarray(sums).view(np.int64).tolist()
        if len(big):
            wanted = np.isin(self._cell, big)
            order, starts = self._order[wanted[self._order]], rows[wanted[rows]]
            bits = max(bounds).bit_length() + 2
            _, exact = by_remainders(self._sweeper, order, starts, self._cell, cells, big, bits, of_rows)
            for cell, total in zip(big.tolist(), exact, strict=True):
                found[cell] = total
        return found

    def greatest(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """The greatest rank of an event of any trend of each cell, 0 where there is no trend: int32[c].

        Parameters
        ----------
        ranks
            int32[v], each 1 or more: of the vertices that the trends were made of.
        """
        measures = LENGTHS._replace(ranks=ranks[self.cells.row[self._row]])
        _, _, best = self._sweeper(self._order, WRAPPING, False, measures)
        rows = np.flatnonzero(self._starts & (best > 0))
        return greatest_by_cell(best, rows, self._cell, len(self.cells.key))

    def extract(
        self,
        low: int = 0,
        high: int | None = None,
        *,
        batch: int = 1 << 16,
        memory: int = MEMORY,
    ) -> Iterator[Batch]:
        """Trends number `low` to `high` (exclusive), in the order of cells and positions.

        Parameters
        ----------
        low, high
            A share of the numbers 0 to that of all trends; shares can be extracted apart from each other, in any order.
        batch
            About how many trends one batch has.
        memory
            Followers of events that are kept, in entries of 4 bytes.

        Raises
        ------
        ArgumentError
            `low` is below 0, or beyond what numbers of 62 bits reach.
        """
        if low < 0 or low >= 2**62:
            raise ArgumentError(f"trend number {low}: numbers go from 0 to 2^62 - 1")
        swept = self._swept
        until = 2**62 if high is None else min(high, 2**62)
        return extract(
            self._followers, self._row, self._cell, self._starts, self._ends, swept.capped, swept.length, low, until,
            batch=batch, memory=memory,
        )  # fmt: skip

    def assign(self, batch: Batch) -> IntArray:
        """A row of the cells for each event of some trends, of a term that it has in one of their assignments."""
        rows = batch.row.astype(np.int64)
        if not len(self._followers.automaton.of):
            return rows
        return assign_terms(self.graph, self._followers.automaton, batch.offsets.astype(np.int64), rows)

    def pick(self, numbers: Sequence[int], *, batch: int = 1 << 14) -> Iterator[Batch]:
        """The trends of some numbers, in their order.

        Parameters
        ----------
        numbers
            From 0 to that of all trends, exclusive; of any size.
        batch
            How many trends one batch has.

        Notes
        -----
        Each takes a step for every event that may follow one of its own, and for every limb of its number.
        """
        trends = self.counts().trends
        until = list(accumulate(trends))
        cells = [bisect_right(until, number) for number in numbers]
        limbs = max((-(-trends[cell].bit_length() // BITS) for cell in cells), default=1)
        completions = np.zeros((len(self._row), limbs), np.uint64)
        completions[:, 0] = self._swept.capped
        big = [cell for cell in dict.fromkeys(cells) if trends[cell] >= CAP // 2]
        if big:
            order = self._order[np.isin(self._cell[self._order], np.array(big, np.int64))]
            bits = max(trends[cell].bit_length() for cell in big)
            completions[order] = row_numbers(self._sweeper, order, bits, limbs)
        for begin in range(0, len(numbers), batch):
            some = cells[begin : begin + batch]
            ranks = [
                number - until[cell] + trends[cell]
                for number, cell in zip(numbers[begin : begin + batch], some, strict=True)
            ]
            yield pick(
                self._followers, self._row, self._cell, self._starts, self._ends, self._swept.length, completions,
                np.array(some, np.int64), limbs_of(ranks, limbs),
            )  # fmt: skip
