"""Bounds of a share by hits and trials, beside the binomial sums that define them."""

from __future__ import annotations

from math import comb

import pytest

from patternlake.udfs.binomials import least_share, least_trials


def chance_of_as_many(hits: int, trials: int, share: float) -> float:
    return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1))


@pytest.mark.parametrize("trials", [1, 2, 7, 40, 300])
def test_with_the_bound_so_many_hits_come_once_in_twenty(trials: int) -> None:
    assert least_share(0, trials) == 0
    for hits in {1, trials // 2 or 1, trials - 1 or 1, trials}:
        assert chance_of_as_many(hits, trials, least_share(hits, trials)) == pytest.approx(0.05, rel=1e-6)


def test_known_bounds() -> None:
    # One hit of one: 0.05; all of n: 0.05 ** (1 / n); many trials: the share less 1.645 standard errors.
    assert least_share(1, 1) == pytest.approx(0.05)
    assert least_share(299, 299) == pytest.approx(0.05 ** (1 / 299))
    assert least_share(500_000, 1_000_000) == pytest.approx(0.5 - 1.645 * 0.0005, abs=2e-6)


def test_as_many_trials_as_are_needed_and_no_fewer() -> None:
    assert [least_trials(share) for share in (0.04, 0.5, 0.8, 0.9, 0.99)] == [1, 5, 14, 29, 299]
    for share in (0.5, 0.8, 0.99):
        count = least_trials(share)
        assert least_share(count, count) >= share > least_share(count - 1, count - 1)
