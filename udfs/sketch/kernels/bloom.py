"""One Bloom filter: where a hash sets its bits, and how bits are set, tested and counted.

Double hashing, with one departure: between two positions the step goes through one round of a linear congruential
generator. With a constant step the k positions lie on a line; measured at 100 tokens and a planned rate of
2.5e-5 such filters answer wrongly four times as often as (ones/bits)^k says, and with the changing step exactly that
often. The bound that each row of a match carries rests on this formula.

These functions are compiled into their callers, whose caches on disk do not notice a change here: numba compares only
the file of the cached function. Whoever changes this file removes the ``__pycache__`` folder beside it.

Position p is bit ``p & 7`` (least significant first) of byte ``p >> 3``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from patternlake.udfs.subkernels import subkernel

_HALF = np.uint64(32)
_BYTE = np.uint64(3)
_BIT = np.uint64(7)
_ONE = np.uint8(1)
_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)


@intrinsic
def _population_count(typing_context: Any, value: Any) -> Any:
    """The number of ones in an unsigned integer, as the processor counts them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return value(value), generate


@subkernel
def insert(row: NDArray[np.uint8], bits: np.uint64, hashes: int, at: np.uint64, step: np.uint64) -> None:
    """Set the `hashes` positions of the hash (at, step) in one filter of `bits` bits, bits < 2^32."""
    for _ in range(hashes):
        position = ((at >> _HALF) * bits) >> _HALF
        row[position >> _BYTE] |= _ONE << np.uint8(position & _BIT)
        at += step
        step = step * _MULTIPLIER + _INCREMENT


@subkernel
def positions(bits: np.uint64, hashes: int, at: np.uint64, step: np.uint64, out: NDArray[np.uint32]) -> None:
    """Write the positions that `insert` sets to `out`, uint32[hashes]."""
    for i in range(hashes):
        out[i] = ((at >> _HALF) * bits) >> _HALF
        at += step
        step = step * _MULTIPLIER + _INCREMENT


@subkernel
def count_ones(row: NDArray[np.uint8]) -> int:
    """The number of set bits of one filter."""
    ones = np.int64(0)
    for i in range(row.size):
        ones += np.int64(_population_count(row[i]))  # type: ignore[call-arg]
    return int(ones)
