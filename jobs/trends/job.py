"""The job `trends`: new events of a stream become vertices of a trend query, and their panes' graphs are cut anew.

Event vertices follow from their event alone, so they are written once. What hangs together in a pane, its attribute
vertices and edges, is replaced for every pane from the first one that a batch adds to: an event that comes late adds
to a pane that later ones follow, and lateness bounds how many.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.spark.measure_columns import check_measures
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.tables.trend_vertices import TrendVerticesReader, pane_ends
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches.contexts import in_own_session, keep_evaluated
from patternlake.jobs.batches.following import Work, follow, next_batch
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import TrendConfiguration
from patternlake.jobs.trends.panes import TASK_VERTICES, DealtPanes, deal_panes
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.batch import EDGES_SCHEMA
from patternlake.udfs.trends.events import event_columns_read
from patternlake.udfs.trends.from_config import layout_of
from patternlake.udfs.trends.graph_rows import GRAPH_SCHEMA, graph_rows
from patternlake.udfs.trends.kinds import ATTRIBUTE, EVENT, PANE
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.result import TREND_ROWS
from patternlake.udfs.trends.vertex_rows import VERTEX_SCHEMA, Layout, vertex_rows

logger = logging.getLogger(__name__)

JOB = "trends"
VERTICES, EDGES = "trend_vertices", "trend_edges"

_NOTHING = {"vertices": 0, "lowest_pane": None, "highest_pane": None}
_RUN_EVENTS = 500_000
"""Events of neighbouring positions whose vertices lie in one file, at least: a question of some windows reads few."""


@in_own_session
def trends(db: Database, name: str, configuration: TrendConfiguration, *, rebuild: bool = False) -> Summary:
    """Bring the graph of a trend query up to its stream's last published event.

    Parameters
    ----------
    db
        The open database.
    name
        The query.
    configuration
        Its section under `trends`.
    rebuild
        Start anew, with the query as it is now.

    Raises
    ------
    PatternLakeError
        The query does not compile; the stream has no published events; or the query has changed since the last batch.
    """

    def begin(first: bool) -> Work | None:
        return next_batch(
            db,
            JOB,
            name,
            configuration.stream,
            configuration.meaning,
            rebuild=rebuild and first,
            check=lambda stream, last: _check(db, configuration, stream, last),
        )

    return follow(JOB, name, begin, lambda work: _Builder(db, work).build())


def _check(db: Database, configuration: TrendConfiguration, stream: Publication, last: Publication | None) -> None:
    layout = layout_of({**configuration.meaning, "stream": stream.configuration})
    if last is None:
        # Later batches have the same query.
        check_measures(db.spark, layout.query.measures, [*TREND_ROWS.names, "truncated"])


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.layout: Layout = layout_of(self.batch.configuration)
        self.windows = Windows.of(self.layout.query)
        self.events = EventsReader(db).published(self.stream)
        self.parallelism = db.spark.sparkContext.defaultParallelism

    def build(self) -> Publication:
        """Write vertices, then what hangs together, then close what that replaces, then publish."""
        batch, last = self.batch, self.last
        panes = deal_panes(self.db, batch, self.stream, last, self.layout)
        lowest = self._write_by_spark() if panes is None else self._write_by_panes(panes)
        first_pane = batch.source_from // self.windows.pane if self.windows.counted else None
        if last is not None and lowest is not None:
            from_lowest = Condition("pane", ">=", lowest)
            replaced = [[Condition("kind", "=", ATTRIBUTE), from_lowest]]
            if first_pane is not None:
                replaced.append([Condition("kind", "=", PANE), Condition("pane", ">=", first_pane)])
            before = Condition("from_batch", "<=", batch.batch_id - 1)
            if self._may_be(VERTICES, before, from_lowest, among("kind", (ATTRIBUTE, PANE))):
                batch.close_rows(VERTICES, *replaced)
            if self._may_be(EDGES, before, from_lowest):
                batch.close_rows(EDGES, [from_lowest])
        rows, least, greatest = self._written
        state: Mapping[str, Any] = _NOTHING if last is None else last.state
        return batch.publish(
            rows_in=batch.source_to - batch.source_from,
            rows_out=rows,
            watermark=self.stream.watermark,
            state={
                "vertices": state["vertices"] + rows,
                "lowest_pane": _extreme(min, state["lowest_pane"], least),
                "highest_pane": _extreme(max, state["highest_pane"], greatest),
            },
        )

    def _write_by_panes(self, panes: DealtPanes) -> int:
        """Write what tasks make of whole panes; the first pane that is replaced."""
        rows = panes.vertices(self.db)
        self._append(rows, EVENT)
        for kind in (ATTRIBUTE, PANE) if self.batch.adopted else ():
            # An earlier run may have written its rows kind by kind, and these not.
            if isinstance(rows, TaskRows):
                self._append(rows.where("kind", kind), kind)
            else:
                self._append(rows.filter(pc.field("kind") == kind), kind)
        self.batch.append(EDGES, panes.edges(self.db))
        return panes.lowest

    def _write_by_spark(self) -> int | None:
        """Write kind by kind, each of what was written before; the first pane that is replaced, if one is."""
        self._append(TaskRows.of(self._event_rows()), EVENT)
        _, lowest, _ = self._written
        if lowest is not None:
            with keep_evaluated(self._graph(lowest)) as graph:
                self._append(TaskRows.of(self._attribute_rows(graph)), ATTRIBUTE)
                self.batch.append(EDGES, TaskRows.of(self._edge_rows(graph)))
        if self.windows.counted:
            first_pane = self.batch.source_from // self.windows.pane
            self._append(TaskRows.of(self._pane_rows(first_pane)), PANE)
            lowest = first_pane if lowest is None else lowest
        return lowest

    def _append(self, rows: TaskRows | pa.Table, kind: str) -> None:
        """Append rows of `trend_vertices`, of one kind or of this and others; not where they are there already."""
        if kind not in self._there:
            self.batch.append(VERTICES, rows, part=kind)

    @property
    def _there(self) -> set[str]:
        """The kinds of vertices that an earlier run of the batch has written."""
        if not self.batch.adopted:
            return set()
        return {row["kind"] for row in self.batch.written(VERTICES).select("kind").distinct().collect()}

    def _may_be(self, table: str, *where: Condition) -> bool:
        """Whether the query may have rows that satisfy the conditions, by what the table's log tells of its files."""
        mine = Condition("trend_id", "=", self.batch.object_id)
        return self.db.direct is None or self.db.direct.files(table, (mine, *where)).num_rows > 0

    @cached_property
    def _written(self) -> tuple[int, int | None, int | None]:
        """How many event vertices the batch has written, once it has, and their least and greatest pane."""
        if self.db.direct is None:
            new = self.batch.written(VERTICES).where(F.col("kind") == EVENT)
            return tuple(new.agg(F.count("*"), F.min("pane"), F.max("pane")).collect()[0])
        batch = self.batch
        where = (
            Condition("trend_id", "=", batch.object_id),
            Condition("kind", "=", EVENT),
            Condition("stream_id", "=", batch.stream_id),
            *between("from_batch", batch.batch_id, batch.batch_id),
        )
        return self.db.direct.bounds("trend_vertices", "pane", where)

    def _event_rows(self) -> DataFrame:
        layout = self.layout

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield vertex_rows(layout, dict(zip(batch.schema.names, batch.columns, strict=True)))

        first, last = self.batch.source_from + 1, self.batch.source_to
        new = EventsReader(self.db).in_runs(self.stream, first, last, _RUN_EVENTS)
        read = dict.fromkeys((*event_columns_read(layout.query, layout.types), "key"))
        return new.select(*read).mapInArrow(rows, from_arrow_schema(VERTEX_SCHEMA)).withColumn("kind", F.lit(EVENT))

    def _graph(self, lowest: int) -> DataFrame:
        """Attribute vertices and edges of all panes from `lowest` on."""
        layout = self.layout
        wanted = [field.name for field in VERTEX_SCHEMA if field.name != "key"]
        vertices = self.batch.written(VERTICES).where((F.col("kind") == EVENT) & (F.col("pane") >= lowest))
        if self.last is not None:
            former = TrendVerticesReader(self.db).events(self.last).where(F.col("pane") >= lowest)
            vertices = vertices.unionByName(former)
        count = vertices.count()
        tasks = max(self.parallelism, -(-count // TASK_VERTICES))

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = list(batches)
            if held:
                yield from graph_rows(layout, columns_of(pa.Table.from_batches(held)))

        return (
            vertices.select(*wanted)
            .repartition(tasks, "pane", "part")
            .mapInArrow(rows, from_arrow_schema(GRAPH_SCHEMA))
        )

    def _attribute_rows(self, graph: DataFrame) -> DataFrame:
        columns = ("pane", "part", "step", "number", "low", "high", "holds_low", "holds_high")
        rows = graph.where(F.col("kind") == ATTRIBUTE).withColumnRenamed("first", "number")
        return rows.select("kind", *columns)

    def _edge_rows(self, graph: DataFrame) -> DataFrame:
        return graph.where(F.col("kind") != ATTRIBUTE).select(*EDGES_SCHEMA.names)

    def _pane_rows(self, first_pane: int) -> DataFrame:
        """First and last event of panes that count events; of all events, taken by the query or not."""
        width = self.windows.pane
        rows = pane_ends(self.events.where(F.col("position") > first_pane * width), width)
        return rows.select("*", F.lit(PANE).alias("kind"), F.array().cast("array<string>").alias("part"))


def _extreme(choose: Callable[..., int], *values: int | None) -> int | None:
    return choose((value for value in values if value is not None), default=None)
