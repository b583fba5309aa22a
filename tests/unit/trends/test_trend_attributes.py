"""Attribute vertices and their edges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from drawn import RANDOMS
from hypothesis import given, settings
from naive import trends as naive
from naive.trend_cases import COMPARE, compiled, events_of, known, random_events

from patternlake.udfs.trends.kernels.attributes import AttributeGraph, attribute_graph
from patternlake.udfs.trends.kernels.vertices import Vertices, vertices_of


def graph(predicate: str, events: list[naive.Event]) -> tuple[Vertices, AttributeGraph]:
    question = compiled(f"E+ e[] WHERE {predicate}")
    vertices = vertices_of(question, events_of(events, partitioned=False))
    found = attribute_graph(question, 0, vertices, np.zeros(len(vertices), np.int64))
    assert found is not None
    return vertices, found


def ranges(found: AttributeGraph) -> list[str]:
    """The ranges as a mathematician writes them."""

    def end(values: Any, at: int) -> str:
        return f"{values.values[at]:g}" if values.known[at] else "∞"

    return [
        ("[" if found.holds_low[at] else "(")
        + f"{end(found.low, at)}, {end(found.high, at)}"
        + ("]" if found.holds_high[at] else ")")
        for at in range(len(found.number))
    ]


def events(*values: float) -> list[naive.Event]:
    return [naive.Event(at + 1, at * 1000, "E", None, {"x": value, "y": value}) for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("sign", "wanted"),
    [
        (">", ["(∞, 2]", "(2, 6]", "(6, ∞)"]),
        ("<=", ["(∞, 2]", "(2, 6]", "(6, ∞)"]),
        (">=", ["(∞, 2)", "[2, 6)", "[6, ∞)"]),
        ("<", ["(∞, 2)", "[2, 6)", "[6, ∞)"]),
        ("<>", ["(∞, 2)", "[2, 2]", "(2, 6)", "[6, 6]", "(6, ∞)"]),
        ("=", ["[1, 1]", "[2, 2]", "[3, 3]", "[6, 6]"]),
    ],
)
def test_right_values_cut_just_before_or_just_after_themselves(sign: str, wanted: list[str]) -> None:
    _, found = graph(f"e[i].x {sign} 2 * e[i-1].y", events(1, 3))
    assert ranges(found) == wanted


def test_the_papers_figure_3() -> None:
    vertices, found = graph("e[i].x > e[i-1].x * 2", events(32, 7))
    assert ranges(found) == ["(∞, 14]", "(14, 64]", "(64, ∞)"]
    assert dict(zip(vertices.position[found.from_vertex].tolist(), found.from_number.tolist(), strict=True)) == {
        1: 1,
        2: 0,
    }
    runs = zip(
        vertices.position[found.to_vertex].tolist(), found.to_first.tolist(), found.to_last.tolist(), strict=True
    )
    assert list(runs) == [(1, 2, 2), (2, 1, 2)]


def test_a_step_without_a_comparison_has_no_attribute_vertices() -> None:
    question = compiled("A ; B")
    vertices = vertices_of(question, events_of(events(1), partitioned=False))
    assert attribute_graph(question, 0, vertices, np.zeros(len(vertices), np.int64)) is None


@settings(max_examples=150)
@given(RANDOMS)
def test_an_edge_to_a_range_and_one_from_it_say_that_the_comparison_holds(rng: random.Random) -> None:
    sign = rng.choice(list(COMPARE))
    on_text = rng.random() < 0.3
    left, right = ("s", "u") if on_text else ("x", "y")
    stream = random_events(rng, rng.randint(0, 9), names="E")
    question = compiled(f"E+ e[] WHERE e[i].{left} {sign} e[i-1].{right}")
    vertices = vertices_of(question, events_of(stream, partitioned=False))
    group = np.array([rng.randint(0, 1) for _ in range(len(vertices))], np.int64)
    found = attribute_graph(question, 0, vertices, group)
    assert found is not None
    numbers = list(zip(found.group.tolist(), found.number.tolist(), strict=True))
    assert numbers == sorted(set(numbers))
    pairs = set()
    for u, g, first, last in zip(found.to_vertex, found.to_group, found.to_first, found.to_last, strict=True):
        assert g == group[u]
        for v, h, number in zip(found.from_vertex, found.from_group, found.from_number, strict=True):
            assert (h, number) in numbers
            if g == h and first <= number <= last:
                pairs.add((int(u), int(v)))
    wanted = {
        (u, v)
        for u, earlier in enumerate(stream)
        for v, later in enumerate(stream)
        if group[u] == group[v] and known(COMPARE[sign], later.values[left], earlier.values[right])
    }
    assert pairs == wanted
    per_event = np.bincount(found.to_vertex, minlength=1)
    assert per_event.max(initial=0) <= 2
