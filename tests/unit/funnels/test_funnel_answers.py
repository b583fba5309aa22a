"""Worked funnels: who gets how far in each mode, by which events, and what happened instead."""

from __future__ import annotations

from typing import Any

import pytest
from naive import funnels as naive
from naive.funnel_cases import LETTERS, asked, count_of, rounded, rows_of, shown
from naive.funnels import SECOND, Window, chain, funnel, furthest_by_hand, letters, named, row
from naive.kleene import Event

from patternlake.udfs.funnels.result import merge
from patternlake.udfs.funnels.task import parts_of_partitions, rows_of_partitions
from patternlake.udfs.record_batches import columns_of, rows_in_micros

FIVE_MINUTES = Window(5 * 60 * SECOND)


def told(text: str, events: list[Event], watermark: int | None = None, **arguments: Any) -> naive.Row:
    """The engine's row of one partition."""
    request = asked(text, {"k": events}, watermark, **arguments).request
    (found,) = rows_in_micros(rows_of_partitions(request, columns_of(rows_of({"k": events}))))
    assert found["key"] == "k"
    return shown(found)


def test_the_worked_letters_stop_at_the_third_step_from_the_first_start() -> None:
    steps = named("A", "B", "C", "D")
    starts = {1: [1, 2, 3], 5: [5, 8], 6: [6, 8], 9: [9, 12], 13: [13, 14, 15]}
    chains = [chain(LETTERS, steps, start, "any_order_between", FIVE_MINUTES) for start in range(len(LETTERS))]
    assert {taken[0] + 1: [number + 1 for number in taken] for taken in chains if taken} == starts
    expected = naive.Row(3, (1, 2, 3), 0, 120 * SECOND, 180.0, 4, "B", False)
    assert row(LETTERS, steps, within=FIVE_MINUTES, until=900 * SECOND) == expected
    assert told("A ; B ; C ; D WITHIN 5 MIN", LETTERS) == expected
    assert told("A ; B ; C ; D", LETTERS, within="5 min") == expected


def test_the_worked_letters_count_one_partition_at_three_of_four_steps() -> None:
    text, events = "A ; B ; C ; D WITHIN 5 MIN", {"k": LETTERS}
    request = asked(text, events).request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of(events)))).to_pylist()
    assert [(one["step"], one["operand"], one["reached"], one["dropped"]) for one in found] == [
        (1, "A", 1, 0), (2, "B", 1, 0), (3, "C", 1, 1), (4, "D", 0, 0),
    ]  # fmt: skip
    assert [one["seconds_p50"] for one in found] == [None, 60.0, 60.0, None]
    assert [one["seconds_p90"] for one in found] == [None, 60.0, 60.0, None]
    assert [one["share_of_first"] for one in found] == [1.0, 1.0, 1.0, 0.0]
    assert [one["share_of_previous"] for one in found] == [None, 1.0, 1.0, 0.0]
    assert [one["next_events"] for one in found] == [[], [], [{"name": "B", "partitions": 1}], []]
    expected = funnel(events, named("A", "B", "C", "D"), within=FIVE_MINUTES)
    assert [count_of(one) for one in found] == [rounded(one) for one in expected]


# A stream, a pattern, and how far each mode gets: any_order_between, strict_order, steps_in_order, once, strict.
REACHED = [
    ("a d b c", "a ; b ; c", (3, 1, 3, 3, 1)),
    ("a a b c", "a ; b ; c", (3, 3, 3, 3, 3)),
    ("a b b c", "a ; b ; c", (3, 3, 3, 2, 2)),
    ("a b a c", "a ; b ; c", (3, 2, 2, 3, 2)),
    ("a b d b c", "a ; b ; c", (3, 2, 3, 2, 2)),
    ("a c b c", "a ; b ; c", (3, 1, 1, 3, 1)),
    ("a d a b c", "a ; b ; c", (3, 3, 3, 3, 3)),
    ("b c", "a ; b ; c", (0, 0, 0, 0, 0)),
    ("a a a b", "a ; a ; b", (3, 3, 3, 3, 3)),
    ("a d a b", "a ; a ; b", (3, 1, 3, 3, 1)),
    ("a b a c", "a ; b ; a ; c", (4, 4, 4, 4, 4)),
    ("a b b a c", "a ; b ; a ; c", (4, 4, 4, 2, 2)),
    ("b", "a | b ; b | c", (1, 1, 1, 1, 1)),
    ("b b", "a | b ; b | c", (2, 2, 2, 2, 2)),
    ("a b c", "a | b ; b | c ; c", (3, 3, 3, 3, 3)),
    ("a c d", "a ; b | c ; d", (3, 3, 3, 3, 3)),
    ("a", "a", (1, 1, 1, 1, 1)),
    ("d", "a", (0, 0, 0, 0, 0)),
]


@pytest.mark.parametrize(("stream", "pattern", "reached"), REACHED)
def test_each_mode_gets_as_far_as_was_worked_out_by_hand(stream: str, pattern: str, reached: tuple[int, ...]) -> None:
    events, steps = letters(stream), named(*(part.replace(" ", "") for part in pattern.split(";")))
    assert tuple(row(events, steps, mode).reached for mode in naive.MODES) == reached
    assert tuple(told(pattern, events, mode=mode).reached for mode in naive.MODES) == reached
    assert furthest_by_hand(events, steps, None) == reached[0]


