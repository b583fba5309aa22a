"""Vertices dealt out to cells: one cell for each partition and window that holds a vertex (SPEC section 5).

All cells of an answer are worked on at once, because most are small: no edge leaves its cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.sort_keys import order_keys, paired
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.query import TrendQuery


@dataclass(frozen=True)
class Cells:
    """Vertices of many cells, in the order of (cell, position, term); a vertex stands in each of its windows.

    Attributes
    ----------
    key, window
        int64[c]: partition and number k of each cell, in the order of (key, window).
    offsets
        int64[c + 1]: cell i has the rows ``offsets[i]:offsets[i + 1]``.
    row
        int64[n]: the vertex (row of `vertices`) behind each row here.
    cell, position, time, term
        int64[n].
    group
        int64[n]: rows of one group may follow one another: they are of one cell and equal in all of ``[attr]``; -1: one
        of those is NULL, so nothing follows and nothing precedes.
    """

    vertices: Vertices
    key: IntArray
    window: IntArray
    offsets: IntArray
    row: IntArray
    cell: IntArray
    position: IntArray
    time: IntArray
    term: IntArray
    group: IntArray

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Blocks:
    """Runs of windows that are answered apart from each other.

    Attributes
    ----------
    size
        Windows of one block: window k belongs to block floor(k / size).
    of_key
        int64[…]: the block that each partition's code stands for; a partition has a code for each of its blocks.
    first, last
        Numbers of the first and the last window that is asked for.
    """

    size: int
    of_key: IntArray
    first: int = -(2**62)
    last: int = 2**62


def cells_of(query: TrendQuery, vertices: Vertices, blocks: Blocks | None = None) -> Cells:
    """Deal vertices out to partitions and windows.

    Parameters
    ----------
    query
        The compiled query.
    vertices
        Of whole windows: `vertices.joined` of all their panes.
    blocks
        Which windows to answer for which code of a partition; None: all that hold a vertex.
    """
    row, window = Windows.of(query).spread(vertices.pane)
    if blocks is not None:
        wanted = np.floor_divide(window, blocks.size) == blocks.of_key[vertices.key[row]]
        wanted &= (window >= blocks.first) & (window <= blocks.last)
        row, window = row[wanted], window[wanted]
    key = vertices.key[row]
    if not (_constant(key) and _constant(window)):
        order = np.lexsort((window, key))
        row, window, key = row[order], window[order], key[order]
    first = np.ones(len(row), np.bool_)
    first[1:] = (key[1:] != key[:-1]) | (window[1:] != window[:-1])
    starts = np.flatnonzero(first)
    cell = np.cumsum(first) - 1
    group = cell
    known = np.ones(len(row), np.bool_)
    for column in vertices.along:
        codes, _ = order_keys(column, column, ordered=False)
        group, _ = paired((group, codes[row]), (group[:0], codes[:0]))
        known &= column.known[row]
    return Cells(
        vertices=vertices,
        key=key[starts],
        window=window[starts],
        offsets=np.append(starts, len(row)),
        row=row,
        cell=cell,
        position=vertices.position[row],
        time=vertices.time[row],
        term=vertices.term[row],
        group=np.where(known, group, -1),
    )


def _constant(values: IntArray) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())
