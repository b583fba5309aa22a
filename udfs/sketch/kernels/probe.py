"""Ask Bloom filters for tokens, and bound the probability that their answers are false."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from patternlake.udfs.sketch.kernels.bloom import positions


def probe_pairs(
    bits: NDArray[np.uint8],
    k: int,
    hashes: NDArray[np.uint64],
    keys: NDArray[np.int64],
    nodes: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> None:
    """Ask chosen filters for the tokens of chosen keys, and add what they may hold to `present`.

    Parameters
    ----------
    bits
        uint8[c, m/8], c filters of one level, as `build.LevelNodes` holds them.
    k
        Hashes per token of that level.
    hashes
        uint64[keys · t, 2], 128-bit hashes of t tokens for each key, those of one key side by side.
    keys, nodes
        int64[p], the pairs: places of the key and of the filter.
    present
        bool[p, t], changed in place: True is kept, and set where the filter may hold the token. False is certain; True
        is false with probability `false_positive_rate`.
    """
    _probe_pairs(bits, np.uint64(bits.shape[1] * 8), k, np.ascontiguousarray(hashes), keys, nodes, present)


def places(size: int, k: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """uint32[t, k]: the bits that a filter of `size` bits has set for each of t tokens, given their 128-bit hashes."""
    found = np.empty((len(hashes), k), np.uint32)
    _places(np.uint64(size), k, np.ascontiguousarray(hashes), found)
    return found


def false_positive_rate(ones: ArrayLike, bits: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """(ones/bits)^k: how often a filter of this density claims a token that it does not hold (thesis 4.1, measured).

    The thesis' 4.1 estimates the density from m, k and n; here it is counted. Arguments broadcast; float64.
    """
    density = np.asarray(ones, np.float64) / np.asarray(bits, np.float64)
    rate: NDArray[np.float64] = np.asarray(np.power(density, k), np.float64)
    return rate


@njit(cache=True, nogil=True)
def _probe_pairs(
    bits: NDArray[np.uint8],
    size: np.uint64,
    k: int,
    hashes: NDArray[np.uint64],
    keys: NDArray[np.int64],
    nodes: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> None:
    places = np.empty(k, np.uint32)
    tokens = present.shape[1]
    for pair in range(keys.shape[0]):
        row = bits[nodes[pair]]
        for token in range(tokens):
            if present[pair, token]:
                continue
            place_of = keys[pair] * tokens + token
            positions(size, k, hashes[place_of, 0], hashes[place_of, 1], places)
            held = True
            for i in range(k):
                if not (row[places[i] >> 3] >> (places[i] & 7)) & 1:
                    held = False
                    break
            present[pair, token] = held


@njit(cache=True, nogil=True)
def _places(size: np.uint64, k: int, hashes: NDArray[np.uint64], found: NDArray[np.uint32]) -> None:
    for token in range(found.shape[0]):
        positions(size, k, hashes[token, 0], hashes[token, 1], found[token])
