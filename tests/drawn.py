"""How random tests choose patterns and streams: the generators of `naive` take a `random.Random`."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import strategies as st

_FRACTIONS = 1 << 20


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class _Drawn(random.Random):
    """Draws whole numbers for all that is asked of it; hypothesis' own makes a strategy anew for each call."""

    def __new__(cls, draw: st.DrawFn) -> _Drawn:
        return super().__new__(cls)

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def __repr__(self) -> str:
        return "choices"

    def random(self) -> float:
        return self._draw(_below(_FRACTIONS)) / _FRACTIONS

    def getrandbits(self, k: int, /) -> int:
        return self._draw(_below(1 << k))

    def _randbelow(self, n: int) -> int:
        return self._draw(_below(n))


@st.composite
def _randoms(draw: st.DrawFn) -> random.Random:
    return _Drawn(draw)


RANDOMS: st.SearchStrategy[random.Random] = _randoms()
"""Each choice is drawn from hypothesis, which shrinks a case that fails, choice by choice."""

SMALL: st.SearchStrategy[random.Random] = st.randoms(use_true_random=False)
"""The same by hypothesis' own random numbers, each of which costs more: they prefer what is small, for oracles that
take twice as long with one event more."""

SEEDED: st.SearchStrategy[random.Random] = st.integers(0, 2**32).map(random.Random)
"""For thousands of cases: faster, and chosen evenly, where hypothesis prefers what is small and what repeats.

Not joined with `RANDOMS`: a seed is shorter than a list of choices, so that hypothesis would shrink towards it.
"""
