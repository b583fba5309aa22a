"""How many trends there are, exactly at any size (SPEC section 5, `cet_count`).

A first sweep adds in 64 bits with a float beside each sum. Where the float says that 64 bits are too few, the cells
concerned are swept again modulo as many 63-bit primes as their size needs, and the numbers come from their remainders
(Chinese remainder theorem). The count of 200 rising values, 2^198, takes four primes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray, LaneArray, SmallArray
from patternlake.udfs.trends.kernels.sweep import Sums
from patternlake.udfs.trends.measures import LENGTHS, Measures
from patternlake.udfs.trends.remainders import from_remainders
from patternlake.udfs.trends.weights import Weights

Sweeper = Callable[[IntArray, LaneArray, bool, Measures], Sums]
"""(order, moduli, log, measures) to sums; `sweep.sweep`, `sweep.sweep_edges` or `sweep_states` of one graph."""

CAP = 2**62
"""Counts of single rows stop here; no enumeration gets so far."""

_SAFE = 2.0**61
_TOGETHER = 8
WRAPPING = np.zeros(1, np.uint64)
"""The modulus of sums of 64 bits."""


@dataclass(frozen=True)
class Counts:
    """The trends of each cell.

    Attributes
    ----------
    trends, total_length
        Number and total length of the trends of each cell, exact.
    longest
        int32[c]: events of the longest trend; 0 where there is none.
    """

    trends: list[int]
    total_length: list[int]
    longest: SmallArray

    @property
    def approximate(self) -> FloatArray:
        """The numbers as doubles, infinite where they are too great for one: float64[c]."""
        return np.array([_double(number) for number in self.trends], np.float64)


@dataclass(frozen=True)
class Swept:
    """The first sweep.

    Attributes
    ----------
    capped
        int64[n]: the completions of each row, `CAP` where there are that many or nearly.
    length
        int32[n]: the longest completion, 0 where there is none.
    """

    value: LaneArray
    about: FloatArray
    capped: IntArray
    length: SmallArray


def first_sweep(sweeper: Sweeper, order: IntArray) -> Swept:
    """Sweep once, in 64 bits."""
    value, about, length = sweeper(order, WRAPPING, False, LENGTHS)
    capped = np.where(about < _SAFE, value[:, 0], np.uint64(CAP)).astype(np.int64)
    return Swept(value, about, capped, length)


def counts(sweeper: Sweeper, order: IntArray, first: Swept, starts: BoolArray, cell: IntArray, cells: int) -> Counts:
    """Exact counts of all cells.

    Parameters
    ----------
    sweeper, order
        The graph, and its rows cell after cell, each row after all that may follow it.
    first
        What `first_sweep` gave.
    starts
        bool[n]: the rows at which trends start.
    cell, cells
        int64[n]: the cell of each row; how many cells there are.
    """
    rows = np.flatnonzero(starts & (first.length > 0))
    longest = greatest_by_cell(first.length, rows, cell, cells)
    about = np.bincount(cell[rows], first.about[rows], cells).astype(np.float64)
    low, low_length = sums_by_cell(first.value, rows, cell, cells, WRAPPING)[:, :2].T.tolist()
    big = np.flatnonzero(about * np.maximum(longest, 1) >= _SAFE)
    if len(big):
        trends, lengths = _big(sweeper, order, rows, cell, cells, big, about, longest)
        for number, one, length in zip(big.tolist(), trends, lengths, strict=True):
            low[number], low_length[number] = one, length
    return Counts(low, low_length, longest)


def _big(
    sweeper: Sweeper, order: IntArray, rows: IntArray, cell: IntArray, cells: int, big: IntArray, about: FloatArray,
    longest: SmallArray,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Numbers and lengths of cells that need more than 64 bits."""
    wanted = np.isin(cell, big)
    order, rows = order[wanted[order]], rows[wanted[rows]]
    with np.errstate(divide="ignore"):
        bits = np.log2(about[big])
    if not np.isfinite(bits).all():
        _, logs, _ = sweeper(order, WRAPPING, True, LENGTHS)
        bits = _logs_by_cell(logs, rows, cell, cells)[big]
    # One bit for what floats round away, one because a remainder tells numbers below the product apart.
    needed = int(np.ceil((bits + np.log2(longest[big])).max())) + 2
    return by_remainders(sweeper, order, rows, cell, cells, big, needed, None)


