"""Event vertices as rows of the table `trend_vertices`, and back: values as text, one list for each side.

Every row stands on its own, so rows of any batches together are the vertices of their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.attributes import values_of, write_texts
from patternlake.udfs.events import integers, micros
from patternlake.udfs.language.predicate.columns import Column, text_column, typed_column
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope, column_type
from patternlake.udfs.partitions import columns_of_lists, distinct_partitions, lists_of
from patternlake.udfs.record_batches import in_order
from patternlake.udfs.trends.events import as_texts, events_of
from patternlake.udfs.trends.kernels.vertices import Vertices, joined, vertices_of
from patternlake.udfs.trends.query import TrendQuery

SIDES = ("left", "right", "along", "carried")
"""The columns of a vertex's values, one list each."""
_TEXTS = pa.list_(pa.string())
VERTEX_SCHEMA = pa.schema(
    [
        ("pane", pa.int64()),
        ("part", _TEXTS),
        ("key", pa.string()),
        ("position", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("term", pa.int32()),
        *((side, _TEXTS) for side in SIDES),
    ]
)
"""No list is NULL: Spark hands lists to Python six times as fast then."""
VALUES = "values"
VALUED_SCHEMA = VERTEX_SCHEMA.append(pa.field(VALUES, _TEXTS))
"""Vertices with texts of attributes that the query itself need not read."""


@dataclass(frozen=True)
class Layout:
    """Which column stands at which place of the lists.

    Attributes
    ----------
    query
        The compiled query.
    types
        Attribute to Spark type.
    """

    query: TrendQuery
    types: Mapping[str, str]

    def value_types(self, side: str) -> list[str]:
        """Value types of the columns of ``left``, ``right``, ``along`` or ``carried``."""
        if side in ("left", "right"):
            return [comparison.type for comparison in self.query.comparisons]
        names = self.query.along if side == "along" else self.query.carried
        scope = Scope(attributes=self.types)
        return [column_type(name, scope) or "string" for name in names]


def vertex_rows(
    layout: Layout, rows: Mapping[str, pa.Array], attributes: Sequence[str] | None = None
) -> pa.RecordBatch:
    """The vertices of some events.

    Parameters
    ----------
    layout
        The query and the types of the stream's attributes.
    rows
        As `vertices_of_rows` takes them, with ``key``.
    attributes
        Whose texts each vertex has of its event, columns that every event has among them; the columns of `rows` hold
        them.

    Returns
    -------
    A batch in `VERTEX_SCHEMA`, or with attributes in `VALUED_SCHEMA`, in the order of (position, term).
    """
    vertices, parts, event = vertices_of_rows(layout, rows)
    taken = pa.array(event)
    batch = rows_of_vertices(vertices, parts, rows["key"].take(taken))
    if attributes is None:
        return batch

    def texts_of(name: str) -> pa.Array:
        if name in BUILT_IN:
            return rows[name].take(taken).cast(pa.string())
        values = values_of(rows, name)
        return pa.nulls(len(taken), pa.string()) if values is None else write_texts(values.take(taken))

    texts = [texts_of(name) for name in attributes]
    return pa.RecordBatch.from_arrays([*batch.columns, lists_of(texts, len(vertices))], schema=VALUED_SCHEMA)


def vertices_of_rows(layout: Layout, rows: Mapping[str, pa.Array]) -> tuple[Vertices, pa.ListArray, IntArray]:
    """The vertices of some events.

    Parameters
    ----------
    layout
        The query and the types of the stream's attributes.
    rows
        As `events.events_of` takes them.

    Returns
    -------
    Vertices
        In the order of (position, term); their keys are places in the list that follows.
    pyarrow.ListArray
        The values of each partition as texts, in order, NULL first.
    int64[v]
        The row of each vertex's event.
    """
    events, parts = events_of(layout.query, layout.types, rows)
    vertices = vertices_of(layout.query, events)
    # Of a table in the place of a stream, positions are unique in their partition alone.
    width = int(events.positions.max(initial=0)) + 1
    places = events.keys * width + events.positions
    order = np.argsort(places, kind="stable")
    return vertices, parts, order[np.searchsorted(places[order], vertices.key * width + vertices.position)]


def rows_of_vertices(vertices: Vertices, parts: pa.ListArray, key: pa.Array) -> pa.RecordBatch:
    """Vertices in `VERTEX_SCHEMA`, given the keys of their events in the stream."""
    sides = {
        "left": vertices.left,
        "right": vertices.right,
        "along": vertices.along,
        "carried": vertices.carried,
    }
    arrays = {
        "pane": pa.array(vertices.pane),
        "part": parts.take(pa.array(vertices.key)),
        "key": key,
        "position": pa.array(vertices.position),
        "time": pa.array(vertices.time).cast(pa.timestamp("us", "UTC")),
        "term": pa.array(vertices.term.astype(np.int32)),
        **{name: lists_of([as_texts(column) for column in side], len(vertices)) for name, side in sides.items()},
    }
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in VERTEX_SCHEMA], schema=VERTEX_SCHEMA)


def together(*some: tuple[Vertices, pa.ListArray]) -> tuple[Vertices, pa.ListArray]:
    """Vertices of different events with their partitions, as one."""
    keys, parts = distinct_partitions(pa.concat_arrays([those for _, those in some]))
    ends = np.cumsum([len(those) for _, those in some])[:-1]
    of_each = zip(some, np.split(keys, ends), strict=True)
    return joined([replace(vertices, key=mine[vertices.key]) for (vertices, _), mine in of_each]), parts


def vertices_from(layout: Layout, rows: Mapping[str, pa.Array]) -> tuple[Vertices, pa.ListArray]:
    """The vertices of rows.

    Parameters
    ----------
    layout
        As they were written with.
    rows
        Columns of `VERTEX_SCHEMA` but for ``key``, v values each, in any order; of `SIDES` those that hold something.

    Returns
    -------
    Vertices
        In the order of (position, term); their keys are places in the list that follows.
    pyarrow.ListArray
        The values of each partition as texts, in order, NULL first.
    """
    rows, _ = in_order(rows, "position", "term")
    codes, parts = distinct_partitions(rows["part"])
    left, right, along, carried = (
        tuple(_values(*each) for each in zip(columns_of_lists(rows[side], len(kinds)), kinds, strict=True))
        if kinds
        else ()
        for side in SIDES
        for kinds in (layout.value_types(side),)
    )
    pane, position, term = (integers(rows[name]) for name in ("pane", "position", "term"))
    return Vertices(pane, codes, position, micros(rows["time"]), term, left, right, along, carried), parts


def _values(texts: pa.Array, type_: str) -> Column:
    known = np.asarray(pc.is_valid(texts).to_numpy(zero_copy_only=False), np.bool_)
    if type_ == "string":
        return text_column(texts, known)
    if type_ in ("timestamp", "date"):
        return replace(typed_column(texts, "timestamp"), type=type_)
    kinds = {"double": pa.float64(), "boolean": pa.bool_(), "null": pa.bool_()}
    read = pc.cast(texts, kinds.get(type_, pa.int64()))
    filled = pc.fill_null(read, pa.scalar(False if pa.types.is_boolean(read.type) else 0, read.type))
    return Column(filled.to_numpy(zero_copy_only=False), known, type_)
