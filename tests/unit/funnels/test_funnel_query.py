"""What a funnel's pattern and arguments may be, and what is said where they may not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from naive.funnel_cases import asked
from naive.funnels import letters

from patternlake.udfs.errors import PatternLakeError, UnsupportedOperatorError
from patternlake.udfs.language.query.tree import Extent

EVENTS = {"k": letters("a b c")}


def test_steps_are_names_alternatives_and_conditions() -> None:
    query = asked("a ; b | (c | d) ; big | a DEFINE big AS x > 1 PARTITION BY via WITHIN 2 HOURS", EVENTS).request.query
    assert [step.operand for step in query.steps] == ["a", "b | c | d", "big | a#2"]
    assert query.asked_names == ("a", "b", "c", "d")
    assert query.partition == ("via",)
    assert query.within == Extent(7_200_000_000, counted=False)
    assert query.columns == {"x"}


def test_without_partition_by_the_streams_key_tells_partitions_apart() -> None:
    request = asked("a ; b", EVENTS).request
    assert request.query.partition == ("key",)
    assert request.query.event_columns(None, request.types) == ("position", "time", "name", "key")
    assert request.query.event_columns("via", request.types) == ("position", "time", "name", "key", "via:string")


@pytest.mark.parametrize("within", ["90 SEC", "90sec", " 90000 milliseconds "])
def test_the_window_may_be_an_argument(within: str) -> None:
    assert asked("a ; b", EVENTS, within=within).request.query.within == Extent(90_000_000, counted=False)
    assert asked("a ; b WITHIN 90 SEC", EVENTS, within=within).request.query.within is not None


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a ; !b ; c", {}, "does not take '!' (not); mode => 'strict_order' or 'steps_in_order' says what must not come"),
    ("a+ ; b", {}, "does not take '+' (one or more); write the name once"),
    ("a[2] ; b", {}, "does not take '[n]' (exactly n); write each step out, as in A ; A ; B"),
    ("a{1,2} ; b", {}, "write each step out"),
    ("a? ; b", {}, "leave the step out, or ask twice"),
    ("a, b", {}, "write ';' with mode => 'strict'"),
    ("a & b", {}, "write the steps in the order in which they are counted"),
    ("a ; b WHERE a.x > 1", {}, "conditions on one event go to DEFINE"),
    ("a ; b @(t(b) - t(a) < 5 SEC)", {}, "WITHIN counts from the first step"),
    ("a ; (b ; c) | d", {}, "a sequence (;)"),
    (" ; ".join(f"s{number}" for number in range(65)), {}, "a funnel has at most 64 steps, this has 65; join some"),
    (
        "a ; b",
        {"mode": "loose"},
        "mode must be one of any_order_between, strict_order, steps_in_order, once, strict",
    ),
    ("a ; b", {"next": -1}, "next must be 0 or more, not -1"),
    ("a ; b", {"by": "vai"}, "by => 'vai' is no attribute of the stream; there are x, via, "),
    ("a ; b", {"within": "soon"}, "within => 'soon' is no window; write a whole number greater than 0 and a unit"),
    ("a ; b", {"within": "0 MIN"}, "within => '0 MIN' is no window"),
    ("a ; b WITHIN 5 MIN", {"within": "6 MIN"}, "within => '6 MIN', but the pattern says WITHIN 5 MIN; leave one out"),
    ("a ; b PARTITION BY vai", {}, "PARTITION BY vai: not an attribute of the stream"),
    ("a ; c DEFINE c AS x = $u", {}, "join variables ($x) belong to subscriptions; PARTITION BY"),
    ("a ; b", {"from_time": 2, "to_time": 1}, "from_time is after to_time"),
]


@pytest.mark.parametrize(("pattern", "arguments", "message"), REFUSED)
def test_what_a_funnel_does_not_take_is_named_with_what_to_write(
    pattern: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(PatternLakeError, match=re.escape(message)):
        asked(pattern, EVENTS, **arguments)


def test_refusals_point_to_their_place() -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        asked("a ; !b", EVENTS)
    assert "line 1, column 5" in str(caught.value)


def test_moments_known_end_with_the_question() -> None:
    last = 2 * 60_000_000
    assert asked("a", EVENTS).request.until == last
    assert asked("a", EVENTS, 200_000_000).request.until == 200_000_000
    assert asked("a", EVENTS, to_time=7).request.until == 7
