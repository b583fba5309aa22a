"""A few events of two keys, as the table `events` has them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from patternlake.udfs.published import Published, PublishedBatch

TYPES = {"x": "double"}
STREAM = {"attributes": {"x": {"type": "double"}}, "key": "key"}
EVENT_FIELDS = (
    ("position", pa.int64()),
    ("time", pa.timestamp("us", "UTC")),
    ("step", pa.int64()),
    ("key", pa.string()),
    ("name", pa.string()),
    ("probability", pa.float64()),
    ("x:double", pa.float64()),
)
PUBLISHED = Published(PublishedBatch(object_id=1, base_batch=1, batch_id=1, configuration=json.dumps(STREAM)))
NAMES = "abcabacbcaab"
_MINUTE = 60_000_000
_KEYS = ("k", "l")


def some_events(first: int) -> list[dict[str, Any]]:
    """Some events of each key, in the order of keys and times."""
    return [
        {
            "part": [key],
            "position": first + number,
            "time": (first + number) * _MINUTE,
            "step": first + number,
            "key": key,
            "name": name,
            "probability": 0.5,
            "x:double": float((first + number) % 5),
        }
        for key in _KEYS
        for number, name in enumerate(NAMES)
    ]


def partitioned_events() -> pa.Table:
    """These events with the partition of each, as the portions of a function read them."""
    return pa.Table.from_pylist(some_events(1), pa.schema([("part", pa.list_(pa.string())), *EVENT_FIELDS]))
