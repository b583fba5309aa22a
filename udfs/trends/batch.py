"""What a task that holds the events of whole panes writes of them: rows of `trend_vertices` and of `trend_edges`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.record_batches import BATCH_ROWS, filled
from patternlake.udfs.trends.graph_rows import GRAPH_SCHEMA, graph_batches
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.kinds import ATTRIBUTE, EVENT, FROM, PANE, TO
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.vertex_rows import (
    VERTEX_SCHEMA,
    Layout,
    rows_of_vertices,
    together,
    vertices_from,
    vertices_of_rows,
)

_MOMENT = pa.timestamp("us", "UTC")
_RANGE = ("low", "high", "holds_low", "holds_high")
"""What an attribute vertex has of its own."""
VERTICES_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        *VERTEX_SCHEMA,
        ("last_time", _MOMENT),
        ("greatest_time", _MOMENT),
        ("step", pa.int32()),
        ("number", pa.int64()),
        *(GRAPH_SCHEMA.field(name) for name in _RANGE),
    ]
)
"""Rows of `trend_vertices` of all kinds; what a kind does not have is NULL."""
EDGES_SCHEMA = pa.schema([field for field in GRAPH_SCHEMA if field.name not in _RANGE])
"""Rows of `trend_edges`."""
_OF_ATTRIBUTES = ("pane", "part", "step", "first", *_RANGE)

Columns = Mapping[str, pa.Array]


def vertex_rows_of_panes(layout: Layout, new: Columns, former: Columns | None) -> Iterator[pa.RecordBatch]:
    """New event vertices of some panes, and all attribute vertices of these panes.

    Parameters
    ----------
    layout
        The query and the types of the stream's attributes.
    new
        Columns of the new events in the panes, ``key`` among them, as `vertices_of_rows` takes them.
    former
        Columns of `VERTEX_SCHEMA` but for ``key``: the panes' vertices of earlier events; None: there are none.

    Yields
    ------
    Batches in `VERTICES_SCHEMA`.
    """
    vertices, parts, event = vertices_of_rows(layout, new)
    yield from _batches(rows_of_vertices(vertices, parts, new["key"].take(pa.array(event))), EVENT, VERTICES_SCHEMA)
    whole, their_parts = _with_former(layout, vertices, parts, former)
    for batch in graph_batches(layout, whole, their_parts, (ATTRIBUTE,)):
        numbered = {"number" if name == "first" else name: batch[name] for name in _OF_ATTRIBUTES}
        yield from _batches(pa.RecordBatch.from_pydict(numbered), ATTRIBUTE, VERTICES_SCHEMA)


def edge_rows_of_panes(layout: Layout, new: Columns, former: Columns | None) -> Iterator[pa.RecordBatch]:
    """All edges of some panes, in `EDGES_SCHEMA`; parameters as of `vertex_rows_of_panes`, without ``key``."""
    vertices, parts, _ = vertices_of_rows(layout, new)
    whole, their_parts = _with_former(layout, vertices, parts, former)
    for batch in graph_batches(layout, whole, their_parts, (FROM, TO)):
        yield from _batches(batch, None, EDGES_SCHEMA)


def pane_rows(windows: Windows, position: IntArray, time: IntArray) -> Iterator[pa.RecordBatch]:
    """First and last event of panes that count events; of all events, taken by the query or not.

    Parameters
    ----------
    windows
        Of the query.
    position, time
        int64[n]: all events of the panes, in any order; times in microseconds since the epoch.

    Yields
    ------
    Batches in `VERTICES_SCHEMA`.
    """
    if not len(position):
        return
    order = np.argsort(position, kind="stable")
    position, time = position[order], time[order]
    pane = windows.panes(position, time)
    first = np.flatnonzero(np.diff(pane, prepend=pane[:1] - 1))
    last = np.append(first[1:], len(pane)) - 1
    greatest = np.maximum.reduceat(time, first)
    columns = {
        "pane": pa.array(pane[first]),
        "part": pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(len(first), np.int64))),
        "position": pa.array(position[first]),
        "time": pa.array(time[first]).cast(_MOMENT),
        "last_time": pa.array(time[last]).cast(_MOMENT),
        "greatest_time": pa.array(greatest).cast(_MOMENT),
    }
    yield from _batches(pa.RecordBatch.from_pydict(columns), PANE, VERTICES_SCHEMA)


def _with_former(
    layout: Layout, vertices: Vertices, parts: pa.ListArray, former: Columns | None
) -> tuple[Vertices, pa.ListArray]:
    if former is None:
        return vertices, parts
    return together((vertices, parts), vertices_from(layout, former))


def _batches(rows: pa.RecordBatch, kind: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in a schema, some at a time; what they lack is NULL."""
    if not rows.num_rows:
        return
    given = {name: rows[name] for name in rows.schema.names}
    if kind is not None:
        given["kind"] = pa.repeat(pa.scalar(kind), rows.num_rows)
    whole = pa.RecordBatch.from_arrays(filled(given, schema, rows.num_rows), schema=schema)
    for begin in range(0, rows.num_rows, BATCH_ROWS):
        yield whole.slice(begin, BATCH_ROWS)
