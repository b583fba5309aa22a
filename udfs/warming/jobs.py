"""Runs the engines of the jobs on a few events, so that their kernels are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.udfs.groups import batch as group_batches
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines import state as machine_rows
from patternlake.udfs.machines.batch import Batches
from patternlake.udfs.machines.forecasts.trials import Trials, told_by, trained_of
from patternlake.udfs.machines.from_config import groups_of
from patternlake.udfs.machines.kernels.workspace import NONE, rehash
from patternlake.udfs.sketch.batch import SegmentPlan, segment_rows
from patternlake.udfs.sketch.sizing import planning
from patternlake.udfs.warming.events import EVENT_FIELDS, NAMES, STREAM, TYPES, partitioned_events, some_events


def _remembered(rows: Sequence[pa.RecordBatch], kind: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in columns} for batch in rows for row in batch.to_pylist() if row["kind"] == kind]


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each key's rows, what is remembered before events."""
    return sorted(rows, key=lambda row: (row["part"], "position" in row and "name" in row))


def warm_sketch() -> None:
    """The job `sketch`: some segments of either structure, with and without keys."""
    schema = pa.schema([*EVENT_FIELDS[:2], ("key", pa.string()), ("tokens", pa.list_(pa.string()))])
    for structure, keyed in (("leveled", True), ("leveled", False), ("uniform", False)):
        planned = planning.plan(structure, expected_events=100, memory=1 << 20, leaf_events=2, fpq=0.01, height=3)
        rows = [{**row, "position": at, "tokens": [row["name"]]} for at, row in enumerate(some_events(1), start=1)]
        segments = SegmentPlan(planned, 0, keyed, expressions=1, number=0, stream_id=1, batch_id=0)
        list(segment_rows(pa.Table.from_pylist(rows, schema), segments))


def warm_groups() -> None:
    """The job `groups`: single and complete overlap, two batches."""
    schema = pa.schema([("part", group_batches.PART), ("state", pa.binary()), *EVENT_FIELDS])
    for overlap in ("single", "complete"):
        asked = Groups(compile_query(parse("a, b+ | c WITHIN 4 EVENTS"), overlap=overlap))
        kept: list[dict[str, Any]] = []
        for first in (1, 1 + len(NAMES)):
            rows = pa.Table.from_pylist(_in_order([*kept, *some_events(first)]), schema)
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
    groups = groups_of(entries, STREAM)
    instance = ("part", *machine_rows.INSTANCE_COLUMNS)
    schema = pa.schema([*(machine_rows.BATCH_SCHEMA.field(name) for name in instance), *pa.schema(EVENT_FIELDS)])
    kept: list[dict[str, Any]] = []
    for first in (1, 1 + len(NAMES)):
        rows = pa.Table.from_pylist(_in_order([*kept, *some_events(first)]), schema)
        found = list(Batches(groups, TYPES, 0).rows(rows.to_batches()))
        kept = _remembered(found, machine_rows.INSTANCE, instance)
    events = partitioned_events()
    apart = groups_of(entries, STREAM, apart=True)
    trained = [row for batch in Trials(apart, TYPES, 0).rows(events.to_batches()) for row in batch.to_pylist()]
    told = [
        told_by(group, trained_of(row), 0, 4, [1.0] * len(texts)) for group, row in zip(apart, trained, strict=True)
    ]
    list(Trials(apart, TYPES, 0, (1, 4), (0.5,), told).rows(events.to_batches()))
    # So few events do not fill a tally.
    rehash(np.zeros((1, 2), np.int64), np.zeros(1), np.full((2, 2), NONE), np.zeros(2))
