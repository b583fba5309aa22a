"""Trends of a set of vertices: how many there are in each cell, and which.

The steps, in order: deal the vertices out to cells, build the graph, list its edges where sums cannot answer, build an
automaton where a sequence of events may be several paths, mark where trends start and end, sweep, and from there count
or extract.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.trends.kernels.anchors import extract_by_anchors, parts_of
from patternlake.udfs.trends.kernels.cells import Blocks, Cells, cells_of
from patternlake.udfs.trends.kernels.counting import Counts, Sweeper, counts, first_sweep
from patternlake.udfs.trends.kernels.explicit import completable, listed
from patternlake.udfs.trends.kernels.extraction import MEMORY, Batch, Followers, extract
from patternlake.udfs.trends.kernels.graph import graph_of
from patternlake.udfs.trends.kernels.leaves import latest_first
from patternlake.udfs.trends.kernels.role_sweep import sweep_states
from patternlake.udfs.trends.kernels.roles import needed, no_automaton, states_of
from patternlake.udfs.trends.kernels.starts import preceded
from patternlake.udfs.trends.kernels.sweep import sweep, sweep_edges
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.query import TrendQuery


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

    def total(self) -> int:
        """The trends of all cells together, without their lengths."""
        return sum(self.counts().trends)

    def extract(
        self,
        low: int = 0,
        high: int | None = None,
        *,
        anchored: bool = False,
        batch: int = 1 << 16,
        memory: int = MEMORY,
    ) -> Iterator[Batch]:
        """Trends number `low` to `high` (exclusive), in the order of cells and positions.

        Parameters
        ----------
        low, high
            A share of the numbers 0 to `total()`; shares can be extracted apart from each other, in any order.
        anchored
            By anchors, where these fit `memory`; else by depth-first search. Answers are the same.
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
        asked = (self._row, self._cell, self._starts, self._ends, swept.capped, swept.length, low, until)
        parts = None
        if anchored:
            parts = parts_of(self._followers, self._order, self._starts, self._ends, swept.length, memory)
        if parts is not None:
            return extract_by_anchors(parts, *asked, batch=batch)
        return extract(self._followers, *asked, batch=batch, memory=memory)
