"""How random tests choose patterns and streams: the generators of `naive` take a `random.Random`."""

from __future__ import annotations

import random

from hypothesis import strategies as st

RANDOMS: st.SearchStrategy[random.Random] = st.randoms(use_true_random=False)
"""Each choice is drawn from hypothesis, which shrinks a case that fails, choice by choice."""

SEEDED: st.SearchStrategy[random.Random] = st.integers(0, 2**32).map(random.Random)
"""For thousands of cases: faster, and chosen evenly, where hypothesis prefers what is small and what repeats.

Not joined with `RANDOMS`: a seed is shorter than a list of choices, so that hypothesis would shrink towards it.
"""
