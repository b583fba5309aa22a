"""MurmurHash3 x64 128 over many byte strings that lie in one buffer, as Arrow lays strings out.

With mmh3 instead, one string after the other, building a sketch takes 1.2 times as long, and one with keys, where most
tokens of a segment are distinct, 1.3 to 1.4 times (`benchmarks/kernel_sketch_build.py`).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_STEP_1 = np.uint64(0x52DCE729)
_STEP_2 = np.uint64(0x38495AB5)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_FIVE = np.uint64(5)
_WORD = np.uint64(64)
_R27, _R31, _R33 = np.uint64(27), np.uint64(31), np.uint64(33)


@njit(cache=True, nogil=True)
def _rotate(x: np.uint64, by: np.uint64) -> np.uint64:
    return (x << by) | (x >> (_WORD - by))


@njit(cache=True, nogil=True)
def _finish(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _R33)) * _MIX_1
    x = (x ^ (x >> _R33)) * _MIX_2
    return x ^ (x >> _R33)


@njit(cache=True, nogil=True)
def _little_endian(data: NDArray[np.uint8], begin: int, end: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(end - begin):
        word |= np.uint64(data[begin + i]) << np.uint64(8 * i)
    return word


@njit(cache=True, nogil=True)
def murmur3_x64_128(data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: np.uint64) -> NDArray[np.uint64]:
    """Hash every byte string of a buffer.

    Parameters
    ----------
    data
        uint8, the byte strings one after the other.
    offsets
        int64[n + 1]; string i is ``data[offsets[i]:offsets[i + 1]]``.
    seed
        0 to 2^32 - 1; checked by the callers in `hashing`.

    Returns
    -------
    uint64[n, 2], equal to ``mmh3.hash64(string, seed, x64arch=True, signed=False)``.
    """
    count = offsets.size - 1
    out = np.empty((count, 2), np.uint64)
    for s in range(count):
        begin, end = offsets[s], offsets[s + 1]
        h1 = seed
        h2 = seed
        at = begin
        while at + 16 <= end:
            k1 = _rotate(_little_endian(data, at, at + 8) * _C1, _R31) * _C2
            k2 = _rotate(_little_endian(data, at + 8, at + 16) * _C2, _R33) * _C1
            h1 = (_rotate(h1 ^ k1, _R27) + h2) * _FIVE + _STEP_1
            h2 = (_rotate(h2 ^ k2, _R31) + h1) * _FIVE + _STEP_2
            at += 16
        if end > at + 8:
            h2 ^= _rotate(_little_endian(data, at + 8, end) * _C2, _R33) * _C1
        if end > at:
            h1 ^= _rotate(_little_endian(data, at, min(at + 8, end)) * _C1, _R31) * _C2
        length = np.uint64(end - begin)
        h1 ^= length
        h2 ^= length
        h1 += h2
        h2 += h1
        h1 = _finish(h1)
        h2 = _finish(h2)
        h1 += h2
        h2 += h1
        out[s, 0] = h1
        out[s, 1] = h2
    return out
