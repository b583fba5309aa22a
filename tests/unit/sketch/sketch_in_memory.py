"""A sketch and its events in memory, to ask what reads them without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.delta_tables.reading.file_choice import truth
from patternlake.delta_tables.reading.state_reader import Condition, Fold
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.requests import BatchRange
from patternlake.udfs.sequences.lent_patterns import compile_asked
from patternlake.udfs.sketch.batch import TOP_BUCKET, SegmentPlan, segment_rows
from patternlake.udfs.sketch.reads import SketchReads
from patternlake.udfs.sketch.request import SketchState, check_call
from patternlake.udfs.sketch.sizing.planning import plan

LEAF, SEGMENT = 2, 8
HEIGHT = 3


class Tree:
    """A sketch in memory, which counts the nodes that are read of it; of the events, which blocks.

    Events have the attribute x, and `others`, each with its type.
    Blocks have `1 << block_bits` events, and `together` neighbouring segments lie in one bucket. Whether events are
    read without a look at the sketch, `cheap_events` says; `key` is the column that the stream takes its key from.
    """

    cheap_events = False
    key = "who"
    on_disk = True

    def __init__(
        self,
        names: Sequence[str],
        structure: str = "leveled",
        *,
        keys: Sequence[str] = ("k",),
        fpq: float = 1e-9,
        x: Sequence[float | None] | None = None,
        times: Sequence[int] | None = None,
        block_bits: int = 17,
        others: Mapping[str, tuple[str, Sequence[Any]]] | None = None,
        together: int = 1,
    ) -> None:
        self.events = len(names)
        self.structure = structure
        self.read = 0
        count = np.arange(len(names))
        events = pa.table(
            {
                "position": pa.array(count + 1, pa.int64()),
                "time": pa.array(count * 1000 if times is None else times, pa.int64()).cast(pa.timestamp("us", "UTC")),
                "key": pa.array([keys[number % len(keys)] for number in count], pa.string()),
                "tokens": pa.array([[name] for name in names], pa.list_(pa.string())),
            }
        )
        self.block_bits = block_bits
        named = events.select(["position", "time", "key", "tokens"])
        self.attributes = {"x": ("double", x or [None] * len(names)), **(others or {})}
        values = [
            [(name, None if of[number] is None else str(of[number])) for name, (_, of) in self.attributes.items()]
            for number in count
        ]
        written = named.append_column("name", pa.array(names, pa.string())).append_column(
            "attributes", pa.array(values, pa.map_(pa.string(), pa.string()))
        )
        self.stored = read_attributes(written, {name: kind for name, (kind, _) in self.attributes.items()})
        self.blocks_read: list[int] = []
        self.sizing = plan(
            structure, expected_events=max(1000, len(names)), memory=10**8, leaf_events=LEAF, fpq=fpq, height=HEIGHT
        )
        built = SegmentPlan(self.sizing, 3, True, expressions=1, number=0, stream_id=1, batch_id=0)
        rows = pa.Table.from_batches(list(segment_rows(events, built)))
        self.together = together
        top = pa.compute.equal(rows["bucket"], TOP_BUCKET)
        part = pa.compute.if_else(top, TOP_BUCKET, pa.compute.divide(rows["segment"], together)).cast(pa.int32())
        self.table = rows.set_column(rows.column_names.index("bucket"), "bucket", part)

    @property
    def reader(self) -> Tree:
        return self

    def small(
        self, table: str, where: Sequence[Condition], columns: Sequence[str] = (), few: int | None = None
    ) -> bool:
        return True

    def apart(self) -> Lake:
        raise AssertionError

    def version(self, table: str) -> int:
        return 0

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        return int(table == "events" and not self.cheap_events)

    def rows(
        self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Fold | None = None
    ) -> pa.Table:
        kept = self.table if table == "sketch_nodes" else self.stored
        for one in where:
            if one.column in ("stream_id", "from_batch", "to_batch", "batch_id"):
                continue
            kept = kept.filter(pa.array(truth(kept[one.column], one)))
        placed = [one for one in where if one.column == "position"]
        if table == "events" and placed:
            positions = self.stored["position"]
            lie = np.logical_and.reduce([truth(positions, one) for one in placed])
            self.blocks_read += np.unique((positions.to_numpy()[lie] - 1) >> self.block_bits).tolist()
        if table == "sketch_nodes":
            self.read += sum(map(len, kept["node"].to_pylist()))
        return kept.select(list(columns))

    def request(self, pattern: str, **arguments: Any) -> SketchReads:
        configuration = {
            "stream": {
                "attributes": {name: {"type": kind} for name, (kind, _) in self.attributes.items()},
                "key": self.key, "tokens": None,
            },
            "structure": self.structure, "fanout": 2, "events_per_leaf": LEAF, "keyed": True, "seed": 3,
        }  # fmt: skip
        state = {"plans": [{"sizing": asdict(self.sizing)}], "events": self.events}
        sketch = SketchState(json.dumps(configuration), json.dumps(state))
        request = check_call({"stream": "s", "pattern": pattern, **arguments}, sketch, ["s"], compile_asked)
        return SketchReads(request, BatchRange(1, 0, 0), BatchRange(1, 0, 0), self.together)
