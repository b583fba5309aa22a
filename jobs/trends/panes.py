"""Panes of a trend query dealt out to tasks.

A task holds whole panes, or whole partitions of one that is too large, so that it makes everything of them in one go.
It reads their events and vertices for itself; only where Spark alone can read a location, or a pane is divided, are
they brought to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.gather import Gather, deal
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, between
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.reading.worker_reader import Location, location_of, reader_at
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.partitions import PART, portions_by_partition
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
"""Panes of several partitions with more events than that are divided among tasks."""
_MANY = 1 << 30
"""Portions of partitions that are dealt out once more: the more, the more alike."""
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

    def for_vertices(self, low: int, high: int) -> list[Gather]:
        """What the vertices of the panes low to high are made of, and the bounds of panes that count events."""
        sources = self._gather(low, high, ("key",))
        if self.windows.counted:
            sources.append(Gather("events", ("position", "time"), self._events(low, high, 1)))
        return sources

    def for_edges(self, low: int, high: int) -> list[Gather]:
        """What the edges of the panes low to high are made of."""
        return self._gather(low, high)

    def new(self, found: Sequence[pa.Table]) -> Mapping[str, pa.Array]:
        """The new events in what was gathered."""
        return columns_of(found[0])

    def earlier(self, found: Sequence[pa.Table]) -> Mapping[str, pa.Array] | None:
        """The vertices of earlier events in what was gathered; None: there are none."""
        return None if self.former is None or not found[1].num_rows else columns_of(found[1])

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

    def _gather(self, low: int, high: int, more: Iterable[str] = ()) -> list[Gather]:
        """New events, with what vertices are made of and more columns; and vertices of earlier ones."""
        columns = tuple(dict.fromkeys((*event_columns_read(self.layout.query, self.layout.types), *more)))
        new = Gather("events", columns, self._events(low, high, self.first))
        if self.former is None:
            return [new]
        return [new, Gather("trend_vertices", _FORMER, (*self.former, *between("pane", low, high)))]

    def _events(self, low: int, high: int, first: int) -> tuple[Condition, ...]:
        windows, last = self.windows, self.last
        if windows.counted:
            first, last = max(first, low * windows.pane + 1), min(last, (high + 1) * windows.pane)
        where = [*self.stream, *between("position", first, last)]
        if windows.width and not windows.counted:
            where += between("time", low * windows.pane, (high + 1) * windows.pane - 1)
        return tuple(where)


@dataclass(frozen=True)
class ByPane:
    """Deals rows out by their pane, and those of panes that several portions divide by their partition.

    Attributes
    ----------
    windows
        The windows of the query.
    lasts
        The last pane of each range of panes, ascending.
    shares
        Into how many portions each range is divided; they follow each other.
    """

    windows: Windows
    lasts: tuple[int, ...]
    shares: tuple[int, ...]

    def __call__(self, rows: pa.Table) -> tuple[pa.Table, IntArray]:
        """The rows, and the portion of each."""
        if "pane" in rows.column_names:
            panes = rows["pane"].to_numpy()
        else:
            panes = self.windows.panes(rows["position"].to_numpy(), pc.cast(rows["time"], pa.int64()).to_numpy())
        place, shares = np.searchsorted(self.lasts, panes), np.array(self.shares)
        firsts = np.cumsum(shares) - shares
        return rows, firsts[place] + portions_by_partition(rows[PART].combine_chunks(), _MANY) % shares[place]


@dataclass(frozen=True)
class DealtPanes:
    """The panes of a batch, dealt out.

    Attributes
    ----------
    read
        What is read of panes.
    place
        Where tasks read it; None where it has to be brought to them.
    ranges
        First and last pane of each range.
    shares
        How many tasks each range is for.
    rows
        New events and earlier vertices in all of them.
    """

    read: PanesRead
    place: Location | None
    ranges: Sequence[tuple[int, int]]
    shares: Sequence[int]
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

        def rows(found: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
            yield from vertex_rows_of_panes(read.layout, read.new(found), read.earlier(found))
            if read.windows.counted:
                moments = columns_of(found[-1])
                yield from pane_rows(
                    read.windows, moments["position"].to_numpy(), pc.cast(moments["time"], pa.int64()).to_numpy()
                )

        return self._make(db, read.for_vertices, rows, VERTICES_SCHEMA)

    def edges(self, db: Database) -> TaskRows | pa.Table:
        """Rows of `trend_edges`, as `vertices` gives those of vertices."""
        read = self.read

        def rows(found: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
            yield from edge_rows_of_panes(read.layout, read.new(found), read.earlier(found))

        return self._make(db, read.for_edges, rows, EDGES_SCHEMA)

    def _make(
        self,
        db: Database,
        sources: Callable[[int, int], list[Gather]],
        rows: Callable[[Sequence[pa.Table]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> TaskRows | pa.Table:
        ranges, place, all_panes = list(self.ranges), self.place, (self.ranges[0][0], self.ranges[-1][1])
        if db.direct is not None and few.few_events(db, self.rows):
            return few.table_of(rows([source.read(db.direct) for source in sources(*all_panes)]), schema)
        if place is None or max(self.shares) > 1:
            return self._deal(db, sources(*all_panes), rows, schema)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from rows([source.read(reader_at(place)) for source in sources(*ranges[number])])

        numbers = db.spark.range(0, len(ranges), 1, len(ranges))
        return TaskRows(numbers, task, schema)

    def _deal(
        self,
        db: Database,
        sources: Sequence[Gather],
        rows: Callable[[Sequence[pa.Table]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> TaskRows:
        dealing = ByPane(self.read.windows, tuple(last for _, last in self.ranges), tuple(self.shares))
        new, *others = sources
        # Of vertices they are stored; what bounds panes is of no partition.
        new = replace(new, partition=tuple(self.read.layout.query.partition))
        blobs, dealt = deal(db, db.state, [(source, dealing) for source in (new, *others)], sum(self.shares))

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, found in dealt.read(batches):
                yield from rows(found)

        return TaskRows(blobs, made, schema)


def deal_panes(
    db: Database, batch: Batch, stream: Publication, last: Publication | None, layout: Layout
) -> DealtPanes | None:
    """Deal out the panes of a batch; None where there are none.

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
    if batch.source_from == batch.source_to:
        return None
    read = PanesRead(
        layout,
        tuple(published_rows(TABLES["events"], stream)),
        batch.source_from + 1,
        batch.source_to,
        None if last is None else _former(last),
    )
    panes, events = read.events_by_pane(db.state)
    panes, rows = _add_up([(panes, events), read.vertices_by_pane(db.state, int(panes[0]))])
    before = np.append(0, np.cumsum(rows))
    total = int(before[-1])
    tasks = max(db.spark.sparkContext.defaultParallelism, -(-total // TASK_VERTICES))
    ends = np.searchsorted(before[:-1], [high for _, high in equal_shares(total, tasks)])
    begins = np.concatenate([[0], ends[:-1]])
    ranges, shares = [], []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if begin < end:
            mine = int(before[end] - before[begin])
            ranges.append((int(panes[begin]), int(panes[end - 1])))
            shares.append(-(-mine // TASK_VERTICES) if layout.query.partition and mine > _LARGEST else 1)
    place = None if db.direct is None else location_of(*db.direct.place)
    return DealtPanes(read, place, ranges, shares, total)


def _former(last: Publication) -> tuple[Condition, ...]:
    return (*published_rows(TABLES["trend_vertices"], last), Condition("kind", "=", EVENT))


def _add_up(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Counts by pane as one, panes ascending."""
    panes, place = np.unique(np.concatenate([pane for pane, _ in parts]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([count for _, count in parts]), len(panes))
    return panes, counts.astype(np.int64)
