"""Worked paths: which ways lead to a name and away from it, and what a call for them may say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from naive import paths as naive
from naive.funnel_cases import rows_of
from naive.funnels import SECOND, letters
from naive.kleene import Event
from naive.path_cases import asked_paths

from patternlake.udfs.errors import ArgumentError, PatternLakeError
from patternlake.udfs.paths.result import merge
from patternlake.udfs.paths.task import parts_of_partitions
from patternlake.udfs.record_batches import columns_of

Told = list[tuple[str, int, int]]
"""Path, partitions, occurrences."""


def answer(partitions: Mapping[str | None, Sequence[Event]], **arguments: Any) -> list[dict[str, Any]]:
    request = asked_paths(partitions, **arguments).request
    rows: list[dict[str, Any]] = merge(
        request, parts_of_partitions(request, columns_of(rows_of(partitions)))
    ).to_pylist()
    expected = naive.paths(
        partitions, request.alphabet, request.around, request.before, request.after,
        fold=request.fold, most=request.max_paths,
    )  # fmt: skip
    if request.within is None and request.by is None:
        assert [(tuple(row["path"]), row["partitions"], row["occurrences"]) for row in rows] == [
            (path.path, path.partitions, path.occurrences) for path in expected
        ]
    return rows


def told(rows: list[dict[str, Any]]) -> Told:
    return [(" ".join(row["path"]), row["partitions"], row["occurrences"]) for row in rows]


SHOP = {
    "k": letters("home cart cart pay home cart help"),
    "l": letters("home cart pay"),
    "m": letters("home help"),
}


def test_each_item_of_the_name_has_the_ways_before_and_behind_it() -> None:
    rows = answer(SHOP, around="cart", before=1, after=1)
    assert told(rows) == [("home cart pay", 2, 2), ("home cart help", 1, 1)]
    assert [row["share"] for row in rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    # One event a minute, and k's second cart joins the first.
    assert [row["seconds_p50"] for row in rows] == [150.0, 120.0]


@pytest.mark.parametrize("within", ["5 MIN", "5 EVENTS"])
def test_a_window_measures_from_the_nearest_of_the_events_that_are_folded(within: str) -> None:
    events = letters("view " * 10 + "cart " * 8 + "pay pay")
    assert told(answer({"k": events}, around="cart", within=within)) == [("view cart pay", 1, 1)]
    # A minute, or an event, is not less than one away.
    least = within.replace("5", "1")
    assert told(answer({"k": events}, around="cart", within=least)) == [("cart", 1, 1)]
    # Of a whole partition it begins with the first event.
    assert told(answer({"k": events}, within=within)) == [("view", 1, 1)]


def test_by_default_two_names_before_and_three_behind_are_told() -> None:
    assert told(answer(SHOP, around="pay")) == [
        ("home cart pay", 1, 1), ("home cart pay home cart help", 1, 1),
    ]  # fmt: skip


def test_without_folding_each_event_is_an_item() -> None:
    rows = answer(SHOP, around="cart", before=1, after=1, fold=False)
    assert told(rows) == [
        ("cart cart pay", 1, 1), ("home cart cart", 1, 1), ("home cart help", 1, 1), ("home cart pay", 1, 1),
    ]  # fmt: skip


def test_around_nothing_each_partition_is_one_way() -> None:
    partitions = {**SHOP, "n": letters("home cart cart pay")}
    assert told(answer(partitions)) == [
        ("home cart pay", 2, 2), ("home cart pay home cart help", 1, 1), ("home help", 1, 1),
    ]  # fmt: skip


def test_names_beyond_the_most_frequent_are_one_name_that_folds() -> None:
    partitions = {"k": letters("a b x y b z"), "l": letters("a b b z a")}
    assert told(answer(partitions, top=2)) == [("a b … a", 1, 1), ("a b … b …", 1, 1)]
    # The name that is asked for is always told.
    assert told(answer(partitions, top=2, around="y", before=1)) == [("… y b …", 1, 1)]


def test_a_window_leaves_out_what_is_as_far_from_the_middle() -> None:
    partitions = {"k": letters("a b c d e", apart=SECOND)}
    for window, path in (("1 SEC", "c"), ("1001 MILLISECOND", "b c d"), ("2 EVENTS", "b c d"), ("1 HOUR", "a b c d e")):
        assert told(answer(partitions, around="c", within=window)) == [(path, 1, 1)]
    assert told(answer(partitions, within="2 SEC")) == [("a b", 1, 1)]


def test_only_the_most_frequent_ways_are_told_with_their_share_of_all() -> None:
    partitions = {str(number): letters("a b" if number < 3 else f"a c{number}") for number in range(5)}
    (row,) = answer(partitions, max_paths=1)
    assert (row["path"], row["occurrences"], row["share"]) == (["a", "b"], 3, 0.6)


def test_groups_are_values_of_the_middle() -> None:
    partitions = {
        "k": [Event(1, 0, "a", {"via": "ad"}), Event(2, 1, "b", {"via": "mail"})],
        "l": [Event(3, 0, "a", {"via": None}), Event(4, 1, "b", {"via": "mail"})],
    }
    assert [(row["group"], row["path"], row["share"]) for row in answer(partitions, around="b", by="via")] == [
        ("mail", ["a", "b"], 1.0)
    ]
    assert [(row["group"], row["share"]) for row in answer(partitions, by="via")] == [(None, 1.0), ("ad", 1.0)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"before": 1}, "before => 1 without around; give the name that paths lead to and from, or leave before out"),
    ({"around": "a", "after": -1}, "after must be from 0 to 100, not -1"),
    ({"around": "a", "before": 101}, "before must be from 0 to 100, not 101"),
    ({"top": 0}, "top must be 1 or more, not 0"),
    ({"max_paths": 0}, "max_paths must be 1 or more, not 0"),
    ({"within": "soon"}, "within => 'soon' is no window"),
    ({"by": "vai"}, "by => 'vai' is no attribute of the stream"),
    ({"from_time": 2, "to_time": 1}, "from_time is after to_time"),
    ({"stream": None}, "stream is NULL"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_a_call_may_not_say_is_named_with_what_to_write(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PatternLakeError, match=re.escape(message)) as caught:
        asked_paths(SHOP, **arguments)
    assert isinstance(caught.value, ArgumentError)
