"""Queries for trends: what they compile to, and what a user reads whose query is refused."""

from __future__ import annotations

import pytest
from naive.trend_cases import compiled

from patternlake.udfs.errors import PatternError, PatternSyntaxError, PredicateError, UnsupportedOperatorError
from patternlake.udfs.trends.query import FARTHEST, Step

NEIGHBOURS = "the trends engine (cet_trends, cet_count, cet_aggregate) compares neighbours only: "


def test_a_repetition_steps_to_itself_and_each_term_to_the_next() -> None:
    question = compiled("A+ ; B ; C+")
    assert [(step.source, step.target) for step in question.steps] == [(0, 0), (0, 1), (1, 2), (2, 2)]
    assert [term.plus for term in question.terms] == [True, False, True]
    assert [(step.source, step.target) for step in question.steps].index((1, 2)) == 2
    assert all((step.source, step.target) != (1, 1) for step in question.steps)


def test_the_value_of_the_later_event_comes_left() -> None:
    ours = compiled("E+ e[] WHERE e[i].x > e[i-1].x * 2").comparisons
    assert [comparison.operator for comparison in ours] == [">"]
    flipped = compiled("E+ e[] WHERE e[i-1].x * 2 < e[i].x").comparisons
    assert flipped == ours


def test_each_conjunct_goes_to_its_place() -> None:
    question = compiled("A+ ; B WHERE A.x > 1 AND [s] AND A[i].y < A[i-1].y AND B.y = A[i-1].n AND 1 = 1")
    assert question.along == ("s",)
    assert [comparison.step for comparison in question.comparisons] == [(0, 0), (0, 1)]
    assert [term.filter is not None for term in question.terms] == [True, True]
    assert question.columns == {"name", "x", "y", "n", "s"}


@pytest.mark.parametrize(
    ("predicate", "least", "greatest"),
    [
        ("t(e[i]) - t(e[i-1]) < 5 MILLISECOND", 1, 4999),
        ("t(e[i]) - t(e[i-1]) <= gap", 1, 5000),
        ("5 MILLISECOND > t(e[i]) - t(e[i-1])", 1, 4999),
        ("t(e[i-1]) - t(e[i]) >= -5 MILLISECOND", 1, 5000),
        ("t(e[i]) > t(e[i-1]) + 2 MILLISECOND", 2001, FARTHEST),
        ("t(e[i]) - 2 MILLISECOND - t(e[i-1]) = 1 MILLISECOND", 3000, 3000),
        ("e[i].time - e[i-1].time BETWEEN 1 MILLISECOND AND 2 MILLISECOND", 1000, 2000),
        ("t(e[i]) > t(e[i-1]) - 1 MIN", 1, FARTHEST),
    ],
)
def test_gaps_between_times_bound_the_step(predicate: str, least: int, greatest: int) -> None:
    question = compiled(f"E+ e[] WHERE {predicate}", {"gap": "5 MILLISECOND"})
    assert question.steps == (Step(0, 0, (), least, greatest, None),)


def test_a_gap_that_must_not_be_is_a_comparison() -> None:
    question = compiled("E+ e[] WHERE t(e[i]) - t(e[i-1]) <> 5 MIN")
    assert [(comparison.operator, comparison.type) for comparison in question.comparisons] == [("<>", "timestamp")]


def test_what_is_no_comparison_of_two_values_is_judged_on_what_the_rest_lets_through() -> None:
    question = compiled("E+ e[] WHERE [s] AND ABS(e[i].x - e[i-1].x) < 2")
    assert question.steps[0].remainder is not None
    assert question.carried == ("x",)


def test_or_between_neighbours_is_judged_for_each_pair_with_nothing_beside_it() -> None:
    question = compiled("E+ e[] WHERE e[i].x > e[i-1].x OR e[i].n = 3")
    assert question.steps[0].remainder is not None
    assert (question.comparisons, question.carried) == ((), ("n", "x"))
    filtered = compiled("E+ e[] WHERE e[i].x > 1 OR e[i].n = 3")
    assert filtered.steps[0].remainder is None
    assert filtered.terms[0].filter is not None


def test_windows_tumble_without_slide() -> None:
    question = compiled("E WITHIN 6 EVENTS")
    assert question.slide == question.within
    assert question.within is not None
    assert question.within.counted


def test_partition_columns_are_called_as_events_call_them() -> None:
    assert compiled("E PARTITION BY carrier").partition == ("key",)
    assert compiled("E PARTITION BY s, key").partition == ("s", "key")


