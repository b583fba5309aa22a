"""What MEASURES of a pattern say, slow and obviously right: from the events that a match binds, one measure at a time.

Values are Python's, None is NULL. `random_measure` writes a measure and the Python that gives its value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from naive.row_pattern_measures import aggregate


@dataclass(frozen=True)
class Bound:
    """An event that a match binds: its position, its time, and all its columns."""

    position: int
    time: datetime
    columns: Mapping[str, Any]


Events = Mapping[str, Sequence[Bound]]
"""By operands the events of a match, in their order; an operand without events has none."""
Value = Callable[[Events], Any]


def one(events: Sequence[Bound], column: str, *, first: bool = True, offset: int = 0) -> Any:
    """A column of the n-th event from the first, or from the last, if there is one."""
    if offset >= len(events):
        return None
    event = events[offset] if first else events[-1 - offset]
    return event.time if column == "time" else event.columns[column]


def minus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left - right


def plus_half(value: Any) -> Any:
    """As Spark adds 0.5: to a whole number a DECIMAL."""
    if value is None:
        return None
    return value + 0.5 if isinstance(value, float) else value + Decimal("0.5")


def column_aggregate(name: str, events: Sequence[Bound], column: str, *, distinct: bool = False) -> Any:
    """An aggregate of a column, NULLs left out."""
    values = [one([event], column) for event in events]
    known = [value for value in values if value is not None]
    if name == "avg" and known and isinstance(known[0], Decimal):
        scale = -int(known[0].as_tuple().exponent)
        mean = sum(known, Decimal(0)) / len(known)
        return mean.quantize(Decimal(1).scaleb(-scale - 4), ROUND_HALF_UP)
    return aggregate(name, values, distinct=distinct)


def random_measure(
    rng: random.Random, single: Sequence[str], repeated: Sequence[str], types: Mapping[str, str]
) -> tuple[str, Value]:
    """A measure in SQL, and its value.

    Parameters
    ----------
    rng
        Chance.
    single, repeated
        Operands with one event, and with any number.
    types
        Columns and their Spark types.
    """
    numbers = [name for name, kind in types.items() if kind in ("int", "bigint", "double")]
    # Sums of wider ones may have other digits than those of the parts.
    decimals = [name for name, kind in types.items() if kind == "decimal(10,2)"]
    columns = [*types, "time"]
    kind = rng.choice(
        ["one", "first", "last", "least", "count", "distinct", "list", "sum", "gap", "less", "any", "every"]
    )
    a, b = rng.choice(single), rng.choice(repeated)
    column, number = rng.choice(columns), rng.choice(numbers)
    match kind:
        case "one":
            return f"{a}.{column}", lambda bound: one(bound[a], column)
        case "first" | "last":
            offset, first = rng.choice([0, 0, 1, 2]), kind == "first"
            written = f", {offset}" if offset else ""
            return f"{kind.upper()}({b}.{column}{written})", lambda bound: one(
                bound[b], column, first=first, offset=offset
            )
        case "least":
            name = rng.choice(["min", "max"])
            return f"{name}({b}.{column})", lambda bound: column_aggregate(name, bound[b], column)
        case "count":
            return f"count({b}.{column})", lambda bound: column_aggregate("count", bound[b], column)
        case "distinct":
            return f"COUNT(DISTINCT {b}.{column})", lambda bound: column_aggregate(
                "count", bound[b], column, distinct=True
            )
        case "list":
            return f"array_agg({b}.{column})", lambda bound: column_aggregate("array_agg", bound[b], column)
        case "sum":
            name, summed = rng.choice(["sum", "avg"]), rng.choice([*numbers, *decimals])
            return f"{name}({b}.{summed})", lambda bound: column_aggregate(name, bound[b], summed)
        case "gap":
            return f"t({a}) - FIRST(t({b}))", lambda bound: minus(one(bound[a], "time"), one(bound[b], "time"))
        case "less":
            return f"{a}.{number} - LAST({b}.{number})", lambda bound: minus(
                one(bound[a], number), one(bound[b], number, first=False)
            )
        case "any":
            # An expression of each event, which only Spark can aggregate.
            def halved(bound: Events) -> Any:
                more = [replace(e, columns={number: plus_half(e.columns[number])}) for e in bound[b]]
                return column_aggregate("sum", more, number)

            return f"sum({b}.{number} + 0.5)", halved
    return f"count({rng.choice([f'{b}.*', f'{b}.position'])})", lambda bound: len(bound[b])
