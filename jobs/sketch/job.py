"""The job `sketch`: new events of a stream become finished segments and one open segment of its sketch tree.

Segments are built in parallel, each from its own events alone, so that any cut of the input into batches leaves the
same trees; only the open segment is built again as it grows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.gather import Gather, deal
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.worker_reader import location_of, reader_at
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import Work, follow, next_batch
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import SketchConfiguration
from patternlake.jobs.sketch.planning import SAMPLE_EVENTS, Sparse, first_plan, next_sizes
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.sketch.batch import ROW_SCHEMA, SegmentPlan, segment_rows
from patternlake.udfs.sketch.sizing.sizes import Sizing

logger = logging.getLogger(__name__)

JOB = "sketch"
TABLE = "sketch_nodes"

_FREE = ("memory", "expected_events")
"""What may change from batch to batch: segments of both kinds fit together."""

_TASK_EVENTS = 1_600_000
"""Events that one task holds at most; more segments in a task mean fewer, larger files."""


@dataclass(frozen=True)
class Plan:
    """A sizing and the first segment that is built with it."""

    from_segment: int
    sizing: Sizing


@in_own_session
def sketch(db: Database, name: str, configuration: SketchConfiguration, *, rebuild: bool = False) -> Summary:
    """Bring the sketch of stream `name` up to the stream's last published event.

    Parameters are as of `runs.steps.Job.work`.

    Raises
    ------
    StateError
        The stream has no published events, or the configuration has changed in a way that needs a rebuild.
    SizingError
        The memory does not allow what was asked.
    """
    sizing: Sizing | None = None

    def size(stream: Publication, last: Publication | None) -> None:
        nonlocal sizing
        sizing = _first_sizing(db, stream, configuration, last)

    def begin(first: bool) -> Work | None:
        return next_batch(db, JOB, name, name, configuration.meaning, rebuild=rebuild and first, check=size, free=_FREE)

    return follow(JOB, name, begin, lambda work: _run(db, work, sizing, configuration))


def _first_sizing(
    db: Database, stream: Publication, configuration: SketchConfiguration, last: Publication | None
) -> Sizing | None:
    """Size the first segment; None once it is finished.

    Until then its sizes follow its events, so that cuts of the input don't show.
    """
    phases.at("sizing")
    plans, expected = ([], None) if last is None else _state(last)
    if plans and last is not None and (last.source_to or 0) >= plans[0].sizing.segment_events:
        return None
    return first_plan(
        _sample(db, stream, configuration.keyed),
        configuration,
        _expect_events(configuration, expected, stream.source_to),
        _expressions(stream),
        plans[0].sizing.height if plans else None,
    )


def _run(db: Database, work: Work, sizing: Sizing | None, configuration: SketchConfiguration) -> Publication:
    """Build and publish a batch; `sizing` is the plan of the first segment where a batch of this run's own needs it."""
    batch, stream, name = work.batch, work.stream, work.batch.object
    if batch.source.get("ageing") and batch.previous is not None:
        # Maintenance died before it published. It has removed nothing yet, and will come again.
        before = batch.previous
        return batch.publish(rows_in=0, rows_out=0, watermark=before.watermark, state=dict(before.state))
    plans, expected = ([], None) if work.last is None else _state(work.last)
    sparse = Sparse() if work.last is None else _sparse(work.last)
    if batch.adopted:
        # Of the first segment the run that died may have written rows: it is sized as it was then.
        meant = configuration.model_copy(update={key: batch.configuration[key] for key in _FREE})
        sizing = _first_sizing(db, stream, meant, work.last)
    plans = plans if sizing is None else [Plan(0, sizing)]
    builder = _Builder(batch, stream, configuration, plans, expected, sparse)
    state = builder.build()
    if work.last is not None:
        state["floors"] = work.last.state.get("floors", [])
    if state["bytes"] > configuration.memory:
        logger.warning(
            "sketch %r takes %d bytes, more than memory: %d, because the stream has outgrown expected_events: %d",
            name,
            state["bytes"],
            configuration.memory,
            state["expected_events"],
        )
    return batch.publish(
        rows_in=builder.total - builder.known,
        rows_out=builder.segments - builder.first_segment,
        watermark=stream.watermark,
        state=state,
    )


