"""Aggregates over a list of Python values, None for NULL: what Spark SQL gives with ANSI mode off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from naive.predicates import add, rank


def aggregate(function: str, values: Sequence[Any]) -> Any:
    """COUNT, SUM, MIN, MAX, AVG, FIRST or LAST of all values, in their order."""
    if function in ("FIRST", "LAST"):
        return None if not values else values[0] if function == "FIRST" else values[-1]
    known = [value for value in values if value is not None]
    if function == "COUNT":
        return len(known)
    if not known:
        return None
    if function in ("MIN", "MAX"):
        return (min if function == "MIN" else max)(known, key=rank)
    total = 0.0 if function == "AVG" or isinstance(known[0], float) else 0
    for value in known:
        total = add(total, float(value) if isinstance(total, float) else value)
    return total / len(known) if function == "AVG" else total
