"""Tokens hashed, and filters asked, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np

from patternlake.udfs.arrays import BoolArray, LaneArray
from patternlake.udfs.sketch.kernels.probe import probe_pairs


def hash_tokens(encoded: Sequence[bytes], seed: int) -> LaneArray:
    """MurmurHash3 x64 128 of byte strings, by mmh3: uint64[n, 2]."""
    halves = [mmh3.hash64(token, seed, x64arch=True, signed=False) for token in encoded]
    return np.array(halves, dtype=np.uint64).reshape(-1, 2)


def probe(bits: np.ndarray, k: int, hashes: LaneArray) -> BoolArray:
    """bool[c, t]: which of c filters of one level may hold which of t tokens."""
    answers = np.zeros((len(bits), len(hashes)), np.bool_)
    probe_pairs(bits, k, hashes, np.zeros(len(bits), np.int64), np.arange(len(bits)), answers)
    return answers
