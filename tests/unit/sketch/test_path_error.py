"""Filters of a path err together more often than independent ones would, and about as often as is said."""

from __future__ import annotations

import random

import numpy as np
import pytest
from naive.sketch_tree import filter_of, plain
from unit.sketch.filters import hash_tokens, probe

from patternlake.udfs.sketch.path_error import chance_of_paths

ASKED = 20_000


def measured(bits: list[int], hashes: list[int], tokens: list[int], seed: int) -> tuple[list[float], list[float]]:
    """How often the first filters of a path all claim what none has, and their densities; tokens are nested."""
    rng = random.Random(seed)
    names = [f"t{rng.random()}" for _ in range(max(tokens))]
    asked = hash_tokens([plain(0, f"q{number}") for number in range(ASKED)], seed)
    claims, densities = [], []
    for size, k, count in zip(bits, hashes, tokens, strict=True):
        filled = filter_of(frozenset(plain(0, name) for name in names[:count]), seed, size, k)
        densities.append(filled.bit_count() / size)
        row = np.frombuffer(filled.to_bytes(size // 8, "little"), np.uint8)[None]
        claims.append(probe(row, k, asked)[0])
    return [float(np.all(claims[: top + 1], axis=0).mean()) for top in range(len(bits))], densities


@pytest.mark.parametrize(
    ("bits", "hashes", "tokens"),
    [
        ([96, 192, 384], [3, 3, 3], [20, 40, 80]),
        ([200, 400, 800], [6, 5, 5], [22, 44, 88]),
        ([200, 304, 504], [5, 5, 5], [22, 37, 63]),
        ([96, 160, 256], [3, 4, 4], [20, 32, 51]),
    ],
)
def test_paths_err_no_more_often_than_is_said(bits: list[int], hashes: list[int], tokens: list[int]) -> None:
    seen, said, alone = (np.zeros(len(bits)) for _ in range(3))
    for seed in range(12):
        rates, densities = measured(bits, hashes, tokens, seed)
        seen += rates
        said += chance_of_paths(bits, hashes, densities)
        alone += np.cumprod(np.power(densities, hashes))
    # A fifth for so few filters: how they overlap differs from one to the next.
    assert (seen <= 1.2 * said).all()
    assert (said <= 5 * seen).all()
    # If they were independent, two levels would err less than half as often, and three less than a fifth.
    assert alone[1] < 0.5 * seen[1]
    assert alone[2] < 0.2 * seen[2]


def test_filters_of_one_size_err_wherever_the_lowest_does() -> None:
    # The parent has all bits of its child; more tokens change nothing.
    rates = chance_of_paths([128] * 3, [4] * 3, [0.3, 0.45, 0.5])
    assert rates == pytest.approx([0.3**4] * 3)


def test_a_full_parent_denies_nothing_and_an_empty_leaf_claims_nothing() -> None:
    assert chance_of_paths([64, 64], [3, 3], [0.5, 1.0]) == pytest.approx([0.125, 0.125])
    assert chance_of_paths([64, 64], [3, 3], [0.0, 0.5]).tolist() == [0.0, 0.0]


def test_a_path_of_one_filter_is_the_filter() -> None:
    assert chance_of_paths([100], [2], [0.4]) == pytest.approx([0.16])
