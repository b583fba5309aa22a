"""Where one name of a pattern is rare, all matches lie in windows around its events."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternlake.udfs.kleene.anchors import Anchors, find_anchors
from patternlake.udfs.kleene.from_config import compile_text
from patternlake.udfs.published import NameCount

COUNTS = [NameCount(name, events, 0, 1) for name, events in {"a": 1000, "b": 20, "c": 50, "d": 7}.items()]


def anchors(text: str, policy: str = "skip_till_any") -> Anchors | None:
    pattern = compile_text(text, {"attributes": {"x": {"type": "double"}}, "key": "key"}, {}, policy, "maximal")
    return find_anchors(pattern, COUNTS)


@pytest.mark.parametrize(
    ("text", "names", "events"),
    [
        ("a ; b ; c WITHIN 1 SEC", "b", 20),
        ("a ; b+ ; c WITHIN 1 SEC", "b", 20),
        ("a ; b* ; c WITHIN 1 SEC", "c", 50),
        ("a ; !b ; c WITHIN 1 SEC", "c", 50),
        ("a & d WITHIN 1 SEC", "d", 7),
        ("(b | c) ; a WITHIN 1 SEC", "bc", 70),
        ("a ; (b | c) ; d WITHIN 1 SEC", "d", 7),
        ("a ; nobody WITHIN 1 SEC", {"nobody"}, 0),
        ("PATTERN a ; r DEFINE r AS name IN ('b', 'd') WITHIN 1 SEC", "bd", 27),
        ("PATTERN a ; r DEFINE r AS x > 3 WITHIN 1 SEC", "a", 1000),
    ],
)
def test_each_match_has_an_event_of_the_rarest_operand_that_it_needs(text: str, names: str, events: int) -> None:
    assert anchors(text) == Anchors(frozenset(names), events, 1_000_000)


@pytest.mark.parametrize(
    "text", ["a ; b", "a ; b WITHIN 5 EVENTS", "PATTERN r DEFINE r AS x > 3 WITHIN 1 SEC"],
    ids=["no window", "a window of events", "no names"],
)  # fmt: skip
def test_without_a_window_in_time_or_names_there_are_none(text: str) -> None:
    assert anchors(text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("((a ; d) | b)+ ; c WITHIN 1 SEC", "c"),
        ("(a ; 1 OF (d, b)){2} ; c WITHIN 1 SEC", "c"),
        ("(a ; d){1,2} ; c WITHIN 1 SEC", "d"),
    ],
)
def test_rounds_need_none_of_the_alternatives_that_they_choose_among(text: str, name: str) -> None:
    found = anchors(text, "skip_till_next")
    assert found is not None
    assert found.names == {name}


def test_a_window_around_each_time_becomes_one_range_where_windows_meet() -> None:
    found = Anchors(frozenset("A"), 4, within=10).ranges(np.array([100, 20, 39, 60]), most=9)
    # 20 and 39 are less than twice the window apart; 39 and 60 are not, but 48 and 51 hold no match together.
    assert found == ((11, 48), (51, 69), (91, 109))
    assert Anchors(frozenset("A"), 0, within=10).ranges(np.zeros(0, np.int64), most=9) == ()


@given(
    times=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    within=st.integers(1, 30),
    most=st.integers(1, 5),
    begin=st.integers(-40, 340),
    length=st.integers(0, 29),
)
def test_whatever_lies_within_a_window_of_one_lies_in_one_range(
    times: list[int], within: int, most: int, begin: int, length: int
) -> None:
    ranges = Anchors(frozenset("A"), len(times), within).ranges(np.array(times), most)
    assert len(ranges) <= most
    assert all(first[1] < second[0] for first, second in pairwise(ranges))
    last = begin + min(length, within - 1)
    if any(begin <= time <= last for time in times):
        assert any(low <= begin and last <= high for low, high in ranges)
