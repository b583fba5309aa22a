"""Aggregates of predicates: how they are written, what they refuse, and what they give."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.aggregates import aggregate
from naive.kleene_kernels import column
from naive.predicate_trees import POOLS, stored

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.aggregates import aggregated, aggregates_in, with_columns
from patternlake.udfs.language.predicate.allowed import AGGREGATES
from patternlake.udfs.language.predicate.expressions import Aggregate, Field
from patternlake.udfs.language.predicate.predicates import Scope, bind, parse_predicate
from patternlake.udfs.language.predicate.references import Reference

SCOPE = Scope(operands=("a", "b"), attributes={"x": "double", "n": "bigint", "s": "string"}, aggregates=True)


def one(function: str, name: str = "x") -> Aggregate:
    return Aggregate(function=function, argument=Field(reference=Reference("b", None, name)))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("count(b.x)>2", "COUNT(b.x) > 2"),
        ("Sum( b.x * 2 ) BETWEEN 1 AND a.x", "SUM(b.x * 2) >= 1 AND SUM(b.x * 2) <= a.x"),
        ("MAX(t(b)) - MIN(t(b)) < 5 MIN", "MAX(b.time) - MIN(b.time) < 5 MINUTE"),
        ("first(b.s) || last(b.s) = 'xy'", "CONCAT(FIRST(b.s), LAST(b.s)) = 'xy'"),
        ("AVG(b.x) > AVG(b.n)", "AVG(b.x) > AVG(b.n)"),
        ("count( distinct b.x)>2", "COUNT(DISTINCT b.x) > 2"),
        ("b[LAST].x > b[02].x", "b[last].x > b[2].x"),
    ],
)
def test_an_aggregate_has_a_canonical_text_that_reads_back(text: str, canonical: str) -> None:
    made = bind(parse_predicate(text), SCOPE)
    assert made.sql() == canonical
    assert parse_predicate(made.sql()) == made


def test_each_aggregate_becomes_a_column_of_its_own() -> None:
    made, found = with_columns(bind(parse_predicate("SUM(b.x) > COUNT(b.n) + a.x OR SUM(b.x) IS NULL"), SCOPE))
    assert [reference.column for reference in made.references] == ["SUM(b.x)", "COUNT(b.n)", "x"]
    assert list(found.values()) == [one("SUM"), one("COUNT", "n")]
    assert aggregates_in(made) == ()


@pytest.mark.parametrize(
    ("text", "marked", "said"),
    [
        ("SUM(MAX(b.x)) > 1", "SUM(^MAX(b.x^)) > 1", "MAX inside SUM"),
        ("COUNT(b.x, b.n) > 1", "^COUNT(b.x, b.n^) > 1", "COUNT takes one value, not 2"),
        ("COUNT(1) > 1", "^COUNT(1^) > 1", "one operand, as in COUNT(b.x); this names none"),
        ("SUM(a.x + b.x) > 1", "^SUM(a.x + b.x^) > 1", "this names a and b"),
        ("SUM(b[i-1].x) > 1", "SUM(^b[i-1].x^) > 1", "write SUM(b.x)"),
        ("SUM(b.speed) > 1", "SUM(^b.speed^) > 1", "speed is not an attribute"),
        ("SUM(c.x) > 1", "SUM(^c.x^) > 1", "c is not an operand"),
        ("SUM(b.s) > 1", "SUM(^b.s^) > 1", "SUM takes numbers, this is a string"),
        ("MAX(b.time - TIMESTAMP '2013-01-01') > 1 MIN", "^MAX(b.time - TIMESTAMP '2013-01-01'^)", "no durations"),
        ("MEDIAN(b.x) > 1", "^MEDIAN^(b.x) > 1", "of repeated operands of match_pattern, AVG, COUNT, FIRST"),
        ("COUNT(b.x) > 'many'", "COUNT(b.x) > ^'many'^", "many"),
        ("COUNT(b.x)", "^COUNT(b.x^)", "TRUE or FALSE"),
        ("SUM(DISTINCT b.x) > 1", "SUM(^DISTINCT^ b.x) > 1", "DISTINCT stands in COUNT alone"),
        ("b[0].x > 1", "b^[0]^.x > 1", "by number from 1 b[2]"),
        ("SUM(b[last].x) > 1", "SUM(^b[last].x^) > 1", "write SUM(b.x)"),
    ],
)
def test_what_is_no_aggregate_is_refused_at_its_place(text: str, marked: str, said: str) -> None:
    with pytest.raises(PredicateError) as raised:
        bind(parse_predicate(text), SCOPE)
    before, place, _ = marked.split("^")
    assert (raised.value.start, raised.value.end) == (len(before), len(before) + len(place))
    assert said in raised.value.message


def test_other_predicates_have_no_aggregates() -> None:
    with pytest.raises(PredicateError, match="for WHERE of match_pattern") as raised:
        bind(parse_predicate("x > 1 AND SUM(x) > 2"), Scope(attributes={"x": "double"}))
    assert raised.value.start == 10


def of(function: str, type_: str, groups: list[list[Any]]) -> list[Any]:
    """The kernel's values, as columns hold them, None for NULL."""
    values = column([value for group in groups for value in group], type_)
    group = np.repeat(np.arange(len(groups)), np.array([len(part) for part in groups], np.int64))
    found = aggregated(one(function), lambda _: values, group, len(groups))
    return [value if known else None for value, known in zip(found.values.tolist(), found.known.tolist(), strict=True)]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


