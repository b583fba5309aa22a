"""Compiles the kernels of all jobs into numba's cache, so that the first batch of a new installation does not wait.

Numba compiles a kernel when it is first called with arrays of some types, and keeps the machine code beside the source.
So each engine is run once on a few events, the way the jobs' tasks run it: from Arrow's arrays, from nothing, and from
what an earlier batch remembers. ``python -m patternlake.udfs.warming`` does that without Spark.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from patternlake.udfs.groups import batches as group_batches
from patternlake.udfs.groups.answering import Groups
from patternlake.udfs.groups.question import compile_query
from patternlake.udfs.language.parser import parse
from patternlake.udfs.machines import batch_rows as machine_rows
from patternlake.udfs.machines.batches import Batches
from patternlake.udfs.machines.configured import groups_of
from patternlake.udfs.machines.trials import Trials
from patternlake.udfs.sketch import sizing
from patternlake.udfs.sketch.segments import SegmentPlan, segment_rows
from patternlake.udfs.trends.answering import Trends
from patternlake.udfs.trends.configured import layout_of
from patternlake.udfs.trends.graph_rows import graph_rows
from patternlake.udfs.trends.rows import VERTEX_SCHEMA, vertex_rows, vertices_from

_TYPES = {"x": "double"}
_STREAM = {"attributes": {"x": {"type": "double"}}, "key": "key"}
_EVENT_FIELDS = (
    ("position", pa.int64()),
    ("time", pa.timestamp("us", "UTC")),
    ("step", pa.int64()),
    ("key", pa.string()),
    ("name", pa.string()),
    ("probability", pa.float64()),
    ("attributes", pa.map_(pa.string(), pa.string())),
)
_MINUTE = 60_000_000
_NAMES = "abcabacbcaab"
_KEYS = ("k", "l")


def _events(first: int) -> list[dict[str, Any]]:
    """Some events of two keys, in the order of keys and times."""
    return [
        {
            "part": [key],
            "position": first + number,
            "time": (first + number) * _MINUTE,
            "step": first + number,
            "key": key,
            "name": name,
            "probability": 0.5,
            "attributes": [("x", str((first + number) % 5))],
        }
        for key in _KEYS
        for number, name in enumerate(_NAMES)
    ]


def _remembered(rows: Sequence[pa.RecordBatch], kind: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in columns} for batch in rows for row in batch.to_pylist() if row["kind"] == kind]


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each key's rows, what is remembered before events."""
    return sorted(rows, key=lambda row: (row["part"], "position" in row and "name" in row))


def warm_sketch() -> None:
    """The job `sketch`: some segments, with and without keys."""
    planned = sizing.plan("leveled", expected_events=100, memory=1 << 20, leaf_events=2, fpq=0.01, height=3)
    schema = pa.schema([*_EVENT_FIELDS[:2], ("key", pa.string()), ("tokens", pa.list_(pa.string()))])
    for keyed in (True, False):
        rows = [{**row, "position": at, "tokens": [row["name"]]} for at, row in enumerate(_events(1), start=1)]
        plan = SegmentPlan(planned, 0, keyed, expressions=1, number=0, stream_id=1, batch_id=0)
        list(segment_rows(pa.Table.from_pylist(rows, schema), plan))


def warm_trends() -> None:
    """The job `trends`, and the counts and lists that the functions give."""
    for query in (
        "PATTERN a+ e[] WHERE e[i].x > e[i-1].x PARTITION BY key WITHIN 8 MIN SLIDE 4 MIN",
        "PATTERN a+ e[] ; b WHERE e[i].x >= e[i-1].x * 2 AND t(e[i]) - t(e[i-1]) < 5 MIN WITHIN 8 MIN",
    ):
        layout = layout_of({"query": query, "params": {}, "stream": _STREAM})
        events = pa.Table.from_pylist(_events(1), pa.schema(_EVENT_FIELDS))
        batch = vertex_rows(layout, {name: events[name].combine_chunks() for name in events.column_names})
        columns = {name: batch[name] for name in VERTEX_SCHEMA.names}
        graph_rows(layout, columns)
        vertices, _ = vertices_from(layout, columns)
        trends = Trends(layout.question, vertices)
        trends.counts()
        trends.extract(0, trends.total())


def warm_groups() -> None:
    """The job `groups`: single and complete overlap, two batches."""
    schema = pa.schema([("part", group_batches.PART), ("state", pa.binary()), *_EVENT_FIELDS])
    for overlap in ("single", "complete"):
        asked = Groups(compile_query(parse("a, b+ | c WITHIN 4 EVENTS"), overlap=overlap))
        kept: list[dict[str, Any]] = []
        for first in (1, 1 + len(_NAMES)):
            rows = pa.Table.from_pylist(_in_order([*kept, *_events(first)]), schema)
            found = list(group_batches.Batches(asked, {}).rows(rows.to_batches()))
            kept = _remembered(found, group_batches.REMEMBERED, ("part", "state"))


def warm_machines() -> None:
    """The jobs `predict`, with two batches, and `evaluate`, with training and judging."""
    texts = (
        "a ; b",
        "a, b ; c",
        "p ; q @(t(q) - t(p) < 5 MIN) DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v",
        "(a & b) ; c",
        "a AS a1, a AS a2",
    )
    entries = {
        f"s{number}": {"query": f"{text} PARTITION BY key WITHIN 9 MIN", "decay": 0.0}
        for number, text in enumerate(texts)
    }
    groups = groups_of(entries, _STREAM)
    instance = ("part", *machine_rows.INSTANCE_COLUMNS)
    schema = pa.schema([*(machine_rows.BATCH_SCHEMA.field(name) for name in instance), *pa.schema(_EVENT_FIELDS)])
    kept: list[dict[str, Any]] = []
    for first in (1, 1 + len(_NAMES)):
        rows = pa.Table.from_pylist(_in_order([*kept, *_events(first)]), schema)
        found = list(Batches(groups, _TYPES, 0).rows(rows.to_batches()))
        kept = _remembered(found, machine_rows.INSTANCE, instance)
    events = pa.Table.from_pylist(_events(1), pa.schema([schema.field("part"), *pa.schema(_EVENT_FIELDS)]))
    for lookaheads in ((), (1, 4)):
        list(Trials(groups, _TYPES, 0, lookaheads).rows(events.to_batches()))


WARMED: dict[str, Callable[[], None]] = {
    "sketch": warm_sketch,
    "trends": warm_trends,
    "groups": warm_groups,
    "predict and evaluate": warm_machines,
}
"""What compiles the kernels of which jobs."""


def warm() -> Iterator[tuple[str, float]]:
    """Run every engine once; give its jobs and the seconds that it took."""
    for jobs, run in WARMED.items():
        begun = time.monotonic()
        run()
        yield jobs, time.monotonic() - begun


if __name__ == "__main__":
    for warmed, seconds in warm():
        sys.stdout.write(f"  {warmed}: {seconds:.0f} s\n")
        sys.stdout.flush()
