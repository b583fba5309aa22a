"""The worked answers of SPEC section 5 and of the paper, by the oracle and by the kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from naive import trends as naive
from naive.trend_cases import cells_of, compiled, events_of, rows_of, vertices

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.trends.kernels import explicit
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import vertices_of

E = (naive.Term("E", "e", True),)


def stream(names: str, times: Sequence[int] | None = None, **values: Sequence[Any]) -> list[naive.Event]:
    """One event for each letter of `names`, at seconds 1, 2, … unless told."""
    return [
        naive.Event(
            at + 1,
            (times[at] if times else at + 1) * 1_000_000,
            name,
            None,
            {column: given[at] for column, given in values.items()},
        )
        for at, name in enumerate(names)
    ]


def both(query: naive.Query, events: Sequence[naive.Event]) -> list[tuple[int, ...]]:
    """The positions of all trends; oracle and kernels must agree, and the count with them."""
    wanted = sorted(row for rows in naive.trends(query, events).values() for row in rows)
    trends = Trends(*vertices(query, events))
    found = [row for _, row in rows_of(trends, list(trends.extract()))]
    assert found == wanted
    counted = trends.counts()
    assert sum(counted.trends) == len(wanted)
    assert sum(counted.total_length) == sum(map(len, wanted))
    assert counted.longest.max(initial=0) == max(map(len, wanted), default=0)
    return found


def step(holds: Callable[[naive.Event, naive.Event], bool], text: str) -> naive.Step:
    return naive.Step(0, 0, holds, text)


def rising(column: str, factor: float = 1) -> naive.Step:
    return step(
        lambda p, e: e.values[column] > p.values[column] * factor,  # type: ignore[operator]
        f"e[i].{column} > e[i-1].{column} * {factor}",
    )


def test_chains_of_checks() -> None:
    # c1 A→B, c2 B→A, c3 B→C, c4 C→B, c5 C→A, c6 A→B (the paper's Fig. 2).
    checks = stream("EEEEEE", s=list("ABBCCA"), u=list("BACBAB"))
    query = naive.Query(E, steps=(step(lambda p, e: e.values["s"] == p.values["u"], "e[i].s = e[i-1].u"),))
    assert both(query, checks) == [(1, 2, 6), (1, 3, 4), (1, 3, 5, 6)]


def test_more_than_twice_the_one_before() -> None:
    events = stream("EEEEEE", x=[32.0, 7.0, 15.0, 35.0, 40.0, 17.0])
    query = naive.Query(E, steps=(rising("x", 2),))
    assert both(query, events) == [(1,), (2, 3, 4), (2, 3, 5), (2, 4), (2, 5), (2, 6)]


def test_a_sequence_of_types() -> None:
    terms = (naive.Term("A", "a", False), naive.Term("B", "b", False), naive.Term("A", "c", False))
    assert both(naive.Query(terms), stream("ABABA")) == [(1, 2, 3), (1, 2, 5), (1, 4, 5), (3, 4, 5)]


def test_equal_times_never_follow_one_another() -> None:
    assert both(naive.Query(E, steps=(rising("x"),)), stream("EEE", [1, 1, 2], x=[1.0, 2.0, 3.0])) == [(1, 3), (2, 3)]


def test_starts_and_ends_come_from_all_predicates_together() -> None:
    # Each of the last two follows the first on one attribute, and none on both.
    events = stream("EEE", x=[1.0, 9.0, 5.0], y=[9.0, 1.0, 5.0])
    assert both(naive.Query(E, steps=(rising("x"), rising("y"))), events) == [(1,), (2,), (3,)]


def test_two_hundred_rising_values_have_two_to_the_198_trends() -> None:
    events = stream("E" * 200, x=[float(at) for at in range(200)])
    trends = Trends(*vertices(naive.Query(E, steps=(rising("x"),)), events))
    counted = trends.counts()
    assert counted.trends == [2**198]
    assert counted.longest.tolist() == [200]
    # Of the 198 events between the first and the last each is in half of the trends.
    assert counted.total_length == [2 * 2**198 + 198 * 2**197]
    assert counted.approximate.tolist() == [2.0**198]


def test_one_event_alone_is_a_trend() -> None:
    assert both(naive.Query(E), stream("E")) == [(1,)]
    assert both(naive.Query(E), []) == []


def terms(text: str) -> tuple[naive.Term, ...]:
    """Terms of one letter each, ``A+ A`` for instance; aliases in order."""
    return tuple(naive.Term(part[0], "abcd"[at], part.endswith("+")) for at, part in enumerate(text.split()))


def test_a_sequence_of_events_counts_once_however_its_terms_share_it() -> None:
    # 1 2 3 is A(1) A(2 3) as well as A(1 2) A(3).
    assert both(naive.Query(terms("A+ A+")), stream("AAA")) == [(1, 2, 3), (1, 3)]


def test_a_trend_is_complete_whichever_terms_take_its_events() -> None:
    # 1 2 is A+(1) A(2), and grows into 1 2 3 where A+ takes 1 and 2.
    assert both(naive.Query(terms("A+ A")), stream("AAA")) == [(1, 2, 3), (1, 3)]
    # 2 3 is A(2) A+(3), and grows into 1 2 3 where A+ takes 2 and 3.
    assert both(naive.Query(terms("A A+")), stream("AAA")) == [(1, 2, 3), (1, 3)]
    # Three terms: 1 2 4 and 1 3 4 leave out one event between; 1 2 3 and 2 3 4 grow into 1 2 3 4.
    assert both(naive.Query(terms("A A+ A")), stream("AAAA")) == [(1, 2, 3, 4), (1, 2, 4), (1, 3, 4)]


def test_conditions_of_the_terms_say_which_of_them_an_event_fits() -> None:
    # Only events of x < 3 fit the first term: 1 2 | 3 is A+(1 2) A(3), and with 4 behind it A cannot take it.
    low = naive.Filter(0, lambda e: e.values["x"] < 3, "a[i].x < 3")  # type: ignore[operator]
    events = stream("AAAA", x=[1.0, 2.0, 3.0, 4.0])
    assert both(naive.Query(terms("A+ A"), (low,)), events) == [(1, 2, 3), (1, 2, 4), (1, 3), (1, 4)]
    # The second term takes what is less than twice the one before it, so 2 3 and 3 4 can be the last two.
    near = naive.Step(0, 1, lambda p, e: e.values["x"] < 2 * p.values["x"], "b.x < 2 * a[i-1].x")  # type: ignore[operator]
    assert both(naive.Query(terms("A+ A"), steps=(near,)), events) == [(1, 2, 3, 4), (1, 3, 4)]


def test_a_later_term_puts_an_event_before_an_earlier_one() -> None:
    # A(2) B(3) takes 1 before it only where the conditions let 2 be of both terms.
    events = stream("ABB", x=[0.0, 1.0, 2.0])
    assert both(naive.Query(terms("A B+")), events) == [(1, 2, 3), (1, 3)]


def test_null_follows_nothing_and_is_a_trend_of_its_own() -> None:
    assert both(naive.Query(E, steps=(rising_or_null(),)), stream("EEE", x=[1.0, None, 2.0])) == [(1, 3), (2,)]


def rising_or_null() -> naive.Step:
    def holds(p: naive.Event, e: naive.Event) -> bool:
        values = (p.values["x"], e.values["x"])
        return None not in values and operator.gt(values[1], values[0])

    return step(holds, "e[i].x > e[i-1].x")


def test_each_window_has_its_own_trends() -> None:
    # [0, 4 s) and [2 s, 6 s): events at 1 2 3 and at 2 3 4; and [-2 s, 2 s), [4 s, 8 s) at both ends.
    query = naive.Query(E, steps=(rising("x"),), within=4_000_000, slide=2_000_000)
    events = stream("EEEE", x=[1.0, 2.0, 3.0, 4.0])
    trends = Trends(*vertices(query, events))
    found = rows_of(trends, list(trends.extract()))
    assert cells_of(query, events, trends) == [(None, -1), (None, 0), (None, 1), (None, 2)]
    assert found == [(0, (1,)), (1, (1, 2, 3)), (1, (1, 3)), (2, (2, 3, 4)), (2, (2, 4)), (3, (4,))]


def test_parameters_stand_for_their_values() -> None:
    events = stream("EEEEEE", x=[32.0, 7.0, 15.0, 35.0, 40.0, 17.0])
    question = compiled("E+ WHERE E[i].x > ratio * E[i-1].x", {"ratio": "2"})
    assert Trends(question, vertices_of(question, events_of(events, partitioned=False))).counts().trends == [6]


def test_an_edge_is_there_where_one_side_of_or_is_true() -> None:
    # 1 → 2 rises; 2 → 3 falls, but 3 is marked; 3 → 4 is neither, and of NULL nothing is known.
    events = stream("EEEE", x=[1.0, 5.0, 2.0, None], n=[None, 0, 1, 0])
    either = naive.Step(
        0,
        0,
        lambda p, e: (
            (None not in (p.values["x"], e.values["x"]) and e.values["x"] > p.values["x"])  # type: ignore[operator]
            or e.values["n"] == 1
        ),
        "(e[i].x > e[i-1].x OR e[i].n = 1)",
    )
    assert both(naive.Query(E, steps=(either,)), events) == [(1, 2, 3), (1, 3), (4,)]


def test_too_many_edges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explicit, "MOST_EDGES", 5)
    events = stream("EEEE", x=[1.0, 2.0, 3.0, 4.0], n=[1, 1, 1, 1])
    text = "E+ e[] WHERE e[i].x > e[i-1].x OR e[i].n = 1"
    with pytest.raises(ArgumentError, match="more than 5 pairs of events of one part of the answer may follow one"):
        Trends(compiled(text), vertices_of(compiled(text), events_of(events, partitioned=False)))


@pytest.mark.parametrize(
    "condition",
    [
        "t(E[i]) - t(E[i-1]) < most",
        "most > t(E[i]) - t(E[i-1])",
        "t(E[i]) < t(E[i-1]) + most",
    ],
)
def test_a_comparison_with_null_holds_of_no_two_events(condition: str) -> None:
    events = stream("EEE", x=[1.0, 2.0, 3.0])
    question = compiled(f"E+ WHERE {condition}", {"most": None})
    assert Trends(question, vertices_of(question, events_of(events, partitioned=False))).counts().trends == [3]
