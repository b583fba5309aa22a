"""Shares of conditions from quantiles and distinct values."""

from __future__ import annotations

import pytest
from naive.kleene_kernels import compiled

from patternlake.udfs.kleene.plans.selectivity import AttributeCounts, selectivities

TYPES = {"x": "double", "s": "string"}
EVEN = tuple(step / 20 for step in range(21))
KNOWN = {
    "A": {
        "x": AttributeCounts(100, 100, 90, EVEN),
        "s": AttributeCounts(100, 50, 4, None),
    },
    "B": {
        "x": AttributeCounts(300, 150, 120, tuple(1 + step / 20 for step in range(21))),
        "s": AttributeCounts(300, 300, 10, None),
    },
}
VALUES = {"x": "double", "s": "string"}


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        ("a.x < 0.25", 0.25),
        ("b.x > 1.5", 0.25),  # half of the events of B have no value
        ("a.x < b.x", 0.5),
        ("b.x - a.x > 1", 0.25),
        ("ABS(a.x - 0.5) < 0.2", 0.4),
        ("a.s = b.s", 0.05),
        ("a.s <> b.s", 0.45),
        ("b.s = 'u'", 0.1),
    ],
)
def test_the_share_of_a_condition(condition: str, share: float) -> None:
    pattern = compiled(f"A AS a ; B AS b WHERE {condition}", TYPES)
    (found,) = selectivities(pattern, KNOWN, VALUES).values()
    assert found == pytest.approx(share, abs=0.011)


def test_neighbours_are_taken_to_be_independent() -> None:
    pattern = compiled("A+ a[] WHERE a[i].x > a[i-1].x", TYPES)
    (found,) = selectivities(pattern, KNOWN, VALUES).values()
    assert found == pytest.approx(0.5, abs=0.03)


def test_agreement_along_the_match_needs_a_value_on_both_sides() -> None:
    pattern = compiled("A AS a ; A AS b WHERE [s]", TYPES)
    assert selectivities(pattern, KNOWN, VALUES) == {"[s]": pytest.approx(0.25 / 4)}


def test_a_primitive_is_estimated_over_all_names() -> None:
    pattern = compiled("high DEFINE high AS x > 1", TYPES)
    (found,) = selectivities(pattern, KNOWN, VALUES).values()
    # 250 of 400 events have a value, 150 of these one above 1.
    assert found == pytest.approx(150 / 400, abs=0.03)


def test_nothing_is_told_of_what_is_not_known() -> None:
    pattern = compiled("A AS a ; C AS c WHERE a.x < c.x AND a.s < 'm'", TYPES)
    assert selectivities(pattern, KNOWN, VALUES) == {}