@settings(max_examples=400)
@given(st.data())
def test_aggregates_of_groups_are_those_of_the_oracle(data: st.DataObject) -> None:
    function = data.draw(st.sampled_from(AGGREGATES))
    types = (
        ["double", "bigint"] if function in ("SUM", "AVG") else ["double", "bigint", "string", "boolean", "timestamp"]
    )
    type_ = data.draw(st.sampled_from(types))
    groups = data.draw(st.lists(st.lists(st.sampled_from(POOLS[type_]), max_size=6), max_size=6))
    expected = [aggregate(function, group) for group in groups]
    expected = [stored(value) if isinstance(value, dt.datetime) else value for value in expected]
    found = of(function, type_, groups)
    assert len(found) == len(expected)
    assert all(same(a, b) for a, b in zip(found, expected, strict=True)), (found, expected)


def test_sums_of_integers_wrap_at_64_bits() -> None:
    assert of("SUM", "bigint", [[2**63 - 1, 1], [1, None, 2]]) == [-(2**63), 3]


def test_null_takes_part_in_first_and_last_only() -> None:
    groups = [[None, 2.0, None], [], [1.0]]
    assert of("FIRST", "double", groups) == [None, None, 1.0]
    assert of("LAST", "double", groups) == [None, None, 1.0]
    assert of("COUNT", "double", groups) == [1, 0, 1]
    assert of("SUM", "double", groups) == [2.0, None, 1.0]


def test_distinct_values_count_once() -> None:
    values = column([1.0, math.nan, 0.0, -0.0, math.nan, None, 1.0, 1.0], "double")
    group = np.array([0, 0, 0, 0, 0, 0, 0, 2])
    distinct = replace(one("COUNT"), distinct=True)
    assert aggregated(distinct, lambda _: values, group, 3).values.tolist() == [3, 0, 1]


def test_an_event_by_its_number_is_null_where_it_is_not_there() -> None:
    values, group = column([5, None, 7], "bigint"), np.array([0, 0, 2])
    found = [part for text in ("b[2].n = 1", "b[last].n = 1", "b[1].n = 1") for part in aggregates_of(text)]
    made = [aggregated(part, lambda _: values, group, 3) for part in found]
    known = [each.known.tolist() for each in made]
    assert known == [[False, False, False], [False, False, True], [True, False, True]]
    assert (made[1].values[2], made[2].values.tolist()[::2]) == (7, [5, 7])


def aggregates_of(text: str) -> tuple[Aggregate, ...]:
    return aggregates_in(bind(parse_predicate(text), SCOPE))


def test_collected_events_are_read_in_match_pattern_alone() -> None:
    with pytest.raises(PredicateError, match=r"b\[last\].x is of the events that an operand has collected"):
        bind(parse_predicate("b[last].x > 1"), replace(SCOPE, aggregates=False))
