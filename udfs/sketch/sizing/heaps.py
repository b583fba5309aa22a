"""Heaps' law: how many distinct tokens there are among a number of tokens seen."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

DEFAULT_K = 60.0
"""The thesis' K (4.4.1), after equation 4.15."""
DEFAULT_BETA = 0.5
"""The thesis' β."""

_SMALLEST_SAMPLE = 64
_FIRST_SIZE = 16
_SIZES_PER_DOUBLING = 2
_LEAST_BETA = 0.01


def expected_distinct(seen: float, heaps_k: float, heaps_beta: float) -> float:
    """K·n̂^β distinct tokens among n̂ tokens seen (thesis 4.16), capped at n̂, which the law passes for small n̂."""
    return min(heaps_k * math.pow(seen, heaps_beta), float(seen))


def fit_heaps(codes: NDArray[np.integer]) -> tuple[float, float]:
    """Fit K and β to a sample of a stream.

    Least squares of log distinct against log seen, at sizes that grow by √2. The distinct count of a size is the mean
    over all windows of that size that tile the sample, since nodes are such windows; the sample's first tokens alone
    would say little about leaves.

    Parameters
    ----------
    codes
        int[n] or int[n, x], one code per distinct token, events in order; negative codes (NULL) are left out.

    Returns
    -------
    (K, β) with K ≥ 1 and 0 < β ≤ 1; the thesis' (60, 0.5) for samples under 64 tokens.
    """
    flat = np.asarray(codes).ravel()
    flat = flat[flat >= 0]
    if flat.size < _SMALLEST_SAMPLE:
        return DEFAULT_K, DEFAULT_BETA
    before = _previous_occurrence(flat)
    steps = np.arange(int(np.log2(flat.size / _FIRST_SIZE) * _SIZES_PER_DOUBLING) + 1)
    sizes = (_FIRST_SIZE * 2.0 ** (steps / _SIZES_PER_DOUBLING)).astype(np.int64)
    seen = np.log(sizes)
    distinct = np.log([_mean_distinct(before, int(size)) for size in sizes])
    spread = seen - seen.mean()
    beta = float(np.clip(spread @ distinct / (spread @ spread), _LEAST_BETA, 1.0))
    return max(1.0, float(np.exp(np.mean(distinct - beta * seen)))), beta


def _previous_occurrence(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """For each place the last earlier place of the same code, or -1."""
    order = np.argsort(codes, kind="stable")
    before = np.full(codes.size, -1, np.int64)
    again = np.flatnonzero(codes[order[1:]] == codes[order[:-1]])
    before[order[again + 1]] = order[again]
    return before


def _mean_distinct(before: NDArray[np.int64], size: int) -> float:
    """Mean number of distinct codes in the windows of `size` places: those with no earlier occurrence inside."""
    windows = before.size // size
    starts = np.arange(windows, dtype=np.int64)[:, None] * size
    return float(np.count_nonzero(before[: windows * size].reshape(windows, size) < starts)) / windows