def by_remainders(
    sweeper: Sweeper, order: IntArray, rows: IntArray, cell: IntArray, cells: int, wanted: IntArray, bits: int,
    weights: Weights | None,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Numbers and weighted sums of the trends of some cells, from remainders.

    Parameters
    ----------
    sweeper, cell, cells
        As of `counts`.
    order, rows
        Of the cells that are wanted: all rows, and those at which trends start.
    wanted
        The cells.
    bits
        Of the modulus at least: numbers are below it.
    weights
        Of all rows; None: each weighs 1. Sums are then at most half the modulus from 0, on either side.
    """
    found = primes(bits // 62 + 1)
    remainders = []
    for begin in range(0, len(found), _TOGETHER):
        some = found[begin : begin + _TOGETHER]
        moduli = np.array(some, np.uint64)
        measures = LENGTHS if weights is None else LENGTHS._replace(weights=weights.remainders(some))
        value, _, _ = sweeper(order, moduli, True, measures)
        remainders.append(sums_by_cell(value, rows, cell, cells, moduli)[wanted])
    trends = np.concatenate([part[:, : part.shape[1] // 2] for part in remainders], axis=1)
    sums = np.concatenate([part[:, part.shape[1] // 2 :] for part in remainders], axis=1)
    factors = _weights(tuple(found))
    modulus = prod(found)
    numbers, totals = (
        [sum(int(r) * factor for r, factor in zip(row, factors, strict=True)) % modulus for row in part]
        for part in (trends, sums)
    )
    if weights is not None:
        totals = [total - modulus if 2 * total > modulus else total for total in totals]
    return numbers, totals


def row_numbers(sweeper: Sweeper, order: IntArray, bits: int, limbs: int) -> LaneArray:
    """The trends that lead on from each of some rows, exact below 2^bits: uint64[n, limbs].

    Parameters
    ----------
    sweeper
        The graph.
    order
        int64[n]: rows of whole cells, as of `counts`.
    bits
        Of the greatest number.
    limbs
        Of each number (`picking`).
    """
    found = primes(bits // 62 + 1)
    remainders = []
    for begin in range(0, len(found), _TOGETHER):
        moduli = np.array(found[begin : begin + _TOGETHER], np.uint64)
        value, _, _ = sweeper(order, moduli, True, LENGTHS)
        remainders.append(value[order, : len(moduli)])
    return from_remainders(np.ascontiguousarray(np.concatenate(remainders, axis=1)), found, limbs)


@njit(cache=True)
def sums_by_cell(value: LaneArray, rows: IntArray, cell: IntArray, cells: int, moduli: LaneArray) -> LaneArray:
    """Add up the sums of rows by their cells: uint64[c, 2p]."""
    p = len(moduli)
    found = np.zeros((cells, 2 * p), np.uint64)
    for row in rows:
        for lane in range(2 * p):
            modulus = moduli[lane] if lane < p else moduli[lane - p]
            total = found[cell[row], lane] + value[row, lane]
            if modulus != 0 and total >= modulus:
                total -= modulus
            found[cell[row], lane] = total
    return found


@njit(cache=True)
def greatest_by_cell(value: SmallArray, rows: IntArray, cell: IntArray, cells: int) -> SmallArray:
    """The greatest value of rows by their cells, 0 where a cell has none: int32[c]."""
    found = np.zeros(cells, np.int32)
    for row in rows:
        found[cell[row]] = max(found[cell[row]], value[row])
    return found


@njit(cache=True)
def _logs_by_cell(logs: FloatArray, rows: IntArray, cell: IntArray, cells: int) -> FloatArray:
    found = np.full(cells, -np.inf)
    for row in rows:
        found[cell[row]] = np.logaddexp2(found[cell[row]], logs[row])
    return found


@lru_cache(maxsize=8)
def _weights(moduli: tuple[int, ...]) -> list[int]:
    """For each modulus the number that is 1 modulo it and 0 modulo the others."""
    product = prod(moduli)
    return [product // modulus * pow(product // modulus, -1, modulus) for modulus in moduli]


@lru_cache(maxsize=8)
def primes(count: int) -> tuple[int, ...]:
    """The greatest `count` primes below 2^63, from the greatest down."""
    found: list[int] = []
    number = 2**63 - 1
    while len(found) < count:
        if _is_prime(number):
            found.append(number)
        number -= 2
    return tuple(found)


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test of an odd number, certain below 2^64 with these bases."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if any(number % base == 0 for base in bases):
        return number in bases
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")
