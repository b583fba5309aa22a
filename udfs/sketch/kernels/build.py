"""Build the tree of one segment: leaves from events, parents from children.

Source: thesis 4.1, Algorithms 1 and 2. Departures: the tree is cut into segments that are built apart; only aligned
neighbours merge (the thesis merges any two neighbours of a level, so one dense pair shifts all later parents);
``leveled`` fills each parent from the distinct tokens of its children, so that levels may differ in size, and always
merges; the last, unfinished leaf and its parents are built as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.kernels.trees import fill, gather_leaves, gather_parents, place, unite
from patternlake.udfs.sketch.sizing.sizes import Level, Sizing


@dataclass(frozen=True)
class LevelNodes:
    """The c nodes of one level of one segment, in ascending order.

    Attributes
    ----------
    level
        0 = the leaves.
    node
        int32[c], index of the node among those that the level can have; level l of node i covers the leaves
        i·f^l to (i+1)·f^l − 1 of the segment.
    pos_lo, pos_hi, time_lo, time_hi
        int64[c], inclusive intervals of positions and of times (microseconds, UTC).
    ones, distinct
        int32[c], set bits and distinct tokens.
    bits
        uint8[c, m/8], bit p of a filter is bit p & 7 (least significant first) of byte p >> 3.
    m, k
        Bits per filter, hashes per token.
    """

    level: int
    node: NDArray[np.int32]
    pos_lo: NDArray[np.int64]
    pos_hi: NDArray[np.int64]
    time_lo: NDArray[np.int64]
    time_hi: NDArray[np.int64]
    ones: NDArray[np.int32]
    distinct: NDArray[np.int32]
    bits: NDArray[np.uint8]
    m: int
    k: int

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True)
class _Cells:
    """What holds for every place of a level, whether or not `uniform` keeps a node there: intervals and tokens."""

    pos_lo: NDArray[np.int64]
    pos_hi: NDArray[np.int64]
    time_lo: NDArray[np.int64]
    time_hi: NDArray[np.int64]
    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pos_lo)

    def nodes(
        self, level: int, node: NDArray[np.int32], ones: NDArray[np.int32], bits: NDArray[np.uint8], size: Level
    ) -> LevelNodes:
        return LevelNodes(
            level,
            node,
            self.pos_lo[node],
            self.pos_hi[node],
            self.time_lo[node],
            self.time_hi[node],
            ones,
            np.diff(self.offsets)[node].astype(np.int32),
            bits,
            size.bits,
            size.hashes,
        )


def build_segment(
    sizing: Sizing,
    first_position: int,
    positions: NDArray[np.int64],
    times: NDArray[np.int64],
    codes: NDArray[np.int32],
    hashes: NDArray[np.uint64],
) -> list[LevelNodes]:
    """Build all nodes of one segment.

    Parameters
    ----------
    sizing
        The plan; its segment_events bounds n.
    first_position
        Position of the segment's first event.
    positions
        int64[n], in any order; together the run first_position to first_position + n − 1. Fewer than segment_events
        are an open segment: its nodes cover the events there are.
    times
        int64[n], microseconds since the epoch, UTC.
    codes
        int32[n, x], tokens of each event as rows of `hashes`; −1 adds nothing. Different codes are different tokens.
    hashes
        uint64[D, 2], 128-bit hashes.

    Returns
    -------
    One `LevelNodes` per level of the plan, the leaves first. ``leveled``: level l has ceil(leaves / f^l) nodes.
    ``uniform``: a parent is there if all its children that cover events are there and at most half of its bits are
    set; a level may be empty.

    Raises
    ------
    ArgumentError
        If the arrays do not fit together, a position is missing, twice or outside the segment, or a code has no hash.
    """
    _check_shapes(sizing, positions, times, codes, hashes)
    order = _order(first_position, positions)
    seen = np.full(len(hashes), -1, np.int32)
    cells = _leaves(sizing, first_position, order, times, codes, seen)
    bits, ones = _filled(cells, sizing.levels[0], hashes)
    nodes = [cells.nodes(0, np.arange(len(cells), dtype=np.int32), ones, bits, sizing.levels[0])]
    stamp = len(cells)
    for level in range(1, sizing.height):
        below, cells = len(cells), _parents(cells, sizing.fanout, stamp, seen)
        stamp += len(cells)
        if sizing.structure == "uniform":
            node, bits, ones = _merged(nodes[-1].node, nodes[-1].bits, below, sizing.fanout)
        else:
            node = np.arange(len(cells), dtype=np.int32)
            bits, ones = _filled(cells, sizing.levels[level], hashes)
        nodes.append(cells.nodes(level, node, ones, bits, sizing.levels[level]))
    return nodes


def mean_distinct(nodes: Sequence[LevelNodes]) -> list[float]:
    """Mean distinct tokens per node of each level, 0 for a level without nodes; what `planning.refit` takes."""
    return [float(level.distinct.mean()) if len(level) else 0.0 for level in nodes]


def _check_shapes(
    sizing: Sizing,
    positions: NDArray[np.int64],
    times: NDArray[np.int64],
    codes: NDArray[np.int32],
    hashes: NDArray[np.uint64],
) -> None:
    events = len(positions)
    if events > sizing.segment_events:
        raise ArgumentError(f"{events} events: a segment of this plan takes at most {sizing.segment_events}")
    if codes.ndim != 2 or len(codes) != events or len(times) != events:
        raise ArgumentError(
            f"positions of shape {positions.shape}, times {times.shape}, codes {codes.shape}: "
            "must be (n,), (n,) and (n, tokens per event)"
        )
    if hashes.ndim != 2 or hashes.shape[1] != 2:
        raise ArgumentError(f"hashes of shape {hashes.shape}: must be (distinct tokens, 2)")
    if codes.size and not (codes.min() >= -1 and codes.max() < len(hashes)):
        wrong = codes.min() if codes.min() < -1 else codes.max()
        raise ArgumentError(f"code {wrong}: must lie from -1 to {len(hashes) - 1}, as there are {len(hashes)} hashes")


def _order(first_position: int, positions: NDArray[np.int64]) -> NDArray[np.int32]:
    """int32[n]: the row of each position."""
    order = np.full(len(positions), -1, np.int32)
    wrong = place(positions, first_position, order)
    if wrong >= 0:
        last = first_position + len(positions) - 1
        raise ArgumentError(
            f"position {positions[wrong]}: {len(positions)} events of a segment must have the positions "
            f"{first_position} to {last}, each once"
        )
    return order


def _leaves(
    sizing: Sizing,
    first_position: int,
    order: NDArray[np.int32],
    times: NDArray[np.int64],
    codes: NDArray[np.int32],
    seen: NDArray[np.int32],
) -> _Cells:
    count = -(-len(order) // sizing.leaf_events)
    pos_lo = first_position + np.arange(count, dtype=np.int64) * sizing.leaf_events
    pos_hi = np.minimum(pos_lo + sizing.leaf_events, first_position + len(order)) - 1
    time_lo, time_hi = np.empty(count, np.int64), np.empty(count, np.int64)
    tokens, offsets = np.empty(codes.size, np.int32), np.zeros(count + 1, np.int64)
    gather_leaves(order, times, codes, sizing.leaf_events, seen, time_lo, time_hi, tokens, offsets)
    return _Cells(pos_lo, pos_hi, time_lo, time_hi, tokens, offsets)


def _parents(below: _Cells, fanout: int, stamp: int, seen: NDArray[np.int32]) -> _Cells:
    """The cells one level up; `stamp` is above all marks that lower levels left in `seen`."""
    first = np.arange(0, len(below), fanout)
    last = np.minimum(first + fanout, len(below))
    tokens, offsets = np.empty(int(below.offsets[-1]), np.int32), np.zeros(len(first) + 1, np.int64)
    gather_parents(below.tokens, below.offsets, fanout, stamp, seen, tokens, offsets)
    return _Cells(
        below.pos_lo[first],
        below.pos_hi[last - 1],
        np.minimum.reduceat(below.time_lo, first),
        np.maximum.reduceat(below.time_hi, first),
        tokens,
        offsets,
    )


def _filled(cells: _Cells, size: Level, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Bits and ones of all cells of a level, from their distinct tokens."""
    bits = np.zeros((len(cells), size.bits // 8), np.uint8)
    ones = np.empty(len(cells), np.int32)
    fill(cells.tokens, cells.offsets, hashes, np.uint64(size.bits), size.hashes, bits, ones)
    return bits, ones


def _merged(
    node: NDArray[np.int32], bits: NDArray[np.uint8], places: int, fanout: int
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
    """Parents by union of filters: node, bits and ones of those that `uniform` keeps.

    `node` and `bits` are the children there are, out of `places` that cover events.
    """
    there, first = np.unique(node // fanout, return_index=True)
    children = np.diff(np.append(first, len(node)))
    whole = children == np.minimum(fanout, places - there * fanout)
    parent, first, children = there[whole].astype(np.int32), first[whole], children[whole]
    union = np.empty((len(parent), bits.shape[1]), np.uint8)
    ones = np.empty(len(parent), np.int32)
    kept = np.empty(len(parent), np.int64)
    count = unite(bits, first, children, union, ones, kept)
    return parent[kept[:count]], union[:count], ones[:count]
