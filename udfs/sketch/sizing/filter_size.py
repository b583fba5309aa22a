"""Bits and hashes of one Bloom filter, from distinct tokens and a wanted false-positive rate."""

from __future__ import annotations

import math

_LN2 = math.log(2.0)


def row_probes(query_length: int) -> int:
    """Filters that a row of s operands rests on: 2(s−1), each pair tests two (thesis 4.4.1); one if s = 1."""
    return max(1, 2 * (query_length - 1))


def filter_rate(fpq: float, probes: float) -> float:
    """Rate of one filter so that at least one of `probes` errs with probability fpq (thesis 4.5)."""
    return -math.expm1(math.log1p(-fpq) / probes)


def thesis_filter(count: float, rate: float) -> tuple[int, int]:
    """Bits m by 4.13 (rounded up to whole bytes) and k by 4.18, floored, at least 1."""
    bits = -count * math.log(rate) / _LN2**2
    return _whole_bytes(bits), max(1, math.floor(-math.log2(rate)))


def smallest_filter(count: float, rate: float) -> tuple[int, int]:
    """Fewest bits that keep the rate with a whole number of hashes: (1 − e^(−kn/m))^k = rate, solved for m."""
    best = max(1, math.floor(-math.log2(rate)))
    return min((_whole_bytes(-k * count / math.log1p(-(rate ** (1.0 / k)))), k) for k in (best, best + 1))


def _whole_bytes(bits: float) -> int:
    return max(1, math.ceil(bits / 8)) * 8
