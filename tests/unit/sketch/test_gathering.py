"""Hits travel between the steps of a question as packed words."""

from __future__ import annotations

import numpy as np
import pytest

from patternlake.udfs.sketch.gathering import pack, unpack


@pytest.mark.parametrize("nodes", [0, 1, 5])
@pytest.mark.parametrize("names", [1, 62, 63, 130])
def test_packed_hits_unpack_to_what_they_were(nodes: int, names: int) -> None:
    present = np.random.default_rng(names).random((nodes, names)) < 0.5
    words = pack(present)
    assert words.shape == (nodes, -(-names // 62))
    assert (unpack(words, names) == present).all()
