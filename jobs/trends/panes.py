"""Panes of a trend query dealt out to tasks that read their events and vertices for themselves.

A task holds whole panes, so that it makes everything of them in one go: no row is shuffled, and none that was just
written is read again. Only where a location can be read without Spark, and where no pane is too large for a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, between
from patternlake.delta_tables.reading.table_logs import UnreadableError
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.reading.worker_reader import Location, location_of, reader_at
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.batch import (
    EDGES_SCHEMA,
    VERTICES_SCHEMA,
    edge_rows_of_panes,
    pane_rows,
    vertex_rows_of_panes,
)
from patternlake.udfs.trends.events import event_columns_read
from patternlake.udfs.trends.kinds import EVENT
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.vertex_rows import VERTEX_SCHEMA, Layout

TASK_VERTICES = 500_000
"""Vertices that one task cuts into graphs, about; a pane of one partition is never divided."""
_LARGEST = 2 * TASK_VERTICES
"""A pane of several partitions with more events than that is divided among tasks, by Spark's shuffle."""
_READ_AT_ONCE = 1 << 22
"""Events whose times the driver holds at once."""
_FORMER = tuple(field.name for field in VERTEX_SCHEMA if field.name != "key")


@dataclass(frozen=True)
class PanesRead:
    """What a task needs to read the events and the former vertices of some panes.

    Attributes
    ----------
    layout
        The query and the types of the stream's attributes.
    stream
        The conditions on the published events of the stream.
    first, last
        Positions of the new events, both included.
    former
        The conditions on the query's vertices of earlier batches; None: there are none.
    """

    layout: Layout
    stream: tuple[Condition, ...]
    first: int
    last: int
    former: tuple[Condition, ...] | None

    @property
    def windows(self) -> Windows:
        """The windows of the query."""
        return Windows.of(self.layout.query)

    def new(self, reader: StateReader, low: int, high: int, more: Iterable[str] = ()) -> dict[str, pa.Array]:
        """The new events in the panes low to high, with what vertices are made of and more columns."""
        read = tuple(dict.fromkeys((*event_columns_read(self.layout.query, self.layout.types), *more)))
        return columns_of(reader.rows("events", read, self._events(low, high, self.first)))

    def all_moments(self, reader: StateReader, low: int, high: int) -> tuple[IntArray, IntArray]:
        """Positions and times of all events in panes that count events."""
        found = reader.rows("events", ("position", "time"), self._events(low, high, 1))
        return found["position"].to_numpy(), pc.cast(found["time"], pa.int64()).to_numpy()

    def vertices(self, reader: StateReader, low: int, high: int) -> dict[str, pa.Array] | None:
        """The vertices of earlier events in the panes low to high."""
        if self.former is None:
            return None
        found = reader.rows("trend_vertices", _FORMER, (*self.former, *between("pane", low, high)))
        return columns_of(found) if found.num_rows else None

    def events_by_pane(self, reader: StateReader) -> tuple[IntArray, IntArray]:
        """The panes that hold new events, ascending, and how many each holds."""
        windows = self.windows
        if not windows.width:
            return np.zeros(1, np.int64), np.array([self.last - self.first + 1])
        parts = []
        for begin in range(self.first, self.last + 1, _READ_AT_ONCE):
            end = min(begin + _READ_AT_ONCE - 1, self.last)
            if windows.counted:
                position = np.arange(begin, end + 1)
                time = position
            else:
                rows = reader.rows("events", ("time",), (*self.stream, *between("position", begin, end)))
                time = position = pc.cast(rows["time"], pa.int64()).to_numpy()
            parts.append(np.unique(windows.panes(position, time), return_counts=True))
        return _add_up(parts)

    def vertices_by_pane(self, reader: StateReader, lowest: int) -> tuple[IntArray, IntArray]:
        """The panes from `lowest` on that hold vertices of earlier events, and how many each holds."""
        if self.former is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = reader.rows("trend_vertices", ("pane",), (*self.former, Condition("pane", ">=", lowest)))
        return np.unique(found["pane"].to_numpy(), return_counts=True)

    def _events(self, low: int, high: int, first: int) -> list[Condition]:
        windows, last = self.windows, self.last
        if windows.counted:
            first, last = max(first, low * windows.pane + 1), min(last, (high + 1) * windows.pane)
        where = [*self.stream, *between("position", first, last)]
        if windows.width and not windows.counted:
            where += between("time", low * windows.pane, (high + 1) * windows.pane - 1)
        return where


