"""What functions over trends share: from a call to the vertices of its windows, here or dealt out to tasks.

A query is the name of a configured one, whose vertices the job keeps, or a text, whose vertices are made of events.

A portion is what one call of a kernel answers: some partitions and runs of windows (blocks). A vertex goes to the
portion of every block that one of its windows lies in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, between
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering.answers import Dealt, by_tasks, collect_apart
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.reading_tasks import deal_ranges, place_of
from patternlake.sql_ext.answering.stream_facts import facts_of
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.declarations.declaration import explicit
from patternlake.sql_ext.lakes.lake import MAX_TREND_EVENTS
from patternlake.sql_ext.trends.trend_sources import EventVertices, KeptVertices, VertexSource
from patternlake.udfs.arrays import IntArray, expanded
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.partitions import PART, columns_holding, portions_by_partition
from patternlake.udfs.pattern_names import names_asked, names_taken
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.requests import BatchRange
from patternlake.udfs.trends.ends import window_ends
from patternlake.udfs.trends.kinds import EVENT
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendReads, TrendsRequest, check_request
from patternlake.udfs.trends.text_request import check_text, is_text, too_many_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lakes.lake import Lake

Kernel = Callable[[TrendsRequest, Mapping[str, pa.Array]], pa.Table]
"""From a request and the columns of vertices, as `VerticesRead.spread` gives them, to rows."""

BLOCK = "block"
TASK_VERTICES = 500_000
"""Vertices that one task works on which reads them for itself, about."""
_ENDS = explicit("window BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, final BOOLEAN")


@dataclass(frozen=True)
class VerticesRead:
    """What a process needs to read the vertices of a call for itself.

    Attributes
    ----------
    request
        The request.
    source
        Of the vertices.
    """

    request: TrendsRequest
    source: VertexSource

    def gather(self, panes: tuple[int, int] | None = None) -> Gather:
        """The vertices, of some panes."""
        return self.source.gather(self.request.layout.query.partition, self.request.key, panes)

    def spread(self, rows: pa.Table) -> pa.Table:
        """The columns of vertices, each once for every block that one of its windows lies in."""
        row, block = Windows.of(self.request.layout.query).spread(rows["pane"].to_numpy(), self.request.block)
        rows = rows.select([name for name in rows.column_names if name != "key"])
        if len(row) != rows.num_rows:  # Else each is in one block: in one at least where windows overlap, else at most.
            rows = rows.take(pa.array(row))
        return rows.append_column(BLOCK, pa.array(block))

    def vertices(self, reader: StateReader, blocks: tuple[int, int] | None = None) -> Mapping[str, pa.Array]:
        """The columns of all vertices, or of those in a range of blocks, both ends included."""
        if blocks is None:
            return columns_of(self.spread(self.gather().read(reader)))
        windows, width = Windows.of(self.request.layout.query), self.request.block
        first, last = blocks[0] * width, (blocks[1] + 1) * width - 1
        panes = windows.panes_of(first)[0], windows.panes_of(last)[-1]
        spread = self.spread(self.gather(panes).read(reader))
        block = spread[BLOCK].to_numpy()
        return columns_of(spread.filter(pa.array((block >= blocks[0]) & (block <= blocks[1]))))

    def deal(self, parts: int, rows: pa.Table) -> tuple[pa.Table, IntArray]:
        """Deal vertices out to so many portions, by partition and block."""
        spread = self.spread(rows)
        partition = portions_by_partition(spread[PART].combine_chunks(), parts)
        return spread, (partition + spread[BLOCK].to_numpy()) % parts


@dataclass(frozen=True)
class TrendCall:
    """A checked call over the trends of a query.

    Attributes
    ----------
    lake
        Where it is asked.
    arguments
        By name.
    reads
        The call, checked, and what is read for it.
    events
        All events of the stream.
    source
        Of the vertices.
    here
        Whether the driver's own process answers.
    lasting
        As of `Answer`, as far as the call was planned.
    """

    lake: Lake
    arguments: Mapping[str, Any]
    reads: TrendReads
    events: BatchRange
    source: VertexSource
    here: bool
    lasting: bool = True

    @property
    def request(self) -> TrendsRequest:
        """What the kernels need to know."""
        return self.reads.request

    @property
    def windows(self) -> Windows:
        """The windows of the query."""
        return self.reads.windows

    @property
    def reading(self) -> VerticesRead:
        """How the vertices are read without Spark."""
        return VerticesRead(self.request, self.source)

    def vertices(self) -> Mapping[str, pa.Array]:
        """The columns of all vertices, in this process."""
        return self.reading.vertices(self.lake.reader)

    def block_ranges(self, tasks: int) -> list[list[tuple[int, int]]]:
        """First and last block of windows for each of about so many tasks; none where they cannot be told apart so."""
        windows, asked = self.windows, self.request
        lowest, highest = self.reads.state.lowest_pane, self.reads.state.highest_pane
        if not windows.width or lowest is None or highest is None:
            return []
        first = max(asked.first, (lowest - windows.length) // windows.step + 1) // asked.block
        last = min(asked.last, highest // windows.step) // asked.block
        blocks = max(0, last - first + 1)
        return [[(first + low, first + high - 1)] for low, high in equal_shares(blocks, min(tasks, blocks))]

    def answer_windows(self, kernel: Kernel, schema: str) -> DataFrame | pa.Table:
        """What a kernel makes of the vertices of all windows: here, or by tasks, which read for themselves the blocks
        of windows that are theirs, where there are enough blocks for all of them.

        Parameters
        ----------
        kernel
            Is pickled, with what it has in its closure.
        schema
            Of what it makes, as DDL.
        """
        if self.here:
            return kernel(self.request, self.vertices())
        lake, reading = self.lake, self.reading
        place = place_of(lake)
        wanted = max(2 * lake.spark.sparkContext.defaultParallelism, -(-self.reads.state.vertices // TASK_VERTICES))
        ranges = [] if place is None else self.block_ranges(wanted)
        if place is None or len(ranges) < wanted:
            return self.by_portions(lambda _, rows: [kernel(reading.request, columns_of(rows[0]))], schema)

        def answer(reader: StateReader, blocks: Sequence[tuple[int, int]]) -> Iterator[pa.Table]:
            for mine in blocks:
                yield kernel(reading.request, reading.vertices(reader, mine))

        return deal_ranges(lake, place, ranges, answer, schema)

    def by_portions(self, work: Callable[[int, list[pa.Table]], Iterable[pa.Table]], schema: str) -> DataFrame:
        """What tasks make of the vertices of each portion, as `VerticesRead.spread` gives them."""
        deals = [partial(self.reading.deal, self.reads.parts)]
        return by_tasks(self.lake, [self.reading.gather()], Dealt(deals, self.reads.parts, work), schema)

    def by_shares(
        self, portions: Sequence[int], work: Callable[[int, list[pa.Table]], Iterable[pa.Table]], schema: str
    ) -> DataFrame:
        """What tasks make of the vertices of each share: `portions` says for each which portion it has a share of."""
        reading, parts = self.reading, self.reads.parts
        owners = np.array(portions, np.int64)
        shares, count = np.argsort(owners, kind="stable"), np.bincount(owners, minlength=parts)
        behind = np.cumsum(count)

        def deal(rows: pa.Table) -> tuple[pa.Table, IntArray]:
            vertices, portion = reading.deal(parts, rows)
            row, place = expanded((behind - count)[portion], behind[portion])
            return vertices.take(pa.array(row)), shares[place]

        return by_tasks(self.lake, [reading.gather()], Dealt([deal], len(portions), work), schema)

    def tell_unseen_key(self, rows: DataFrame | pa.Table) -> bool:
        """Tell of a key that never occurred, as `unseen.tell_unseen_key`; whether the answer is lasting then."""
        told = tell_unseen_key(self.lake, self.request.key, self.events, rows, self.request.layout.query.partition)
        return self.lasting and not told

    def ends(self) -> pa.Table:
        """Of windows that count events: when they begin and end."""
        return window_ends(
            self.windows,
            columns_of(self.source.panes(self.lake)),
            watermark=self.request.watermark,
            last_position=self.reads.last_position,
            from_time=self.arguments["from_time"],
            to_time=self.arguments["to_time"],
        )


def trend_call(lake: Lake, arguments: Mapping[str, Any], attributes: tuple[str, ...] | None = None) -> TrendCall:
    """Check a call.

    Parameters
    ----------
    lake, arguments
        What is asked, and how.
    attributes
        Whose texts each vertex is to have; None: vertices have none. What the job keeps has none, so vertices with
        texts are made of events.

    Raises
    ------
    PatternLakeError
        What is wrong with it.
    """
    snapshot = lake.snapshot(arguments["as_of"])
    published = snapshot.published("trends", arguments["query"] or "")
    if published.first is None and is_text(arguments["query"]):
        return _call_of_text(lake, snapshot, arguments, attributes)
    known = snapshot.names("trends")
    reads = check_request(arguments, published, known, whole=False)
    assert published.at is not None
    read = json.loads(published.at.source)
    events = BatchRange(published.at.stream_id, read["ingest_base"], read["ingest_batch"])
    if attributes is not None:
        names = names_taken((term.name, term.define) for term in reads.request.layout.query.terms)
        where, all_where = _events_read(reads, events, None if names is None else sorted(names), arguments)
        here = lake.small("events", where)
        if here:
            reads = check_request(arguments, published, known, whole=True)
        source = EventVertices(reads.request.layout, where, all_where, attributes)
        return TrendCall(lake, arguments, reads, events, source, here)
    where = (
        *visible_rows(TABLES["trend_vertices"], reads.stream, *astuple(reads.rows)),
        Condition("kind", "=", EVENT),
        *between("pane", reads.low_pane, reads.high_pane),
    )
    here = lake.small("trend_vertices", where)
    if here:
        reads = check_request(arguments, published, known, whole=True)
    return TrendCall(lake, arguments, reads, events, KeptVertices(reads.request.layout, where), here)


def _call_of_text(
    lake: Lake, snapshot: Snapshot, arguments: Mapping[str, Any], attributes: tuple[str, ...] | None
) -> TrendCall:
    facts = facts_of(snapshot, arguments["stream"])
    reads = check_text(arguments, facts.published, facts.known, facts.counts, whole=False)
    asked = reads.request.layout.query
    if reads.windows.counted and not lake.in_one_order:
        raise ArgumentError(
            "WITHIN n EVENTS counts the events of a whole stream, and the positions of TABLE(…) are ranks in its "
            "partitions; give a window in time"
        )
    where, all_where = _events_read(reads, reads.rows, reads.names, arguments)
    types = reads.request.layout.types
    _check_size(lake, reads.events, where, asked.partition, types, arguments)
    told = tell_unseen(lake, names_asked((term.name, term.define) for term in asked.terms), facts.counts)
    here = lake.small("events", where)
    if here:
        reads = check_text(arguments, facts.published, facts.known, facts.counts, whole=True)
    source = EventVertices(reads.request.layout, where, all_where, attributes)
    return TrendCall(lake, arguments, reads, reads.rows, source, here, lasting=not told)


def _events_read(
    reads: TrendReads, events: BatchRange, names: Sequence[str] | None, arguments: Mapping[str, Any]
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """The conditions on the events that can take part, and on all."""
    windows = reads.windows
    all_where = tuple(event_conditions(events))
    bounds: list[Condition] = []
    if windows.width and not windows.counted:
        low, high = reads.low_pane * windows.pane, (reads.high_pane + 1) * windows.pane - 1
        bounds += between("time", None if arguments["from_time"] is None else low, None)
        bounds += between("time", None, None if arguments["to_time"] is None else high)
    return (*event_conditions(events, names=names), *bounds), all_where


def _check_size(
    lake: Lake,
    most_events: int,
    where: Sequence[Condition],
    partition: Sequence[str],
    types: Mapping[str, str],
    arguments: Mapping[str, Any],
) -> None:
    """Refuse a text whose graph would be built of too many events; these are counted only where they may be fewer."""
    allowed, events, key = lake.max_trend_events, most_events, arguments["key"]
    if events > allowed and any(arguments[name] is not None for name in ("key", "from_time", "to_time")):
        columns = tuple(dict.fromkeys(("key", *columns_holding(partition, types))))
        counted = Gather("events", columns, tuple(where), tuple(partition), key, _count)
        events = pc.sum(collect_apart(lake, counted)["events"]).as_py()
    if events > allowed:
        raise too_many_events(events, allowed, MAX_TREND_EVENTS)


def _count(rows: pa.Table) -> pa.Table:
    return pa.table({"events": pa.array([rows.num_rows], pa.int64())})


def with_ends(call: TrendCall, rows: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Rows of windows; those of windows that count events with the times of their first and last event, if inside."""
    if not call.windows.counted:
        return rows
    if isinstance(rows, pa.Table):
        return _with_ends_here(rows, call.ends())
    names = {"first_time": "__first", "last_time": "__last", "final": "__final"}
    ends = call.lake.local(call.ends(), _ENDS)
    joined = rows.join(F.broadcast(ends.withColumnsRenamed(names)), "window")
    return joined.withColumns(
        {"window_start": F.col("__first"), "window_end": F.col("__last"), "final": F.col("__final")}
    )


def _with_ends_here(rows: pa.Table, ends: pa.Table) -> pa.Table:
    place = pc.index_in(rows["window"], value_set=ends["window"].combine_chunks())
    inside = pc.is_valid(place)
    rows, ends = rows.filter(inside), ends.take(place.filter(inside))
    for name, end in (("window_start", "first_time"), ("window_end", "last_time"), ("final", "final")):
        rows = rows.set_column(rows.column_names.index(name), name, ends[end])
    return rows
