"""How random tests choose."""

from __future__ import annotations

import random

from hypothesis import strategies as st

RANDOMS: st.SearchStrategy[random.Random] = st.one_of(
    st.randoms(use_true_random=False), st.integers(0, 2**32).map(random.Random)
)
"""What the generators of `naive` choose patterns and streams by.

Half of them draw each choice from hypothesis, which then shrinks a case that fails, choice by choice; the others come
from a seed, and so choose evenly, where hypothesis prefers what is small and what repeats.
"""
