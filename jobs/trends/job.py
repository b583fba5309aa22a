"""The job `trends`: new events of a stream become vertices of a trend query, and their panes' graphs are cut anew.

Event vertices follow from their event alone, so they are written once. What hangs together in a pane, its attribute
vertices and edges, is replaced for every pane from the first one that a batch adds to: an event that comes late adds
to a pane that later ones follow, and lateness bounds how many.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.spark.measure_columns import check_measures
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import Work, follow, next_batch
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import TrendConfiguration
from patternlake.jobs.trends.panes import DealtPanes, deal_panes
from patternlake.udfs.trends.from_config import layout_of
from patternlake.udfs.trends.kinds import ATTRIBUTE, EVENT, PANE
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.result import TREND_ROWS
from patternlake.udfs.trends.vertex_rows import Layout

logger = logging.getLogger(__name__)

JOB = "trends"
VERTICES, EDGES = "trend_vertices", "trend_edges"

_NOTHING = {"vertices": 0, "lowest_pane": None, "highest_pane": None}


@in_own_session
def trends(db: Database, name: str, configuration: TrendConfiguration, *, rebuild: bool = False) -> Summary:
    """Bring the graph of a trend query up to its stream's last published event.

    Parameters are as of `runs.steps.Job.work`.

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
        # Later batches have the same query. No answer shows the number of a window.
        shown = {*TREND_ROWS.names, "truncated"} - {"window"}
        check_measures(db.spark, layout.query.measures, shown)


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.layout: Layout = layout_of(self.batch.configuration)
        self.windows = Windows.of(self.layout.query)

    def build(self) -> Publication:
        """Write vertices, then what hangs together, then close what that replaces, then publish."""
        batch, last = self.batch, self.last
        panes = deal_panes(self.db, batch, self.stream, last, self.layout)
        lowest = None if panes is None else self._write(panes)
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
        rows, least, greatest = self._count_written()
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

    def _write(self, panes: DealtPanes) -> int:
        """Write what is made of the panes; the first one that is replaced."""
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

    def _count_written(self) -> tuple[int, int | None, int | None]:
        """How many event vertices the batch has written, and their least and greatest pane."""
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


def _extreme(choose: Callable[..., int], *values: int | None) -> int | None:
    return choose((value for value in values if value is not None), default=None)
