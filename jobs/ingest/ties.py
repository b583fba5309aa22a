"""Events of one time and key that nothing orders but their names: how many a stream has, and what to say of them.

The stream's `order:` decides between such events, and so do their places where they stand in one file. What is left is
ordered by the file's name and by the event's, so that the alphabet says which of two came first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.jobs.sources.expressions import deciding
from patternlake.udfs.arrays import IntArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.jobs.configuration.streams import StreamConfiguration

SHARE = 0.01
"""Of a stream's events, so many may be tied without a word."""

SHARED, NAMED = "shared", "named"
COLUMNS = (SHARED, NAMED)
"""Columns of prepared rows, beside the others: numbers of what tied events share, and of their names."""
_FILE = "file"


@dataclass(frozen=True)
class Ties:
    """How many events are tied.

    Parameters
    ----------
    tied
        Events that share time, key and the values of `order:` with an event of another name, and of another file where
        events have a place in one.
    events
        All accepted events.
    """

    tied: int = 0
    events: int = 0

    def __add__(self, other: Ties) -> Ties:
        return Ties(self.tied + other.tied, self.events + other.events)

    def told(self, stream: StreamConfiguration) -> str | None:
        """What to say of them; None where they are few."""
        if self.tied <= SHARE * self.events:
            return None
        shared = "time" if stream.key is None else "time and key"
        shared += "" if stream.order is None else " and `order`"
        files = stream.source.kind != "delta"
        where = " in another file" if files else ""
        decides = "the names of the files decide" if files else "their names decide, by the alphabet,"
        return (
            f"{self.tied:,} of {self.events:,} events ({self.tied / self.events:.1%}) share {shared} with an event of "
            f"another name{where}, and {decides} which comes first; write `order:` in the stream with an expression "
            "that says it, such as a sequence number"
        )


def mark(prepared: DataFrame, stream: StreamConfiguration) -> DataFrame:
    """Prepared rows with `COLUMNS`, where events of the stream may be tied."""
    columns = prepared.columns
    in_files = "place" in columns
    # Rows of a step are alternatives, and steps have an order; in one file, places decide.
    if stream.probabilistic or (in_files and _FILE not in columns):
        return prepared
    orders = [column for column in deciding(columns) if column not in (_FILE, "block", "place")]
    shared = ("time", "key", *orders)
    # A hash passes NULLs by.
    return prepared.withColumns({SHARED: F.xxhash64(*shared, *map(F.isnull, shared)), NAMED: F.xxhash64("name")})


def numbers_of(accepted: pa.Table) -> pa.Table:
    """Of accepted rows, what `count_tied` needs; no rows where none can be tied."""
    differing = [name for name in (NAMED, _FILE) if name in accepted.column_names]
    if SHARED not in accepted.column_names:
        return pa.table({name: pa.array([], pa.int64()) for name in COLUMNS})
    return accepted.select([SHARED, *differing])


def part_of(numbers: pa.Table, parts: int) -> IntArray:
    """int64[n]: one of so many parts for each row of `numbers_of`; rows that may be tied are in one."""
    found: IntArray = numbers[SHARED].to_numpy() % parts
    return found


def count_tied(numbers: pa.Table) -> int:
    """Count the tied events, given rows of `numbers_of`."""
    shared = numbers[SHARED].to_numpy()
    order = np.argsort(shared)
    alike = shared[order[1:]] == shared[order[:-1]]
    if not alike.any():
        return 0
    repeated = np.append(alike, False) | np.append(False, alike)
    differing = numbers.column_names[1:]
    groups = (
        numbers.take(pa.array(order[repeated]))
        .group_by(SHARED)
        .aggregate([*((name, bound) for name in differing for bound in ("min", "max")), (SHARED, "count")])
    )
    apart = [pc.less(groups[f"{name}_min"], groups[f"{name}_max"]) for name in differing]
    return int(pc.sum(groups.filter(functools.reduce(pc.and_, apart))[f"{SHARED}_count"]).as_py() or 0)