REFUSED = [
    ("A ; !B ; C", UnsupportedOperatorError, 1, 5, "does not take '!' (not)"),
    ("A*", UnsupportedOperatorError, 1, 2, "does not take '*' (any number)"),
    ("A?", UnsupportedOperatorError, 1, 2, "does not take '?' (optional)"),
    ("A & B", UnsupportedOperatorError, 1, 3, "does not take '&' (and, in any order)"),
    ("A | B", UnsupportedOperatorError, 1, 3, "does not take '|' (or)"),
    ("A, B", UnsupportedOperatorError, 1, 2, "does not take ',' (directly next)"),
    ("(A ; B)+", UnsupportedOperatorError, 1, 1, "does not take a sequence (;) inside a repetition"),
    ("A[2]", UnsupportedOperatorError, 1, 2, "does not take '[n]' (exactly n)"),
    ("A ; B ; C WHERE C.x > A.x", PredicateError, 1, 17, NEIGHBOURS + "its operands do not follow one another"),
    (
        "A ; B ; C WHERE A.x + B.x > C.x",
        PredicateError,
        1,
        17,
        NEIGHBOURS + "it names more than two operands",
    ),
    (
        "A+ a[] ; B AS b\nWHERE b.x > a.x",
        PredicateError,
        2,
        7,
        NEIGHBOURS + "a and b are neighbours as b.x and a[i-1].x",
    ),
    (
        "A+ a[] ; B+ b[] WHERE b[i].x > a[i].x",
        PredicateError,
        1,
        23,
        NEIGHBOURS + "a and b are neighbours as b[i].x and a[i-1].x",
    ),
    (
        "A+ a[] WHERE a[i].x > a.x",
        PredicateError,
        1,
        14,
        NEIGHBOURS + "a.x beside a[i] would be every event of a; write a[i-1].x",
    ),
    ("A ; B WHERE B[i-1].x > A.x", PredicateError, 1, 13, NEIGHBOURS + "B[i-1] would be another event of B; write B"),
    ("A WHERE A[i].x > A[i-1].x", PredicateError, 1, 9, "A[i-1] needs a repetition, and A takes one event; write A+"),
    ("E+ WHERE E[i-2].x > 1", PredicateError, 1, 11, "E[i-2] is not allowed"),
    ("E+ WHERE E[i].z > E[i-1].z", PredicateError, 1, 10, "z is not an attribute of the stream"),
    ("E+ WHERE E[i].x > ratio * E[i-1].x", PredicateError, 1, 19, "ratio is not a column or a parameter"),
    ("E+ WHERE E[i].s > E[i-1].s * 2", PredicateError, 1, 19, "* takes numbers, this is a string"),
    ("E+ WHERE t(E[i]) - t(E[i-1]) < 5", PredicateError, 1, 10, "give the number a unit, as in 5 MIN"),
    ("E+ WHERE ABS(E[i].x - E[i-1].x) < 2", PredicateError, 1, 10, "nothing narrows down the pairs"),
    ("E+ WHERE E.x = $x", PredicateError, 1, 10, "join variables ($x) belong to subscriptions"),
    ("E SLIDE 5 EVENTS", PatternSyntaxError, 1, 3, "SLIDE needs a window: write WITHIN before it"),
    ("E WITHIN 5 EVENTS SLIDE 5 MIN", PatternSyntaxError, 1, 19, "WITHIN and SLIDE must both count events or both"),
    ("E WITHIN 0 MIN", PatternSyntaxError, 1, 10, "WITHIN must be greater than 0"),
    ("E WITHIN 5 MIN SLIDE 0 MIN", PatternSyntaxError, 1, 22, "SLIDE must be greater than 0"),
    (
        "E WITHIN 12 DAYS SLIDE 1 MILLISECOND",
        UnsupportedOperatorError,
        1,
        18,
        "each event would lie in 1,036,800,000 windows, more",
    ),
    (
        "E WITHIN 1000001 EVENTS SLIDE 1 EVENTS",
        UnsupportedOperatorError,
        1,
        25,
        "each event would lie in 1,000,001 windows, more",
    ),
    ("E WITHIN -5 MIN", PatternSyntaxError, 1, 10, "expected a whole number greater than 0"),
    ("E PARTITION BY tail WITHIN 1 DAY", PredicateError, 1, 16, "PARTITION BY tail: not an attribute of the stream"),
]


@pytest.mark.parametrize(("text", "kind", "line", "column", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_refusal_names_the_place_and_what_would_be_right(
    text: str, kind: type[PatternError], line: int, column: int, message: str
) -> None:
    with pytest.raises(kind) as refusal:
        compiled(text)
    assert message in refusal.value.message
    assert (refusal.value.line, refusal.value.column) == (line, column)
    assert "\n" not in refusal.value.message
