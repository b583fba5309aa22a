"""Aggregates over trends that are not listed: equal to those over listed ones, and exact at any size."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import trends as naive
from naive.trend_cases import ATTRIBUTES, compiled, random_events, random_query
from unit.trends.test_trend_task import dealt
from unit.trends.test_trend_vertex_rows import table_rows

from patternlake.udfs.digits import number_of
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.trends.aggregates import (
    FUNCTIONS,
    Aggregate,
    aggregate_trends,
    attributes_of,
    check_types,
    parse_aggregates,
)
from patternlake.udfs.trends.kernels.counting import primes
from patternlake.udfs.trends.measures import product
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.vertex_rows import Layout, vertex_rows
from patternlake.udfs.trends.weights import flags, weights_of


def asked(layout: Layout, block: int = 1) -> TrendsRequest:
    return TrendsRequest(layout, None, None, -(2**60), 2**60, block, 10**6, False)


def answered(
    query: str, aggregate: str, values: Sequence[Any], type_: str, names: str | None = None
) -> dict[str, tuple[str | None, float | None]]:
    """Aggregates of attribute `x` over one window of events at seconds 1, 2, …: text and double of each."""
    given = [
        naive.Event(at + 1, (at + 1) * 1_000_000, names[at] if names else "E", None, {"x": value})
        for at, value in enumerate(values)
    ]
    layout = Layout(compiled(query), {**ATTRIBUTES, "x": type_})
    aggregates = parse_aggregates(aggregate)
    batch = vertex_rows(layout, table_rows(given, layout.types), attributes_of(aggregates))
    rows = {name: batch[name] for name in batch.schema.names}
    rows["block"] = pa.array([0] * batch.num_rows, pa.int64())
    found = aggregate_trends(asked(layout), aggregates, rows).to_pylist()
    return {row["aggregate"]: (row["value"], row["value_approx"]) for row in found}


@pytest.mark.parametrize("seed", range(200))
def test_aggregates_are_those_over_listed_trends(seed: int) -> None:
    rng = random.Random(seed)
    query, events = random_query(rng), random_events(rng, rng.randint(1, 14))
    layout = Layout(compiled(query.text()), ATTRIBUTES)
    wanted = [Aggregate(function, name) for function in FUNCTIONS for name in rng.sample("xyn", 2)]
    aggregates = (Aggregate("COUNT", None), Aggregate("COUNT", "s"), *wanted)
    batch = vertex_rows(layout, table_rows(events), attributes_of(aggregates))
    rows = {name: batch[name] for name in batch.schema.names}
    block = rng.randint(1, 4)
    found = [
        row
        for part in dealt(layout, rows, block, 3, rng)
        for row in aggregate_trends(asked(layout, block), aggregates, part).to_pylist()
    ]
    values: dict[str | None, Any] = {
        name: {event.position: event.values[name] for event in events} for name in ATTRIBUTES
    }
    values["s"] = {at: None if value is None else 1 for at, value in values["s"].items()}
    trends = naive.trends(query, events)
    cells = {(row["key"], row["window"]) for row in found}
    assert {(key, window or 0) for key, window in trends} <= cells
    assert len(found) == len(cells) * len(set(aggregates))
    for row in found:
        one = next(each for each in aggregates if each.text == row["aggregate"])
        listed = trends.get((row["key"], row["window"] if query.within is not None else None), [])
        value = naive.aggregate(one.function, listed, values[one.attribute] if one.attribute else None)
        if value is None:
            assert (row["value"], row["value_approx"]) == (None, None), query.text()
        else:
            # The values of the cases are whole numbers of halves, so sums and extremes are exact doubles.
            assert (float(row["value"]), row["value_approx"]) == (float(value), float(value)), query.text()


RISING = "PATTERN E+ e[] WHERE e[i].position > e[i-1].position"


def test_sums_over_2_to_the_198_trends_are_exact() -> None:
    # The first and the last event are in all trends, each other in half of them.
    found = answered(RISING, "SUM(x), AVG(x), COUNT(x), COUNT(*), MIN(x), MAX(x)", range(200), "bigint")
    assert number_of(found["SUM(x)"][0] or "") == 199 * 2**198 + sum(range(1, 199)) * 2**197
    assert found["COUNT(*)"][0] == str(2**198)
    assert number_of(found["COUNT(x)"][0] or "") == 2 * 2**198 + 198 * 2**197
    assert found["AVG(x)"] == ("99.5", 99.5)
    assert (found["MIN(x)"][0], found["MAX(x)"][0]) == ("0", "199")


def test_sums_of_negative_numbers_and_decimals_keep_their_sign_and_digits() -> None:
    values = [Decimal("-0.10") if at % 2 else Decimal("-12345678901234567890123.45") for at in range(200)]
    found = answered(RISING, "SUM(x), MIN(x), MAX(x)", values, "decimal(38,2)")
    total = sum(int(value * 100) * (2**198 if at in (0, 199) else 2**197) for at, value in enumerate(values))
    assert total < 0
    assert Decimal(found["SUM(x)"][0] or "").as_tuple().exponent == -2
    assert number_of((found["SUM(x)"][0] or "").replace(".", "")) == total
    assert (found["MIN(x)"][0], found["MAX(x)"][0]) == ("-12345678901234567890123.45", "-0.10")


def test_sums_of_doubles_are_rounded_once() -> None:
    values = [0.1, 1e16, -1e16, 0.2, 1e-300]
    # A trend of all five: by one after the other, 0.1 would be lost.
    found = answered("PATTERN A ; B ; C ; D ; E", "SUM(x), AVG(x)", values, "double", names="ABCDE")
    total = sum(map(Fraction, values))
    assert found["SUM(x)"] == (repr(float(total)), float(total))
    assert found["AVG(x)"][1] == float(total / 5)
    assert float(total) == 0.30000000000000004


def test_a_sum_that_no_double_holds_has_17_digits() -> None:
    values = [1.5] * 2000
    text, near = answered(RISING, "SUM(x)", values, "double")["SUM(x)"]
    total = 3 * 2**1998 + 3 * 1998 * 2**1996
    assert near == math.inf
    assert text == f"{Decimal(total):.16E}"


def test_what_is_no_number_is_summed_as_spark_does_and_is_the_greatest() -> None:
    one, inf, nan = "PATTERN A ; B", math.inf, math.nan
    assert answered(one, "SUM(x), MAX(x)", [inf, 1.0], "double", "AB")["SUM(x)"] == ("Infinity", inf)
    assert answered(one, "SUM(x)", [-inf, 1.0], "double", "AB")["SUM(x)"] == ("-Infinity", -inf)
    assert answered(one, "AVG(x)", [-inf, inf], "double", "AB")["AVG(x)"][0] == "NaN"
    both = answered(one, "SUM(x), MIN(x), MAX(x), COUNT(x)", [nan, 1.0], "double", "AB")
    assert [both[name][0] for name in ("SUM(x)", "MIN(x)", "MAX(x)", "COUNT(x)")] == ["NaN", "1.0", "NaN", "2"]
    lone = answered(one, "SUM(x), MAX(x)", [inf, 1.0, nan], "double", "ABA")
    assert (lone["SUM(x)"][0], lone["MAX(x)"][0]) == ("Infinity", "Infinity"), "the third event is in no trend"


def test_no_trend_and_no_value_sum_to_null() -> None:
    empty = answered("PATTERN A ; B", "COUNT(*), COUNT(x), SUM(x), MIN(x), AVG(x)", [1, 2], "int", "BA")
    assert list(empty.values()) == [("0", 0.0), ("0", 0.0), (None, None), (None, None), (None, None)]
    unknown = answered("PATTERN A ; B", "COUNT(*), COUNT(x), SUM(x), MAX(x)", [None, None], "int", "AB")
    assert list(unknown.values()) == [("1", 1.0), ("0", 0.0), (None, None), (None, None)]


@given(st.integers(0, 40), st.integers(0, 2**63), st.integers(0, 2**63))
def test_products_are_those_of_whole_numbers(number: int, a: int, b: int) -> None:
    modulus = primes(41)[number]
    a, b = a % modulus, b % modulus
    assert int(product(np.uint64(a), np.uint64(b), np.uint64(modulus))) == a * b % modulus
    assert int(product(np.uint64(a), np.uint64(b), np.uint64(0))) == a * b % 2**64


WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}e-3"))


@given(st.one_of(*(st.lists(st.none() | one, min_size=1, max_size=8) for one in (WHOLE, FINITE, DECIMALS))))
def test_weights_are_the_numbers_over_one_denominator(values: list[Any]) -> None:
    kinds: dict[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), Decimal: pa.decimal128(38, 3)}
    kind = next((kinds[type(value)] for value in values if value is not None), pa.int64())
    weights = weights_of(pa.array(values, kind))
    exact = [Fraction(value or 0) * weights.denominator for value in values]
    assert all(one.denominator == 1 and abs(one) <= weights.greatest for one in exact)
    moduli = (0, *primes(3))
    remainders = weights.remainders(moduli)
    wanted = [[int(one) % (modulus or 2**64) for modulus in moduli] for one in exact]
    assert remainders.tolist() == wanted
    taken = np.arange(len(values))[::-1].copy()
    assert weights.take(taken).remainders(moduli).tolist() == wanted[::-1]


def test_flags_weigh_one() -> None:
    assert flags(np.array([True, False])).remainders((0,)).tolist() == [[1], [0]]


def test_aggregates_are_read_from_a_text() -> None:
    assert parse_aggregates(" sum(x),COUNT( * ) , Max(`dep delay`),SUM(x)") == (
        Aggregate("SUM", "x"),
        Aggregate("COUNT", None),
        Aggregate("MAX", "dep delay"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "aggregate is NULL; write COUNT(*)"),
        ("", "aggregate => '': '' is no aggregate; write COUNT(*)"),
        ("SUM(x), ", "aggregate => 'SUM(x), ': '' is no aggregate"),
        ("SUM(x) MIN(x)", "'SUM(x) MIN(x)' is no aggregate"),
        ("SUM(e.x)", "'SUM(e.x)' is no aggregate"),
        ("MEDIAN(x)", "there is no MEDIAN; write"),
        ("SUM(*)", "SUM(*) says nothing; name an attribute, SUM(x)"),
    ],
)
def test_what_is_no_aggregate_is_named(text: str | None, said: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(said)):
        parse_aggregates(text)


def test_attributes_are_of_the_stream_and_of_numbers() -> None:
    types = {"x": "double", "dest": "string"}
    check_types(parse_aggregates("SUM(x), COUNT(dest)"), types)
    with pytest.raises(ArgumentError, match=re.escape("SUM(y): the stream has no attribute 'y'; its attributes: dest")):
        check_types(parse_aggregates("SUM(y)"), types)
    with pytest.raises(ArgumentError, match=re.escape("MIN(dest): dest is a STRING; MIN is of numbers")):
        check_types(parse_aggregates("MIN(dest)"), types)
