"""A few events of two keys, as the table `events` has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

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
