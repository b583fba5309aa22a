"""Filters never deny what was inserted, and err as often as planned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.sketch_tree import filter_of, plain
from unit.sketch.filters import hash_tokens, probe

from patternlake.udfs.sketch.kernels.build import build_segment
from patternlake.udfs.sketch.kernels.probe import false_positive_rate
from patternlake.udfs.sketch.sizing.planning import plan
from patternlake.udfs.sketch.sizing.sizes import Sizing


def distinct_everywhere(leaf_events: int, leaves: int, fpq: float) -> tuple[Sizing, np.ndarray]:
    """A plan for a stream without repetitions, and random hashes for its first `leaves` leaves."""
    sizing = plan(
        "leveled",
        expected_events=leaf_events * leaves,
        memory=10**9,
        leaf_events=leaf_events,
        fpq=fpq,
        heaps_k=1.0,
        heaps_beta=1.0,
        height=1 + (leaves - 1).bit_length(),
    )
    rng = np.random.default_rng(20)
    return sizing, rng.integers(0, 2**64, (leaf_events * leaves, 2), dtype=np.uint64)


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=6),
    st.lists(st.integers(0, 60), max_size=10),
    st.integers(1, 40),
    st.integers(1, 9),
)
def test_answers_equal_the_naive_filters(contents: list[list[int]], asked: list[int], size: int, k: int) -> None:
    m = size * 8
    filters = [filter_of(frozenset(plain(0, str(name)) for name in names), 3, m, k) for names in contents]
    rows = np.array([list(value.to_bytes(size, "little")) for value in filters], np.uint8).reshape(-1, size)
    tokens = [plain(0, str(name)) for name in asked]
    expected = [
        [(value & (ones := filter_of(frozenset([token]), 3, m, k))) == ones for token in tokens] for value in filters
    ]
    assert probe(rows, k, hash_tokens(tokens, 3)).tolist() == expected


def test_no_node_denies_a_token_that_it_holds() -> None:
    sizing, hashes = distinct_everywhere(leaf_events=10, leaves=64, fpq=0.3)
    events = len(hashes)
    codes = np.arange(events, dtype=np.int32)[:, None]
    for level in build_segment(sizing, 1, np.arange(1, events + 1), np.zeros(events, np.int64), codes, hashes):
        present = probe(level.bits, level.k, hashes)
        for row in range(len(level)):
            assert present[row, level.pos_lo[row] - 1 : level.pos_hi[row]].all()


@pytest.mark.parametrize(("leaf_events", "fpq"), [(10, 0.2), (50, 0.02), (100, 0.002)])
def test_absent_tokens_are_claimed_as_often_as_planned(leaf_events: int, fpq: float) -> None:
    sizing, hashes = distinct_everywhere(leaf_events, 256, fpq)
    events = len(hashes)
    codes = np.arange(events, dtype=np.int32)[:, None]
    absent = np.random.default_rng(21).integers(0, 2**64, (2000, 2), dtype=np.uint64)
    planned = [1 - (1 - fpq) ** 0.5] + [0.02] * (sizing.height - 1)
    for level in build_segment(sizing, 1, np.arange(1, events + 1), np.zeros(events, np.int64), codes, hashes):
        if len(level) < 32:
            break
        observed = probe(level.bits, level.k, absent).mean()
        assert observed == pytest.approx(planned[level.level], rel=0.15)
        bound = false_positive_rate(level.ones, level.m, level.k).mean()
        assert observed == pytest.approx(bound, rel=0.1)


def test_small_filters_with_many_hashes_err_no_more_often_than_their_density_says() -> None:
    """Where a constant step between positions would err four times as often (see `bloom`)."""
    rng = np.random.default_rng(22)
    sizing = plan("leveled", expected_events=10**5, memory=10**8, leaf_events=100, fpq=5e-5, height=11)
    assert (sizing.levels[0].bits, sizing.levels[0].hashes) == (2208, 15)
    hashes = rng.integers(0, 2**64, (102_400, 2), dtype=np.uint64)
    codes = np.arange(102_400, dtype=np.int32)[:, None]
    leaves = build_segment(sizing, 1, np.arange(1, 102_401), np.zeros(102_400, np.int64), codes, hashes)[0]
    observed = probe(leaves.bits, leaves.k, rng.integers(0, 2**64, (10_000, 2), dtype=np.uint64)).mean()
    bound = false_positive_rate(leaves.ones, leaves.m, leaves.k).mean()
    assert observed == pytest.approx(bound, rel=0.25)


def test_rate_is_density_to_the_number_of_hashes() -> None:
    assert false_positive_rate(32, 64, 3) == 0.125
    assert false_positive_rate(np.array([0, 16, 64]), 64, 2).tolist() == [0.0, 0.0625, 1.0]
