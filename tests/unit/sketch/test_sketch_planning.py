"""When the sizes of a sketch change: up after one dense segment, down after some sparse ones, whatever the batches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from patternlake.jobs.sketch.planning import MARGIN, SPARSE_SEGMENTS, Sparse, next_sizes
from patternlake.udfs.sketch.sizing.planning import plan
from patternlake.udfs.sketch.sizing.sizes import Sizing


def sizes(leaf: float) -> Sizing:
    """Leaves of 100 events for so many distinct tokens, two levels."""
    return plan(
        "leveled",
        expected_events=100_000,
        memory=10**9,
        leaf_events=100,
        fpq=0.01,
        height=2,
        heaps_k=leaf,
        heaps_beta=0.01,
    )


def planned(leaves: Sequence[float], cuts: Sequence[int] = ()) -> list[tuple[int, int]]:
    """From which segment on which sizes hold (tokens of a leaf), given what the segments hold, in some batches."""
    plans, sparse = [(0, sizes(50))], Sparse()
    for low, high in zip([0, *cuts], [*cuts, len(leaves)], strict=True):
        begin = low
        while begin < high:
            measured = [(number, {0: leaves[number], 1: leaves[number]}) for number in range(begin, high)]
            found, sparse = next_sizes(measured, [sizing for _, sizing in plans], sparse)
            if found is None:
                break
            begin = found[0] + 1
            plans.append((begin, found[1]))
    return [(begin, sizing.levels[0].expected) for begin, sizing in plans]


START = (0, sizes(50).levels[0].expected)


def test_four_sparse_segments_in_a_row_make_the_sizes_smaller() -> None:
    # 10 tokens and the margin: 11. (A tenth more than 50 is a little more than 55, in binary.)
    assert planned([50, 10, 10, 10]) == [START]
    assert planned([50, 10, 10, 10, 10, 10]) == [START, (5, 11)]
    assert planned([10, 10, 10, 50, 10, 10, 10]) == [START]


def test_the_densest_of_them_is_planned_for() -> None:
    assert planned([10, 20, 10, 10]) == [START, (4, 22)]


def test_what_would_not_save_half_of_the_bytes_is_left_as_it_is() -> None:
    assert planned([40] * 50) == [START]


def test_sizes_that_were_shrunk_rise_after_one_dense_segment() -> None:
    assert planned([10] * 4 + [50, 50]) == [START, (4, 11), (5, 56)]


def test_each_time_twice_as_many_sparse_segments_are_needed() -> None:
    leaves = ([10.0] * 20 + [50.0]) * 3
    assert planned(leaves) == [START, (4, 11), (21, 56), (29, 11), (42, 56), (58, 11), (63, 56)]


@pytest.mark.parametrize("seed", range(60))
def test_cuts_into_batches_do_not_show(seed: int) -> None:
    rng = random.Random(seed)
    leaves: list[float] = []
    while len(leaves) < 80:
        leaves += [rng.choice([5.0, 10.0, 20.0, 50.0, 90.0])] * rng.randint(1, 15)
    whole = planned(leaves)
    for _ in range(4):
        assert planned(leaves, sorted(rng.sample(range(1, len(leaves)), rng.randint(1, 20)))) == whole
    # No segment that could have been planned for is denser than its sizes, with the margin, but one by one.
    for (begin, size), (after, _) in zip(whole, [*whole[1:], (len(leaves), 0)], strict=True):
        assert all(value <= MARGIN * size for value in leaves[begin : after - 1])


def test_a_stream_that_comes_and_goes_changes_its_sizes_ever_more_rarely() -> None:
    leaves = ([10.0] * SPARSE_SEGMENTS + [50.0]) * 400
    assert len(planned(leaves)) <= 3
