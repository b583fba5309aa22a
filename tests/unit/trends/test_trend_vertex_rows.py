"""Vertices as table rows: nothing of them is lost, whatever batches the events came in."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive import trends as naive
from naive.trend_cases import ATTRIBUTES, compiled, keys_of, random_events, random_query, vertices

from patternlake.udfs.attributes import column_of
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.partitions import partition_texts
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.query import compile_query
from patternlake.udfs.trends.vertex_rows import VERTEX_SCHEMA, Layout, vertex_rows, vertices_from, vertices_of_rows


def table_rows(events: Sequence[naive.Event], types: Mapping[str, str] = ATTRIBUTES) -> dict[str, pa.Array]:
    """The events as columns of `events`."""

    def text(value: Any) -> str | None:
        return None if value is None else str(value)

    written = {
        "position": pa.array([event.position for event in events], pa.int64()),
        "time": pa.array([event.time for event in events], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "step": pa.nulls(len(events), pa.int64()),
        "key": pa.array([event.key for event in events], pa.string()),
        "name": pa.array([event.name for event in events], pa.string()),
        "probability": pa.nulls(len(events), pa.float64()),
        "attributes": pa.array(
            [[(name, text(event.values.get(name))) for name in ATTRIBUTES] for event in events],
            pa.map_(pa.string(), pa.string()),
        ),
    }
    return columns_of(read_attributes(pa.table(written), types))


def columns(batches: Sequence[pa.RecordBatch]) -> dict[str, pa.Array]:
    table = pa.Table.from_batches(batches, VERTEX_SCHEMA)
    return {name: table[name].combine_chunks() for name in table.column_names}


def answers(trends: Trends, keys: Sequence[Any]) -> list[Any]:
    """Number, length and longest by partition and window."""
    counted = trends.counts()
    cells = zip(trends.cells.key.tolist(), trends.cells.window.tolist(), strict=True)
    return [
        (keys[key], window, *rest)
        for (key, window), *rest in zip(
            cells, counted.trends, counted.total_length, counted.longest.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("seed", range(150))
def test_rows_of_any_batches_answer_as_the_vertices_do(seed: int) -> None:
    rng = random.Random(seed)
    query, events = random_query(rng), random_events(rng, rng.randint(0, 14))
    question, direct = vertices(query, events)
    layout = Layout(question, ATTRIBUTES)
    shuffled = rng.sample(events, len(events))
    cut = rng.randint(0, len(shuffled))
    written = [vertex_rows(layout, table_rows(part)) for part in (shuffled[:cut], shuffled[cut:])]
    found, parts = vertices_from(layout, columns(rng.sample(written, 2)))
    assert np.array_equal(found.position, direct.position)
    assert np.array_equal(found.term, direct.term)
    for one, other in zip((*found.left, *found.right), (*direct.left, *direct.right), strict=True):
        assert np.array_equal(one.known, np.broadcast_to(other.known, one.known.shape))
        assert np.array_equal(one.values[one.known], np.broadcast_to(other.values, one.values.shape)[one.known])
    keys = keys_of(events) if query.partitioned else [None]
    texts = partition_texts(parts).to_pylist()
    assert answers(Trends(question, found), texts) == answers(Trends(question, direct), keys)


def test_a_row_shows_both_sides_and_the_partition_as_text() -> None:
    question = compiled("PATTERN E+ e[] WHERE e[i].x > e[i-1].n * 2 AND [s] PARTITION BY carrier, u WITHIN 5 SEC")
    events = [
        naive.Event(1, 4_000_000, "E", "k", {"x": 2.5, "n": 3, "s": "a", "u": None}),
        naive.Event(2, 6_500_000, "E", None, {"x": None, "n": 1, "s": None, "u": "b"}),
        naive.Event(3, 7_000_000, "F", "k", {"x": 9.0, "n": 1, "s": "a", "u": "b"}),
    ]
    rows = vertex_rows(Layout(question, ATTRIBUTES), table_rows(events)).to_pylist()
    assert [(row["position"], row["pane"], row["part"], row["key"]) for row in rows] == [
        (1, 0, ["k", None], "k"),
        (2, 1, [None, "b"], None),
    ]
    assert [(row["left"], row["right"], row["along"], row["carried"]) for row in rows] == [
        (["2.5"], ["6"], ["a"], []),
        ([None], ["2"], [None], []),
    ]


@pytest.mark.parametrize(
    ("part", "text"),
    [((), None), (("a",), "a"), ((None,), None), (("a", "b"), "a,b"), (("a", None), "a,NULL")],
)
def test_an_answer_shows_its_partition(part: tuple[str | None, ...], text: str | None) -> None:
    assert partition_texts(pa.array([part], pa.list_(pa.string()))).to_pylist() == [text]


def test_values_of_every_type_come_back() -> None:
    question = compiled("PATTERN E+ e[] WHERE e[i].x > e[i-1].x AND e[i].n <> e[i-1].n AND e[i].s >= e[i-1].s AND [u]")
    odd = [float("nan"), float("inf"), -float("inf"), -0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308]
    events = [
        naive.Event(at + 1, at, "E", None, {"x": x, "n": 2**62 + at, "s": f'it\'s, "{at}" ☃', "u": ""})
        for at, x in enumerate(odd)
    ]
    layout = Layout(question, ATTRIBUTES)
    found, _ = vertices_from(layout, columns([vertex_rows(layout, table_rows(events))]))
    assert np.array_equal(found.left[0].values, np.array(odd), equal_nan=True)
    assert found.left[1].values.tolist() == [2**62 + at for at in range(len(odd))]
    assert found.left[2].values.tolist() == [event.values["s"] for event in events]
    assert found.along[0].values.tolist() == [""] * len(odd)


@pytest.mark.parametrize("type_", ["date", "timestamp"])
@pytest.mark.parametrize("years", ["", " + 40000 DAYS", " - 800000 DAYS", " + 20000000 DAYS"])
def test_moments_of_any_year_come_back(type_: str, years: str) -> None:
    types = {"x": type_, "y": type_}
    text = f"PATTERN E+ e[] WHERE e[i].x <= e[i-1].y{years}"
    question = compile_query(parse(text), Scope(attributes=types))
    rows = {
        "position": pa.array([1, 2, 3], pa.int64()),
        "time": pa.array([1, 2, 3], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "key": pa.nulls(3, pa.string()),
        "name": pa.array(["E"] * 3),
    }
    moments = pa.array([date(9999, 12, 31), None, date(2024, 2, 29)], pa.date32())
    if type_ == "timestamp":
        moments = moments.cast(pa.timestamp("us", "UTC"))
    rows |= {column_of(name, type_): moments for name in types}
    layout = Layout(question, types)
    direct, _, _ = vertices_of_rows(layout, rows)
    found, _ = vertices_from(layout, columns([vertex_rows(layout, rows)]))
    for one, other in zip((*found.left, *found.right), (*direct.left, *direct.right), strict=True):
        assert one.type == other.type
        assert one.known.tolist() == other.known.tolist() == [True, False, True]
        assert one.values[one.known].tolist() == other.values[other.known].tolist()
