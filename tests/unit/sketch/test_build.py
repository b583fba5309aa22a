"""The built tree equals the naive one, in any input order, for any shape, open ends included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.sketch_tree import Event, tree

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.kernels.build import LevelNodes, build_segment, mean_distinct
from patternlake.udfs.sketch.sizing.sizes import Level, Sizing
from patternlake.udfs.sketch.tokens import tokenise


def sizing_of(structure: str, levels: list[tuple[int, int]], leaf_events: int, fanout: int) -> Sizing:
    return Sizing(
        structure=structure,
        leaf_events=leaf_events,
        fanout=fanout,
        levels=tuple(Level(bits, hashes, 1) for bits, hashes in levels),
        heaps_k=60.0,
        heaps_beta=0.5,
        fpq=0.01,
        query_length=2,
        memory=10**9,
        expected_events=10**6,
        expansion=1,
    )


def built(
    sizing: Sizing, first_position: int, events: list[Event], *, with_keys: bool = False, seed: int = 0
) -> list[LevelNodes]:
    expressions = len(events[0].names) if events else 1
    columns = [pa.array([event.names[i] for event in events], pa.string()) for i in range(expressions)]
    keys = pa.array([event.key for event in events], pa.string()) if with_keys else None
    tokens = tokenise(columns, keys, seed)
    positions = np.array([event.position for event in events], np.int64)
    times = np.array([event.time for event in events], np.int64)
    return build_segment(sizing, first_position, positions, times, tokens.codes, tokens.hashes)


def named(names: str, first_position: int = 1) -> list[Event]:
    """One event per letter, a second apart; a dot is NULL."""
    return [Event(first_position + i, i * 10**6, (None if name == "." else name,)) for i, name in enumerate(names)]


def assert_same(nodes: list[LevelNodes], levels: list[tuple[int, int]], **arguments: object) -> None:
    expected = tree(levels=levels, **arguments)  # type: ignore[arg-type]
    assert len(nodes) == len(expected)
    for level, (found, naive) in enumerate(zip(nodes, expected, strict=True)):
        assert (found.level, found.m, found.k) == (level, *levels[level])
        assert found.node.tolist() == sorted(naive)
        for row, index in enumerate(sorted(naive)):
            node = naive[index]
            assert found.pos_lo[row] == node.pos_lo
            assert found.pos_hi[row] == node.pos_hi
            assert found.time_lo[row] == node.time_lo
            assert found.time_hi[row] == node.time_hi
            assert found.distinct[row] == len(node.tokens)
            assert int.from_bytes(found.bits[row].tobytes(), "little") == node.filter
            assert found.ones[row] == node.filter.bit_count()


@st.composite
def segments(draw: st.DrawFn, structure: str) -> dict[str, object]:
    leaf_events, fanout, height = draw(st.integers(1, 5)), draw(st.integers(2, 4)), draw(st.integers(1, 4))
    size = st.tuples(st.integers(1, 32).map(lambda size: size * 8), st.integers(1, 6))
    levels = [draw(size)] * height if structure == "uniform" else [draw(size) for _ in range(height)]
    count = draw(st.integers(0, leaf_events * fanout ** (height - 1)))
    first_position = draw(st.integers(1, 2**40))
    expressions = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    alphabet = [None, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: draw(st.integers(1, 26))]]
    events = [
        Event(
            first_position + i,
            int(rng.integers(-(10**15), 10**15)),
            tuple(alphabet[j] for j in rng.integers(0, len(alphabet), expressions)),
            [None, "", "k", "kk"][rng.integers(0, 4)],
        )
        for i in rng.permutation(count)
    ]
    return {
        "structure": structure,
        "levels": levels,
        "leaf_events": leaf_events,
        "fanout": fanout,
        "first_position": first_position,
        "events": events,
        "with_keys": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


def check(case: dict[str, object]) -> None:
    sizing = sizing_of(case["structure"], case["levels"], case["leaf_events"], case["fanout"])  # type: ignore[arg-type]
    nodes = built(
        sizing,
        case["first_position"],  # type: ignore[arg-type]
        case["events"],  # type: ignore[arg-type]
        with_keys=case["with_keys"],  # type: ignore[arg-type]
        seed=case["seed"],  # type: ignore[arg-type]
    )
    assert_same(nodes, **case)  # type: ignore[arg-type]


@settings(max_examples=300)
@given(segments("leveled"))
def test_leveled_equals_the_naive_tree(case: dict[str, object]) -> None:
    check(case)


@settings(max_examples=300)
@given(segments("uniform"))
def test_uniform_equals_the_naive_tree(case: dict[str, object]) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=3000)
@given(segments("leveled") | segments("uniform"))
def test_thousands_of_trees_equal_the_naive_ones(case: dict[str, object]) -> None:
    check(case)


def test_leaves_and_parents_cover_these_positions_and_times() -> None:
    sizing = sizing_of("leveled", [(64, 2), (64, 2), (64, 2)], leaf_events=2, fanout=2)
    leaves, pairs, top = built(sizing, 9, named("ABACAB.", first_position=9))
    assert leaves.pos_lo.tolist() == [9, 11, 13, 15]
    assert leaves.pos_hi.tolist() == [10, 12, 14, 15]
    assert leaves.distinct.tolist() == [2, 2, 2, 0]
    assert leaves.time_hi.tolist() == [1_000_000, 3_000_000, 5_000_000, 6_000_000]
    assert (pairs.pos_lo.tolist(), pairs.pos_hi.tolist()) == ([9, 13], [12, 15])
    assert pairs.distinct.tolist() == [3, 2]
    assert (top.pos_lo.tolist(), top.pos_hi.tolist(), top.distinct.tolist()) == ([9], [15], [3])


def test_a_leaf_of_nulls_exists_and_is_empty() -> None:
    (leaves,) = built(sizing_of("leveled", [(64, 3)], leaf_events=3, fanout=2), 1, named("..."))
    assert (len(leaves), leaves.ones.tolist(), leaves.distinct.tolist()) == (1, [0], [0])


def test_an_open_leveled_segment_has_every_level_over_the_leaves_there_are() -> None:
    sizing = sizing_of("leveled", [(64, 2)] * 4, leaf_events=1, fanout=3)
    assert [len(level) for level in built(sizing, 1, named("ABCD"))] == [4, 2, 1, 1]


def test_an_open_segment_without_events_has_no_nodes() -> None:
    sizing = sizing_of("uniform", [(64, 2)] * 3, leaf_events=1, fanout=2)
    assert [len(level) for level in built(sizing, 1, [])] == [0, 0, 0]


def test_uniform_keeps_a_parent_of_exactly_half_its_bits_and_none_above() -> None:
    sizing = sizing_of("uniform", [(8, 1)] * 2, leaf_events=4, fanout=2)
    hashes = np.array([[position << 61, 0] for position in range(8)], np.uint64)
    times = np.zeros(8, np.int64)
    half = np.array([[0], [1], [1], [0], [2], [3], [2], [3]], np.int32)
    more = np.array([[0], [1], [1], [0], [2], [3], [2], [4]], np.int32)
    leaves, parents = build_segment(sizing, 1, np.arange(1, 9), times, half, hashes)
    assert (leaves.ones.tolist(), parents.ones.tolist()) == ([2, 2], [4])
    leaves, parents = build_segment(sizing, 1, np.arange(1, 9), times, more, hashes)
    assert (leaves.ones.tolist(), parents.ones.tolist()) == ([2, 3], [])


def test_uniform_builds_no_node_over_a_missing_child() -> None:
    """Leaves 0 and 1 fill 5 of 8 bits together, so their parent is missing, and with it the root; 2 and 3 merge."""
    sizing = sizing_of("uniform", [(8, 1)] * 3, leaf_events=3, fanout=2)
    hashes = np.array([[position << 61, 0] for position in range(8)], np.uint64)
    codes = np.array([[0], [1], [2], [3], [4], [4], [0], [0], [0], [0], [0], [0]], np.int32)
    nodes = build_segment(sizing, 1, np.arange(1, 13), np.zeros(12, np.int64), codes, hashes)
    assert [level.node.tolist() for level in nodes] == [[0, 1, 2, 3], [1], []]
    assert mean_distinct(nodes) == [1.75, 1.0, 0.0]


def test_a_uniform_leaf_stays_however_dense() -> None:
    (leaves,) = built(sizing_of("uniform", [(8, 6)], leaf_events=26, fanout=2), 1, named("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    assert leaves.ones.tolist() == [8]


@pytest.mark.parametrize("positions", [[5, 6, 6], [5, 6, 8], [4, 5, 6]], ids=["twice", "gap", "before the segment"])
def test_positions_that_are_no_run_are_refused(positions: list[int]) -> None:
    sizing = sizing_of("leveled", [(64, 2)], leaf_events=4, fanout=2)
    codes = np.zeros((3, 1), np.int32)
    with pytest.raises(ArgumentError, match=r"position \d: 3 events .* positions 5 to 7, each once"):
        build_segment(sizing, 5, np.array(positions), np.zeros(3, np.int64), codes, np.zeros((1, 2), np.uint64))


def test_arrays_that_do_not_fit_are_refused() -> None:
    sizing = sizing_of("leveled", [(64, 2)], leaf_events=2, fanout=2)
    positions, times, hashes = np.arange(1, 3), np.zeros(2, np.int64), np.zeros((1, 2), np.uint64)
    with pytest.raises(ArgumentError, match="code 1: must lie from -1 to 0"):
        build_segment(sizing, 1, positions, times, np.array([[0], [1]], np.int32), hashes)
    with pytest.raises(ArgumentError, match="code -2"):
        build_segment(sizing, 1, positions, times, np.array([[0], [-2]], np.int32), hashes)
    with pytest.raises(ArgumentError, match=r"codes \(2,\)"):
        build_segment(sizing, 1, positions, times, np.zeros(2, np.int32), hashes)
    with pytest.raises(ArgumentError, match="hashes of shape"):
        build_segment(sizing, 1, positions, times, np.zeros((2, 1), np.int32), np.zeros(2, np.uint64))
    with pytest.raises(ArgumentError, match="3 events: a segment of this plan takes at most 2"):
        build_segment(sizing, 1, np.arange(1, 4), np.zeros(3, np.int64), np.zeros((3, 1), np.int32), hashes)
