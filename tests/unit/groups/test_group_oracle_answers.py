"""The worked answers of SPEC section 4 and of the paper, by the oracle alone."""

from __future__ import annotations

import pytest
from naive import groups as naive
from naive.group_cases import FIG_1, named, stream_of


def rounded(found: list[naive.Group]) -> list[tuple[int, int, int, float]]:
    return [(group.t_start, group.t_first, group.t_end, round(group.probability, 9)) for group in found]


def test_the_paper_finds_ten_matches() -> None:
    query = named("a, b+, c", within=6)
    found = naive.matches(query, FIG_1)
    assert len(found) == 10
    chances = {(match.start, match.end): match.probability for match in found}
    # The paper's Fig. 2.
    assert chances[1, 3] == pytest.approx(0.07)
    assert chances[1, 6] == pytest.approx(0.3528)
    assert chances[2, 5] == pytest.approx(0.0168)
    assert chances[4, 6] == pytest.approx(0.09)


def test_a_threshold_leaves_three_matches_of_the_paper() -> None:
    found = naive.matches(named("a, b+, c", within=6, threshold=0.1), FIG_1)
    assert sorted((match.start, match.end) for match in found) == [(1, 4), (1, 6), (2, 6)]


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_single_overlap_makes_one_group(threshold: float) -> None:
    query = named("a, b+, c", within=6, threshold=threshold)
    [group] = naive.groups(query, FIG_1)
    assert (group.t_start, group.t_end, group.final) == (1, 6, True)
    assert group.probability == pytest.approx(0.9437, abs=5e-5)


def test_complete_overlap_makes_two_groups() -> None:
    found = naive.groups(named("a, b+, c", within=6, overlap="complete"), FIG_1)
    assert [(group.t_start, group.t_first, group.t_end) for group in found] == [(1, 3, 6), (1, 4, 6)]
    assert [group.probability for group in found] == pytest.approx([0.86, 0.88], abs=5e-3)


def test_no_match_is_longer_than_the_window() -> None:
    stream = stream_of("a | b | c.5 a.25 b.25 | b | c")
    assert rounded(naive.groups(named("a, b+, c", within=3), stream)) == [(1, 3, 5, 0.75)]


def test_pruned_matches_count_only_inside_the_group() -> None:
    stream = stream_of("a.1 | b | a.9 c.1 | b | c")
    assert rounded(naive.groups(named("a, b+, c", within=5, threshold=0.5), stream)) == [(3, 5, 5, 0.9)]


def test_a_run_goes_on_behind_its_first_end() -> None:
    stream = stream_of("a | b | a.5 b.5 | b")
    found = naive.groups(named("a, b+", within=4, overlap="complete"), stream)
    assert rounded(found) == [(1, 2, 4, 1.0), (1, 3, 4, 1.0)]
