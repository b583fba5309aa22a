"""The job `trends`: new events of a stream become vertices of a trend query, and their panes' graphs are cut anew.

Event vertices follow from their event alone, so they are written once. What hangs together in a pane, its attribute
vertices and edges, is replaced for every pane from the first one that a batch adds to: an event that comes late adds
to a pane that later ones follow, and lateness bounds how many.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.events import EventsReader
from patternlake.delta_tables.publications import Publication
from patternlake.delta_tables.trend_vertices import ATTRIBUTE, EVENT, PANE, TABLE, TrendVerticesReader
from patternlake.jobs.configuration import TrendConfiguration
from patternlake.jobs.contexts import in_own_session, kept
from patternlake.jobs.following import Work, followed, next_batch
from patternlake.jobs.summary import Summary
from patternlake.udfs.trends.configured import layout_of
from patternlake.udfs.trends.graph_rows import GRAPH_SCHEMA, graph_rows
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.rows import VERTEX_SCHEMA, Layout, vertex_rows

logger = logging.getLogger(__name__)

JOB = "trends"
VERTICES, EDGES = "trend_vertices", "trend_edges"

_TASK_VERTICES = 500_000
"""Vertices that one task cuts into graphs, about; a pane of one partition is never divided."""

_RUN_EVENTS = 500_000
"""Events of neighbouring positions whose vertices lie in one file, at least: a question of some windows reads few."""

_READ = ("position", "time", "step", "key", "name", "probability", "attributes")


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
            check=lambda stream, _: _check(configuration, stream),
        )

    return followed(JOB, name, begin, lambda work: _Builder(db, work).build())


def _check(configuration: TrendConfiguration, stream: Publication) -> None:
    layout_of({**configuration.meaning, "stream": stream.configuration})


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.layout: Layout = layout_of(self.batch.configuration)
        self.windows = Windows.of(self.layout.question)
        self.events = EventsReader(db).published(self.stream)
        self.parallelism = db.spark.sparkContext.defaultParallelism

    def build(self) -> Publication:
        """Write vertices, then what hangs together, then close what that replaces, then publish."""
        batch = self.batch
        batch.append(VERTICES, self._event_rows(), part=EVENT)
        mine = batch.written(VERTICES).where(F.col("kind") == EVENT)
        found = mine.agg(
            F.count("*").alias("vertices"), F.min("pane").alias("lowest"), F.max("pane").alias("highest")
        ).collect()[0]
        lowest = found["lowest"]
        if lowest is not None:
            with kept(self._graph(lowest)) as graph:
                batch.append(VERTICES, self._attribute_rows(graph), part=ATTRIBUTE)
                batch.append(EDGES, self._edge_rows(graph))
        first_pane = batch.source_from // self.windows.pane if self.windows.counted else None
        if first_pane is not None:
            batch.append(VERTICES, self._pane_rows(first_pane), part=PANE)
        if self.last is not None:
            if lowest is not None:
                batch.close_rows(VERTICES, (F.col("kind") == ATTRIBUTE) & (F.col("pane") >= lowest))
                batch.close_rows(EDGES, F.col("pane") >= lowest)
            if first_pane is not None:
                batch.close_rows(VERTICES, (F.col("kind") == PANE) & (F.col("pane") >= first_pane))
        before = {"vertices": 0, "lowest_pane": None, "highest_pane": None} if self.last is None else self.last.state
        return batch.publish(
            rows_in=batch.source_to - batch.source_from,
            rows_out=found["vertices"],
            watermark=self.stream.watermark,
            state={
                "vertices": before["vertices"] + found["vertices"],
                "lowest_pane": _extreme(min, before["lowest_pane"], lowest),
                "highest_pane": _extreme(max, before["highest_pane"], found["highest"]),
            },
        )

    def _event_rows(self) -> DataFrame:
        layout = self.layout

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield vertex_rows(layout, dict(zip(batch.schema.names, batch.columns, strict=True)))

        first, last = self.batch.source_from + 1, self.batch.source_to
        new = EventsReader(self.db).in_runs(self.stream, first, last, _RUN_EVENTS).select(*_READ)
        return self._row(EVENT, new.mapInArrow(rows, from_arrow_schema(VERTEX_SCHEMA)))

    def _graph(self, lowest: int) -> DataFrame:
        """Attribute vertices and edges of all panes from `lowest` on."""
        layout = self.layout
        wanted = [field.name for field in VERTEX_SCHEMA if field.name != "key"]
        vertices = self.batch.written(VERTICES).where((F.col("kind") == EVENT) & (F.col("pane") >= lowest))
        if self.last is not None:
            former = TrendVerticesReader(self.db).events(self.last).where(F.col("pane") >= lowest)
            vertices = vertices.unionByName(former)
        count = vertices.count()
        tasks = max(self.parallelism, -(-count // _TASK_VERTICES))

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = list(batches)
            if held:
                table = pa.Table.from_batches(held)
                columns = {name: table[name].combine_chunks() for name in table.column_names}
                yield from graph_rows(layout, columns)

        return (
            vertices.select(*wanted)
            .repartition(tasks, "pane", "part")
            .mapInArrow(rows, from_arrow_schema(GRAPH_SCHEMA))
        )

    def _attribute_rows(self, graph: DataFrame) -> DataFrame:
        columns = ("pane", "part", "step", "number", "low", "high", "holds_low", "holds_high")
        rows = graph.where(F.col("kind") == ATTRIBUTE).withColumnRenamed("first", "number")
        return self._row(ATTRIBUTE, rows.select(*columns))

    def _edge_rows(self, graph: DataFrame) -> DataFrame:
        columns = ("kind", "pane", "part", "step", "first", "last", "position", "term")
        return graph.where(F.col("kind") != ATTRIBUTE).select(*columns, *self.batch.marks(EDGES))

    def _pane_rows(self, first_pane: int) -> DataFrame:
        """First and last event of panes that count events; of all events, taken by the query or not."""
        width = self.windows.pane
        pane = F.floor((F.col("position") - 1) / width).cast("bigint")
        rows = (
            self.events.where(F.col("position") > first_pane * width)
            .groupBy(pane.alias("pane"))
            .agg(
                F.min("position").alias("position"),
                F.min_by("time", "position").alias("time"),
                F.max_by("time", "position").alias("last_time"),
                F.max("time").alias("greatest_time"),
            )
        )
        return self._row(PANE, rows.withColumn("part", F.array().cast("array<string>")))

    def _row(self, kind: str, rows: DataFrame) -> DataFrame:
        """Rows of `trend_vertices` of one kind: what the others have is NULL."""
        marked = rows.select("*", F.lit(kind).alias("kind"), *self.batch.marks(VERTICES))
        missing = [column for column in TABLE.columns if column.name not in marked.columns]
        return marked.select("*", *[F.lit(None).cast(column.type).alias(column.name) for column in missing])


def _extreme(choose: Callable[..., int], *values: int | None) -> int | None:
    return choose((value for value in values if value is not None), default=None)


if __name__ == "__main__":
    from patternlake.jobs.command_line import main_of

    main_of(JOB)
