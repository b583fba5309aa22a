"""Event vertices: the events that a query takes, each once for every term that takes it, with left and right values.

Source: Mei et al. 2021, section 4.4 (first step of Algorithm 1: each event gives the values of both sides, no event
needs another) and SPEC section 5 (a vertex is an event and a term; constant predicates filter vertices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Expression
from patternlake.udfs.language.predicate.predicates import Reference, value_of
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.query import Term, TrendQuery


@dataclass(frozen=True)
class Vertices:
    """Event vertices in the order of (position, term).

    Attributes
    ----------
    pane, key, position, time
        int64[v]: pane (`panes.Windows`), code of the partition, position, microseconds since the epoch.
    term
        int64[v]: number of the term.
    left, right
        For each of `TrendQuery.comparisons` a column of v values: the left one of vertices that the comparison's
        step leads to, the right one of vertices that it starts from; NULL elsewhere, and NULL never matches.
    along
        For each of `TrendQuery.along` a column of v values.
    carried
        For each of `TrendQuery.carried` a column of v values.

    Notes
    -----
    They are all that an answer needs of the events.
    """

    pane: IntArray
    key: IntArray
    position: IntArray
    time: IntArray
    term: IntArray
    left: tuple[Column, ...]
    right: tuple[Column, ...]
    along: tuple[Column, ...]
    carried: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.position)

    def _columns(self) -> tuple[tuple[Column, ...], ...]:
        return self.left, self.right, self.along, self.carried


def joined(parts: Sequence[Vertices]) -> Vertices:
    """The vertices of several panes or batches together, such as those of one window.

    Parameters
    ----------
    parts
        Disjoint, of one query; one at least.
    """
    plain = [
        np.concatenate([getattr(part, name) for part in parts]) for name in ("pane", "key", "position", "time", "term")
    ]
    order = np.lexsort((plain[4], plain[2]))
    pane, key, position, time, term = (array[order] for array in plain)
    left, right, along, carried = (
        tuple(_stacked(same).take(order) for same in zip(*group, strict=True))
        for group in zip(*(part._columns() for part in parts), strict=True)
    )
    return Vertices(pane, key, position, time, term, left, right, along, carried)


def vertices_of(query: TrendQuery, events: Events) -> Vertices:
    """The vertices of events.

    Parameters
    ----------
    query
        The compiled query.
    events
        Any part of the stream: each event gives its vertices on its own.

    Raises
    ------
    ArgumentError
        A column that the query reads is missing.
    """
    taken = [np.flatnonzero(_taken(term, events)) for term in query.terms]
    rows = np.concatenate(taken).astype(np.int64)
    terms = np.repeat(np.arange(len(taken), dtype=np.int64), [len(part) for part in taken])
    order = np.lexsort((terms, events.positions[rows]))
    rows, terms = rows[order], terms[order]
    left, right = [], []
    for comparison in query.comparisons:
        source, target = comparison.step
        left.append(_side(comparison.left, comparison.type, events, rows, terms == target))
        right.append(_side(comparison.right, comparison.type, events, rows, terms == source))
    positions, times = events.positions[rows], events.times[rows]
    return Vertices(
        pane=Windows.of(query).panes(positions, times),
        key=events.keys[rows],
        position=positions,
        time=times,
        term=terms,
        left=tuple(left),
        right=tuple(right),
        along=tuple(events.column(name).take(rows) for name in query.along),
        carried=tuple(events.column(name).take(rows) for name in query.carried),
    )


def _taken(term: Term, events: Events) -> BoolArray:
    """The events that a term takes: bool[n]."""
    if term.define is not None:
        found = events.truth(term.define)
    elif term.name in events.vocabulary:
        found = np.asarray(events.names == list(events.vocabulary).index(term.name))
    else:
        found = np.zeros(len(events), np.bool_)
    return found if term.filter is None else found & events.truth(term.filter)


def _side(expression: Expression, type_: str, events: Events, rows: IntArray, wanted: BoolArray) -> Column:
    """One side of a comparison for the wanted of the rows, NULL for the others."""

    def resolve(reference: Reference) -> Column:
        return events.column(reference.column).take(rows)

    column = value_of(expression, resolve)
    values = np.broadcast_to(column.values, rows.shape)
    known = np.broadcast_to(column.known, rows.shape)
    return Column(values, known & wanted, type_, column.arrow)


def _stacked(columns: Sequence[Column]) -> Column:
    values = np.concatenate([column.values for column in columns])
    arrow = None
    if all(column.arrow is not None for column in columns):
        arrow = pa.concat_arrays([column.arrow for column in columns])
    return Column(values, np.concatenate([column.known for column in columns]), columns[0].type, arrow)