def test_of_equally_long_chains_the_one_that_starts_first_counts() -> None:
    events = letters("a b a b a b")
    assert told("a ; b", events).positions == (1, 2)
    # The first a is too far from both b's that follow it, the second is not.
    assert told("a ; b WITHIN 3 EVENTS", letters("a d d a d b a b")).positions == (4, 6)
    # A later start goes further.
    assert told("a ; b ; c WITHIN 3 EVENTS", letters("a b d a b c")).positions == (4, 5, 6)


def test_each_step_takes_the_earliest_event_that_fits() -> None:
    assert told("a ; b ; c", letters("a a b b c c")).positions == (1, 3, 5)
    # The second event fits both steps and is taken as the second: the first step has its event.
    assert told("a | b ; b | c ; c", letters("a b b c")).positions == (1, 2, 4)


def test_the_window_is_open_at_its_end() -> None:
    events = letters("a d d b", apart=SECOND)
    assert told("a ; b WITHIN 3 SEC", events).reached == 1
    assert told("a ; b WITHIN 3001 MILLISECOND", events).reached == 2
    assert told("a ; b WITHIN 3 EVENTS", events).reached == 1
    assert told("a ; b WITHIN 4 EVENTS", events).reached == 2


def test_what_is_waited_for_ends_with_the_window_or_with_what_is_known() -> None:
    events = letters("a d d d", apart=SECOND)
    assert told("a ; b", events).waited_seconds == 3.0
    assert told("a ; b WITHIN 2 SEC", events).waited_seconds == 2.0
    assert told("a ; b WITHIN 2 EVENTS", events).waited_seconds == 1.0
    assert told("a ; b WITHIN 9 EVENTS", events).waited_seconds == 3.0
    assert told("a ; b", events, to_time=2 * SECOND).waited_seconds == 2.0
    assert told("a", events).waited_seconds is None


def test_a_row_is_final_once_the_watermark_has_passed_its_window_or_its_last_step() -> None:
    events = letters("a d d d", apart=SECOND)
    assert [told("a ; b WITHIN 2 SEC", events, at).final for at in (None, 2 * SECOND - 1, 2 * SECOND)] == [
        False, False, True,
    ]  # fmt: skip
    assert [told("a ; b WITHIN 3 EVENTS", events, at).final for at in (SECOND, 2 * SECOND)] == [False, True]
    assert not told("a ; b WITHIN 5 EVENTS", events, 9 * SECOND).final
    assert not told("a ; b", events, 9 * SECOND).final
    # Behind the end of the question nothing is known.
    ends = [2 * SECOND - 2, 2 * SECOND - 1]
    assert [told("a ; b WITHIN 2 SEC", events, 9 * SECOND, to_time=end).final for end in ends] == [False, True]
    assert [told("a ; d", events, at).final for at in (SECOND - 1, SECOND)] == [False, True]


def test_a_partition_that_never_enters_has_a_row_and_is_not_counted() -> None:
    assert told("a ; b", letters("b d"), 10 * SECOND) == naive.Row(0, (), None, None, None, None, None, False)
    request = asked("a ; b", {"k": letters("b d")}).request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of({"k": letters("b d")}))))
    assert found["reached"].to_pylist() == [0, 0]
    assert found["share_of_first"].to_pylist() == [None, None]


def test_percentiles_lie_between_two_values_in_proportion() -> None:
    # b comes 1, 2, 3 and 10 seconds after a: the median is 2.5, 90 % of the way lies at 3 + 0.7 * 7.
    events = {str(wait): [Event(wait * 10, 0, "a"), Event(wait * 10 + 1, wait * SECOND, "b")] for wait in (1, 2, 3, 10)}
    request = asked("a ; b", events).request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of(events))))
    assert found["seconds_p50"].to_pylist() == [None, 2.5]
    assert found["seconds_p90"].to_pylist() == [None, pytest.approx(7.9)]


def test_groups_are_values_of_the_first_step_of_the_chain_that_counts() -> None:
    events = {
        "k": [Event(1, 0, "a", {"via": "ad"}), Event(2, 1, "b", {"via": "mail"})],
        "l": [Event(3, 0, "a", {"via": "mail"})],
        "m": [Event(4, 0, "a", {"via": None})],
        "n": [Event(5, 0, "b", {"via": "ad"})],
    }
    request = asked("a ; b", events, by="via").request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of(events)))).to_pylist()
    assert [(one["group"], one["step"], one["reached"]) for one in found] == [
        (None, 1, 1), (None, 2, 0), ("ad", 1, 1), ("ad", 2, 1), ("mail", 1, 1), ("mail", 2, 0),
    ]  # fmt: skip


def test_the_most_frequent_next_events_come_first_then_by_name_then_nothing() -> None:
    followed = ["c", "c", "b", "", "d", ""]
    events = {str(number): letters(f"a {name}") for number, name in enumerate(followed)}
    request = asked("a ; z", events, next=9).request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of(events)))).to_pylist()
    told_next = [(one["name"], one["partitions"]) for one in found[0]["next_events"]]
    assert told_next == [("c", 2), (None, 2), ("b", 1), ("d", 1)]
    request = asked("a ; z", events, next=1).request
    found = merge(request, parts_of_partitions(request, columns_of(rows_of(events)))).to_pylist()
    assert found[0]["next_events"] == [{"name": "c", "partitions": 2}]


def test_sixty_four_steps_are_reached_one_by_one() -> None:
    names = [f"s{number:02}" for number in range(64)]
    events = letters(" ".join(names))
    for mode in naive.MODES:
        assert told(" ; ".join(names), events, mode=mode).positions == tuple(range(1, 65))
        assert told(" ; ".join(names), events[:63], mode=mode).reached == 63
    assert told(" ; ".join(["s00"] * 64), letters("s00 " * 70)).positions == tuple(range(1, 65))
