"""What a sweep adds up and compares beside the numbers of trends: a weight and a rank of each event.

Without weights each event weighs 1, so the sum over all trends of their events' weights is their total length; without
ranks the greatest along a trend is its length. Weights are of any size and sign: a sweep has their remainders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import LaneArray, SmallArray

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_BITS = np.uint64(63)
_POWER = np.uint64(1 << 63)
_BELOW = np.uint64((1 << 63) - 1)
_UPPER = np.uint64(31)
_REST = np.uint64((1 << 31) - 1)


class Measures(NamedTuple):
    """Of the r rows (or states) of a sweep, for numba.

    Attributes
    ----------
    weights
        uint64[r, p]: the remainder of each weight by each modulus (0: by 2^64); uint64[0, 0]: each row weighs 1.
    ranks
        int32[r], each 1 or more: what the greatest is taken of; int32[0]: lengths are.
    """

    weights: LaneArray
    ranks: SmallArray


LENGTHS = Measures(np.zeros((0, 0), np.uint64), np.zeros(0, np.int32))
"""The measures of `cet_count`."""


@njit(cache=True)
def wide_product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The upper and the lower 64 bits of a product."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    upper = a_high * b_high + (middle >> _HALF) + (other >> _HALF)
    return upper, (other << _HALF) | (low & _LOW)


@njit(cache=True)
def product(a: np.uint64, b: np.uint64, modulus: np.uint64) -> np.uint64:
    """Product of two numbers modulo a third, greater one: 0 (for 2^64), or less than 2^63 by 2^20 at most.

    Notes
    -----
    2^63 is c modulo 2^63 - c, so what lies above 63 bits of the product is multiplied by c and added, twice.
    """
    if modulus == 0:
        return a * b
    c = _POWER - modulus
    upper, lower = wide_product(a, b)
    above, below = (upper << _ONE) | (lower >> _BITS), lower & _BELOW
    first, second = c * (above & _LOW), c * (above >> _HALF)
    rest = ((second & _REST) << _HALF) + first
    while rest >= modulus:
        rest -= modulus
    if below >= modulus:
        below -= modulus
    total = below + rest
    if total >= modulus:
        total -= modulus
    total += c * (second >> _UPPER)
    return total - modulus if total >= modulus else total


@njit(cache=True)
def products(a: LaneArray, b: LaneArray, modulus: np.uint64) -> LaneArray:
    """`product` of each pair: uint64[n]."""
    found = np.empty(len(a), np.uint64)
    for at in range(len(a)):
        found[at] = product(a[at], b[at], modulus)
    return found
