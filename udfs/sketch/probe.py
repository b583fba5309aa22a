"""Ask Bloom filters for tokens, and bound the probability that their answers are false."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.bloom import positions


def probe(bits: NDArray[np.uint8], k: int, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which filters may hold which tokens.

    Parameters
    ----------
    bits
        uint8[c, m/8], c filters of one level, as `build.LevelNodes` holds them.
    k
        Hashes per token of that level.
    hashes
        uint64[t, 2], 128-bit hashes of the tokens asked for.

    Returns
    -------
    bool[c, t]. False is certain; True is false with probability `false_positive_rate`.

    Raises
    ------
    ArgumentError
        If the arrays have other shapes.
    """
    if bits.ndim != 2 or hashes.ndim != 2 or hashes.shape[1] != 2:
        raise ArgumentError(
            f"bits of shape {bits.shape}, hashes of shape {hashes.shape}: must be (filters, bytes) and (tokens, 2)"
        )
    answers = np.empty((len(bits), len(hashes)), np.bool_)
    _probe(bits, np.uint64(bits.shape[1] * 8), k, np.ascontiguousarray(hashes), answers)
    return answers


def false_positive_rate(ones: ArrayLike, bits: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """(ones/bits)^k: how often a filter of this density claims a token that it does not hold (thesis 4.1, measured).

    The thesis' 4.1 estimates the density from m, k and n; here it is counted. Arguments broadcast; float64.
    """
    density = np.asarray(ones, np.float64) / np.asarray(bits, np.float64)
    rate: NDArray[np.float64] = np.asarray(np.power(density, k), np.float64)
    return rate


def any_false(fp: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """1 − Π(1 − fp) along an axis: the probability that at least one of these answers is false (thesis 4.3)."""
    with np.errstate(divide="ignore"):
        exponent = np.log1p(-np.asarray(fp, np.float64)).sum(axis=axis)
    return np.asarray(-np.expm1(exponent), np.float64)


@njit(cache=True, nogil=True)
def _probe(
    bits: NDArray[np.uint8], size: np.uint64, k: int, hashes: NDArray[np.uint64], answers: NDArray[np.bool_]
) -> None:
    places = np.empty((hashes.shape[0], k), np.uint32)
    for token in range(hashes.shape[0]):
        positions(size, k, hashes[token, 0], hashes[token, 1], places[token])
    for node in range(bits.shape[0]):
        row = bits[node]
        for token in range(hashes.shape[0]):
            present = True
            for i in range(k):
                place = places[token, i]
                if not (row[place >> 3] >> (place & 7)) & 1:
                    present = False
                    break
            answers[node, token] = present
