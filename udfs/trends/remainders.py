"""Whole numbers of any size from their remainders, in **limbs** of 64 bits, the lowest first.

Source: Garner's algorithm: the digits of a mixed radix, whose places are the primes, follow from the remainders.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from patternlake.udfs.arrays import LaneArray
from patternlake.udfs.trends.measures import product, wide_product

BITS = 64
"""Of a limb."""
_NOUGHT = np.uint64(0)
_ONE = np.uint64(1)


def limbs_of(numbers: Sequence[int], limbs: int) -> LaneArray:
    """Whole numbers, each in so many limbs: uint64[n, limbs]."""
    written = b"".join(number.to_bytes(8 * limbs, "little") for number in numbers)
    return np.frombuffer(written, np.uint64).reshape(len(numbers), limbs)


def from_remainders(remainders: LaneArray, primes: Sequence[int], limbs: int) -> LaneArray:
    """The numbers below the product of some primes that have these remainders.

    Parameters
    ----------
    remainders
        uint64[n, p].
    primes
        p of them, as `measures.product` takes them.
    limbs
        Of each number; what they do not hold is lost.

    Returns
    -------
    uint64[n, limbs]
    """
    count = len(primes)
    inverses = np.zeros((count, count), np.uint64)
    for i, prime in enumerate(primes):
        for j in range(i):
            inverses[j, i] = pow(primes[j], -1, prime)
    return _from_remainders(remainders, np.array(primes, np.uint64), inverses, limbs)


@njit(cache=True)
def _from_remainders(remainders: LaneArray, primes: LaneArray, inverses: LaneArray, limbs: int) -> LaneArray:
    n, p = remainders.shape
    found = np.zeros((n, limbs), np.uint64)
    digit = np.zeros(p, np.uint64)
    for row in range(n):
        for i in range(p):
            rest, prime = remainders[row, i], primes[i]
            for j in range(i):
                # A digit of a greater prime may be above this one.
                less = digit[j] if digit[j] < prime else digit[j] - prime
                rest = rest - less if rest >= less else rest + (prime - less)
                rest = product(rest, inverses[j, i], prime)
            digit[i] = rest
        for at in range(p):
            i = p - 1 - at
            carry = digit[i]
            for limb in range(limbs):
                upper, lower = wide_product(found[row, limb], primes[i])
                total = lower + carry
                carry = upper + (_ONE if total < lower else _NOUGHT)
                found[row, limb] = total
    return found
