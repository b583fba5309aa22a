"""A task's rows: panes that are dealt out, or come in several batches, give the graph of all vertices at once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive.trend_cases import ATTRIBUTES, compiled, random_events, random_query, vertices
from unit.trends.test_trend_vertex_rows import columns, table_rows

from patternlake.udfs.trends.batch import edge_rows_of_panes, pane_rows, vertex_rows_of_panes
from patternlake.udfs.trends.events import event_columns_read
from patternlake.udfs.trends.graph_rows import graph_batches
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.vertex_rows import Layout, vertex_rows, vertices_from


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def numbered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the graph as tables hold them: an attribute vertex has a number."""
    return [
        {("number" if name == "first" and row["kind"] == "attribute" else name): value for name, value in row.items()}
        for row in rows
    ]


def told(rows: Iterable[dict[str, Any]], *kinds: str) -> list[str]:
    """Rows of some kinds without what they lack, in an order of their own."""
    rows = [row for row in rows if row["kind"] in kinds]
    return sorted(str(sorted((name, value) for name, value in row.items() if value is not None)) for row in rows)


@pytest.mark.parametrize("seed", range(150))
def test_dealt_panes_give_the_rows_of_all_vertices_at_once(seed: int) -> None:
    rng = random.Random(seed)
    query, events = random_query(rng), random_events(rng, rng.randint(1, 16))
    question, _ = vertices(query, events)
    layout = Layout(question, ATTRIBUTES)
    windows = Windows.of(question)
    cut = rng.randint(0, len(events))
    # What comes later may have earlier times, but has later positions.
    events = sorted(events, key=lambda event: event.position)
    before, after = events[:cut], events[cut:]
    pane = {
        event.position: int(windows.panes(np.array([event.position]), np.array([event.time]))[0]) for event in events
    }
    border = rng.choice(sorted(pane.values()))
    found_vertices: list[pa.RecordBatch] = []
    found_edges: list[pa.RecordBatch] = []
    for mine in (lambda number: number <= border, lambda number: number > border):
        old = [event for event in before if mine(pane[event.position])]
        new = [event for event in after if mine(pane[event.position])]
        former = columns([vertex_rows(layout, table_rows(old))]) if old else None
        given = {
            name: column for name, column in table_rows(new).items() if name in event_columns_read(question, ATTRIBUTES)
        }
        found_edges += edge_rows_of_panes(layout, given, former)
        found_vertices += vertex_rows_of_panes(layout, {**given, "key": table_rows(new)["key"]}, former)
    whole = columns([vertex_rows(layout, table_rows(events))])
    graph = numbered(rows_of(graph_batches(layout, *vertices_from(layout, whole))))
    assert told(rows_of(found_edges), "from", "to") == told(graph, "from", "to")
    rows = rows_of(found_vertices)
    assert told(rows, "attribute") == told(graph, "attribute")
    new_rows = [{"kind": "event", **row} for row in rows_of([vertex_rows(layout, table_rows(after))])]
    assert told(rows, "event") == told(new_rows, "event")
    assert {row["kind"] for row in rows} <= {"event", "attribute"}


def test_a_pane_of_events_is_told_by_its_first_and_last_and_greatest_time() -> None:
    windows = Windows(4, 2, True)
    position = np.array([5, 3, 4, 6, 7])
    time = np.array([50, 30, 90, 10, 70])
    rows = rows_of(pane_rows(windows, position, time))
    moments = [tuple(row[name].microsecond for name in ("time", "last_time", "greatest_time")) for row in rows]
    assert [(row["pane"], row["position"], *those) for row, those in zip(rows, moments, strict=True)] == [
        (1, 3, 30, 90, 90),
        (2, 5, 50, 10, 50),
        (3, 7, 70, 70, 70),
    ]
    assert [(row["kind"], row["part"], row["term"]) for row in rows] == [("pane", [], None)] * 3


def test_no_event_is_no_pane() -> None:
    assert list(pane_rows(Windows(4, 2, True), np.zeros(0, np.int64), np.zeros(0, np.int64))) == []


def test_columns_that_a_question_does_not_read_are_not_asked_for() -> None:
    assert event_columns_read(compiled("E+"), ATTRIBUTES) == ["position", "time", "name"]
    some = "E+ e[] WHERE e[i].x > e[i-1].x PARTITION BY key"
    assert event_columns_read(compiled(some), ATTRIBUTES) == ["position", "time", "name", "key", "x:double"]
