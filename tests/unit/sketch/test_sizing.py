"""Sizes follow the thesis' equations, fit the memory, and say what would fit where they do not."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patternlake.udfs.errors import ArgumentError, SizingError
from patternlake.udfs.sketch.sizing.filter_size import filter_rate
from patternlake.udfs.sketch.sizing.heaps import expected_distinct, fit_heaps
from patternlake.udfs.sketch.sizing.planning import plan, refit, shrunk
from patternlake.udfs.sketch.sizing.sizes import KeyList, Level, Sizing

THESIS = {"expected_events": 1_000_000, "memory": 2 * 10**9, "leaf_events": 100, "fpq": 1e-4}


def test_uniform_worked_by_hand() -> None:
    """L = 10,000, h = 3: q = 2·1·10,000/4 = 5,000, fp = 2.0001e-8; n = min(60·√400, 400) = 400.

    m = 400·17.7275/0.480453 = 14,758.97, in whole bytes 14,760; k = ⌊17.7275/0.6931⌋ = 25; 2,500 trees of 7 nodes.
    """
    sizing = plan("uniform", **THESIS, height=3)
    assert filter_rate(1e-4, 5000) == pytest.approx(2.0001e-8, rel=1e-5)
    assert sizing.levels == (Level(14_760, 25, 100), Level(14_760, 25, 200), Level(14_760, 25, 400))
    assert (sizing.segment_events, sizing.segments, sizing.total_bytes) == (400, 2500, 2500 * 7 * 1845)


def test_uniform_takes_a_longer_query_as_more_probes() -> None:
    """s = 4: six probes per top node (thesis 4.4.1); s = 1: one."""
    for length, probes in ((1, 1), (2, 2), (4, 6)):
        rate = 1 - (1 - 1e-4) ** (1 / (probes * 10_000 / 2**2))
        bits = 400 * -math.log(rate) / math.log(2) ** 2
        assert plan("uniform", **THESIS, query_length=length, height=3).levels[0].bits == pytest.approx(bits, abs=8)


def test_uniform_beyond_the_cap_follows_heaps() -> None:
    """h = 11: 102,400 events per tree, n = 60·320 = 19,200."""
    assert plan("uniform", **THESIS, height=11).levels[-1].expected == 19_200


def test_leveled_worked_by_hand() -> None:
    """Leaf: 100 tokens at fp = 1 − (1 − 1e-4)^(1/4) = 2.5e-5, k = 15: −15·100/ln(1 − fp^(1/15)) = 2,205.8 bits.

    Level 1: 10·√200 = 141.4 tokens at 2 %, k = 5: 1,156.9 bits.
    """
    sizing = plan("leveled", **THESIS, query_length=3, height=2, heaps_k=10.0, heaps_beta=0.5)
    assert sizing.levels == (Level(2208, 15, 100), Level(1160, 5, 142))
    assert sizing.total_bytes == 5000 * (2 * 276 + 145)


def test_no_node_is_planned_for_more_tokens_than_it_takes() -> None:
    assert plan("leveled", **THESIS).levels[0].expected == 100
    assert plan("leveled", **THESIS, expansion=4).levels[0].expected == 400
    assert expected_distinct(100, 60, 0.5) == 100
    assert expected_distinct(10_000, 60, 0.5) == 6000


@pytest.mark.parametrize("structure", ["leveled", "uniform"])
def test_without_levels_the_tallest_tree_up_to_eleven_that_fits_is_taken(structure: str) -> None:
    sizes = {h: plan(structure, **THESIS, height=h).total_bytes for h in range(1, 12)}
    for memory in (30_000_000, 100_000_000, 300_000_000, 1_900_000_000):
        fitting = [h for h, size in sizes.items() if size <= memory]
        assert plan(structure, **(THESIS | {"memory": memory})).height == max(fitting)


@given(
    st.sampled_from(["leveled", "uniform"]),
    st.integers(1, 10**8),
    st.integers(10**3, 10**10),
    st.integers(1, 1000),
    st.floats(1e-9, 0.99),
    st.integers(1, 8),
    st.integers(2, 6),
    st.none() | st.integers(1, 6),
    st.integers(1, 6),
)
def test_a_plan_fits_and_a_refusal_says_what_would_fit(
    structure: str,
    events: int,
    memory: int,
    leaf: int,
    fpq: float,
    length: int,
    fanout: int,
    height: int | None,
    expansion: int,
) -> None:
    request = {
        "expected_events": events,
        "memory": memory,
        "leaf_events": leaf,
        "fpq": fpq,
        "query_length": length,
        "fanout": fanout,
        "height": height,
        "expansion": expansion,
    }
    try:
        sizing = plan(structure, **request)
    except SizingError as error:
        message = str(error)
        works = re.search(r"that works is [^;]*?([\d,]+) bytes", message)
        assert works is not None, message
        least = int(works[1].replace(",", ""))
        assert least > memory
        assert plan(structure, **(request | {"memory": least})).total_bytes == least
        with pytest.raises(SizingError):
            plan(structure, **(request | {"memory": least - 1}))
        reached = re.search(r"memory fpq ([\d.e-]+) is reachable", message)
        if reached is None:
            assert "no fpq below 1 is reachable" in message
        else:
            assert float(reached[1]) > fpq
            assert plan(structure, **(request | {"fpq": float(reached[1])})).total_bytes <= memory
        return
    assert sizing.total_bytes <= memory
    assert all(level.bits % 8 == 0 and level.hashes >= 1 for level in sizing.levels)
    assert Sizing.of(json.loads(json.dumps(asdict(sizing)))) == sizing


@given(st.sampled_from(["leveled", "uniform"]), st.integers(1, 11), st.floats(1e-8, 0.5), st.floats(1e-8, 0.5))
def test_a_lower_rate_never_takes_fewer_bits(structure: str, height: int, one: float, other: float) -> None:
    request = THESIS | {"memory": 10**13, "height": height}
    low, high = (plan(structure, **(request | {"fpq": fpq})) for fpq in sorted((one, other)))
    assert all(a.bits >= b.bits for a, b in zip(low.levels, high.levels, strict=True))


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_more_events_never_take_fewer_bytes(one: int, other: int) -> None:
    few, many = (
        plan("leveled", **(THESIS | {"memory": 10**13, "expected_events": events, "height": 5}))
        for events in sorted((one, other))
    )
    assert few.total_bytes <= many.total_bytes


def test_the_lists_of_keys_count() -> None:
    """Every segment of 102,400 events has 1,000 keys of six bytes and four of overhead."""
    without = plan("leveled", **THESIS, height=11, expansion=2)
    keyed = plan("leveled", **THESIS, height=11, expansion=2, keys=KeyList(1000 / 320, 0.5, 6.0))
    assert keyed.segment_bytes - without.segment_bytes == 10_000
    assert Sizing.of(json.loads(json.dumps(asdict(keyed)))) == keyed


def test_the_message_of_an_infeasible_request() -> None:
    least = plan("leveled", **THESIS, height=11).total_bytes
    with pytest.raises(SizingError) as caught:
        plan("leveled", **(THESIS | {"memory": 1_000_000}), height=11)
    assert str(caught.value) == (
        "memory 1MB (1,000,000 bytes) is too small for structure leveled with fpq 0.0001 over 1,000,000 events; "
        f"the smallest memory that works is 11MB ({least:,} bytes) (levels 11); "
        "with the given memory no fpq below 1 is reachable"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fpq": 0.0}, "fpq 0.0: must be above 0 and below 1"),
        ({"fpq": 1.0}, "fpq 1.0"),
        ({"memory": 0}, "memory 0: must be 1 or more"),
        ({"leaf_events": 0}, "events_per_leaf 0"),
        ({"expected_events": 0}, "expected_events 0"),
        ({"query_length": 0}, "query_length 0"),
        ({"fanout": 1}, "fanout 1: must be 2 or more"),
        ({"height": 0}, "levels 0"),
        ({"expansion": 0}, "expansion 0"),
        ({"heaps_beta": 1.5}, "β 1.5"),
    ],
)
def test_values_out_of_range_are_named(change: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        plan("leveled", **(THESIS | change))


def test_an_unknown_structure_is_named() -> None:
    with pytest.raises(ArgumentError, match="structure 'flat': must be one of leveled, uniform"):
        plan("flat", **THESIS)


def test_segments_too_long_for_their_counters_are_refused() -> None:
    with pytest.raises(SizingError, match="tokens per segment"):
        plan("leveled", **(THESIS | {"fanout": 10, "height": 9}))


def test_refit_raises_only_the_denser_levels() -> None:
    sizing = plan("leveled", **THESIS, height=4, heaps_k=3.0, heaps_beta=0.6)
    expected = [level.expected for level in sizing.levels]
    denser = refit(sizing, [expected[0], expected[1] + 50.5, 0.0, expected[3]])
    assert denser.levels[0] == sizing.levels[0]
    assert denser.levels[1].expected == expected[1] + 51
    assert denser.levels[1].bits / sizing.levels[1].bits == pytest.approx((expected[1] + 51) / expected[1], rel=0.05)
    assert denser.levels[2:] == sizing.levels[2:]
    assert replace(denser, levels=sizing.levels) == sizing
    assert refit(denser, [0.0] * 4) is denser


def test_refit_of_uniform_raises_all_levels_together() -> None:
    sizing = plan("uniform", **THESIS, height=4, heaps_k=3.0)
    assert refit(sizing, [level.expected for level in sizing.levels]) is sizing
    denser = refit(sizing, [0.0, 0.0, 0.0, 2.0 * sizing.levels[-1].expected])
    assert len({(level.bits, level.hashes) for level in denser.levels}) == 1
    assert denser.levels[0].bits / sizing.levels[0].bits == pytest.approx(2.0, rel=0.03)


def test_refit_that_no_longer_fits_says_so() -> None:
    sizing = plan("leveled", **THESIS, height=2, heaps_k=3.0)
    tight = replace(sizing, memory=sizing.total_bytes)
    with pytest.raises(SizingError, match=r"level 0: 90 instead of 30.*do not fit.*smallest memory that works"):
        refit(tight, [90.0, 0.0])


def test_refit_never_plans_for_more_tokens_than_a_node_takes() -> None:
    sizing = plan("leveled", **THESIS, height=2, heaps_k=3.0, expansion=2)
    assert [level.expected for level in refit(sizing, [250.0, 390.5]).levels] == [200, 391]
    full = plan("leveled", **THESIS, height=1)
    assert refit(full, [110.0]) is full


def test_refit_wants_one_value_per_level() -> None:
    with pytest.raises(ArgumentError, match="2 measured levels for a plan of 3"):
        refit(plan("leveled", **THESIS, height=3), [1.0, 2.0])


def test_shrinking_lowers_only_the_sparser_levels() -> None:
    sizing = plan("leveled", **THESIS, height=4, heaps_k=3.0, heaps_beta=0.6)
    expected = [level.expected for level in sizing.levels]
    sparser = shrunk(sizing, [expected[0] + 9, 3.2, 0.0, expected[3]])
    assert sparser.levels[0] == sizing.levels[0]
    assert sparser.levels[1].expected == 4
    assert sparser.levels[1].bits / sizing.levels[1].bits == pytest.approx(4 / expected[1], rel=0.3)
    assert sparser.levels[2:] == sizing.levels[2:]
    assert replace(sparser, levels=sizing.levels) == sizing
    assert shrunk(sizing, [0.0] * 4) is sizing
    # What was shrunk rises again: to as many tokens as it was planned for.
    risen = refit(sparser, [0.0, float(expected[1]), 0.0, 0.0])
    assert [level.expected for level in risen.levels] == expected
    assert risen.levels[1].bits >= sizing.levels[1].bits


def test_the_thesis_law_is_not_shrunk() -> None:
    sizing = plan("uniform", **THESIS, height=4)
    assert shrunk(sizing, [1.0] * 4) is sizing


def test_shrinking_wants_one_value_per_level() -> None:
    with pytest.raises(ArgumentError, match="2 measured levels for a plan of 3"):
        shrunk(plan("leveled", **THESIS, height=3), [1.0, 2.0])


def test_heaps_law_is_found_in_a_zipf_stream() -> None:
    rng = np.random.default_rng(5)
    codes = np.searchsorted(np.cumsum(1 / np.arange(1, 20_001)), rng.random(60_000) * np.log(20_000))
    heaps_k, beta = fit_heaps(codes)
    for size in (64, 1024, 16_384):
        windows = codes[: codes.size // size * size].reshape(-1, size)
        mean = np.mean([np.unique(window).size for window in windows])
        assert expected_distinct(size, heaps_k, beta) == pytest.approx(mean, rel=0.25)


def test_heaps_law_of_simple_streams() -> None:
    assert fit_heaps(np.arange(1000)) == pytest.approx((1.0, 1.0))
    heaps_k, beta = fit_heaps(np.zeros(1000, np.int64))
    assert heaps_k >= 1.0
    assert 0.0 < beta < 0.02


def test_small_samples_fall_back_to_the_thesis() -> None:
    assert fit_heaps(np.empty(0, np.int64)) == (60.0, 0.5)
    assert fit_heaps(np.arange(10)) == (60.0, 0.5)
    assert fit_heaps(np.full((1000, 2), -1)) == (60.0, 0.5)


def test_null_tokens_are_not_seen() -> None:
    codes = np.arange(1000) % 90
    with_nulls = np.stack([codes, np.full(1000, -1)], axis=1)
    assert fit_heaps(with_nulls) == fit_heaps(codes)


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 2**32))
def test_fitted_parameters_are_always_in_range(size: int, vocabulary: int, seed: int) -> None:
    heaps_k, beta = fit_heaps(np.random.default_rng(seed).integers(0, vocabulary, size))
    assert heaps_k >= 1.0
    assert 0.0 < beta <= 1.0


@given(st.integers(2, 8))
def test_query_lengths_share_the_rate_between_their_probes(length: int) -> None:
    assume(length > 1)
    rate = filter_rate(0.01, 2 * (length - 1))
    assert 1 - (1 - rate) ** (2 * (length - 1)) == pytest.approx(0.01)
