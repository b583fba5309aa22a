"""Numbers of events as exact integers over one denominator, so that sums over any number of trends lose nothing.

A whole number is itself, a DECIMAL of scale s a whole number of 10^-s, and a DOUBLE a whole number of the least power
of two that any of them needs. What a sweep takes of them are remainders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, LaneArray
from patternlake.udfs.trends.measures import products

_MANTISSA = 53


@dataclass(frozen=True)
class _Part:
    """``mantissa · factors[place]`` of each row: int64[n], int64[n] and whole numbers of any size."""

    mantissa: IntArray
    place: IntArray
    factors: tuple[int, ...]


@dataclass(frozen=True)
class Weights:
    """A whole number for each of n rows, which counts as so many `denominator`-ths.

    Attributes
    ----------
    parts
        Whose sum it is.
    denominator
        1 or more.
    greatest
        No number's absolute value is greater.
    """

    parts: tuple[_Part, ...]
    denominator: int
    greatest: int

    def take(self, rows: IntArray) -> Weights:
        """Of some rows, in any order."""
        parts = tuple(_Part(part.mantissa[rows], part.place[rows], part.factors) for part in self.parts)
        return Weights(parts, self.denominator, self.greatest)

    def remainders(self, moduli: Sequence[int]) -> LaneArray:
        """uint64[n, p]: by each modulus, as `measures.product` takes it; 0: by 2^64."""
        found = [self._remainders(modulus) for modulus in moduli]
        return np.ascontiguousarray(np.stack(found, axis=1))

    def _remainders(self, modulus: int) -> LaneArray:
        total = np.zeros(len(self.parts[0].mantissa), np.uint64)
        for part in self.parts:
            if modulus:
                mantissa = np.mod(part.mantissa, np.int64(modulus)).astype(np.uint64)
            else:
                mantissa = part.mantissa.view(np.uint64)
            if part.factors != (1,):
                table = np.array([factor % (modulus or 1 << 64) for factor in part.factors], np.uint64)
                mantissa = products(mantissa, table[part.place], np.uint64(modulus))
            total = total + mantissa
            if modulus:
                total = np.where(total >= np.uint64(modulus), total - np.uint64(modulus), total)
        return total


def flags(values: BoolArray) -> Weights:
    """1 where a flag is set."""
    return _whole(values.astype(np.int64), 1)


def weights_of(numbers: pa.Array) -> Weights:
    """Of int64, float64 or decimal128 values; NULL, NaN and the infinities weigh nothing.

    Parameters
    ----------
    numbers
        n values.
    """
    if pa.types.is_decimal(numbers.type):
        return _of_decimals(numbers)
    values = pc.fill_null(numbers, pa.scalar(0, numbers.type)).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(numbers.type):
        return _whole(values.astype(np.int64), 1)
    return _of_doubles(np.where(np.isfinite(values), values, 0.0))


def _whole(values: IntArray, denominator: int) -> Weights:
    # Of the least integer, numpy's absolute value is itself.
    greatest = max((abs(int(end)) for end in (values.min(initial=0), values.max(initial=0))), default=0)
    return Weights((_Part(values, np.zeros(len(values), np.int64), (1,)),), denominator, greatest)


def _of_doubles(values: FloatArray) -> Weights:
    fraction, exponent = np.frexp(values)
    mantissa = (fraction * 2.0**_MANTISSA).astype(np.int64)
    zeros = np.where(mantissa == 0, 0, np.frexp((mantissa & -mantissa).astype(np.float64))[1] - 1)
    mantissa >>= zeros
    exponent = np.where(mantissa == 0, 0, exponent.astype(np.int64) - _MANTISSA + zeros)
    least = int(exponent.min(initial=0))
    distinct, place = np.unique(exponent, return_inverse=True)
    factors = tuple(1 << (each - least) for each in distinct.tolist()) or (1,)
    greatest = 0
    for number, factor in enumerate(factors):
        greatest = max(greatest, int(np.abs(mantissa[place == number]).max(initial=0)) * factor)
    return Weights((_Part(mantissa, place.astype(np.int64), factors),), 1 << -least, greatest)


def _of_decimals(numbers: pa.Array) -> Weights:
    whole = pa.concat_arrays([numbers])
    filled = pc.fill_null(whole, pa.scalar(0, whole.type))
    # Arrow keeps a decimal as a whole number of 128 bits in two's complement, the low 64 bits first.
    words = np.frombuffer(filled.buffers()[1], np.uint64, 2 * len(filled), 16 * filled.offset).reshape(-1, 2)
    low, high = words[:, 0].copy(), words[:, 1].copy().view(np.int64)
    denominator = 10**whole.type.scale
    if (high == low.view(np.int64) >> 63).all():
        return _whole(low.view(np.int64), denominator)
    nowhere = np.zeros(len(low), np.int64)
    parts = (
        _Part(high, nowhere, (1 << 64,)),
        _Part((low >> np.uint64(32)).astype(np.int64), nowhere, (1 << 32,)),
        _Part((low & np.uint64(0xFFFFFFFF)).astype(np.int64), nowhere, (1,)),
    )
    return Weights(parts, denominator, 10**38)
