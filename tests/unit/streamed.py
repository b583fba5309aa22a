"""Rows as a task gets them: events' columns, and cuts at random places."""

from __future__ import annotations

import random

import pyarrow as pa

EVENT_FIELDS = (
    ("position", pa.int64()),
    ("time", pa.timestamp("us", "UTC")),
    ("step", pa.int64()),
    ("key", pa.string()),
    ("name", pa.string()),
    ("probability", pa.float64()),
)


def cut(rng: random.Random, rows: pa.Table) -> list[pa.RecordBatch]:
    found = []
    while rows.num_rows:
        size = rng.randint(1, 7)
        found += rows.slice(0, size).to_batches()
        rows = rows.slice(size)
    return found
