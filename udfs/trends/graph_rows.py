"""Attribute vertices and edges of many panes and partitions as rows of `trend_vertices` and `trend_edges`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.record_batches import filled
from patternlake.udfs.sort_keys import paired
from patternlake.udfs.trends.events import as_texts
from patternlake.udfs.trends.kernels.attributes import AttributeGraph, attribute_graph
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.kinds import ATTRIBUTE, FROM, TO
from patternlake.udfs.trends.vertex_rows import Layout

GRAPH_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("pane", pa.int64()),
        ("part", pa.list_(pa.string())),
        ("step", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("position", pa.int64()),
        ("term", pa.int32()),
        ("low", pa.string()),
        ("high", pa.string()),
        ("holds_low", pa.bool_()),
        ("holds_high", pa.bool_()),
    ]
)
"""Rows of all three kinds; ``first`` is the number of an attribute vertex, or of the first of a run up to ``last``."""


def graph_batches(
    layout: Layout, vertices: Vertices, parts: pa.ListArray, kinds: Collection[str] = (ATTRIBUTE, FROM, TO)
) -> list[pa.RecordBatch]:
    """Attribute vertices and edges of event vertices.

    Parameters
    ----------
    layout
        The query and the types of the stream's attributes.
    vertices, parts
        All event vertices of whole panes and partitions, and the values of their partitions, as `vertices_from` gives
        them.
    kinds
        Of rows.

    Returns
    -------
    Batches in `GRAPH_SCHEMA`, one for each step that has a comparison, and each kind.
    """
    if not len(vertices):
        return []
    empty = np.zeros(0, np.int64)
    group, _ = paired((vertices.key, vertices.pane), (empty, empty))
    _, first = np.unique(group, return_index=True)
    pane = vertices.pane[first]
    part = parts.take(pa.array(vertices.key[first]))
    made = []
    for step in range(len(layout.query.steps)):
        edges = FROM in kinds or TO in kinds
        graph = attribute_graph(layout.query, step, vertices, group, ranges=ATTRIBUTE in kinds, edges=edges)
        if graph is None:
            continue
        for kind, groups, columns in _kinds(graph, vertices.position, vertices.term):
            if kind not in kinds:
                continue
            taken = pa.array(groups)
            columns |= {
                "kind": pa.array([kind], pa.string()).take(pa.array(np.zeros(len(groups), np.int64))),
                "pane": pa.array(pane).take(taken),
                "part": part.take(taken),
                "step": pa.array(np.full(len(groups), step, np.int32)),
            }
            made.append(pa.RecordBatch.from_arrays(filled(columns, GRAPH_SCHEMA, len(groups)), schema=GRAPH_SCHEMA))
    return made


def _kinds(
    graph: AttributeGraph, position: IntArray, term: IntArray
) -> list[tuple[str, IntArray, dict[str, pa.Array]]]:
    """For each kind of row the group of each, and its own columns."""

    def events(rows: IntArray) -> dict[str, pa.Array]:
        return {"position": pa.array(position[rows]), "term": pa.array(term[rows].astype(np.int32))}

    ranges = {
        "first": pa.array(graph.number),
        "low": as_texts(graph.low),
        "high": as_texts(graph.high),
        "holds_low": pa.array(graph.holds_low),
        "holds_high": pa.array(graph.holds_high),
    }
    leading_in = {"first": pa.array(graph.from_number), "last": pa.array(graph.from_number)}
    runs = graph.to_first <= graph.to_last
    leading_out = {"first": pa.array(graph.to_first[runs]), "last": pa.array(graph.to_last[runs])}
    return [
        (ATTRIBUTE, graph.group, ranges),
        (FROM, graph.from_group, leading_in | events(graph.from_vertex)),
        (TO, graph.to_group[runs], leading_out | events(graph.to_vertex[runs])),
    ]
