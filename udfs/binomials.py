"""What a number of hits among a number of trials says of their share."""

from __future__ import annotations

from math import exp, lgamma, log, log1p

CONFIDENCE = 0.95
"""Of `least_share`."""
_TINY = 1e-300


def least_share(hits: int, trials: int) -> float:
    """Bound a share from below: the one-sided Clopper-Pearson bound at `CONFIDENCE`.

    It is the share with which so many hits or more come with probability 1 - `CONFIDENCE`; 0 where nothing hit.

    Parameters
    ----------
    hits, trials
        From 0; no more hits than trials.

    Source
    ------
    Clopper and Pearson 1934, The use of confidence or fiducial limits illustrated in the case of the binomial.

    Examples
    --------
    >>> round(least_share(1, 1), 4), round(least_share(80, 100), 4)
    (0.05, 0.7228)
    """
    if not hits:
        return 0.0
    low, high = 0.0, hits / trials
    # The chance of so many hits grows with the share; the bound is below what was observed.
    for _ in range(60):
        middle = (low + high) / 2
        if _at_least(hits, trials, middle) < 1.0 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return low


def least_trials(share: float) -> int:
    """How many trials, all of them hits, bound a share below 1 by at least that much."""
    return max(1, -int(log(1.0 - CONFIDENCE) // -log(share)))


def _at_least(hits: int, trials: int, share: float) -> float:
    """The probability of so many hits or more: the regularized incomplete beta function of `share`."""
    if share <= 0.0 or share >= 1.0:
        return float(share >= 1.0)
    a, b = float(hits), float(trials - hits + 1)
    # The continued fraction converges fast below the mean only.
    if share > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta(b, a, 1.0 - share, share)
    return _beta(a, b, share, 1.0 - share)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The same by its continued fraction, evaluated from the front (Lentz's method); `rest` is 1 - x."""
    logarithm = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * (log1p(-x) if x < 0.5 else log(rest))
    above, below = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    found = below
    for m in range(1, 100_000):
        change = 1.0
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below = 1.0 / _away_from_zero(1.0 + factor * below)
            above = _away_from_zero(1.0 + factor / above)
            change = above * below
            found *= change
        if abs(change - 1.0) < 1e-14:
            break
    return exp(logarithm) * found / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