@dataclass(frozen=True)
class DealtPanes:
    """The panes of a batch, dealt out.

    Attributes
    ----------
    read
        What a task reads.
    place
        Where it is read.
    ranges
        First and last pane of each task.
    rows
        New events and earlier vertices in all of them.
    """

    read: PanesRead
    place: Location
    ranges: Sequence[tuple[int, int]]
    rows: int

    @property
    def lowest(self) -> int:
        """The first pane that holds new events."""
        return self.ranges[0][0]

    def vertices(self, db: Database) -> TaskRows | pa.Table:
        """Rows of `trend_vertices`: new event vertices, and of the panes their attribute vertices and bounds.

        Of few rows what is made of them, else what makes it.
        """
        read = self.read

        def rows(reader: StateReader, low: int, high: int) -> Iterator[pa.RecordBatch]:
            former = read.vertices(reader, low, high)
            yield from vertex_rows_of_panes(read.layout, read.new(reader, low, high, ("key",)), former)
            if read.windows.counted:
                yield from pane_rows(read.windows, *read.all_moments(reader, low, high))

        return self._make(db, rows, VERTICES_SCHEMA)

    def edges(self, db: Database) -> TaskRows | pa.Table:
        """Rows of `trend_edges`, as `vertices` gives those of vertices."""
        read = self.read

        def rows(reader: StateReader, low: int, high: int) -> Iterator[pa.RecordBatch]:
            yield from edge_rows_of_panes(read.layout, read.new(reader, low, high), read.vertices(reader, low, high))

        return self._make(db, rows, EDGES_SCHEMA)

    def _make(
        self, db: Database, rows: Callable[[StateReader, int, int], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> TaskRows | pa.Table:
        ranges, place = list(self.ranges), self.place
        if db.direct is not None and few.few_events(db, self.rows):
            return few.table_of(rows(db.direct, ranges[0][0], ranges[-1][1]), schema)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from rows(reader_at(place), *ranges[number])

        numbers = db.spark.range(0, len(ranges), 1, len(ranges))
        return TaskRows(numbers, task, schema)


def deal_panes(
    db: Database, batch: Batch, stream: Publication, last: Publication | None, layout: Layout
) -> DealtPanes | None:
    """Deal out the panes of a batch; None where only Spark can read or divide them, or there are none.

    Parameters
    ----------
    db
        The open database.
    batch
        The batch of the job `trends`.
    stream
        The publication of the stream that it reads.
    last
        The publication that it goes on from; None: it starts anew.
    layout
        The query and the types of the stream's attributes.
    """
    if db.direct is None or batch.source_from == batch.source_to:
        return None
    read = PanesRead(
        layout,
        tuple(published_rows(TABLES["events"], stream)),
        batch.source_from + 1,
        batch.source_to,
        None if last is None else _former(last),
    )
    try:
        return _deal_out(read, db.direct, db.spark.sparkContext.defaultParallelism)
    except UnreadableError:
        return None


def _deal_out(read: PanesRead, reader: DirectReader, parallelism: int) -> DealtPanes | None:
    panes, events = read.events_by_pane(reader)
    panes, rows = _add_up([(panes, events), read.vertices_by_pane(reader, int(panes[0]))])
    if read.layout.query.partition and rows.max() > _LARGEST:
        return None
    tasks = max(parallelism, -(-int(rows.sum()) // TASK_VERTICES))
    before = np.cumsum(rows) - rows
    ends = np.searchsorted(before, [high for _, high in equal_shares(int(rows.sum()), tasks)])
    begins = np.concatenate([[0], ends[:-1]])
    ranges = [(int(panes[begin]), int(panes[end - 1])) for begin, end in zip(begins, ends, strict=True) if begin < end]
    return DealtPanes(read, location_of(*reader.place), ranges, int(rows.sum()))


def _former(last: Publication) -> tuple[Condition, ...]:
    return (*published_rows(TABLES["trend_vertices"], last), Condition("kind", "=", EVENT))


def _add_up(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Counts by pane as one, panes ascending."""
    panes, place = np.unique(np.concatenate([pane for pane, _ in parts]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([count for _, count in parts]), len(panes))
    return panes, counts.astype(np.int64)
