"""The compiled loops of `build`: over events once, over each level's distinct tokens, over each filter's bytes.

Distinct tokens are found by marks: `seen` holds for every code the last cell that it was met in, and cells of all
levels have different marks, so that nothing is cleared in between.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.sketch.kernels.bloom import count_ones, insert


@njit(cache=True, nogil=True)
def place(positions: NDArray[np.int64], first_position: int, order: NDArray[np.int32]) -> int:
    """Fill `order`; the first row whose position is outside or taken, or -1."""
    for row in range(positions.size):
        slot = positions[row] - first_position
        if slot < 0 or slot >= order.size or order[slot] >= 0:
            return row
        order[slot] = row
    return -1


@njit(cache=True, nogil=True)
def gather_leaves(
    order: NDArray[np.int32],
    times: NDArray[np.int64],
    codes: NDArray[np.int32],
    leaf_events: int,
    seen: NDArray[np.int32],
    time_lo: NDArray[np.int64],
    time_hi: NDArray[np.int64],
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> None:
    """Each leaf's times and distinct tokens; leaf i's are ``tokens[offsets[i]:offsets[i + 1]]`` and its mark is i."""
    written = 0
    for leaf in range(time_lo.size):
        begin = leaf * leaf_events
        low = high = times[order[begin]]
        for slot in range(begin, min(begin + leaf_events, order.size)):
            row = order[slot]
            low = min(low, times[row])
            high = max(high, times[row])
            for column in range(codes.shape[1]):
                code = codes[row, column]
                if code >= 0 and seen[code] != leaf:
                    seen[code] = leaf
                    tokens[written] = code
                    written += 1
        time_lo[leaf] = low
        time_hi[leaf] = high
        offsets[leaf + 1] = written


@njit(cache=True, nogil=True)
def gather_parents(
    below: NDArray[np.int32],
    below_offsets: NDArray[np.int64],
    fanout: int,
    stamp: int,
    seen: NDArray[np.int32],
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> None:
    """Each parent's distinct tokens from its children's lists; parent i's mark is stamp + i."""
    written = 0
    children = below_offsets.size - 1
    for parent in range(offsets.size - 1):
        mark = stamp + parent
        for place in range(below_offsets[parent * fanout], below_offsets[min((parent + 1) * fanout, children)]):
            code = below[place]
            if seen[code] != mark:
                seen[code] = mark
                tokens[written] = code
                written += 1
        offsets[parent + 1] = written


@njit(cache=True, nogil=True)
def fill(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    size: np.uint64,
    k: int,
    bits: NDArray[np.uint8],
    ones: NDArray[np.int32],
) -> None:
    """Insert each cell's distinct tokens in its filter of `size` bits (zero before) and count the ones."""
    for node in range(ones.size):
        row = bits[node]
        for place in range(offsets[node], offsets[node + 1]):
            code = tokens[place]
            insert(row, size, k, hashes[code, 0], hashes[code, 1])
        ones[node] = count_ones(row)


@njit(cache=True, nogil=True)
def unite(
    bits: NDArray[np.uint8],
    first: NDArray[np.int64],
    children: NDArray[np.int64],
    union: NDArray[np.uint8],
    ones: NDArray[np.int32],
    kept: NDArray[np.int64],
) -> int:
    """Write the parents that are at most half full to the front of `union`; their number."""
    count = 0
    for parent in range(first.size):
        row = union[count]
        row[:] = bits[first[parent]]
        for child in range(first[parent] + 1, first[parent] + children[parent]):
            other = bits[child]
            for i in range(row.size):
                row[i] |= other[i]
        filled = count_ones(row)
        if 2 * filled <= 8 * row.size:
            ones[count] = filled
            kept[count] = parent
            count += 1
    return count