class _Builder:
    """Builds the segments of one batch, re-fitting the sizes where finished segments are denser or sparser."""

    def __init__(
        self,
        batch: Batch,
        stream: Publication,
        configuration: SketchConfiguration,
        plans: list[Plan],
        expected_events: int | None,
        sparse: Sparse,
    ) -> None:
        self.batch = batch
        self.stream = stream
        self.configuration = configuration
        self.plans = plans
        self.sparse = sparse
        self.known = batch.source_from or 0
        self.total = batch.source_to or 0
        self.expressions = _expressions(stream)
        self.expected_events = _expect_events(configuration, expected_events, self.total)
        self.first_segment = self.known // plans[0].sizing.segment_events
        self.segments = 0

    def build(self) -> dict[str, Any]:
        """Write the nodes of all segments that the batch touches; the state to publish."""
        size = self.plans[0].sizing.segment_events
        self.segments = -(-self.total // size)
        finished = self.total // size
        begin = self.first_segment
        while begin < self.segments:
            number = len(self.plans) - 1
            rows = self._few_rows(begin, number)
            self.batch.append(TABLE, self._rows(begin, number) if rows is None else rows, part=str(number))
            phases.at("measuring sketch_nodes")
            sizings = [plan.sizing for plan in self.plans]
            # Both may have changed since it was chosen.
            memory, expected = self.configuration.memory, self.expected_events
            sizings[-1] = replace(sizings[-1], memory=memory, expected_events=expected)
            if rows is None:
                measured = self._measure(number, begin, finished)
            else:
                measured = _measure_here(rows, finished)
            found, self.sparse = next_sizes(measured, sizings, self.sparse)
            if found is None:
                break
            segment, sizing = found
            logger.info(
                "sketch %r: sizes re-fitted after segment %d, from %d to %d bytes a segment",
                self.batch.object,
                segment,
                sizings[-1].node_bytes,
                sizing.node_bytes,
            )
            self.batch.discard(TABLE, [Condition("segment", ">=", segment + 1), Condition("plan", "=", number)])
            self.plans.append(Plan(segment + 1, sizing))
            begin = segment + 1
        if self.batch.base_batch != self.batch.batch_id:
            self.batch.close_rows(TABLE, [Condition("segment", ">=", self.first_segment)])
        return {
            "events": self.total,
            "segments": self.segments,
            "expected_events": self.expected_events,
            "plans": [{"from_segment": plan.from_segment, "sizing": asdict(plan.sizing)} for plan in self.plans],
            "sparse": {"segments": self.sparse.segments, "most": list(self.sparse.most)},
            "bytes": self._bytes(),
        }

    def _bytes(self) -> int:
        """What the filters of all segments take."""
        begins = [plan.from_segment for plan in self.plans]
        ends = [min(end, self.segments) for end in (*begins[1:], self.segments)]
        counts = [max(0, end - begin) for begin, end in zip(begins, ends, strict=True)]
        return sum(count * plan.sizing.segment_bytes for count, plan in zip(counts, self.plans, strict=True))

    def _plan(self, number: int) -> SegmentPlan:
        return SegmentPlan(
            self.plans[number].sizing,
            self.configuration.seed,
            self.configuration.keyed,
            self.expressions,
            number,
            self.stream.stream_id,
            self.batch.batch_id,
        )

    def _few_rows(self, begin: int, number: int) -> pa.Table | None:
        """As `_rows`, made in the driver's process; None where there are too many events."""
        first = begin * self.plans[number].sizing.segment_events + 1
        reader = self.batch.database.direct
        if reader is None or not few.few_events(self.batch.database, self.total - first + 1):
            return None
        phases.at(f"writing {TABLE}")
        events = _gather(self.stream, first, self.total, self.configuration.keyed)
        return few.table_of(segment_rows(events.read(reader), self._plan(number)), ROW_SCHEMA)

    def _rows(self, begin: int, number: int) -> TaskRows:
        """The node rows of all segments from `begin` on, built with plan `number`."""
        size, db, plan = self.plans[number].sizing.segment_events, self.batch.database, self._plan(number)
        count = self.segments - begin
        per_task = max(1, min(_TASK_EVENTS // size, -(-count // db.spark.sparkContext.defaultParallelism)))
        tasks = -(-count // per_task)
        edges = [min(self.total, (begin + task * per_task) * size) for task in range(tasks + 1)]
        if db.direct is None:
            events = _gather(self.stream, edges[0] + 1, edges[-1], self.configuration.keyed)
            blobs, dealt = deal(db, db.state, [(events, _ByPosition(tuple(edges)))], tasks)

            def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for _, (rows,) in dealt.read(batches):
                    yield from segment_rows(rows, plan)

            return TaskRows(blobs, made, ROW_SCHEMA)
        place = location_of(*db.direct.place)
        shares = [_gather(self.stream, low + 1, high, self.configuration.keyed) for low, high in pairwise(edges)]

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    yield from segment_rows(shares[task].read(reader_at(place)), plan)

        return TaskRows(db.spark.range(0, tasks, 1, tasks), read, ROW_SCHEMA)

    def _measure(self, number: int, begin: int, finished: int) -> list[tuple[int, dict[int, float]]]:
        """Mean distinct tokens per node by level, for the finished segments of this plan, in their order."""
        rows = (
            self.batch.written(TABLE)
            .where((F.col("plan") == number) & F.col("segment").between(begin, finished - 1) & (F.size("distinct") > 0))
            .groupBy("segment", "level")
            .agg(F.max(F.expr("aggregate(distinct, 0D, (s, x) -> s + x) / size(distinct)")).alias("mean"))
            .collect()  # one row per segment and level of this batch
        )
        by_segment: dict[int, dict[int, float]] = {}
        for row in rows:
            by_segment.setdefault(row["segment"], {})[row["level"]] = row["mean"]
        return sorted(by_segment.items())


def _sample(db: Database, stream: Publication, keyed: bool) -> pa.Table:
    """The first events of a stream in their order, as `first_plan` takes them."""
    return _gather(stream, 1, min(stream.source_to, SAMPLE_EVENTS), keyed).read(db.state).sort_by("position")


def _gather(stream: Publication, first: int, last: int, keyed: bool) -> Gather:
    """Events at the positions first to last, both included, as `segment_rows` takes them."""
    columns = ("position", "time", "tokens", "name", *(["key"] if keyed else []))
    return Gather("events", columns, tuple(few.of_stream(stream, first, last)), make=_put_tokens)


def _put_tokens(events: pa.Table) -> pa.Table:
    """Events with tokens: those that they have, else their names."""
    names = events["name"].combine_chunks().cast(pa.string())
    alone = pa.ListArray.from_arrays(pa.array(np.arange(len(names) + 1, dtype=np.int32)), names)
    tokens = events["tokens"].combine_chunks()
    whole = alone if tokens.null_count == len(tokens) else pc.coalesce(tokens, alone)
    return events.set_column(events.column_names.index("tokens"), "tokens", whole)


@dataclass(frozen=True)
class _ByPosition:
    """Deals events out by their positions, given those before which portions begin, and the last one."""

    edges: tuple[int, ...]

    def __call__(self, rows: pa.Table) -> tuple[pa.Table, IntArray]:
        return rows, np.searchsorted(self.edges, rows["position"].to_numpy()) - 1


def _measure_here(rows: pa.Table, finished: int) -> list[tuple[int, dict[int, float]]]:
    """As `_Builder._measure`, of rows that the driver holds."""
    by_segment: dict[int, dict[int, float]] = {}
    for segment, level, distinct in zip(
        *(rows[name].to_pylist() for name in ("segment", "level", "distinct")), strict=True
    ):
        if segment < finished and distinct:
            by_segment.setdefault(segment, {})[level] = sum(map(float, distinct)) / len(distinct)
    return sorted(by_segment.items())


def _expressions(stream: Publication) -> int:
    return len(stream.configuration.get("tokens") or [None])


def _expect_events(configuration: SketchConfiguration, before: int | None, events: int) -> int:
    """N: as configured, else as at the first build, else ten times the events there are."""
    return configuration.expected_events or before or 10 * max(1, events)


def _state(last: Publication) -> tuple[list[Plan], int]:
    plans = [Plan(entry["from_segment"], Sizing.of(entry["sizing"])) for entry in last.state["plans"]]
    return plans, int(last.state["expected_events"])


def _sparse(last: Publication) -> Sparse:
    """What the last segments were, where a publication says it."""
    known = last.state.get("sparse", {"segments": 0, "most": []})
    return Sparse(int(known["segments"]), tuple(known["most"]))
